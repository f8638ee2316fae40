"""Values in ext fields, bodies and facts, read so that nothing raises and all is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...foreign import integer_of
from ..fastjson.codec import decode_json
from .names import MAX_FACTS, fact_in

MAX_BODY: Final = 256 * 1024
"""bytes of a JSON body that facts are taken from; a heartbeat has some kilobytes"""

LONGEST_NUMBER: Final = 20
"""characters of a 64-bit number"""


def number_in(facts: Iterable[str], name: str) -> int | None:
    """Return the number that the first fact of that name is; None where it is none."""
    value = fact_in(facts, name)
    return number_of(value) if value is not None else None


def number_of(text: str) -> int | None:
    """Return a 64-bit number without a plus sign; None for anything else."""
    return None if text.startswith("+") else integer_of(text)


def number_or_zero(text: str) -> int:
    """Return a 64-bit number in decimal; 0 for anything else."""
    return number_of(text) or 0


def object_in(body: bytes) -> dict[str, object] | None:
    """Return the JSON object that a body is; None where it is none or too long."""
    if len(body) > MAX_BODY:
        return None
    value = decode_json(body).value
    return value if isinstance(value, dict) else None


def text_in(value: object) -> str | None:
    """Return a text that is not empty, or a whole number as one; None for anything else."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value else None


def objects_in(value: object) -> list[dict[str, object]]:
    """Return the objects of a list; one alone is a list of it, as it is to Java."""
    found = value if isinstance(value, list) else [value]
    return [one for one in found[:MAX_FACTS] if isinstance(one, dict)]
