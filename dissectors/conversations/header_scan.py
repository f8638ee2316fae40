"""Fast scan of headers as written by Java: records the positions of values.

It accepts only values without escapes: ASCII, and in properties only known separators. Whatever it
accepts, `decode_header` decodes to the same values; anything else is decoded in full.
RocketMQ: RemotingCommand.headerDecode, RocketMQSerializable.rocketMQProtocolDecode.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_le
from mypy_extensions import i64

from ..json_bytes import ABSENT
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
    stop_from,
    stops_in,
    table_of,
    word_at,
    word_of,
)
from ..remoting.code_names import is_language, language_name, wide_request_code
from ..remoting.command import JSON, ROCKETMQ
from ..remoting.header_codec import BINARY_TYPE, MIN_BINARY_HEADER, first_code_of
from ..remoting.row_facts.ext_fields import CORRELATION_ID
from .header_view import (
    KEYS,
    PROPERTIES,
    RESPONSE,
    SENT,
    SENT_V2,
    SPECIAL,
    TAGS,
    UNIQUE_KEY,
    WIRES,
    HeaderView,
    Slots,
    kind_of_request,
)

# Names and values are compared eight bytes at a time, as 64-bit integers.
_EXT_FIELDS: Final[i64] = word_of(b"extField")
_EXT_FIELDS_REST: Final[i64] = word_of(b's":{')
_FLAG: Final[i64] = word_of(b'flag":')
_LANGUAGE: Final[i64] = word_of(b"language")
_OPAQUE: Final[i64] = word_of(b'opaque":')
_REMARK: Final[i64] = word_of(b'remark":')
_NULL: Final[i64] = word_of(b"null")
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
"""bytes of a one-letter name up to the start of its value"""
_NAMES_END: Final[i64] = word_of(b"\\u0001")
_VALUES_END: Final[i64] = word_of(b"\\u0002")
_UNIQUE_KEY: Final[i64] = word_of(UNIQUE_KEY.encode())
_KEYS: Final[i64] = word_of(KEYS.encode())
_TAGS: Final[i64] = word_of(TAGS.encode())
_DELAY: Final[i64] = word_of(b"DELAY")
_TIMER: Final[i64] = word_of(b"TIMER_")
_SYSTEM: Final[i64] = word_of(b"__")
_CORRELATION: Final[i64] = word_of(CORRELATION_ID[:8].encode())
_ESCAPE: Final = 6
"""bytes of an escape sequence such as \\u0001"""

_NAME_END: Final = 1
_VALUE_END: Final = 2
"""the separators of properties, if nothing is escaped"""


def _kind_of(code: int) -> i64:
    """Return the kind of header for a code alone."""
    return RESPONSE if code == 0 else kind_of_request(code)


_SMALL_CODES: Final = 1024
_KINDS: Final = bytes([int(_kind_of(code)) for code in range(_SMALL_CODES)])
"""kind by code: most codes need no set lookup"""
_TABLES: Final = [table_of(WIRES[kind]) for kind in range(len(WIRES))]
"""by kind"""


def scanned(serialize_type: i64, header: bytes) -> HeaderView | None:
    """Return the fields that a row needs, or None if the header must be decoded in full."""
    try:
        if serialize_type == BINARY_TYPE:
            return _binary(header)
        code: i64 = first_code_of(header)
        if code < 0:
            return None
        kind: i64 = _known_kind(code)
        if kind == SPECIAL:
            return None
        view = _json(kind, code, header)
        if view is not None and (view.flag & 1 == 1) != (view.kind == RESPONSE):
            # The flag comes after the ext fields: this turns out to be a response.
            view = _json(RESPONSE, code, header) if view.flag & 1 else None
    except IndexError:  # it ends early; checks at every byte would cost more
        return None
    return view


def _known_kind(code: i64) -> i64:
    if 0 <= code < _SMALL_CODES:
        kind: i64 = i64(_KINDS[code])
        return kind
    return _kind_of(int(code))


def _new(kind: i64, code: int, header: bytes, serialize_type: str) -> HeaderView:
    view = HeaderView(code, 0, "", 0, None, 0, serialize_type)
    view.kind = kind
    if kind == SENT_V2:
        view.kind = SENT
    view.data = header
    view.is_filled = True
    return view


def _json(kind: i64, code: i64, header: bytes) -> HeaderView | None:
    """Return the view of a JSON header; None, or IndexError, if it is not plain."""
    view = _new(kind, int(code), header, JSON)
    return view if _scan(view, _TABLES[kind], header) else None


def _scan(view: HeaderView, table: bytes, header: bytes) -> bool:
    """Scan the members after the code; False, or IndexError, if not in Java's form."""
    size: i64 = len(header)
    has_fields = has_opaque = False
    at: i64 = 9
    while header[at] != COMMA:  # as checked by `first_code_of`
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
            at = _scan_fields(view, table, header, at + 4, size)
        elif name == _LANGUAGE:
            if word_at(header, at, size) & THREE != _AS_TEXT:
                return False
            at = _scan_language(view, header, at + 3, size)
        elif name == _SERIALIZE:
            at = _skip_serialization(header, at, size)
        elif name == _OPAQUE:
            opaque, at = number_at(header, at)
            view.opaque = int(opaque)
            has_opaque = True
        elif name == _VERSION and header[at] == COLON:
            view.version, at = number_at(header, at + 1)
        elif name == _REMARK:
            at = _scan_remark(view, header, at, size)
        elif name & SIX == _FLAG:
            # `flag":` has six bytes: two of the eight that were read are of the number.
            view.flag, at = number_at(header, at - 2)
        else:
            return False
        if at < 0:
            return False
    return header[at] == CLOSE and at + 1 == size and has_opaque


