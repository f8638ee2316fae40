"""JSON for people and programs: the same values, without terminal control characters.

Rules: unprintable characters are written as escapes, and so are lone surrogates, which UTF-8 cannot
encode.
"""

from __future__ import annotations

import json

import msgspec


def encoded_json(value: object) -> bytes:
    """Return a value as JSON, with ``?`` for lone surrogates, which UTF-8 cannot encode."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        from dissectors.rows.tables import encodable_value  # rarely needed

        return msgspec.json.encode(encodable_value(msgspec.to_builtins(value)))


def json_line(value: object) -> bytes:
    """Return a value as one line of JSON that a terminal may show."""
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate
        data = json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
    return visible_json(data) + b"\n"


def visible_json(data: bytes) -> bytes:
    """Return the same JSON with what does not print as ``\\u`` escapes; line ends stay."""
    # JSON escapes the other control characters of ASCII
    if data.isascii() and b"\x7f" not in data:
        return data
    text = data.decode("utf-8", "replace")
    if text.isprintable():
        return data
    return "".join(map(_visible, text)).encode()


def _visible(char: str) -> str:
    return char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1]  # no quotes
