"""Headers as Java writes them, read where they stand: of most values only the place is noted.

`scanned` passes once over a header in JSON. It takes what needs no unescaping: ASCII without
escapes, in properties those that part names and values. Of anything else it says nothing, and the
header is decoded whole. What it takes, `decode_header` takes, too, with the same values.

RocketMQ: RemotingCommand.headerDecode, SendMessageRequestHeaderV2, PullMessageResponseHeader.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64, mypyc_attr

from ..json_bytes import ABSENT, PLACE_END
from ..plain_json import (
    CLOSE,
    COLON,
    COMMA,
    FIVE,
    FOUR,
    QUOTE,
    SEVEN,
    SIX,
    THREE,
    end_of_text,
    first_of,
    number_at,
    slot_of,
    slot_of_letter,
    stops_in,
    table_of,
    word_at,
    word_of,
)
from ..remoting.code_names import is_language
from ..remoting.code_sets import V1_SENDS, V2_SENDS
from ..remoting.header_codec import JSON_TYPE, first_code_of
from ..remoting.row_facts.ext_fields import CORRELATION_ID
from ..remoting.send_fields import V1, V2
from .row_header import (
    ANSWER_WIRES,
    PLAIN_WIRES,
    SPECIAL_REQUESTS,
    V1_WIRES,
    V2_WIRES,
)
from .scanned_header import ANSWER, PLAIN, SENT, ScannedHeader

_EXT_FIELDS: Final[i64] = word_of(b"extField")
_EXT_FIELDS_REST: Final[i64] = word_of(b's":{')
_FLAG: Final[i64] = word_of(b'flag":')
_LANGUAGE: Final[i64] = word_of(b"language")
_OPAQUE: Final[i64] = word_of(b'opaque":')
_REMARK: Final[i64] = word_of(b'remark":')
_NOT_SAID: Final[i64] = word_of(b"null")
_SERIALIZE: Final[i64] = word_of(b"serializ")
_TYPE: Final[i64] = word_of(b"eTypeCur")
_RPC: Final[i64] = word_of(b'rentRPC"')
_IS_JSON: Final[i64] = word_of(b':"JSON"')
_VERSION: Final[i64] = word_of(b'version"')
_AS_TEXT: Final[i64] = word_of(b'":"')
_JAVA: Final[i64] = word_of(b'JAVA"')
_LETTER: Final[i64] = word_of(b'"\0":"')
_LETTER_MASK: Final = 0xFFFFFF00FF
_LETTER_BEGIN: Final = 5
"""bytes of a name of one letter, with what stands before its value"""
_NAMES_END: Final[i64] = word_of(b"\\u0001")
_VALUES_END: Final[i64] = word_of(b"\\u0002")
_UNIQUE_KEY: Final[i64] = word_of(b"UNIQ_KEY")
_KEYS: Final[i64] = word_of(b"KEYS")
_TAGS: Final[i64] = word_of(b"TAGS")
_DELAY: Final[i64] = word_of(b"DELAY")
_TIMER: Final[i64] = word_of(b"TIMER_")
_SYSTEM: Final[i64] = word_of(b"__")
_CORRELATION: Final[i64] = word_of(CORRELATION_ID[:8].encode())
_ESCAPE: Final = 6
"""bytes of an escape such as \\u0001"""

_PROPERTIES: Final = 4
"""place of the properties among the names of a send"""


_SENT_V2: Final = 3
"""a send whose names are letters, until its table is chosen"""
_SPECIAL: Final = 4
"""a request that is decoded whole"""


def _kind_of(code: int) -> i64:
    """Return the kind of header that a code tells."""
    if code == 0:
        return ANSWER
    if code in V2_SENDS:
        return _SENT_V2
    if code in V1_SENDS:
        return SENT
    if code in SPECIAL_REQUESTS:
        return _SPECIAL
    return PLAIN


_SMALL_CODES: Final = 1024
_KINDS: Final = bytes([int(_kind_of(code)) for code in range(_SMALL_CODES)])
"""by code, so that most need no look into a set"""
_V1_TABLE: Final = table_of((*V1_WIRES, V1.born_timestamp, V1.max_reconsume_times))
_V2_TABLE: Final = table_of((*V2_WIRES, V2.born_timestamp, V2.max_reconsume_times))
_PLAIN_TABLE: Final = table_of((*PLAIN_WIRES, V1.sys_flag))
_ANSWER_TABLE: Final = table_of((*ANSWER_WIRES, "recallHandle"))


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class _Slots:
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


def scanned(serialize_type: i64, header: bytes) -> ScannedHeader | None:
    """Return what a row needs of a header; None where it must be decoded to be known."""
    if serialize_type != JSON_TYPE:
        return None
    code: i64 = first_code_of(header)
    if code < 0:
        return None
    wire_code = int(code)
    kind: i64 = PLAIN
    if code < _SMALL_CODES:
        kind = _KINDS[code]
    if code >= _SMALL_CODES:
        kind = _kind_of(wire_code)
    if kind == _SPECIAL:
        return None
    table = _PLAIN_TABLE
    if kind == _SENT_V2:
        kind = SENT
        table = _V2_TABLE
    elif kind == SENT:
        table = _V1_TABLE
    elif kind == ANSWER:
        table = _ANSWER_TABLE
    found = ScannedHeader(kind, wire_code, header)
    try:
        is_whole = _scan(found, table, header)
    except IndexError:
        return None
    if not is_whole or (found.flag & 1 == 1) != (kind == ANSWER):
        return None
    return found


def _scan(found: ScannedHeader, table: bytes, header: bytes) -> bool:
    """Read the members behind the code; False, or IndexError, where they are not as Java's."""
    size: i64 = len(header)
    has_fields = has_opaque = False
    at: i64 = 9
    while header[at] != COMMA:  # as `first_code_of` has seen
        at += 1
    while header[at] == COMMA:
        if header[at + 1] != QUOTE:
            return False
        name = read_i64_le(header, at + 2)
        at += 10
        if name == _EXT_FIELDS:
            if has_fields or word_at(header, at, size) & FOUR != _EXT_FIELDS_REST:
                return False
            has_fields = True
            at = _scan_fields(found, table, header, at + 4, size)
        elif name == _LANGUAGE:
            if word_at(header, at, size) & THREE != _AS_TEXT:
                return False
            at = _scan_language(found, header, at + 3, size)
        elif name == _SERIALIZE:
            at = _skip_serialization(header, at, size)
        elif name == _OPAQUE:
            opaque, at = number_at(header, at)
            found.opaque = int(opaque)
            has_opaque = True
        elif name == _VERSION and header[at] == COLON:
            found.version, at = number_at(header, at + 1)
        elif name == _REMARK:
            at = _scan_remark(found, header, at, size)
        elif name & SIX == _FLAG:
            found.flag, at = number_at(header, at - 2)
        else:
            return False
        if at < 0:
            return False
    return header[at] == CLOSE and at + 1 == size and has_opaque


