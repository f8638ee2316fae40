"""Requests that store messages: sends of every form, replies, messages sent back.

RocketMQ: AbstractSendMessageProcessor, SendMessageProcessor, ReplyMessageProcessor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from dissectors.remoting.batch import decode_batch
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.ids import RecallHandle, decode_recall_handle, encode_recall_handle
from dissectors.remoting.properties import decode_properties, encode_properties
from dissectors.remoting.sysflag import TRANSACTION_MASK

from .events import EventKind
from .request import Answer, BadRequest, Handler, Request, number_of
from .schedule import Schedule
from .state import REGION, BrokerState
from .store import NewMessage, Record, offset_id
from .topics import DLQ_PREFIX, NOT_FOR_SENDS, RETRY_PREFIX, WRITE, TopicConfig, why_no_name
from .transaction import Transactions

_V2_CODES: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
    }
)
_LONG_NAMES: Final = (
    *("producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag"),
    *("bornTimestamp", "flag", "properties", "reconsumeTimes", "maxReconsumeTimes"),
)
_LETTERS: Final = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "l")
_PROPERTIES_LIMIT: Final = 32_767
_BATCH_LIMIT: Final = 100_000
_TIMER_NAMES: Final = frozenset({"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"})
_PUSH_SECONDS: Final = 10.0
FAQ: Final = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


class SendHeader(NamedTuple):
    """The header of a send, of either form."""

    group: str
    topic: str
    default_topic: str
    default_queues: int
    queue_id: int
    sys_flag: int
    born_timestamp: int
    flag: int
    properties: str
    reconsume_times: int
    max_reconsume_times: int | None


def send_header(request: Request) -> SendHeader:
    """The header of a send; BadRequest where a field is missing or no number."""
    fields = request.fields
    names = _LETTERS if request.command.code in _V2_CODES else _LONG_NAMES
    values = [fields.get(name) for name in names]
    group, topic, default_topic, queues, queue_id, sys_flag, born, flag = values[:8]
    if None in values[:8]:
        missing = _LONG_NAMES[values.index(None)]
        raise BadRequest(f"the custom field <{missing}> is null")
    most = values[10]
    return SendHeader(
        group or "",
        topic or "",
        default_topic or "",
        _int32("defaultTopicQueueNums", queues),
        _int32("queueId", queue_id),
        _int32("sysFlag", sys_flag),
        number_of("bornTimestamp", born or ""),
        _int32("flag", flag),
        values[8] or "",
        _int32("reconsumeTimes", values[9] or "0"),
        None if most is None else _int32("maxReconsumeTimes", most),
    )


def _int32(name: str, text: str | None) -> int:
    number = number_of(name, text or "")
    if not -(1 << 31) <= number < 1 << 31:
        raise BadRequest(f"the custom field <{name}> is no int")
    return number


class SendHandlers:
    """Serves sends at one broker."""

    def __init__(self, state: BrokerState, schedule: Schedule, transactions: Transactions) -> None:
        self._state = state
        self._schedule = schedule
        self._transactions = transactions

    def handlers(self) -> dict[int, Handler]:
        """Request code → what serves it."""
        return {
            RequestCode.SEND_MESSAGE: self.send,
            RequestCode.SEND_MESSAGE_V2: self.send,
            RequestCode.SEND_BATCH_MESSAGE: self.send_batch,
            RequestCode.CONSUMER_SEND_MSG_BACK: self.send_back,
            RequestCode.SEND_REPLY_MESSAGE: self.reply,
            RequestCode.SEND_REPLY_MESSAGE_V2: self.reply,
            RequestCode.END_TRANSACTION: self.end_transaction,
            RequestCode.RECALL_MESSAGE: self.recall,
        }

    # -- sends ----------------------------------------------------------------------------------

    def send(self, request: Request) -> Answer:
        """10, 310: one message."""
        if request.fields.get("m") == "true" or request.fields.get("batch") == "true":
            return self.send_batch(request)
        header = send_header(request)
        config = self._topic_for(header)
        queue_id = self._queue_of(header, config, request)
        body = request.body
        if len(body) > self._state.options.max_message_size:
            raise _illegal(self._state, "msg body")
        properties = self._properties(header.properties)
        message = NewMessage(
            header.topic,
            queue_id,
            body,
            properties,
            header.flag,
            header.sys_flag & ~TRANSACTION_MASK,
            header.born_timestamp,
            request.connection.peer,
            header.reconsume_times,
        )
        half = properties.get("TRAN_MSG", "").lower() == "true" and not (
            header.reconsume_times > 0 and "DELAY" in properties
        )
        if header.topic.startswith(RETRY_PREFIX):
            message = self._retried(message, header)
        record = self._transactions.put(message) if half else self._store(message)
        self._count(request, header.topic, 1)
        return self._stored(record, queue_id, properties, header.topic)

    def _store(self, message: NewMessage) -> Record:
        try:
            return self._schedule.put(message)
        except ValueError:
            raise _illegal(self._state, "msg properties") from None

    def send_batch(self, request: Request) -> Answer:
        """320: several messages of one topic and queue."""
        header = send_header(request)
        if header.topic.startswith(RETRY_PREFIX):
            raise BadRequest(
                f"batch request does not support retry group {header.topic}",
                ResponseCode.MESSAGE_ILLEGAL,
            )
        config = self._topic_for(header)
        queue_id = self._queue_of(header, config, request)
        if len(request.body) > self._state.options.max_message_size:
            raise _illegal(self._state, "msg body")
        batch = decode_batch(request.body)
        if batch.problems or not 0 < len(batch.items) <= _BATCH_LIMIT:
            raise _illegal(self._state, "batch")
        records = []
        for item in batch.items:
            message = NewMessage(
                header.topic,
                queue_id,
                item.body,
                self._completed(dict(item.properties)),
                item.flag,
                header.sys_flag & ~TRANSACTION_MASK,
                header.born_timestamp,
                request.connection.peer,
            )
            try:
                records.append(self._state.put(message))
            except ValueError:
                raise _illegal(self._state, "msg properties") from None
        self._count(request, header.topic, len(records))
        answer = self._stored(records[0], queue_id, {}, header.topic)
        ids = ",".join(offset_id(self._state.store.store_host, r.physical_offset) for r in records)
        return answer._replace(fields={**(answer.fields or {}), "msgId": ids})

    def _topic_for(self, header: SendHeader) -> TopicConfig:
        """The topic of a send, made where it may be; BadRequest for one that cannot be sent to."""
        state = self._state
        if not state.perm & WRITE:
            raise BadRequest(
                f"the broker[{state.address.rpartition(':')[0]}] sending message is forbidden",
                ResponseCode.NO_PERMISSION,
            )
        config = state.topics.get(header.topic)
        if config is not None and config.perm & WRITE and header.topic not in NOT_FOR_SENDS:
            return config
        problem = why_no_name(header.topic)
        if problem is not None:
            raise BadRequest(problem, self._state.argument_code)
        if header.topic in NOT_FOR_SENDS:
            raise BadRequest(
                f"Sending message to topic[{header.topic}] is forbidden.",
                ResponseCode.NO_PERMISSION,
            )
        if config is None:
            config = state.topics.made_by_send(
                header.topic,
                header.default_topic,
                header.default_queues,
                state.options.auto_create,
            )
            if config is None or not state.put_topic(config):
                raise BadRequest(
                    f"topic[{header.topic}] not exist, apply first please!{FAQ}",
                    ResponseCode.TOPIC_NOT_EXIST,
                )
        if not config.perm & WRITE:
            raise BadRequest(
                f"the topic[{header.topic}] sending message is forbidden",
                ResponseCode.NO_PERMISSION,
            )
        return config

    def _queue_of(self, header: SendHeader, config: TopicConfig, request: Request) -> int:
        most = max(config.write_queues, config.read_queues)
        if header.queue_id >= most:
            raise BadRequest(
                f"request queueId[{header.queue_id}] is illegal, {header.topic} topicConfig "
                f"readQueueNums[{config.read_queues}] writeQueueNums[{config.write_queues}] "
                f"Producer: {request.connection.peer}",
                self._state.argument_code,
            )
        if header.queue_id < 0:
            return self._state.random.randrange(max(1, config.write_queues))
        return header.queue_id

    def _properties(self, text: str) -> dict[str, str]:
        if len(text) > _PROPERTIES_LIMIT:
            raise _illegal(self._state, "msg properties")
        return self._completed(decode_properties(text))

    def _completed(self, properties: dict[str, str]) -> dict[str, str]:
        """Properties as a broker stores them."""
        properties.pop("WAIT", None)
        properties["MSG_REGION"] = REGION
        properties["TRACE_ON"] = "true"
        properties["CLUSTER"] = self._state.options.cluster
        return properties

    def _retried(self, message: NewMessage, header: SendHeader) -> NewMessage:
        """A message to a retry topic: after too many times it is a dead letter."""
        group = header.topic.removeprefix(RETRY_PREFIX)
        most = self._state.groups.of(group).retry_max
        if header.max_reconsume_times is not None:
            most = header.max_reconsume_times
        if message.reconsume_times < most:
            return message
        return self._dead(message, group)

    def _dead(self, message: NewMessage, group: str) -> NewMessage:
        config = self._state.topic_of_retries(DLQ_PREFIX + group)
        properties = {name: text for name, text in message.properties.items() if name != "DELAY"}
        self._state.tell(EventKind.DEAD_LETTER, topic=config.name, detail=f"group {group}")
        return replace(message, topic=config.name, queue_id=0, properties=properties)

    def _count(self, request: Request, topic: str, count: int) -> None:
        self._state.messages_in += count
        if self._state.options.on_event is not None:
            self._state.tell(
                EventKind.SENT,
                request.connection,
                code=request.command.code,
                topic=topic,
                count=count,
            )

    def _stored(
        self, record: Record, queue_id: int, properties: dict[str, str], topic: str
    ) -> Answer:
        fields = {
            "msgId": offset_id(self._state.store.store_host, record.physical_offset),
            "queueId": str(queue_id),
            "queueOffset": str(record.queue_offset),
            "MSG_REGION": REGION,
            "TRACE_ON": "true",
        }
        unique_key = properties.get("UNIQ_KEY")
        if unique_key is not None:
            fields["transactionId"] = unique_key
            if not _TIMER_NAMES.isdisjoint(properties):
                out = record.message().properties.get("TIMER_OUT_MS", "0")
                handle = RecallHandle("v1", topic, self._state.name, int(out), unique_key)
                fields["recallHandle"] = encode_recall_handle(handle)
        return Answer(0, fields)

    def recall(self, request: Request) -> Answer:
        """370: a timer message is taken back."""
        handle = decode_recall_handle(request.text("recallHandle"))
        if handle is None:
            raise BadRequest("recall handle is invalid", ResponseCode.ILLEGAL_OPERATION)
        record = self._schedule.recall(handle.topic, handle.unique_key)
        if record is None:
            raise BadRequest("no such message waits", ResponseCode.ILLEGAL_OPERATION)
        return Answer(0, {"msgId": handle.unique_key})

    # -- messages sent back, transactions -------------------------------------------------------

    def send_back(self, request: Request) -> Answer:
        """36: a consumer failed; the message comes again later, or is a dead letter."""
        state = self._state
        group = request.text("group")
        config = state.groups.get(group)
        if config is None:
            raise BadRequest(
                f"subscription group not exist, {group} {FAQ}",
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            )
        if config.retry_queues <= 0:
            return Answer()
        retry = state.topic_of_retries(RETRY_PREFIX + group, config.retry_queues)
        record = state.store.at(request.number("offset"))
        if record is None:
            raise BadRequest(f"look message by offset failed, {request.number('offset')}")
        stored = record.message()
        level = request.number("delayLevel", 0)
        most = request.number("maxReconsumeTimes", config.retry_max)
        properties = dict(stored.properties)
        properties.setdefault("RETRY_TOPIC", stored.topic)
        origin = offset_id(state.store.store_host, record.physical_offset)
        properties.setdefault("ORIGIN_MESSAGE_ID", origin)
        message = NewMessage(
            retry.name,
            state.random.randrange(max(1, retry.write_queues)),
            stored.body,
            properties,
            stored.flag,
            stored.sys_flag,
            stored.born_timestamp,
            stored.born_host,
            stored.reconsume_times + 1,
        )
        if stored.reconsume_times >= most or level < 0:
            properties.setdefault("DLQ_ORIGIN_TOPIC", properties["RETRY_TOPIC"])
            properties.setdefault("DLQ_ORIGIN_MESSAGE_ID", properties["ORIGIN_MESSAGE_ID"])
            state.put(self._dead(message, group))
            return Answer()
        properties["DELAY"] = str(level if level > 0 else 3 + stored.reconsume_times)
        self._schedule.put(message)
        return Answer()

    def end_transaction(self, request: Request) -> Answer:
        """37: commit or rollback; unknown changes nothing."""
        outcome = request.number("commitOrRollback")
        if outcome not in (8, 12):
            return Answer()
        problem = self._transactions.end(
            request.number("commitLogOffset"), outcome, request.text("producerGroup")
        )
        return Answer() if problem is None else Answer(1, None, b"", problem)

    # -- replies --------------------------------------------------------------------------------

    def reply(self, request: Request) -> Answer | None:
        """324, 325: stored, and pushed to the client that waits for it."""
        header = send_header(request)
        config = self._topic_for(header)
        queue_id = self._queue_of(header, config, request)
        properties = self._properties(header.properties)
        message = NewMessage(
            header.topic,
            queue_id,
            request.body,
            properties,
            header.flag,
            header.sys_flag,
            header.born_timestamp,
            request.connection.peer,
        )
        client_id = properties.get("REPLY_TO_CLIENT", "")
        target = self._state.clients.client(client_id)
        if target is None:
            self._store(message)
            return Answer(1, None, b"", f"push reply message to {client_id}fail.")
        record = self._store(message)
        self._count(request, header.topic, 1)
        answer = self._stored(record, queue_id, properties, header.topic)

        def answered(response: object, body: bytes) -> None:  # noqa: ARG001
            failed = Answer(1, None, b"", f"push reply message to {client_id}fail.")
            request.answer(failed if response is None else answer)

        fields = self._push_fields(header, record, properties, request)
        target.ask(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, fields, request.body, answered)
        return None

    def _push_fields(
        self, header: SendHeader, record: Record, properties: dict[str, str], request: Request
    ) -> dict[str, str]:
        pushed = {**properties, "PUSH_REPLY_TIME": str(self._state.now_ms())}
        return {
            "producerGroup": header.group,
            "topic": header.topic,
            "defaultTopic": header.default_topic,
            "defaultTopicQueueNums": str(header.default_queues),
            "queueId": str(header.queue_id),
            "sysFlag": str(header.sys_flag),
            "bornTimestamp": str(header.born_timestamp),
            "flag": str(header.flag),
            "properties": encode_properties(pushed),
            "reconsumeTimes": str(header.reconsume_times),
            "bornHost": request.connection.peer,
            "storeHost": self._state.store.store_host,
            "storeTimestamp": str(record.store_ms),
        }


def _illegal(state: BrokerState, what: str) -> BadRequest:
    return BadRequest(
        f"the message is illegal, maybe {what} or properties length not matched. msg body length "
        f"limit {state.options.max_message_size}B, msg properties length limit 32KB.",
        ResponseCode.MESSAGE_ILLEGAL,
    )
