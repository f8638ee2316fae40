"""JSON of RocketMQ's bodies: fastjson's dialect ↔ plain values.

Reading never raises. Maps become dicts with str keys, or `PairMap` if a key is an object.
RocketMQ: RemotingSerializable; fastjson's DefaultJSONParser and JSONSerializer.
"""

from __future__ import annotations

import base64
import math
import re
from decimal import Decimal
from typing import Final

import msgspec

from ...foreign import read_json
from .reader import (
    DEPTH_LIMIT,
    VALUE_LIMIT,
    FastjsonReader,
    JsonResult,
    PairMap,
    Real,
    ReferenceResolver,
)

TEXT_LIMIT: Final = 16 * 1024 * 1024
"""Maximum bytes of text: the limit of a frame."""


_decoder: Final = msgspec.json.Decoder()
_INTEGER_KEY: Final = re.compile(rb"(?<=[{,])-?\d+(?=:)")
_STRING_OR_INTEGER_KEY: Final = re.compile(rb'"[^"]*"|' + _INTEGER_KEY.pattern)
"""for text without backslashes: those would make it quadratic for an unterminated string"""


def decode_json(data: bytes, limit: int = TEXT_LIMIT) -> JsonResult:
    """Decode JSON in UTF-8, as strict or as loose as fastjson.

    At most `limit` bytes are read. Invalid UTF-8 becomes U+FFFD and is a problem.
    """
    # msgspec is much faster than the tolerant reader, but knows no references.
    if len(data) <= limit and b"$ref" not in data and not may_be_too_much(data):
        value = read_json(_decoder, data)
        # Every route has integer keys without quotes. `{0:"x"}` and `{"0":"x"}` are equal in Java.
        if value is None and b"\\" not in data and _INTEGER_KEY.search(data):
            value = read_json(_decoder, _STRING_OR_INTEGER_KEY.sub(_quoted, data))
        # None is `null`, or not strict JSON: the tolerant reader decides.
        if value is not None and not _too_deep(data, value):
            return JsonResult(value)
    return _decode_tolerantly(data, limit)


def _quoted(match: re.Match[bytes]) -> bytes:
    """Return a string unchanged, or an integer key in quotes."""
    text = match[0]
    return text if text.startswith(b'"') else b'"%b"' % text


def _decode_tolerantly(data: bytes, limit: int) -> JsonResult:
    problems: list[str] = []
    if len(data) > limit:
        problems.append(f"only {limit} of {len(data)} bytes were read")
    piece = bytes(data[: max(limit, 0)])
    try:
        text = piece.decode()
    except UnicodeDecodeError as error:
        problems.append(f"invalid UTF-8 at byte {error.start}")
        text = piece.decode("utf-8", "replace")
    reader = FastjsonReader(text)
    value = reader.read()
    if reader.problem is not None:
        problems.append(reader.problem)
    if reader.has_references:
        value = ReferenceResolver(value, len(text)).resolve()
    return JsonResult(value, "; ".join(problems) or None)


def may_be_too_much(data: bytes) -> bool:
    """Return whether the text may exceed `VALUE_LIMIT` values, by the number of its commas."""
    if len(data) <= VALUE_LIMIT:
        return False
    return data.count(b",") + data.count(b"{") + data.count(b"[") >= VALUE_LIMIT


def _too_deep(data: bytes, value: object) -> bool:
    """Return whether containers exceed `DEPTH_LIMIT`."""
    if data.count(b"{") + data.count(b"[") <= DEPTH_LIMIT:
        return False
    level = [value]
    for _ in range(DEPTH_LIMIT):
        inner: list[object] = []
        for container in level:
            if type(container) is dict:
                inner += [item for item in container.values() if type(item) in (dict, list)]
            elif type(container) is list:
                inner += [item for item in container if type(item) in (dict, list)]
        if not inner:
            return False
        level = inner
    return True


def to_json_value(value: object) -> object:
    """Convert a value to types that every JSON writer supports.

    A `PairMap` becomes a list of {"key": .., "value": ..}, bytes become base64 text, non-finite
    numbers and other objects their text. The caller bounds the depth to `DEPTH_LIMIT`.
    """
    if value is None or isinstance(value, (str, int)):
        return value
    return _plain(value, {})


def _plain(value: object, done: dict[int, object]) -> object:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if not isinstance(value, (dict, list, tuple)):
        return str(value)
    # Shared parts are converted once, so the work is linear in the text, not in its expansion.
    known = done.get(id(value))
    if known is None:
        known = done[id(value)] = _plain_container(value, done)
    return known


def _plain_container(
    value: dict[object, object] | list[object] | tuple[object, ...], done: dict[int, object]
) -> object:
    if isinstance(value, PairMap):
        return [{"key": _plain(key, done), "value": _plain(item, done)} for key, item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item, done) for name, item in value.items()}
    return [_plain(item, done) for item in value]


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
    """Encode a value in UTF-8. Members keep the caller's order; shared values are written twice.

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
