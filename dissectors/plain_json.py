"""Scan plain JSON in place: texts without escapes, integers, and tables of names.

Seven bytes are tested at once: their sums stay within 64 bits, so the same source runs as Python
and compiled. Access outside the bytes raises IndexError. A conditional expression of a native
integer and a literal would create an object, so there is none.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_le
from mypy_extensions import i64

SEVEN: Final = 0xFFFFFFFFFFFFFF
SIX: Final = 0xFFFFFFFFFFFF
FIVE: Final = 0xFFFFFFFFFF
FOUR: Final = 0xFFFFFFFF
THREE: Final = 0xFFFFFF
"""the first bytes of a word"""
QUOTE: Final = 0x22
COMMA: Final = 0x2C
MINUS: Final = 0x2D
ZERO: Final = 0x30
NINE: Final = 0x39
COLON: Final = 0x3A
CLOSE: Final = 0x7D

_HIGH: Final = 0x80808080808080
_CARRY: Final = 0x7F7F7F7F7F7F7F
"""added to a non-zero byte, sets its highest bit"""
_PRINTABLE: Final = 0x60606060606060
"""added to a byte that is no control character, sets its highest bit"""
_QUOTES: Final = 0x22222222222222
_BACKSLASHES: Final = 0x5C5C5C5C5C5C5C
_MOST_DIGITS: Final = 10
"""for a 32-bit integer"""
_INT32_MIN: Final = -(1 << 31)
_INT32_MAX: Final = (1 << 31) - 1
_ENTRY: Final = 32
"""bytes of a table entry: first, middle, and last eight bytes of a name, and its length"""
_LONGEST_NAME: Final = 24


def word_of(text: bytes) -> int:
    """Return the first eight bytes of a text like `word_at`."""
    return int.from_bytes(text[:8].ljust(8, b"\0"), "little")


def word_at(header: bytes, at: i64, size: i64) -> i64:
    """Return eight bytes, padded with zeros after the end."""
    if at + 8 <= size:
        return read_i64_le(header, at)
    if at >= size:
        return 0
    # A byte above 0x7F at the end has others like it before it, which are not plain either.
    return read_i64_le(header, size - 8) >> ((at + 8 - size) * 8)


def stops_in(word: i64) -> i64:
    """Return the highest bits of the quotes, backslashes, and control characters in seven bytes.

    -1 if a byte is not ASCII.
    """
    seven: i64 = word & SEVEN
    if seven & _HIGH:
        return -1
    plain: i64 = ((seven ^ _QUOTES) + _CARRY) & ((seven ^ _BACKSLASHES) + _CARRY)
    return ~(plain & (seven + _PRINTABLE)) & _HIGH


def first_of(stops: i64) -> i64:
    """Return the index of the first of seven bytes whose highest bit is set."""
    if stops & 0x80808080:
        if stops & 0x8080:
            return 0 if stops & 0x80 else 1
        return 2 if stops & 0x800000 else 3
    if stops & 0x808000000000:
        return 4 if stops & 0x8000000000 else 5
    return 6


def end_of_text(header: bytes, at: i64, size: i64) -> i64:
    """Return the index of the closing quote; -1 if the text is not plain or has no end."""
    while True:
        stops: i64 = stops_in(word_at(header, at, size))
        if stops < 0:
            return -1
        if stops:
            at += first_of(stops)
            if at < size and header[at] == QUOTE:
                return at
            return -1
        at += 7


def stop_from(data: bytes, at: i64, stop: i64) -> i64:
    """Return the index of the next byte that is not plain, or `stop` if there is none before it.

    -1 if a byte is not ASCII.
    """
    size: i64 = len(data)
    while at < stop:
        word: i64 = word_at(data, at, size)
        left: i64 = stop - at
        if left < 7:
            word &= SEVEN >> ((7 - left) * 8)  # bytes after the end are not tested
        stops: i64 = stops_in(word)
        if stops < 0:
            return -1
        if stops:
            at += first_of(stops)
            break
        at += 7
    if at > stop:
        return stop
    return at


def number_at(header: bytes, at: i64) -> tuple[i64, i64]:
    """Return the 32-bit integer at a place and the place after it; -1 if there is none."""
    negative = header[at] == MINUS
    if negative:
        at += 1
    begin: i64 = at
    number: i64 = 0
    digit: i64 = header[at]
    while ZERO <= digit <= NINE:
        number = number * 10 + digit - ZERO
        at += 1
        if at - begin > _MOST_DIGITS:
            return 0, -1
        digit = header[at]
    # JSON has no leading zeros: what Java accepts beyond it is decoded in full.
    if at == begin or (header[begin] == ZERO and at - begin > 1):
        return 0, -1
    if negative:
        number = -number
    if number < _INT32_MIN or number > _INT32_MAX:
        return 0, -1
    return number, at


def table_of(wires: tuple[str, ...]) -> bytes:
    """Return a table of ext field names, four words each."""
    parts = []
    for wire in wires:
        name = wire.encode()
        if len(name) > _LONGEST_NAME:
            raise ValueError(f"{wire} is longer than {_LONGEST_NAME} bytes")
        last = name[-8:] if len(name) > 8 else b""
        middle = name[8:16] if len(name) > 16 else b""
        words = (word_of(name), word_of(last), word_of(middle), len(name))
        parts.extend([word.to_bytes(8, "little") for word in words])
    return b"".join(parts)


def slot_of_letter(table: bytes, letter: i64) -> i64:
    """Return the table index of a one-letter name; -1 if none."""
    entries: i64 = len(table)
    at: i64 = 0
    while at < entries:
        if read_i64_le(table, at) == letter:
            return at // _ENTRY
        at += _ENTRY
    return -1


def slot_of(table: bytes, header: bytes, begin: i64, end: i64) -> i64:
    """Return the table index of the name at a place; -1 if none."""
    length: i64 = end - begin
    size: i64 = len(header)
    first = read_i64_le(header, begin) if begin + 8 <= size else word_at(header, begin, size)
    last: i64 = 0
    middle: i64 = 0
    if length < 8:
        first &= SEVEN >> ((7 - length) * 8)
    elif length > 8:
        last = read_i64_le(header, end - 8)
        if length > 16:
            middle = read_i64_le(header, begin + 8)
    entries: i64 = len(table)
    at: i64 = 0
    while at < entries:
        if (
            read_i64_le(table, at) == first
            and read_i64_le(table, at + 8) == last
            and read_i64_le(table, at + 16) == middle
            and read_i64_le(table, at + 24) == length
        ):
            return at // _ENTRY
        at += _ENTRY
    return -1