def _scan_fields(view: HeaderView, table: bytes, header: bytes, at: i64, size: i64) -> i64:
    """Scan the ext fields; return the offset after them, or -1 if not in Java's form."""
    slots = Slots()
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
        if slot == PROPERTIES and view.kind == SENT:
            end = _end_of_properties(view, header, at, size)
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
    view.take(slots)
    return at + 1


def _scan_language(view: HeaderView, header: bytes, at: i64, size: i64) -> i64:
    """Scan the language; return the offset after it, or -1 if not plain."""
    if word_at(header, at, size) & FIVE == _JAVA:
        view.language = "JAVA"
        return at + 5
    end = end_of_text(header, at, size)
    if end < 0:
        return -1
    view.language = header[at:end].decode("ascii")
    return end + 1 if is_language(view.language) else -1


def _scan_remark(view: HeaderView, header: bytes, at: i64, size: i64) -> i64:
    """Scan the remark; return the offset after it, or -1 if not plain."""
    if word_at(header, at, size) & FOUR == _NULL:
        view.remark = None
        return at + 4
    if header[at] != QUOTE:
        return -1
    end = end_of_text(header, at + 1, size)
    if end < 0:
        return -1
    view.remark = header[at + 1 : end].decode("ascii")
    return end + 1


def _skip_serialization(header: bytes, at: i64, size: i64) -> i64:
    """Skip the serialization type; return the offset after it, or -1 if not plain."""
    if word_at(header, at, size) != _TYPE or word_at(header, at + 8, size) != _RPC:
        return -1
    if word_at(header, at + 16, size) & SEVEN == _IS_JSON:
        return at + 23
    if word_at(header, at + 15, size) & THREE != _AS_TEXT:
        return -1
    end = end_of_text(header, at + 18, size)
    return end if end < 0 else end + 1


def _end_of_properties(view: HeaderView, header: bytes, at: i64, size: i64) -> i64:
    """Return the offset of the quote after the properties, and record those that a row has.

    Return -1 if not plain.
    """
    view.unique_key = view.keys = view.tags = ABSENT  # the last of duplicate `properties` counts
    view.is_request = view.is_special = False
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
                return -1  # a value with it would need unescaping
            value = at + _ESCAPE
        elif escape & SIX == _VALUES_END or (escape & 0xFF == QUOTE and at < size):
            if value:
                _note_property(view, header, name, value - _ESCAPE - name, value, at)
            if escape & 0xFF == QUOTE:
                return at
            name = at + _ESCAPE
            value = 0
        else:
            return -1
        at += _ESCAPE


