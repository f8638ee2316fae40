"""Requests that store a message: sends, replies, and returned, ended, or recalled messages.

RocketMQ: AbstractSendMessageProcessor, SendMessageProcessor, ReplyMessageProcessor,
EndTransactionProcessor, RecallMessageProcessor, SendMessageRequestHeader.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.foreign import integer_of
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.ids.message_ids import (
    RecallHandle,
    decode_recall_handle,
    encode_recall_handle,
)
from dissectors.remoting.messages.batch import decode_batch
from dissectors.remoting.messages.properties import decode_properties, encode_properties
from dissectors.remoting.send_fields import DEFAULT_REGION, V1, send_fields_of
from dissectors.remoting.sysflag import COMMIT, ROLLBACK, TRANSACTION_MASK
from dissectors.remoting.topic_names import DLQ_PREFIX, NOT_FOR_SENDS, RETRY_PREFIX

from ...unique_id import UniqueIds
from ..configs import WRITE, GroupConfig, TopicConfig, why_no_name
from ..events import EventKind
from ..request import BadRequest, ReceivedRequest, number_of, serves
from ..server import HandlerResponse
from ..state import BrokerState
from ..store.memory import NewMessage
from ..store.shelf import StoredRecord
from .schedule import TIMER_UNITS, Schedule
from .transaction import HalfMessages

_BATCH_LIMIT: Final = 100_000
_PUSH_SECONDS: Final = 10.0
"""How long the waiting client has to say that it got its reply."""
_REQUIRED: Final = V1[: V1.index(V1.properties)]
"""fields without which a broker refuses a send, by their long names"""
_PROPERTIES_LIMIT: Final = 32_767
"""bytes; MessageExtEncoder compares them in 4.9.7 and 5.5.0"""


class SendHeader(NamedTuple):
    """The header of a send, in either version."""

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


def _send_header(request: ReceivedRequest) -> SendHeader:
    """Return the header of a send; BadRequest if a field is missing or not a number."""
    fields = request.fields
    names = send_fields_of(request.command.code)
    values = [fields.get(name) for name in names[: len(_REQUIRED)]]
    group, topic, default_topic, queues, queue_id, sys_flag, born, flag = values
    if None in values:
        raise BadRequest(f"the custom field <{_REQUIRED[values.index(None)]}> is null")
    most = fields.get(names.max_reconsume_times)
    header = SendHeader(
        group or "",
        topic or "",
        default_topic or "",
        _int32(V1.default_topic_queue_nums, queues),
        _int32(V1.queue_id, queue_id),
        _int32(V1.sys_flag, sys_flag),
        number_of(V1.born_timestamp, born or ""),
        _int32(V1.flag, flag),
        fields.get(names.properties) or "",
        _int32(V1.reconsume_times, fields.get(names.reconsume_times) or "0"),
        None if most is None else _int32(V1.max_reconsume_times, most),
    )
    request.header_read = True
    return header


def _int32(name: str, text: str | None) -> int:
    number = number_of(name, text or "")
    if not -(1 << 31) <= number < 1 << 31:
        raise BadRequest(f"the custom field <{name}> is not an int")
    return number


_REGION_FIELDS: Final = {"MSG_REGION": DEFAULT_REGION, "TRACE_ON": "true"}
_Handle = Callable[["SendHandlers", ReceivedRequest], HandlerResponse | None]


def _with_region(method: _Handle) -> _Handle:
    """Wrap a handler so its errors contain the region, as all send responses do."""

    @wraps(method)
    def handle(self: SendHandlers, request: ReceivedRequest) -> HandlerResponse | None:
        try:
            return method(self, request)
        except BadRequest as bad:
            if request.header_read:
                bad.response = bad.response._replace(fields=_REGION_FIELDS)
            raise

    return handle


class SendHandlers:
    """Serves sends, and requests about stored messages, at one broker."""

    def __init__(self, state: BrokerState, schedule: Schedule, transactions: HalfMessages) -> None:
        self._state = state
        self._schedule = schedule
        self._transactions = transactions
        self._ids = UniqueIds(host_of(state.address), os.getpid(), id(self))

    # -- sends ------------------------------------------------------------------------------------

    @serves(RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2)
    @_with_region
    def send(self, request: ReceivedRequest) -> HandlerResponse | None:
        """Handle 10 and 310: store one message."""
        if request.fields.get(send_fields_of(request.command.code).batch) == "true":
            return self.send_batch(request)
        header = _send_header(request)
        config = self._topic_for(header)
        queue_id = self._queue_of(header, config, request)
        body = request.body
        if len(body) > self._state.options.max_message_size:
            raise self._illegal()
        if not body and self._state.options.is_5:
            request.header_read = False  # a real broker also responds without fields
            raise BadRequest("the message has no body")
        properties = self._properties(header.properties)
        if self._state.options.is_5 and "UNIQ_KEY" not in properties:
            properties["UNIQ_KEY"] = self._ids.next(self._state.now_ms())
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
        # As in Java: a retry of a client before 4.6.1 still has the property of its half message.
        half = properties.get("TRAN_MSG", "").lower() == "true" and not (
            header.reconsume_times > 0 and "DELAY" in properties
        )
        if header.topic.startswith(RETRY_PREFIX):
            message = self._retried(message, header)
        record = self._store(message, self._transactions.put if half else None)
        self._count(request, header.topic, 1)
        return self._stored(record, queue_id, properties, header.topic)

    def _retried(self, message: NewMessage, header: SendHeader) -> NewMessage:
        """Return a message for a retry topic, or a dead letter after too many retries."""
        group = header.topic.removeprefix(RETRY_PREFIX)
        most = self._state.groups.of(group).retry_max
        if header.max_reconsume_times is not None:
            most = header.max_reconsume_times
        # 4.x compares by >=, 5.x by >: an orderly consumer of 5.x has counted the last try, too
        times = message.reconsume_times - self._state.options.is_5
        return message if times < most else self._dead(message, group)

    @serves(RequestCode.SEND_BATCH_MESSAGE)
    @_with_region
    def send_batch(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 320: store several messages of one topic and queue."""
        header = _send_header(request)
        if header.topic.startswith(RETRY_PREFIX) and self._state.options.is_5:
            raise BadRequest(
                f"batch request does not support retry group {header.topic}",
                ResponseCode.MESSAGE_ILLEGAL,
            )
        config = self._topic_for(header)
        queue_id = self._queue_of(header, config, request)
        if len(request.body) > self._state.options.max_message_size:
            raise self._illegal()
        batch = decode_batch(request.body)
        if batch.problems or not 0 < len(batch.items) <= _BATCH_LIMIT:
            raise self._illegal()
        messages = [
            NewMessage(
                header.topic,
                queue_id,
                item.body,
                self._completed_item(item.properties),
                item.flag,
                header.sys_flag & ~TRANSACTION_MASK,
                header.born_timestamp,
                request.connection.peer,
            )
            for item in batch.items
        ]
        try:
            records = self._state.put_all(messages)
        except ValueError:
            raise self._illegal() from None
        self._count(request, header.topic, len(records))
        response = self._stored(records[0], queue_id, {}, header.topic)
        ids = ",".join(map(self._state.store.offset_id, records))
        return response._replace(fields={**(response.fields or {}), "msgId": ids})

    # -- replies ----------------------------------------------------------------------------------

    @serves(RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2)
    @_with_region
    def reply(self, request: ReceivedRequest) -> HandlerResponse | None:
        """Handle 324 and 325: store a reply and push it to the client that waits for it."""
        header = _send_header(request)
        config = self._topic_for(header)
        queue_id = self._queue_of(header, config, request)
        properties = self._properties(header.properties, reply=True)
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
        record = self._store(message)
        response = self._stored(record, queue_id, {}, header.topic)
        client_id = properties.get("REPLY_TO_CLIENT", "")
        target = self._state.clients.client(client_id)
        # an error although the reply is stored, as in RocketMQ
        if target is None:
            remark = f"push reply message fail, channel of <{client_id}> not found."
            return response._replace(code=int(ResponseCode.SYSTEM_ERROR), remark=remark)
        failed = response._replace(
            code=int(ResponseCode.SYSTEM_ERROR), remark=f"push reply message to {client_id}fail."
        )
        self._count(request, header.topic, 1)
        timer: asyncio.TimerHandle | None = None

        def answered(answer: RemotingCommand | None, _: bytes) -> None:
            if timer is not None:
                timer.cancel()
            request.respond(failed if answer is None else response)

        def late() -> None:
            target.forget_request(answered)
            request.respond(failed)

        fields = self._push_fields(header, record, properties, request)
        code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
        if not target.ask(code, fields, request.body, answered):
            return failed
        timer = asyncio.get_running_loop().call_later(_PUSH_SECONDS, late)
        request.release()
        return None

    def _push_fields(
        self,
        header: SendHeader,
        record: StoredRecord,
        properties: dict[str, str],
        request: ReceivedRequest,
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

    # -- stored messages --------------------------------------------------------------------------

    @serves(RequestCode.CONSUMER_SEND_MSG_BACK)
    def send_back(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 36: store a returned message for redelivery, or as a dead letter."""
        state = self._state
        group = request.text("group")
        config = state.groups.of(group)
        if config.retry_queues <= 0:
            return HandlerResponse()
        retry = state.topic_of_retries(RETRY_PREFIX + group, config.retry_queues)
        record = state.store.at(request.number("offset"))
        if record is None:
            raise BadRequest(f"look message by offset failed, {request.number('offset')}")
        self._give_back(record, config, retry, request)
        return HandlerResponse()

    def _give_back(
        self,
        record: StoredRecord,
        config: GroupConfig,
        retry: TopicConfig,
        request: ReceivedRequest,
    ) -> None:
        stored = record.message()
        level = request.number("delayLevel", 0)
        most = request.number("maxReconsumeTimes", config.retry_max)
        properties = dict(stored.properties)
        # a message that is returned again keeps its first topic and id
        properties.setdefault("RETRY_TOPIC", stored.topic)
        origin = self._state.store.offset_id(record)
        properties.setdefault("ORIGIN_MESSAGE_ID", origin)
        queue_id = self._state.random.randrange(max(1, retry.write_queues))
        message = NewMessage.again(stored, retry.name, queue_id, properties)
        if stored.reconsume_times >= most or level < 0:
            properties.setdefault("DLQ_ORIGIN_TOPIC", properties["RETRY_TOPIC"])
            properties.setdefault("DLQ_ORIGIN_MESSAGE_ID", properties["ORIGIN_MESSAGE_ID"])
            self._state.put(self._dead(message, config.name))
        else:
            # level 0 leaves the choice to the broker: 10 s, and longer after each further failure
            properties["DELAY"] = str(level if level > 0 else 3 + stored.reconsume_times)
            self._schedule.put(message)

    @serves(RequestCode.END_TRANSACTION)
    def end_transaction(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 37: commit or roll back; unknown changes nothing."""
        outcome = request.number("commitOrRollback")
        if outcome not in (COMMIT, ROLLBACK):
            return HandlerResponse()
        problem = self._transactions.end(
            request.number("commitLogOffset"), outcome, request.text("producerGroup")
        )
        return HandlerResponse() if problem is None else HandlerResponse(1, remark=problem)

    @serves(RequestCode.RECALL_MESSAGE)
    def recall(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 370: recall a timer message."""
        handle = decode_recall_handle(request.text("recallHandle"))
        if handle is None:
            raise BadRequest("recall handle is invalid", ResponseCode.ILLEGAL_OPERATION)
        record = self._schedule.recall(handle.topic, handle.unique_key)
        if record is None:
            raise BadRequest("no such message waits", ResponseCode.ILLEGAL_OPERATION)
        return HandlerResponse(0, {"msgId": handle.unique_key})

    # -- rules of all sends -----------------------------------------------------------------------

    def _topic_for(self, header: SendHeader) -> TopicConfig:
        """Return the topic of a send, created if allowed; BadRequest if it is not writable."""
        state = self._state
        config = state.topics.get(header.topic)
        if config is not None and not config.order and header.topic not in NOT_FOR_SENDS:
            return config  # a real broker checks neither the topic's perm nor its own here
        problem = why_no_name(header.topic, state.options.is_5)
        if problem is not None:
            raise BadRequest(problem, state.argument_code)
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
                    f"topic[{header.topic}] not exist, apply first please!{state.options.faq}",
                    ResponseCode.TOPIC_NOT_EXIST,
                )
        if config.order and not state.perm & WRITE:
            raise BadRequest(
                f"the broker[{host_of(state.address)}] sending message is forbidden",
                ResponseCode.NO_PERMISSION,
            )
        return config

    def _queue_of(self, header: SendHeader, config: TopicConfig, request: ReceivedRequest) -> int:
        """Return the queue of a send, any one if negative; BadRequest if too high."""
        # as AbstractSendMessageProcessor.msgCheck
        most = max(config.write_queues, config.read_queues)
        if header.queue_id >= most:
            raise BadRequest(
                f"request queueId[{header.queue_id}] is illegal, "
                f"{config.text(self._state.options.is_5)} Producer: {request.connection.peer}",
                self._state.argument_code,
            )
        if header.queue_id < 0:
            return self._state.random.randrange(max(1, config.write_queues))
        return header.queue_id

    def _properties(self, text: str, *, reply: bool = False) -> dict[str, str]:
        """Return the properties of a send header, as the emulated release stores them."""
        properties = decode_properties(text)
        if self._state.options.is_5:
            properties |= _REGION_FIELDS
        else:
            properties.pop("WAIT", None)
        if not reply:
            properties["CLUSTER"] = self._state.options.cluster
        return properties

    def _completed_item(self, properties: dict[str, str]) -> dict[str, str]:
        """Return the properties of one message of a batch as a broker stores them."""
        if self._state.options.is_5:
            return properties
        return {**properties, "CLUSTER": self._state.options.cluster}

    def _store(
        self, message: NewMessage, put: Callable[[NewMessage], StoredRecord] | None = None
    ) -> StoredRecord:
        """Store a message by `put`, or schedule it; BadRequest if that fails."""
        is_5 = self._state.options.is_5
        try:
            text = encode_properties(message.properties, final_separator=is_5)
            # counted as stored, with those that the broker adds
            if len(text.encode(errors="replace")) > _PROPERTIES_LIMIT:
                raise self._illegal()
            return (put or self._schedule.put)(message)
        except ValueError:
            raise self._illegal() from None

    def _dead(self, message: NewMessage, group: str) -> NewMessage:
        """Return the message as a dead letter of a group."""
        config = self._state.topic_of_retries(DLQ_PREFIX + group)
        properties = {name: text for name, text in message.properties.items() if name != "DELAY"}
        self._state.tell(EventKind.DEAD_LETTER, topic=config.name, detail=f"group {group}")
        return replace(message, topic=config.name, queue_id=0, properties=properties)

    def _count(self, request: ReceivedRequest, topic: str, count: int) -> None:
        """Count messages that a client sent."""
        self._state.messages_in += count
        code = request.command.code
        self._state.tell(EventKind.SENT, request.connection, code=code, topic=topic, count=count)

    def _stored(
        self, record: StoredRecord, queue_id: int, properties: dict[str, str], topic: str
    ) -> HandlerResponse:
        """Return the response to a send that was stored."""
        fields = {
            "msgId": self._state.store.offset_id(record),
            "queueId": str(queue_id),
            "queueOffset": str(record.queue_offset),
            **_REGION_FIELDS,
        }
        unique_key = properties.get("UNIQ_KEY")
        if unique_key is not None and self._state.options.is_5:
            fields["transactionId"] = unique_key
            if not TIMER_UNITS.keys().isdisjoint(properties):
                out = integer_of(record.message().properties.get("TIMER_OUT_MS", "")) or 0
                handle = RecallHandle("v1", topic, self._state.name, out, unique_key)
                fields["recallHandle"] = encode_recall_handle(handle)
        return HandlerResponse(0, fields)

    def _illegal(self) -> BadRequest:
        """Return the error for an oversized or invalid message."""
        return BadRequest(
            "the message is illegal, maybe msg body or properties length not matched. msg body "
            f"length limit {self._state.options.max_message_size}B, msg properties length limit "
            "32KB.",
            ResponseCode.MESSAGE_ILLEGAL,
        )
