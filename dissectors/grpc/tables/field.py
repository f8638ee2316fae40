"""The row type of the tables of messages, and how a field's value is on the wire.

Protocol Buffers: language guide (proto3), encoding.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class FieldKind(StrEnum):
    """What a field holds; proto3's other scalar types are in none of the messages."""

    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"
    FLOAT = "float"
    STRING = "string"
    BYTES = "bytes"
    ENUM = "enum"
    MESSAGE = "message"


INT32: Final = FieldKind.INT32
INT64: Final = FieldKind.INT64
BOOL: Final = FieldKind.BOOL
FLOAT: Final = FieldKind.FLOAT
STRING: Final = FieldKind.STRING
BYTES: Final = FieldKind.BYTES


class Field(NamedTuple):
    """One field of a message type."""

    number: int
    """number on the wire"""
    name: str
    """name in the definition"""
    kind: FieldKind
    """what it holds"""
    of: str
    """of an enum or a message: its type, without the package; else empty"""
    many: bool
    """it may come more than once"""


def scalar(number: int, name: str, kind: FieldKind, *, many: bool = False) -> Field:
    """Return the row of a number, a text or bytes."""
    return Field(number, name, kind, "", many)


def enum(number: int, name: str, of: str, *, many: bool = False) -> Field:
    """Return the row of an enum."""
    return Field(number, name, FieldKind.ENUM, of, many)


def message(number: int, name: str, of: str, *, many: bool = False) -> Field:
    """Return the row of a message within the message."""
    return Field(number, name, FieldKind.MESSAGE, of, many)