def _note_property(
    view: HeaderView, header: bytes, name: i64, length: i64, value: i64, end: i64
) -> None:
    """Record the position of a property's value, if a row has it.

    The last of duplicate names counts.
    """
    if value == end:  # no property, as in `decode_properties`
        return
    if length == 8:
        if read_i64_le(header, name) == _UNIQUE_KEY:
            view.unique_key = value << 32 | end
    elif length == 4:
        word: i64 = word_at(header, name, len(header)) & FOUR
        if word == _KEYS:
            view.keys = value << 32 | end
        elif word == _TAGS:
            view.tags = value << 32 | end
    elif length > 4:
        start: i64 = word_at(header, name, len(header))
        if start & FIVE == _DELAY or start & SIX == _TIMER or start & 0xFFFF == _SYSTEM:
            view.is_special = True
        elif start == _CORRELATION:
            view.is_request = True


def _binary(header: bytes) -> HeaderView | None:
    """Return the view of a binary header, or None if it is not plain."""
    size: i64 = len(header)
    if size < MIN_BINARY_HEADER:
        return None
    flag: i64 = i64(read_i32_be(header, 9))
    code: i64 = i64(read_i16_be(header, 0))
    kind: i64 = RESPONSE
    if flag & 1 == 0:
        code = wide_request_code(int(code))
        kind = kind_of_request(int(code)) if code == 0 else _known_kind(code)
    remark_length: i64 = i64(read_i32_be(header, 13))
    if kind == SPECIAL or remark_length < 0 or remark_length > size - MIN_BINARY_HEADER:
        return None
    at: i64 = 17 + remark_length
    end: i64 = at + 4 + i64(read_i32_be(header, at))
    if end < at + 4 or end > size:
        return None
    view = _new(kind, int(code), header, ROCKETMQ)
    view.flag = flag
    view.language = language_name(i64(header[2]))
    view.version = i64(read_i16_be(header, 3))
    view.opaque = int(read_i32_be(header, 5))
    if remark_length:
        view.remark = header[17:at].decode("utf-8", "replace")
    return view if _scan_binary_fields(view, _TABLES[kind], header, at + 4, end) else None


def _scan_binary_fields(view: HeaderView, table: bytes, header: bytes, at: i64, end: i64) -> bool:
    """Scan (key length, key, value length, value) to the end; False if not plain."""
    slots = Slots()
    while at < end:
        name: i64 = at + 2
        if end - at < 6:
            return False
        length: i64 = i64(read_i16_be(header, at))
        name_end: i64 = name + length
        if length < 0 or name_end + 4 > end:
            return False
        value: i64 = name_end + 4
        at = value + i64(read_i32_be(header, name_end))
        if at < value or at > end:
            return False
        slot: i64 = -1
        if length == 1:
            slot = slot_of_letter(table, i64(header[name]))
        elif length >= 0:
            slot = slot_of(table, header, name, name_end)
        if slot < 0:
            continue
        if slot == PROPERTIES and view.kind == SENT:
            if not _has_plain_properties(view, header, value, at):
                return False
        elif stop_from(header, value, at) != at:
            return False
        slots.put(slot, value << 32 | at)
    view.take(slots)
    return True


def _has_plain_properties(view: HeaderView, header: bytes, at: i64, end: i64) -> bool:
    """Record the properties that a row has; return False if not plain."""
    view.unique_key = view.keys = view.tags = ABSENT  # the last of duplicate `properties` counts
    view.is_request = view.is_special = False
    while at < end:
        name: i64 = at
        name_end: i64 = stop_from(header, at, end)
        if name_end < 0:
            return False
        at = name_end + 1
        if name_end == end or i64(header[name_end]) == _VALUE_END:
            continue
        if i64(header[name_end]) != _NAME_END:
            return False
        value: i64 = at
        at = stop_from(header, value, end)
        if at < 0 or (at < end and i64(header[at]) != _VALUE_END):
            return False
        _note_property(view, header, name, name_end - name, value, at)
        at += 1
    return True
