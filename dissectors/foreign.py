"""Parse untrusted bytes and text: captures, peers, files.

All such parsing is here and raises nothing but `Unreadable` for any input: text that is not JSON,
nesting deeper than the interpreter's stack, digits of other alphabets, numbers of a million digits.
`read_json` returns None for anything but strict JSON; the tolerant reader (`fastjson.decode_json`)
handles that, to a depth of `DEPTH_LIMIT`. `tests/test_foreign.py` finds parsing elsewhere.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final, TypeVar

from mypy_extensions import i64

if TYPE_CHECKING:
    import msgspec

T = TypeVar("T")

LONGEST_NUMBER: Final = 19
"""digits of a 64-bit number"""
LONGEST_REAL: Final = 400
"""characters of a number with a fraction: the most that a 64-bit float needs without an exponent"""
_TOO_DEEP: Final = "it is nested too deep"


class Unreadable(ValueError):
    """Untrusted input is invalid; the text tells people why."""


def read_json(decoder: msgspec.json.Decoder[T], data: bytes) -> T | None:
    """Decode JSON, or return None if it is invalid."""
    try:
        return decoder.decode(data)
    except Exception:  # msgspec's own errors, RecursionError, UnicodeDecodeError, OverflowError, …
        return None


def json_of(decoder: msgspec.json.Decoder[T], data: bytes | str) -> T:
    """Decode JSON; raise Unreadable if it is invalid."""
    try:
        return decoder.decode(data)
    except Exception as error:
        raise Unreadable(_reason_of(error)) from None


def toml_of(data: bytes) -> dict[str, object]:
    """Parse TOML; raise Unreadable if it is invalid."""
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except Exception as error:
        raise Unreadable(_reason_of(error)) from None


def converted(value: object, kind: type[T]) -> T:
    """Convert plain values to a type; raise Unreadable if they do not fit."""
    import msgspec  # the parsers of numbers below also serve modules that must start quickly

    try:
        return msgspec.convert(value, kind)
    except Exception as error:
        raise Unreadable(_reason_of(error)) from None


def _reason_of(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return _TOO_DEEP
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    return str(error) or type(error).__name__


def integer_of(text: str) -> int | None:
    """Parse a 64-bit integer with an optional sign, or return None."""
    size: i64 = len(text)
    if 0 < size < LONGEST_NUMBER:  # the usual case: only digits
        number: i64 = 0
        at: i64 = 0
        while at < size:
            digit: i64 = ord(text[at]) - 0x30
            if digit < 0 or digit > 9:
                break
            number = number * 10 + digit
            at += 1
        if at == size:
            return int(number)
    # int() would accept blanks, underscores, other alphabets, and raise for many digits.
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not 0 < len(digits) <= LONGEST_NUMBER or not (digits.isascii() and digits.isdecimal()):
        return None
    value = int(text)  # type: ignore[number-in-text]
    return value if -(1 << 63) <= value < 1 << 63 else None


def natural_of(text: str) -> int | None:
    """Parse an integer from 0 with at most 18 digits, or return None."""
    if 0 < len(text) < LONGEST_NUMBER and text.isascii() and text.isdecimal():
        return int(text)  # type: ignore[number-in-text]
    return None


def hexadecimal_of(text: str) -> int | None:
    """Parse at most 16 hexadecimal digits, or return None."""
    # int() would also accept signs, blanks, underscores, and a prefix 0x.
    if not 0 < len(text) <= 16 or not text.isalnum() or text[1:2] in ("x", "X"):
        return None
    try:
        return int(text, 16) if text.isascii() else None  # type: ignore[number-in-text]
    except ValueError:
        return None


def real_of(text: str) -> float | None:
    """Parse a number, which may be infinite or NaN, or return None."""
    if len(text) > LONGEST_REAL or not text.isascii() or "_" in text:
        return None
    try:
        return float(text)  # type: ignore[number-in-text]
    except ValueError:
        return None


def base64_of(text: str | bytes, altchars: bytes | None = None) -> bytes | None:
    """Decode Base64, or return None if it is invalid.

    `altchars` are the two characters that replace `+` and `/`.
    """
    try:
        return base64.b64decode(text, altchars, validate=True)
    except (binascii.Error, ValueError):
        return None


def hex_bytes_of(text: str) -> bytes | None:
    """Decode pairs of hexadecimal digits, or return None if they are invalid."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None