def _scan_fields(found: ScannedHeader, table: bytes, header: bytes, at: i64, size: i64) -> i64:
    """Read the ext fields; return the place behind them, -1 where they are not as Java's."""
    slots = _Slots()
    end: i64 = at
    if header[at] == CLOSE:
        return at + 1
    while True:
        word: i64 = word_at(header, at, size)
        letter: i64 = (word >> 8) & 0xFF
        if word & _LETTER_MASK == _LETTER and 0x61 <= letter <= 0x7A:
            slot = slot_of_letter(table, letter)
            at += _LETTER_BEGIN
        else:
            if word & 0xFF != QUOTE:
                return -1
            end = end_of_text(header, at + 1, size)
            if end < 0 or word_at(header, end, size) & THREE != _AS_TEXT:
                return -1
            slot = slot_of(table, header, at + 1, end)
            at = end + 3
        if slot == _PROPERTIES and found.kind == SENT:
            end = _end_of_properties(found, header, at, size)
        else:
            end = end_of_text(header, at, size)
        if end < 0:
            return -1
        place: i64 = at << 32 | end
        if slot >= 0:
            slots.put(slot, place)
        at = end + 1
        if header[at] != COMMA:
            break
        at += 1
    if header[at] != CLOSE:
        return -1
    _take(found, slots)
    return at + 1


