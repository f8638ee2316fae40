"""Write plain message properties as JSON from their bytes.

Properties are plain if they are ASCII without quotes, backslashes, and control characters other
than the two separators, if no name occurs twice, and if only UNIQ_KEY has parts (`ids.parts`).
RocketMQ: MessageDecoder.string2messageProperties.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i64_le
from mypy_extensions import i64

from ....json_bytes import copy_range
from ....plain_json import CLOSE, QUOTE, SEVEN, slot_of, stop_from, table_of
from ...ids.parts import PROPERTIES
from ...messages.properties import NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR

UNIQUE_KEY: Final = "UNIQ_KEY"
_NAMED: Final = (UNIQUE_KEY, "TAGS", "KEYS")
"""names with fields of their own in a message"""
_KEY_PLACE: Final = 0
_TAGS_PLACE: Final = 1
_KEYS_PLACE: Final = 2
_TABLE: Final = table_of((*_NAMED, *(name for name in PROPERTIES if name not in _NAMED)))
_NAME_END: Final[i64] = ord(NAME_VALUE_SEPARATOR)
_VALUE_END: Final[i64] = ord(PROPERTY_SEPARATOR)
_BLANK: Final = 0x20
_MARKS: Final = 62
"""bits that mark names as seen"""
_LEAST: Final = 8
"""bytes read at a time"""
_NULL: Final = b"null"


@final
class PlainProperties:
    """Properties of one message at a time; `find` loads the next ones."""

    __slots__ = ("_begin", "_data", "_keys_at", "_keys_end", "_maybe_twice", "_seen", "_tags_at",
                 "_tags_end", "_text", "key_at", "key_end")  # fmt: skip

    def __init__(self) -> None:
        self._data = b""
        self._begin: i64 = 0
        self._text = BytesWriter()
        self._seen: i64 = 0
        self._maybe_twice = False
        self._tags_at: i64 = 0
        self._tags_end: i64 = 0
        self._keys_at: i64 = 0
        self._keys_end: i64 = 0
        self.key_at: i64 = 0
        """start of the value of UNIQ_KEY"""
        self.key_end: i64 = 0
        """its end; 0 if absent"""

    def find(self, data: bytes, at: i64, stop: i64) -> bool:
        """Find the properties in a range of bytes; return False if they are not plain."""
        self._data, self._begin = data, at
        self.key_end = 0
        self._tags_end = 0
        self._keys_end = 0
        self._seen = 0
        self._maybe_twice = False
        self._text.truncate(0)
        if at < stop and len(data) < _LEAST:
            return False
        while at < stop:
            name_end: i64 = stop_from(data, at, stop)
            if name_end < 0:
                return False
            # Entries without a name or a value are skipped, as in `decode_properties`.
            if name_end == stop or i64(data[name_end]) == _VALUE_END:
                at = name_end + 1
                continue
            if i64(data[name_end]) != _NAME_END:
                return False
            end: i64 = stop_from(data, name_end + 1, stop)
            if end < 0 or (end < stop and i64(data[end]) != _VALUE_END):
                return False
            if name_end > at and end > name_end + 1 and not self._add(at, name_end, end):
                return False
            at = end + 1
        # Different names may have the same mark: the names decide, in rare cases.
        return not self._maybe_twice or not self._has_one_twice(stop)

    def _add(self, at: i64, name_end: i64, end: i64) -> bool:
        """Add a property; return False if it is not plain."""
        data = self._data
        if at + _LEAST > len(data):  # the name search reads that many bytes
            return False
        slot: i64 = slot_of(_TABLE, data, at, name_end)
        if slot == _KEY_PLACE:
            self.key_at, self.key_end = name_end + 1, end
        elif slot == _TAGS_PLACE:
            self._tags_at, self._tags_end = name_end + 1, end
        elif slot == _KEYS_PLACE:
            self._keys_at, self._keys_end = name_end + 1, end
        elif slot > 0:
            return False
        self._mark(at, name_end - at)
        out = self._text
        out.write(b',"' if len(out) else b'"')
        copy_range(out, data, at, name_end)
        out.write(b'":"')
        copy_range(out, data, name_end + 1, end)
        out.append(QUOTE)
        return True

    def _mark(self, at: i64, length: i64) -> None:
        """Mark a name as seen: equal names have the same mark."""
        word: i64 = read_i64_le(self._data, at)
        if length < 8:
            word &= SEVEN >> ((7 - length) * 8)
        one: i64 = 1
        mark: i64 = one << ((word ^ word >> 9 ^ word >> 23 ^ word >> 41 ^ length) % _MARKS)
        if self._seen & mark:
            self._maybe_twice = True
        self._seen |= mark

    def _has_one_twice(self, stop: i64) -> bool:
        """Return whether two properties have the same name."""
        names: list[bytes] = []
        for entry in self._data[self._begin : stop].split(PROPERTY_SEPARATOR.encode()):
            name, _, value = entry.partition(NAME_VALUE_SEPARATOR.encode())
            if name and value:
                names.append(name)
        return len(set(names)) < len(names)

    def write(self, out: BytesWriter) -> None:
        """Write the properties, except those with fields of their own."""
        out.write(b',"msgId":')
        self._put(out, self.key_at, self.key_end)
        out.write(b',"tags":')
        self._put(out, self._tags_at, self._tags_end)
        out.write(b',"keys":[')
        self._put_keys(out)
        out.write(b'],"properties":{')
        out.write(self._text.getvalue())
        out.append(CLOSE)

    def _put(self, out: BytesWriter, at: i64, end: i64) -> None:
        if not end:
            out.write(_NULL)
            return
        out.append(QUOTE)
        copy_range(out, self._data, at, end)
        out.append(QUOTE)

    def _put_keys(self, out: BytesWriter) -> None:
        """Write the keys, which are separated by blanks."""
        data = self._data
        at: i64 = self._keys_at
        end: i64 = self._keys_end
        is_first = True
        while at < end:
            if i64(data[at]) == _BLANK:
                at += 1
                continue
            begin: i64 = at
            while at < end and i64(data[at]) != _BLANK:
                at += 1
            if not is_first:
                out.write(b",")
            is_first = False
            self._put(out, begin, at)
