"""What holds for every request that stores a message: its header, topic, queue, properties.

RocketMQ: AbstractSendMessageProcessor, SendMessageRequestHeader, SendMessageRequestHeaderV2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.ids import RecallHandle, encode_recall_handle, integer_of
from dissectors.remoting.properties import decode_properties

from .events import EventKind
from .request import Answer, BadRequest, Handler, Request, number_of
from .schedule import Schedule
from .shelf import Record
from .state import REGION, BrokerState
from .store import NewMessage, offset_id
from .topics import DLQ_PREFIX, NOT_FOR_SENDS, WRITE, TopicConfig, why_no_name

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
_TIMER_NAMES: Final = frozenset({"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"})


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
    header = SendHeader(
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
    request.header_read = True
    return header


def _int32(name: str, text: str | None) -> int:
    number = number_of(name, text or "")
    if not -(1 << 31) <= number < 1 << 31:
        raise BadRequest(f"the custom field <{name}> is no int")
    return number


_REGION_FIELDS: Final = {"MSG_REGION": REGION, "TRACE_ON": "true"}


class SendRules:
    """The rules of sends at one broker."""

    def __init__(self, state: BrokerState, schedule: Schedule) -> None:
        self._state = state
        self._schedule = schedule

    def topic_for(self, header: SendHeader) -> TopicConfig:
        """The topic of a send, made where it may be; BadRequest for one that cannot be sent to."""
        state = self._state
        config = state.topics.get(header.topic)
        if config is not None and not config.order and header.topic not in NOT_FOR_SENDS:
            return config  # a broker heeds neither the topic's perm nor its own here
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
                    f"topic[{header.topic}] not exist, apply first please!{state.faq}",
                    ResponseCode.TOPIC_NOT_EXIST,
                )
        if config.order and not state.perm & WRITE:
            raise BadRequest(
                f"the broker[{state.address.rpartition(':')[0]}] sending message is forbidden",
                ResponseCode.NO_PERMISSION,
            )
        return config

    def queue_of(self, header: SendHeader, config: TopicConfig, request: Request) -> int:
        """The queue of a send, any one for a negative number; BadRequest for one too high."""
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

    def properties(self, text: str, *, reply: bool = False) -> dict[str, str]:
        """The properties of a send header, as a broker stores them."""
        if len(text) > _PROPERTIES_LIMIT:
            raise self.illegal()
        return self.completed(decode_properties(text), reply=reply)

    def completed(self, properties: dict[str, str], *, reply: bool = False) -> dict[str, str]:
        """Properties as a broker stores them, which each generation does in its way."""
        if self._state.options.is_5:
            properties |= _REGION_FIELDS
        else:
            properties.pop("WAIT", None)
        if not reply:
            properties["CLUSTER"] = self._state.options.cluster
        return properties

    def completed_item(self, properties: dict[str, str]) -> dict[str, str]:
        """Properties of one message of a batch as a broker stores them."""
        if self._state.options.is_5:
            return properties
        return {**properties, "CLUSTER": self._state.options.cluster}

    def store(self, message: NewMessage) -> Record:
        """Store a message, now or for later; BadRequest for one that cannot be."""
        try:
            return self._schedule.put(message)
        except ValueError:
            raise self.illegal() from None

    def dead(self, message: NewMessage, group: str) -> NewMessage:
        """The message as a dead letter of a group."""
        config = self._state.topic_of_retries(DLQ_PREFIX + group)
        properties = {name: text for name, text in message.properties.items() if name != "DELAY"}
        self._state.tell(EventKind.DEAD_LETTER, topic=config.name, detail=f"group {group}")
        return replace(message, topic=config.name, queue_id=0, properties=properties)

    def count(self, request: Request, topic: str, count: int) -> None:
        """Count messages that a client sent."""
        self._state.messages_in += count
        if self._state.options.on_event is not None:
            self._state.tell(
                EventKind.SENT,
                request.connection,
                code=request.command.code,
                topic=topic,
                count=count,
            )

    def stored(
        self, record: Record, queue_id: int, properties: dict[str, str], topic: str
    ) -> Answer:
        """The answer to a send that was stored."""
        fields = {
            "msgId": offset_id(self._state.store.store_host, record.physical_offset),
            "queueId": str(queue_id),
            "queueOffset": str(record.queue_offset),
            **_REGION_FIELDS,
        }
        unique_key = properties.get("UNIQ_KEY")
        if unique_key is not None and self._state.options.is_5:
            fields["transactionId"] = unique_key
            if not _TIMER_NAMES.isdisjoint(properties):
                out = integer_of(record.message().properties.get("TIMER_OUT_MS", "")) or 0
                handle = RecallHandle("v1", topic, self._state.name, out, unique_key)
                fields["recallHandle"] = encode_recall_handle(handle)
        return Answer(0, fields)

    def illegal(self) -> BadRequest:
        """The error about a message that is too long or makes no sense."""
        return BadRequest(
            "the message is illegal, maybe msg body or properties length not matched. msg body "
            f"length limit {self._state.options.max_message_size}B, msg properties length limit "
            "32KB.",
            ResponseCode.MESSAGE_ILLEGAL,
        )

    def with_region(self, handler: Handler) -> Handler:
        """The handler, whose errors say the region, as all answers to sends do."""

        def handle(request: Request) -> Answer | None:
            try:
                return handler(request)
            except BadRequest as bad:
                if request.header_read:
                    bad.answer = bad.answer._replace(fields=_REGION_FIELDS)
                raise

        return handle
