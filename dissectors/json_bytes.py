"""Write JSON values as bytes, without an object for each."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_le, write_i64_le
from mypy_extensions import i64

NOTHING: Final = -(1 << 61)
"""marks a missing number"""
ABSENT: Final = 0
"""place of a missing value"""
PLACE_END: Final = 0xFFFFFFFF
"""low bits of a place: end of the value; the start is above them"""
_ZERO: Final = 0x30
_MINUS: Final = 0x2D
_LETTERS: Final = ord("A") - ord("9") - 1
"""distance from the digit after 9 to A"""
_EIGHT_DIGITS: Final = 100_000_000
_LONGEST_COPY: Final = 64
"""bytes copied eight at a time"""


def put_number(out: BytesWriter, number: i64) -> None:
    """Write an integer greater than NOTHING."""
    if number < 0:
        out.append(_MINUS)
        number = -number
    if number >= _EIGHT_DIGITS:
        put_number(out, number // _EIGHT_DIGITS)
        write_i64_le(out, digits_of(number % _EIGHT_DIGITS, 8))
        return
    # Eight bytes are written at once, the last digit highest; those after it are cut off again.
    word: i64 = _ZERO + number % 10
    digits: i64 = 1
    number //= 10
    while number > 0:
        word = word << 8 | (_ZERO + number % 10)
        number //= 10
        digits += 1
    size: i64 = len(out)
    write_i64_le(out, word)
    out.truncate(size + digits)


def put_integer(out: BytesWriter, number: i64) -> None:
    """Write any integer of 64 bits."""
    if number <= NOTHING:
        out.write(str(int(number)).encode())
    else:
        put_number(out, number)


def put_hex(out: BytesWriter, data: bytes, at: i64) -> None:
    """Write eight bytes as 16 uppercase hex digits."""
    _put_four(out, i64(read_i32_be(data, at)))
    _put_four(out, i64(read_i32_be(data, at + 4)))


def _put_four(out: BytesWriter, number: i64) -> None:
    """Write the low four bytes of a number as eight hex digits."""
    word: i64 = 0
    digits: i64 = 8
    while digits > 0:
        digit: i64 = number & 15
        if digit > 9:
            digit += _LETTERS
        word = word << 8 | (_ZERO + digit)
        number >>= 4
        digits -= 1
    write_i64_le(out, word)


def digits_of(number: i64, count: i64) -> i64:
    """Return the last digits of a number, at most eight, as a word whose first byte is the first
    digit.
    """
    word: i64 = 0
    while count > 0:
        word = word << 8 | (_ZERO + number % 10)
        number //= 10
        count -= 1
    return word


def copy_range(out: BytesWriter, data: bytes, at: i64, end: i64) -> None:
    """Write a range of bytes; a short one without creating an object."""
    length: i64 = end - at
    # Short ranges are copied by words, which may read and write up to seven bytes too many.
    if length > _LONGEST_COPY or end + 7 > len(data):
        out.write(data[at:end])
        return
    size: i64 = len(out)
    while at < end:
        write_i64_le(out, read_i64_le(data, at))
        at += 8
    out.truncate(size + length)
