"""The one place where bytes and text that others wrote are parsed: what was captured, what a peer
says, files.

Nothing here raises anything but `Unreadable`, whatever comes in: text that is not JSON, nested
deeper than the interpreter's stack, digits of other alphabets, numbers of a million digits.
`read_json` gives None for what is not strict JSON; the tolerant reader (`fastjson.decode_json`)
then says what it is, nested `DEPTH_LIMIT` deep at most. `tests/test_foreign.py` finds parsing
elsewhere.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from mypy_extensions import i64

if TYPE_CHECKING:
    import msgspec

T = TypeVar("T")

LONGEST_NUMBER: Final = 19
"""digits of a 64-bit number"""
LONGEST_REAL: Final = 400
"""characters of a number with a fraction: what a 64-bit one may have without an exponent"""
_TOO_DEEP: Final = "it is nested too deep"


class Unreadable(ValueError):
    """What others wrote is not what it should be; the text says why, for people."""


def read_json(decoder: msgspec.json.Decoder[T], data: bytes) -> T | None:
    """Return what the decoder reads; None where it reads nothing."""
    try:
        return decoder.decode(data)
    except Exception:  # msgspec's own errors, RecursionError, UnicodeDecodeError, OverflowError, …
        return None


def json_of(decoder: msgspec.json.Decoder[T], data: bytes | str) -> T:
    """Return what the decoder reads; raise Unreadable where it reads nothing."""
    try:
        return decoder.decode(data)
    except Exception as error:
        raise Unreadable(_reason_of(error)) from None


def toml_of(data: bytes) -> dict[str, object]:
    """Return the table that a TOML file is; raise Unreadable where it is none."""
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except Exception as error:
        raise Unreadable(_reason_of(error)) from None


def converted(value: object, kind: type[T]) -> T:
    """Return plain values as a type; raise Unreadable where they are not of it."""
    import msgspec  # numbers in text are read by what starts quickly, too

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
    """Return the 64-bit integer that a text is, with or without a sign; None: it is none."""
    size: i64 = len(text)
    if 0 < size < LONGEST_NUMBER:  # the usual case: digits alone
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
    # int() alone would take blanks, underscores, other alphabets, and raise for many digits.
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not 0 < len(digits) <= LONGEST_NUMBER or not (digits.isascii() and digits.isdecimal()):
        return None
    value = int(text)  # type: ignore[number-in-text]
    return value if -(1 << 63) <= value < 1 << 63 else None


def natural_of(text: str) -> int | None:
    """Return the integer from 0 that a text of at most 18 digits is; None: it is none."""
    if 0 < len(text) < LONGEST_NUMBER and text.isascii() and text.isdecimal():
        return int(text)  # type: ignore[number-in-text]
    return None


def hexadecimal_of(text: str) -> int | None:
    """Return the integer that at most 16 hexadecimal digits are; None: they are none."""
    if not 0 < len(text) <= 16 or not text.isalnum() or text[1:2] in ("x", "X"):
        return None
    try:
        return int(text, 16) if text.isascii() else None  # type: ignore[number-in-text]
    except ValueError:
        return None


def hexadecimals_of(texts: Sequence[str]) -> list[int] | None:
    """Return the integers that some texts are, as `hexadecimal_of` does; None: one of them is none.

    It takes a third of the time, for what comes by the hundred thousand.
    """
    digits = "".join(texts)
    if not digits.isalnum() or not digits.isascii() or "x" in digits or "X" in digits:
        return None
    if max(map(len, texts)) > 16:
        return None
    try:
        return [int(text, 16) for text in texts]  # type: ignore[number-in-text]
    except ValueError:
        return None


def real_of(text: str) -> float | None:
    """Return the number that a text is; None: it is none. It may be infinite or NaN."""
    if len(text) > LONGEST_REAL or not text.isascii() or "_" in text:
        return None
    try:
        return float(text)  # type: ignore[number-in-text]
    except ValueError:
        return None


def base64_of(text: str | bytes, altchars: bytes | None = None) -> bytes | None:
    """Return the bytes that a text in Base64 stands for; None: it is none.

    `altchars` are the two characters in place of `+` and `/`.
    """
    try:
        return base64.b64decode(text, altchars, validate=True)
    except (binascii.Error, ValueError):
        return None


def hex_bytes_of(text: str) -> bytes | None:
    """Return the bytes that pairs of hexadecimal digits stand for; None: they are none."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None
