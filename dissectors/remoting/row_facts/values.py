"""Bounded readers for values in ext fields, bodies, and facts; nothing raises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...foreign import integer_of
from ..fastjson.codec import decode_json
from .names import MAX_FACTS, fact_in

MAX_BODY: Final = 256 * 1024
"""maximum bytes of a JSON body with facts; a heartbeat has some kilobytes"""

LONGEST_NUMBER: Final = 20
"""characters of a 64-bit number"""


def number_in(facts: Iterable[str], name: str) -> int | None:
    """Return the number in the first fact of that name, or None."""
    value = fact_in(facts, name)
    return number_of(value) if value is not None else None


def number_of(text: str) -> int | None:
    """Parse a 64-bit number without a plus sign, or return None."""
    return None if text.startswith("+") else integer_of(text)


def number_or_zero(text: str) -> int:
    """Parse a 64-bit decimal number, or return 0."""
    return number_of(text) or 0


def object_in(body: bytes) -> dict[str, object] | None:
    """Parse a body as a JSON object, or return None if it is none or too long."""
    if len(body) > MAX_BODY:
        return None
    value = decode_json(body).value
    return value if isinstance(value, dict) else None


def text_in(value: object) -> str | None:
    """Return a non-empty text, or a whole number as text, or None for anything else."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value else None


def objects_in(value: object) -> list[dict[str, object]]:
    """Return the objects of a list; a single object counts as a list, as in Java."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items[:MAX_FACTS] if isinstance(item, dict)]
