"""Write JSON like fastjson: bare integer keys, object keys, Java's doubles and escapes.

Members keep the caller's order: fastjson sorts class members and leaves maps in Java's order.
References are never written; shared values are written twice, which fastjson reads. RocketMQ:
RemotingSerializable.encode, fastjson's JSONSerializer.
"""

from __future__ import annotations

import base64
import math
import re
from decimal import Decimal
from typing import Final

from .reader import DEPTH_LIMIT, PairMap, Real

_ESCAPED = re.compile('[\\x00-\\x1f"\\\\\\x7f\u2028\u2029]')
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_SHORT_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}


def encode_json(value: object, *, ascii_only: bool = False) -> bytes:
    """Encode a value in UTF-8.

    int keys of dicts are written bare, `PairMap` keys as they are, bytes as base64, None as null;
    `ascii_only` escapes other characters, as in the standard JSON of NameServers. Raise ValueError
    for values that JSON cannot express: too deep, or of another type.
    """
    parts: list[str] = []
    _write(value, parts, 0)
    text = "".join(parts)
    if ascii_only and not text.isascii():
        text = _NOT_ASCII.sub(_escape_units, text)
    return text.encode("utf-8", "replace")


def _escape_units(match: re.Match[str]) -> str:
    # Java escapes UTF-16 units: two for a character above U+FFFF.
    units = match[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _write(value: object, parts: list[str], depth: int) -> None:
    if depth > DEPTH_LIMIT:
        raise ValueError(f"more than {DEPTH_LIMIT} levels")
    if isinstance(value, PairMap):
        _write_pairs(value, parts, depth)
    elif isinstance(value, dict):
        _write_pairs(list(value.items()), parts, depth)
    elif isinstance(value, (list, tuple)):
        parts.append("[")
        for place, item in enumerate(value):
            if place:
                parts.append(",")
            _write(item, parts, depth + 1)
        parts.append("]")
    else:
        parts.append(_scalar(value))


def _write_pairs(pairs: list[tuple[object, object]], parts: list[str], depth: int) -> None:
    parts.append("{")
    for place, (key, item) in enumerate(pairs):
        if place:
            parts.append(",")
        _write(key, parts, depth + 1)
        parts.append(":")
        _write(item, parts, depth + 1)
    parts.append("}")


def _scalar(value: object) -> str:
    if isinstance(value, Real):
        return decimal_text(value)
    if isinstance(value, str):
        return f'"{_ESCAPED.sub(_escape, value)}"'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f'"{base64.b64encode(value).decode()}"'
    raise ValueError(f"{type(value).__name__} has no JSON form")


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT_ESCAPES.get(char) or f"\\u{ord(char):04X}"


def decimal_text(value: Real) -> str:
    """Format a number like Java's BigDecimal.toString: all digits, and no negative zero."""
    number = Decimal(value)
    return str(number if number else abs(number))


def double_text(value: float) -> str:
    """Format a number like Java's Double.toString, or null if it is not finite."""
    if not math.isfinite(value):
        return "null"
    # Java writes an exponent outside this range, Python only from 1e16 on or below 1e-4.
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    exponent = Decimal(repr(value)).adjusted()
    mantissa = "".join(map(str, digits))
    return f"{'-' if sign else ''}{mantissa[0]}.{mantissa[1:] or '0'}E{exponent}"
