"""A header as rows read it: where the values of its ext fields stand, and what is said beside them.

A header as Java writes it is read where it stands, by `header_scan`. Any other one, and a call of
gRPC, is decoded whole; its values are written one behind the other when somebody asks for them, so
that all who read a header see one shape. A new value is a name in `_WIRES` and its place in `take`.

RocketMQ: RemotingCommand.headerDecode, SendMessageRequestHeaderV2, PullMessageResponseHeader.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64, mypyc_attr

from ..foreign import LONGEST_NUMBER, integer_of
from ..grpc.command import PROTOBUF, CallCommand
from ..json_bytes import ABSENT, NOTHING, PLACE_END
from ..remoting.code_sets import SENDS, V1_SENDS, V2_SENDS
from ..remoting.codes import RequestCode
from ..remoting.command import RemotingCommand
from ..remoting.messages.properties import value_in
from ..remoting.row_facts.ext_fields import CORRELATION_ID, HEADER_FACTS, PULLS
from ..remoting.send_fields import BROKERS, GROUPS, OFFSETS, TOPICS, V1, V2, SendFields
from ..rows.row_sink import RowSink

SPECIAL_REQUESTS: Final = (HEADER_FACTS - PULLS - SENDS) | {int(RequestCode.REGISTER_BROKER)}
"""Requests of which a row takes ext fields that others do not have."""
_SEND_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
_END_TRANSACTION: Final = int(RequestCode.END_TRANSACTION)

SENT: Final = 0
"""kind of header: a send, with the names of the first form"""
PLAIN: Final = 1
"""a request that is neither a send nor one of SPECIAL_REQUESTS"""
ANSWER: Final = 2
"""an answer"""
SENT_V2: Final = 3
"""a send whose names are letters"""
SPECIAL: Final = 4
"""one of SPECIAL_REQUESTS, which are decoded whole"""

_MOST_DIGITS: Final = LONGEST_NUMBER - 1
"""digits of a number that certainly fits into 64 bits"""
_ZERO: Final = 0x30
_NINE: Final = 0x39
_MINUS: Final = 0x2D
_BLANK: Final = 0x20


def _wires_of_send(names: SendFields) -> tuple[str, ...]:
    brokers = BROKERS if names is V1 else (names.broker_name, BROKERS[0])
    return (
        names.producer_group, names.topic, names.queue_id, names.sys_flag, names.properties,
        names.reconsume_times, *brokers, names.born_timestamp, names.max_reconsume_times,
    )  # fmt: skip


PROPERTIES: Final = 4
"""place of the properties among the names of a send"""
_PLAIN_WIRES: Final = (*TOPICS, *GROUPS, "queueId", *BROKERS, *OFFSETS, V1.sys_flag)
WIRES: Final = {
    SENT: _wires_of_send(V1),
    SENT_V2: _wires_of_send(V2),
    PLAIN: _PLAIN_WIRES,
    SPECIAL: _PLAIN_WIRES,
    ANSWER: (
        "queueId", "msgId", "queueOffset", "offset", "suggestWhichBrokerId", "nextBeginOffset",
        "minOffset", "maxOffset", "recallHandle",
    ),
}  # fmt: skip
"""kind → names of the ext fields that it has places for, in the order of `take`"""
UNIQUE_KEY: Final = "UNIQ_KEY"
KEYS: Final = "KEYS"
TAGS: Final = "TAGS"


def kind_of_request(code: int) -> i64:
    """Return the kind of the header of a request."""
    if code in V2_SENDS:
        return SENT_V2
    if code in V1_SENDS:
        return SENT
    return SPECIAL if code in SPECIAL_REQUESTS else PLAIN


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Slots:
    """The places of the values whose names are in a table, in its order."""

    __slots__ = ("s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11")

    def __init__(self) -> None:
        self.s0: i64 = ABSENT
        self.s1: i64 = ABSENT
        self.s2: i64 = ABSENT
        self.s3: i64 = ABSENT
        self.s4: i64 = ABSENT
        self.s5: i64 = ABSENT
        self.s6: i64 = ABSENT
        self.s7: i64 = ABSENT
        self.s8: i64 = ABSENT
        self.s9: i64 = ABSENT
        self.s10: i64 = ABSENT
        self.s11: i64 = ABSENT

    def put(self, slot: i64, place: i64) -> None:
        """Note the place of a value; of a name that comes twice the last one counts."""
        if slot == 0:
            self.s0 = place
        elif slot == 1:
            self.s1 = place
        elif slot == 2:
            self.s2 = place
        elif slot == 3:
            self.s3 = place
        elif slot == 4:
            self.s4 = place
        elif slot == 5:
            self.s5 = place
        elif slot == 6:
            self.s6 = place
        elif slot == 7:
            self.s7 = place
        elif slot == 8:
            self.s8 = place
        elif slot == 9:
            self.s9 = place
        elif slot == 10:
            self.s10 = place
        else:
            self.s11 = place


@final
@mypyc_attr(acyclic=True)
class HeaderView:
    """What a header says, and where the values of its ext fields stand in `data`.

    A place is the offset of the first byte, shifted by 32, and that behind the last one; ABSENT
    where there is no value. An answer of gRPC has some that are else of requests.
    """

    __slots__ = (
        "asked_offset", "body_bytes", "born_timestamp", "broker_name", "code", "commit_offset",
        "data", "flag", "group", "is_call", "is_filled", "is_plain", "is_request", "is_special",
        "keys", "kind", "language", "max_offset", "max_reconsume_times", "message_count",
        "min_offset", "msg_id", "next_offset", "offset", "opaque", "properties", "queue_id",
        "queue_offset", "recall_handle", "reconsume_limit", "reconsume_times", "remark",
        "serialize_type", "suggested_broker", "sys_flag", "tags", "topic", "unique_key", "version",
    )  # fmt: skip

    def __init__(
        self,
        code: int,
        flag: i64,
        language: str,
        opaque: int,
        remark: str | None,
        version: i64,
        serialize_type: str,
    ) -> None:
        self.code = code
        """request code, or response code"""
        self.flag: i64 = flag
        self.language = language
        self.opaque = opaque
        self.remark = remark
        self.version: i64 = version
        self.serialize_type = serialize_type
        """how the header was written: JSON, ROCKETMQ or PROTOBUF"""
        self.is_call = False
        """it is of a call of gRPC"""
        self.kind: i64 = ANSWER
        """SENT, PLAIN, SPECIAL or ANSWER"""
        self.data = b""
        """what the places are in: the header as it was sent, or values one behind the other"""
        self.is_filled = False
        """the places are known; else they are those of a command that was decoded whole"""
        self.is_plain = True
        """all values are ASCII that JSON writes as it is"""
        self.is_request = False
        """a property joins a request and its reply"""
        self.is_special = False
        """a property may tell of a transaction or of a later time"""
        self.topic: i64 = ABSENT
        self.group: i64 = ABSENT
        self.queue_id: i64 = ABSENT
        self.broker_name: i64 = ABSENT
        self.properties: i64 = ABSENT
        self.unique_key: i64 = ABSENT
        """the property `UNIQ_KEY`, or the field that names the message"""
        self.keys: i64 = ABSENT
        """the property `KEYS`"""
        self.tags: i64 = ABSENT
        """the property `TAGS`"""
        self.sys_flag: i64 = ABSENT
        self.reconsume_times: i64 = ABSENT
        self.born_timestamp: i64 = ABSENT
        self.max_reconsume_times: i64 = ABSENT
        self.offset: i64 = ABSENT
        """offset in the queue that a request is about"""
        self.asked_offset: i64 = ABSENT
        """offset from which a pull asks for messages"""
        self.commit_offset: i64 = ABSENT
        self.msg_id: i64 = ABSENT
        self.queue_offset: i64 = ABSENT
        self.next_offset: i64 = ABSENT
        self.min_offset: i64 = ABSENT
        self.max_offset: i64 = ABSENT
        self.suggested_broker: i64 = ABSENT
        self.recall_handle: i64 = ABSENT
        self.reconsume_limit: i64 = NOTHING
        """how often a message that is sent back may be delivered again"""
        self.body_bytes: i64 = NOTHING
        """bytes of the messages in a call; NOTHING: it is no call"""
        self.message_count: i64 = NOTHING
        """messages in a call"""

    def text(self, place: i64) -> str | None:
        """Return the value at a place; None for ABSENT."""
        if place == ABSENT:
            return None
        data = self.data[place >> 32 : place & PLACE_END]
        return data.decode("ascii") if self.is_plain else data.decode("utf-8", "surrogatepass")

    def number(self, place: i64) -> i64:
        """Return the integer at a place; NOTHING for ABSENT and for what is no 64-bit integer."""
        if place == ABSENT:
            return NOTHING
        data = self.data
        at: i64 = place >> 32
        end: i64 = place & PLACE_END
        negative = at < end and i64(data[at]) == _MINUS
        if negative:
            at += 1
        if at == end or end - at > _MOST_DIGITS:
            return self._odd_number(place)
        number: i64 = 0
        while at < end:
            digit: i64 = i64(data[at])
            if digit < _ZERO or digit > _NINE:
                return self._odd_number(place)
            number = number * 10 + digit - _ZERO
            at += 1
        if negative:
            number = -number
        return number

    def _odd_number(self, place: i64) -> i64:
        value = integer_of(self.text(place) or "")
        if value is None:
            return NOTHING
        return value

    def take(self, slots: Slots) -> None:
        """Name the values: the order is that of `WIRES`."""
        s0, s1, s2, s3, s4, s5 = slots.s0, slots.s1, slots.s2, slots.s3, slots.s4, slots.s5
        if self.kind == SENT:
            self.group, self.topic, self.queue_id, self.sys_flag = s0, s1, s2, s3
            self.properties, self.reconsume_times = s4, s5
            self.broker_name = _either(slots.s6, slots.s7)
            self.born_timestamp, self.max_reconsume_times = slots.s8, slots.s9
        elif self.kind == ANSWER:
            self.queue_id, self.msg_id, self.queue_offset = s0, s1, _either(s2, s3)
            self.suggested_broker, self.next_offset = s4, s5
            self.min_offset, self.max_offset = slots.s6, slots.s7
            self.recall_handle = slots.s8
        else:
            self.topic, self.group = _either(s0, s1), _either(s2, _either(s3, s4))
            self.queue_id, self.broker_name = s5, _either(slots.s6, slots.s7)
            self.asked_offset, self.commit_offset, self.sys_flag = slots.s8, slots.s9, slots.s11
            self.offset = _either(slots.s8, _either(slots.s9, slots.s10))

    def fill(self, command: RemotingCommand) -> None:
        """Take the values of the command that the header is, decoded whole."""
        values = BytesWriter()
        values.append(_BLANK)  # so that no place is ABSENT
        if isinstance(command, CallCommand):
            self._fill_call(command, values)
        else:
            self._fill_fields(command.ext_fields, values)
        self.data = values.getvalue()
        self.is_filled = True

    def _fill_fields(self, fields: dict[str, str], values: BytesWriter) -> None:
        kind: i64 = ANSWER
        if self.flag & 1 == 0:
            kind = kind_of_request(self.code)
        self.kind = kind
        if kind == SENT_V2:
            self.kind = SENT
        slots = Slots()
        for slot, wire in enumerate(WIRES[int(kind)]):
            if slot == PROPERTIES and self.kind == SENT:
                self._fill_properties(fields.get(wire), values)
            else:
                slots.put(slot, self._added(fields.get(wire), values))
        self.take(slots)
        if self.code == _SEND_BACK and kind == SPECIAL:
            self.unique_key = self._added(fields.get("originMsgId"), values)
            self.reconsume_limit = _reconsume_limit(fields)
        elif self.code == _END_TRANSACTION and kind == SPECIAL:
            key = fields.get("msgId") or fields.get("transactionId")
            self.unique_key = self._added(key, values)
            self.offset = self._added(fields.get("tranStateTableOffset"), values)

    def _fill_properties(self, text: str | None, values: BytesWriter) -> None:
        self.is_special = True  # who needs to know it looks into them
        if text:
            self.is_request = CORRELATION_ID in text
            self.unique_key = self._added(value_in(text, UNIQUE_KEY), values)
            self.keys = self._added(value_in(text, KEYS), values)
            self.tags = self._added(value_in(text, TAGS), values)

    def _fill_call(self, command: CallCommand, values: BytesWriter) -> None:
        columns = command.columns
        self.topic = self._added(columns.topic, values)
        self.group = self._added(columns.group, values)
        self.queue_id = self._added_number(columns.queue_id, values)
        self.broker_name = self._added(columns.broker_name, values)
        self.unique_key = self._added(columns.unique_key, values)
        self.keys = self._added(columns.keys, values)
        self.tags = self._added(columns.tags, values)
        self.offset = self.queue_offset = self._added_number(columns.queue_offset, values)
        self.body_bytes = columns.body_bytes
        if columns.message_count is not None:
            self.message_count = columns.message_count

    def _added_number(self, number: int | None, values: BytesWriter) -> i64:
        return self._added(None if number is None else str(number), values)

    def _added(self, text: str | None, values: BytesWriter) -> i64:
        """Add a value to the data; return its place."""
        if text is None:
            return ABSENT
        if not (text.isascii() and text.isprintable()) or '"' in text or "\\" in text:
            self.is_plain = False
        start: i64 = len(values)
        values.write(text.encode("utf-8", "surrogatepass"))
        end: i64 = len(values)
        return start << 32 | end


def _either(one: i64, other: i64) -> i64:
    """Return the first of two places unless it is of nothing or of an empty text."""
    return other if one >> 32 == one & PLACE_END else one


def _reconsume_limit(fields: dict[str, str]) -> i64:
    """Return how often the message of a send back may be delivered again; NOTHING: not said.

    A negative delay level asks for the dead letters at once
    (AbstractSendMessageProcessor.consumerSendMsgBack).
    """
    delay = integer_of(fields.get("delayLevel") or "")
    if delay is not None and delay < 0:
        return 0
    limit = integer_of(fields.get("maxReconsumeTimes") or "")
    if limit is None:
        return NOTHING
    return limit


def view_of_command(command: RemotingCommand) -> HeaderView:
    """Return the view of a header that was decoded whole; its places are filled when asked for."""
    view = HeaderView(
        command.code, command.flag, command.language, command.opaque, command.remark,
        command.version, command.serialize_type,
    )  # fmt: skip
    view.is_call = command.serialize_type == PROTOBUF
    return view


def put_text(sink: RowSink, name: str, view: HeaderView, place: i64) -> None:
    """Give a sink the text at a place of a header."""
    if view.is_plain:
        sink.plain(name, view.data, place)
    else:
        sink.text(name, view.text(place))


def filled(place: i64) -> i64:
    """Return a place, ABSENT for that of an empty text."""
    return ABSENT if place >> 32 == place & PLACE_END else place


def queue_id_of(asked: HeaderView | None, answer: HeaderView | None) -> i64:
    """Return the queue of a request, else of its answer; that of a send's answer counts."""
    queue_id: i64 = NOTHING
    if asked is not None:
        queue_id = asked.number(asked.queue_id)
    if answer is not None:
        answered: i64 = answer.number(answer.queue_id)
        if answered != NOTHING and (queue_id == NOTHING or answer.msg_id != ABSENT):
            return answered
    return queue_id


def queue_offset_of(asked: HeaderView | None, answer: HeaderView | None) -> i64:
    """Return the offset in the queue: that of the answer, else the one asked for."""
    offset: i64 = NOTHING
    if answer is not None:
        offset = answer.number(answer.queue_offset)
    if offset == NOTHING and asked is not None:
        offset = asked.number(asked.offset)
    return offset
