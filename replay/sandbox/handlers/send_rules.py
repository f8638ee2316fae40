"""Rules of all requests that store a message: header, topic, queue, properties.

RocketMQ: AbstractSendMessageProcessor, SendMessageRequestHeader, SendMessageRequestHeaderV2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Final, NamedTuple, TypeVar

from dissectors.endpoint import host_of
from dissectors.foreign import integer_of
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.ids.message_ids import RecallHandle, encode_recall_handle
from dissectors.remoting.messages.properties import decode_properties, encode_properties
from dissectors.remoting.send_fields import DEFAULT_REGION, V1, send_fields_of
from dissectors.remoting.topic_names import DLQ_PREFIX, NOT_FOR_SENDS

from ..events import EventKind
from ..request import BadRequest, ReceivedRequest, number_of
from ..server import HandlerResponse
from ..state import BrokerState
from ..store.memory import NewMessage
from ..store.shelf import StoredRecord
from ..topics import WRITE, TopicConfig, why_no_name
from .schedule import TIMER_UNITS, Schedule

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


def send_header(request: ReceivedRequest) -> SendHeader:
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


class SendRules:
    """The rules of sends at one broker."""

    def __init__(self, state: BrokerState, schedule: Schedule) -> None:
        self._state = state
        self._schedule = schedule

    def topic_for(self, header: SendHeader) -> TopicConfig:
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

    def queue_of(self, header: SendHeader, config: TopicConfig, request: ReceivedRequest) -> int:
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

    def properties(self, text: str, *, reply: bool = False) -> dict[str, str]:
        """Return the properties of a send header, as a broker stores them."""
        return self.completed(decode_properties(text), reply=reply)

    def completed(self, properties: dict[str, str], *, reply: bool = False) -> dict[str, str]:
        """Return the properties as the emulated release stores them."""
        if self._state.options.is_5:
            properties |= _REGION_FIELDS
        else:
            properties.pop("WAIT", None)
        if not reply:
            properties["CLUSTER"] = self._state.options.cluster
        return properties

    def completed_item(self, properties: dict[str, str]) -> dict[str, str]:
        """Return the properties of one message of a batch as a broker stores them."""
        if self._state.options.is_5:
            return properties
        return {**properties, "CLUSTER": self._state.options.cluster}

    def store(
        self, message: NewMessage, put: Callable[[NewMessage], StoredRecord] | None = None
    ) -> StoredRecord:
        """Store a message by `put`, or schedule it; BadRequest if that fails."""
        is_5 = self._state.options.is_5
        try:
            text = encode_properties(message.properties, final_separator=is_5)
            # counted as stored, with those that the broker adds
            if len(text.encode(errors="replace")) > _PROPERTIES_LIMIT:
                raise self.illegal()
            return (put or self._schedule.put)(message)
        except ValueError:
            raise self.illegal() from None

    def dead(self, message: NewMessage, group: str) -> NewMessage:
        """Return the message as a dead letter of a group."""
        config = self._state.topic_of_retries(DLQ_PREFIX + group)
        properties = {name: text for name, text in message.properties.items() if name != "DELAY"}
        self._state.tell(EventKind.DEAD_LETTER, topic=config.name, detail=f"group {group}")
        return replace(message, topic=config.name, queue_id=0, properties=properties)

    def count(self, request: ReceivedRequest, topic: str, count: int) -> None:
        """Count messages that a client sent."""
        self._state.messages_in += count
        code = request.command.code
        self._state.tell(EventKind.SENT, request.connection, code=code, topic=topic, count=count)

    def stored(
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

    def illegal(self) -> BadRequest:
        """Return the error for an oversized or invalid message."""
        return BadRequest(
            "the message is illegal, maybe msg body or properties length not matched. msg body "
            f"length limit {self._state.options.max_message_size}B, msg properties length limit "
            "32KB.",
            ResponseCode.MESSAGE_ILLEGAL,
        )


_Self = TypeVar("_Self")


def with_region(
    method: Callable[[_Self, ReceivedRequest], HandlerResponse | None],
) -> Callable[[_Self, ReceivedRequest], HandlerResponse | None]:
    """Wrap a handler so its errors contain the region, as all send responses do."""

    @wraps(method)
    def handle(self: _Self, request: ReceivedRequest) -> HandlerResponse | None:
        try:
            return method(self, request)
        except BadRequest as bad:
            if request.header_read:
                bad.response = bad.response._replace(fields=_REGION_FIELDS)
            raise

    return handle
