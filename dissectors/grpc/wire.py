"""Protocol Buffers wire format: bytes → numbers, texts, and parts, bounded and without recursion.

Rules: nothing raises but `Unreadable`. Each byte is read once per level. Groups, which proto3 does
not have, are an error. Protocol Buffers: encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..foreign import Unreadable

VARINT: Final = 0
FIXED_64: Final = 1
BYTES: Final = 2
FIXED_32: Final = 5
_LONGEST_VARINT: Final = 10
_64_BITS: Final = (1 << 64) - 1

Value = int | bytes


def fields_of(data: bytes) -> Iterator[tuple[int, int, Value, int]]:
    """Yield number, wire type, value (an integer, or a copy of bytes), and end of each field.

    Raise Unreadable at the first byte that cannot be read, after the fields before it.
    """
    at = 0
    end = len(data)
    while at < end:
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        # Protocol Buffers allow no larger number: these bytes are something else.
        if not 0 < number < 1 << 29:
            raise Unreadable(f"field number {number}")
        if kind == VARINT:
            value, at = _varint(data, at)
            yield number, kind, value, at
            continue
        if kind == BYTES:
            size, at = _varint(data, at)
        elif kind == FIXED_64:
            size = 8
        elif kind == FIXED_32:
            size = 4
        else:
            raise Unreadable(f"wire type {kind}")
        stop = at + size
        if stop > end:
            raise Unreadable(f"{stop - end} bytes of field {number} are missing")
        yield number, kind, data[at:stop], stop
        at = stop


def signed(value: int) -> int:
    """Return a varint as a signed integer."""
    return value - (1 << 64) if value >> 63 else value


def packed(data: bytes) -> list[int]:
    """Return the varints of a packed field; raise Unreadable."""
    values: list[int] = []
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and its end."""
    value = shift = 0
    for byte in data[at : at + _LONGEST_VARINT]:
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            # Ten bytes hold 70 bits; like other readers, drop the excess.
            return value & _64_BITS, at
        shift += 7
    raise Unreadable("a number that does not end")


def varint(value: int) -> bytes:
    """Encode a non-negative number as a varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
