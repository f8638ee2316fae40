"""Bodies that are neither JSON nor messages: properties, plain text, the timer check point.

RocketMQ: MixAll.properties2String, MixAll.string2Properties, TimerCheckpoint.
"""

from __future__ import annotations

import re
import struct
from typing import Final

from .body import RAW, Body, BodyInput

_SEPARATOR: Final = re.compile("[=:]")
_TIMER_FIELDS: Final = (
    "lastReadTimeMs",
    "lastTimerLogFlushPos",
    "lastTimerQueueOffset",
    "masterTimerQueueOffset",
    "dataVersionStateVersion",
    "dataVersionTimestamp",
    "dataVersionCounter",
)
"""The seven longs of a timer check point, in order."""


def _decode_text(body: bytes) -> tuple[str, str | None]:
    try:
        return body.decode(), None
    except UnicodeDecodeError as error:
        return body.decode("utf-8", "replace"), f"invalid UTF-8 at byte {error.start}"


def decode_text(given: BodyInput) -> Body:
    """Return a body of plain text: the name of a group, the source of a filter class."""
    text, problem = _decode_text(given.body)
    return Body(given.form, text, problem=problem)


def encode_text(value: object) -> bytes:
    """Return the bytes of a plain text."""
    if not isinstance(value, str):
        raise ValueError(f"a text is a str, not {type(value).__name__}")
    return value.encode()


def decode_properties_text(given: BodyInput) -> Body:
    """Return lines of `name=value` or `name:value` of properties files, without comments."""
    text, problem = _decode_text(given.body)
    properties: dict[str, object] = {}
    strange = 0
    for line in text.split("\n"):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        match = _SEPARATOR.search(line)
        name, value = (line[: match.start()], line[match.end() :]) if match else (line, "")
        strange += match is None
        properties[name.strip()] = value.strip()
    notes = (f"{strange} lines without = or :",) if strange else ()
    return Body(given.form, properties, problem=problem, notes=notes)


def encode_properties_text(value: object) -> bytes:
    """Return the text of properties, one `name=value` a line, each line ended."""
    if not isinstance(value, dict):
        raise ValueError(f"properties are a dict, not {type(value).__name__}")
    lines = [f"{name}={item}" for name, item in value.items()]
    if any("\n" in line for line in lines):
        raise ValueError("a line end inside a property")
    return "".join(f"{line}\n" for line in lines).encode()


def decode_timer_checkpoint(given: BodyInput) -> Body:
    """Decode seven longs: times in ms, positions in bytes, offsets in entries."""
    body = given.body
    count = min(len(body) // 8, len(_TIMER_FIELDS))
    if count == 0:
        return Body(RAW, problem=f"{len(body)} bytes are not a timer check point")
    numbers = struct.unpack_from(f">{count}q", body)
    value: object = dict(zip(_TIMER_FIELDS, numbers, strict=False))
    size = 8 * len(_TIMER_FIELDS)
    problem = None if len(body) == size else f"{len(body)} bytes instead of {size}"
    return Body(given.form, value, problem=problem)


def encode_timer_checkpoint(value: object) -> bytes:
    """Return the bytes of a timer check point; ValueError for what is none."""
    if not isinstance(value, dict):
        raise ValueError(f"a timer check point is a dict, not {type(value).__name__}")
    try:
        return struct.pack(f">{len(_TIMER_FIELDS)}q", *(value[name] for name in _TIMER_FIELDS))
    except (KeyError, struct.error) as error:
        raise ValueError(f"not a timer check point: {error}") from error
