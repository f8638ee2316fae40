"""View of a header for rows: positions of ext field values, and the other members.

A header as written by Java is scanned in place by `header_scan`. Any other one, and a gRPC call, is
decoded in full; its values are concatenated on demand, so that all readers of headers see the same
layout. RocketMQ: RemotingCommand.headerDecode, SendMessageRequestHeaderV2.
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
"""requests with ext fields in rows that others do not have"""
_SEND_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
_END_TRANSACTION: Final = int(RequestCode.END_TRANSACTION)

SENT: Final = 0
"""kind of header: a send with long field names"""
PLAIN: Final = 1
"""kind: a request that is neither a send nor one of SPECIAL_REQUESTS"""
RESPONSE: Final = 2
"""kind: a response"""
SENT_V2: Final = 3
"""kind: a send with one-letter field names"""
SPECIAL: Final = 4
"""kind: one of SPECIAL_REQUESTS, decoded in full"""

_MOST_DIGITS: Final = LONGEST_NUMBER - 1
"""digits of a number that always fits into 64 bits"""
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
"""index of the properties among the names of a send"""
_PLAIN_WIRES: Final = (*TOPICS, *GROUPS, "queueId", *BROKERS, *OFFSETS, V1.sys_flag)
# To add a value, add its name here, and its position in `HeaderView.take`.
WIRES: Final = {
    SENT: _wires_of_send(V1),
    SENT_V2: _wires_of_send(V2),
    PLAIN: _PLAIN_WIRES,
    SPECIAL: _PLAIN_WIRES,
    RESPONSE: (
        "queueId", "msgId", "queueOffset", "offset", "suggestWhichBrokerId", "nextBeginOffset",
        "minOffset", "maxOffset", "recallHandle",
    ),
}  # fmt: skip
"""kind → names of its ext fields with slots, in the order of `take`"""
UNIQUE_KEY: Final = "UNIQ_KEY"
KEYS: Final = "KEYS"
TAGS: Final = "TAGS"


def kind_of_request(code: int) -> i64:
    """Return the kind of a request's header."""
    if code in V2_SENDS:
        return SENT_V2
    if code in V1_SENDS:
        return SENT
    return SPECIAL if code in SPECIAL_REQUESTS else PLAIN


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Slots:
    """Positions of the values whose names are in a table, in table order."""

    # Attributes, not a list: in C these are native integers, and nothing is allocated per value.

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
        """Record the position of a value; the last of duplicate names counts."""
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
    """Members of a header, and the positions of its ext field values in `data`.

    A position is the start offset, shifted by 32, plus the end offset; ABSENT if there is no value.
    A gRPC response may have values that otherwise only requests have.
    """

    __slots__ = (
        "body_bytes", "born_timestamp", "broker_name", "code", "commit_offset", "data", "flag",
        "group", "is_call", "is_filled", "is_plain", "is_request", "is_special", "keys", "kind",
        "language", "max_offset", "max_reconsume_times", "message_count", "min_offset", "msg_id",
        "next_offset", "offset", "opaque", "properties", "queue_id", "queue_offset",
        "recall_handle", "reconsume_limit", "reconsume_times", "remark", "requested_offset",
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
        """request or response code"""
        self.flag: i64 = flag
        self.language = language
        self.opaque = opaque
        self.remark = remark
        self.version: i64 = version
        self.serialize_type = serialize_type
        """serialization of the header: JSON, ROCKETMQ or PROTOBUF"""
        self.is_call = False
        """belongs to a gRPC call"""
        self.kind: i64 = RESPONSE
        """SENT, PLAIN, SPECIAL or RESPONSE"""
        self.data = b""
        """the header as sent, or concatenated values; positions are offsets in it"""
        self.is_filled = False
        """positions are known; otherwise they are filled from the decoded command"""
        self.is_plain = True
        """all values are ASCII without JSON escapes"""
        self.is_request = False
        """a property links a request message and its reply"""
        self.is_special = False
        """a property may indicate a transaction or a delayed delivery"""
        self.topic: i64 = ABSENT
        self.group: i64 = ABSENT
        self.queue_id: i64 = ABSENT
        self.broker_name: i64 = ABSENT
        self.properties: i64 = ABSENT
        self.unique_key: i64 = ABSENT
        """the property `UNIQ_KEY`, or the message id field"""
        self.keys: i64 = ABSENT
        """the property `KEYS`"""
        self.tags: i64 = ABSENT
        """the property `TAGS`"""
        self.sys_flag: i64 = ABSENT
        self.reconsume_times: i64 = ABSENT
        self.born_timestamp: i64 = ABSENT
        self.max_reconsume_times: i64 = ABSENT
        self.offset: i64 = ABSENT
        """queue offset that a request is about"""
        self.requested_offset: i64 = ABSENT
        """start offset of a pull"""
        self.commit_offset: i64 = ABSENT
        self.msg_id: i64 = ABSENT
        self.queue_offset: i64 = ABSENT
        self.next_offset: i64 = ABSENT
        self.min_offset: i64 = ABSENT
        self.max_offset: i64 = ABSENT
        self.suggested_broker: i64 = ABSENT
        self.recall_handle: i64 = ABSENT
        self.reconsume_limit: i64 = NOTHING
        """maximum redeliveries of a returned message"""
        self.body_bytes: i64 = NOTHING
        """bytes of the messages in a call; NOTHING if this is no call"""
        self.message_count: i64 = NOTHING
        """messages in a call"""

    def text(self, place: i64) -> str | None:
        """Return the value at a position; None for ABSENT."""
        if place == ABSENT:
            return None
        data = self.data[place >> 32 : place & PLACE_END]
        return data.decode("ascii") if self.is_plain else data.decode("utf-8", "surrogatepass")

    def number(self, place: i64) -> i64:
        """Return the integer at a position; NOTHING for ABSENT and for non-64-bit integers."""
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
        """Assign the values by slot, in the order of `WIRES`."""
        s0, s1, s2, s3, s4, s5 = slots.s0, slots.s1, slots.s2, slots.s3, slots.s4, slots.s5
        if self.kind == SENT:
            self.group, self.topic, self.queue_id, self.sys_flag = s0, s1, s2, s3
            self.properties, self.reconsume_times = s4, s5
            self.broker_name = _either(slots.s6, slots.s7)
            self.born_timestamp, self.max_reconsume_times = slots.s8, slots.s9
        elif self.kind == RESPONSE:
            self.queue_id, self.msg_id, self.queue_offset = s0, s1, _either(s2, s3)
            self.suggested_broker, self.next_offset = s4, s5
            self.min_offset, self.max_offset = slots.s6, slots.s7
            self.recall_handle = slots.s8
        else:
            self.topic, self.group = _either(s0, s1), _either(s2, _either(s3, s4))
            self.queue_id, self.broker_name = s5, _either(slots.s6, slots.s7)
            self.requested_offset, self.commit_offset, self.sys_flag = slots.s8, slots.s9, slots.s11
            self.offset = _either(slots.s8, _either(slots.s9, slots.s10))

    def fill(self, command: RemotingCommand) -> None:
        """Fill the positions from the decoded command."""
        values = BytesWriter()
        values.append(_BLANK)  # so that no position equals ABSENT
        if isinstance(command, CallCommand):
            self._fill_call(command, values)
        else:
            self._fill_fields(command.ext_fields, values)
        self.data = values.getvalue()
        self.is_filled = True

    def _fill_fields(self, fields: dict[str, str], values: BytesWriter) -> None:
        kind: i64 = RESPONSE
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
        self.is_special = True  # readers examine the properties themselves
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
        """Append a value to the data; return its position."""
        if text is None:
            return ABSENT
        if not (text.isascii() and text.isprintable()) or '"' in text or "\\" in text:
            self.is_plain = False
        start: i64 = len(values)
        values.write(text.encode("utf-8", "surrogatepass"))
        end: i64 = len(values)
        return start << 32 | end


def _either(first: i64, second: i64) -> i64:
    """Return the first position unless it is absent or of an empty text; else the second."""
    return second if first >> 32 == first & PLACE_END else first


def _reconsume_limit(fields: dict[str, str]) -> i64:
    """Return the redelivery limit of a send back, or NOTHING.

    A negative delay level requests the dead letter queue at once
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
    """Return the view of a fully decoded header; positions are filled on demand."""
    view = HeaderView(
        command.code, command.flag, command.language, command.opaque, command.remark,
        command.version, command.serialize_type,
    )  # fmt: skip
    view.is_call = command.serialize_type == PROTOBUF
    return view


def put_text(sink: RowSink, name: str, view: HeaderView, place: i64) -> None:
    """Write the text at a position of a header to a sink."""
    if view.is_plain:
        sink.plain(name, view.data, place)
    else:
        sink.text(name, view.text(place))


def filled(place: i64) -> i64:
    """Return a position, or ABSENT for an empty text."""
    # Two returns: in one expression, mypyc would make an object of each number.
    if place >> 32 == place & PLACE_END:
        return ABSENT
    return place


def queue_id_of(request: HeaderView | None, response: HeaderView | None) -> i64:
    """Return the queue id of a request or its response; a send's response takes precedence."""
    queue_id: i64 = NOTHING
    if request is not None:
        queue_id = request.number(request.queue_id)
    if response is not None:
        responded: i64 = response.number(response.queue_id)
        if responded != NOTHING and (queue_id == NOTHING or response.msg_id != ABSENT):
            return responded
    return queue_id


def queue_offset_of(request: HeaderView | None, response: HeaderView | None) -> i64:
    """Return the queue offset of the response, or else the requested one."""
    offset: i64 = NOTHING
    if response is not None:
        offset = response.number(response.queue_offset)
    if offset == NOTHING and request is not None:
        offset = request.number(request.offset)
    return offset
