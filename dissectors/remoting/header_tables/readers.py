"""What reads the text of an ext field, by the type that the tables name.

RocketMQ: RemotingCommand.decodeCommandCustomHeader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...foreign import integer_of, real_of
from .field import FieldType


def _read_int32(text: str) -> int:
    number = integer_of(text)
    if number is None or not -0x80000000 <= number <= 0x7FFFFFFF:
        raise ValueError(text)
    return number


def _read_int64(text: str) -> int:
    number = integer_of(text)
    if number is None:
        raise ValueError(text)
    return number


_BOOLEANS: Final = {"true": True, "false": False}


def _read_boolean(text: str) -> bool:
    # Java takes every other text for false; showing it as it is says more.
    value = _BOOLEANS.get(text)
    if value is None:
        value = _BOOLEANS.get(text.lower())
        if value is None:
            raise ValueError(text)
    return value


def _read_double(text: str) -> float:
    number = real_of(text)
    if number is None:
        raise ValueError(text)
    return number


def _read_boundary(text: str) -> str:
    upper = text.upper()
    if upper not in ("LOWER", "UPPER"):  # Java takes it for LOWER
        raise ValueError(text)
    return upper


Reader = Callable[[str], object]
"""Text → value; it raises ValueError where the text is none of the type."""

READERS: Final[dict[FieldType, Reader | None]] = {
    FieldType.STRING: None,
    FieldType.INT: _read_int32,
    FieldType.LONG: _read_int64,
    FieldType.BOOLEAN: _read_boolean,
    FieldType.DOUBLE: _read_double,
    FieldType.BOUNDARY: _read_boundary,
}
"""Type → its reader; None: the text is the value."""
