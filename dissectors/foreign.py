"""The one place where JSON that was captured is handed to msgspec: nothing in it can raise.

Text that is not strict JSON, of another shape or nested deeper than the interpreter's stack gives
None; the tolerant reader (`fastjson.decode_json`) then says what it is, nested `DEPTH_LIMIT` deep
at most.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def read_json(decoder: msgspec.json.Decoder[T], data: bytes) -> T | None:
    """Return what the decoder reads; None where it reads nothing."""
    try:
        return decoder.decode(data)
    except Exception:  # msgspec's own errors, RecursionError, UnicodeDecodeError, OverflowError, …
        return None


def json_problem(decoder: msgspec.json.Decoder[T], data: bytes) -> str:
    """Return why `read_json` gives None, for people."""
    try:
        decoder.decode(data)
    except RecursionError:
        return "JSON is nested too deep"
    except Exception as error:
        return str(error) or type(error).__name__
    return "it is null"


def integer_of(text: str) -> int | None:
    """Return the number that Java would read from the text (a long); None when it is none."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not 0 < len(digits) <= 19 or not (digits.isascii() and digits.isdecimal()):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None