def _take(found: ScannedHeader, slots: _Slots) -> None:
    """Name the values: the order is that of the tables."""
    s0, s1, s2, s3, s4, s5 = slots.s0, slots.s1, slots.s2, slots.s3, slots.s4, slots.s5
    if found.kind == SENT:
        found.group, found.topic, found.queue_id, found.sys_flag = s0, s1, s2, s3
        found.properties, found.reconsume_times = s4, s5
        found.broker_name = _either(slots.s6, slots.s7)
        found.born_timestamp, found.max_reconsume_times = slots.s8, slots.s9
    elif found.kind == PLAIN:
        found.topic, found.group = _either(s0, s1), _either(s2, _either(s3, s4))
        found.queue_id, found.broker_name = s5, _either(slots.s6, slots.s7)
        found.asked_offset, found.commit_offset, found.sys_flag = slots.s8, slots.s9, slots.s11
        found.offset = _either(slots.s8, _either(slots.s9, slots.s10))
    else:
        found.queue_id, found.msg_id, found.queue_offset = s0, s1, _either(s2, s3)
        found.suggested_broker, found.next_offset = s4, s5
        found.min_offset, found.max_offset = slots.s6, slots.s7
        found.recall_handle = slots.s8


def _either(one: i64, other: i64) -> i64:
    """Return the first of two places unless it is of nothing or of an empty text."""
    return other if one >> 32 == one & PLACE_END else one


def _scan_language(found: ScannedHeader, header: bytes, at: i64, size: i64) -> i64:
    """Read the language; return the place behind it, -1: it is not plain."""
    if word_at(header, at, size) & FIVE == _JAVA:
        found.language = "JAVA"
        return at + 5
    end = end_of_text(header, at, size)
    if end < 0:
        return -1
    found.language = header[at:end].decode("ascii")
    return end + 1 if is_language(found.language) else -1


def _scan_remark(found: ScannedHeader, header: bytes, at: i64, size: i64) -> i64:
    """Read the remark; return the place behind it, -1: it is not plain."""
    if word_at(header, at, size) & FOUR == _NOT_SAID:
        found.remark = None
        return at + 4
    if header[at] != QUOTE:
        return -1
    end = end_of_text(header, at + 1, size)
    if end < 0:
        return -1
    found.remark = header[at + 1 : end].decode("ascii")
    return end + 1


def _skip_serialization(header: bytes, at: i64, size: i64) -> i64:
    """Pass over how answers are serialized; return the place behind it, -1: it is not plain."""
    if word_at(header, at, size) != _TYPE or word_at(header, at + 8, size) != _RPC:
        return -1
    if word_at(header, at + 16, size) & SEVEN == _IS_JSON:
        return at + 23
    if word_at(header, at + 15, size) & THREE != _AS_TEXT:
        return -1
    end = end_of_text(header, at + 18, size)
    return end if end < 0 else end + 1


def _end_of_properties(found: ScannedHeader, header: bytes, at: i64, size: i64) -> i64:
    """Return where the quote stands that ends the properties, and note those that a row has.

    -1: they are not plain. Of a name that comes twice the first one counts.
    """
    found.unique_key = found.keys = found.tags = ABSENT  # of properties that come twice the last
    found.is_request = found.is_special = False
    name: i64 = at
    value: i64 = 0
    while True:
        stops: i64 = stops_in(word_at(header, at, size))
        if stops < 0:
            return -1
        if not stops:
            at += 7
            continue
        at += first_of(stops)
        escape: i64 = word_at(header, at, size)
        if escape & SIX == _NAMES_END:
            if value:
                return -1  # in a value it would have to be unescaped
            value = at + _ESCAPE
        elif escape & SIX == _VALUES_END or (escape & 0xFF == QUOTE and at < size):
            if value:
                _note_property(found, header, name, value, at)
            if escape & 0xFF == QUOTE:
                return at
            name = at + _ESCAPE
            value = 0
        else:
            return -1
        at += _ESCAPE


def _note_property(found: ScannedHeader, header: bytes, name: i64, value: i64, end: i64) -> None:
    """Note where the value of a property stands, if a row has it."""
    length: i64 = value - _ESCAPE - name
    if length == 8:
        if found.unique_key == ABSENT and read_i64_le(header, name) == _UNIQUE_KEY:
            found.unique_key = value << 32 | end
    elif length == 4:
        word: i64 = read_i64_le(header, name) & FOUR
        if word == _KEYS and found.keys == ABSENT:
            found.keys = value << 32 | end
        elif word == _TAGS and found.tags == ABSENT:
            found.tags = value << 32 | end
    elif length > 4:
        start: i64 = read_i64_le(header, name)
        if start & FIVE == _DELAY or start & SIX == _TIMER or start & 0xFFFF == _SYSTEM:
            found.is_special = True
        elif start == _CORRELATION:
            found.is_request = True
