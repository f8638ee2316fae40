"""Decode messages of `apache.rocketmq.v2` into trees of field names and values.

Rules: captured bytes never raise; what cannot be read is a problem, and the fields before it are
kept. The tables bound the depth, as no message type nests in itself. Unknown fields are counted.
Absent fields stay absent: proto3 writes no zero values.
"""

from __future__ import annotations

import struct
from typing import Final

from ..foreign import Unreadable
from .definition import ENUMS, MESSAGES, Field, FieldKind
from .wire import BYTES, FIXED_32, VARINT, Value, fields_of, packed, signed

MOST_FIELDS: Final = 100_000
"""fields of one message with its nested ones: as many as a full batch of messages has"""

TABLES: Final[dict[str, dict[int, Field]]] = {
    name: {field.number: field for field in fields} for name, fields in MESSAGES.items()
}
"""Message type → number on the wire → field."""

Tree = dict[str, object]


class Decoded:
    """A decoded message, also while it is read."""

    __slots__ = ("left", "problem", "tree", "unknown")

    def __init__(self) -> None:
        self.tree: Tree = {}
        """field → value; a list for repeated fields"""
        self.problem: str | None = None
        """why it is incomplete, or None"""
        self.unknown = 0
        """number of unknown fields"""
        self.left = MOST_FIELDS
        """fields that may still be read"""


def decode_message(name: str, data: bytes) -> Decoded:
    """Decode bytes as a message of type `name`."""
    decoded = Decoded()
    decoded.tree = _tree(name, data, decoded)
    return decoded


def _tree(name: str, data: bytes, reading: Decoded) -> Tree:
    table = TABLES[name]
    tree: Tree = {}
    try:
        for number, kind, value, _ in fields_of(data):
            reading.left -= 1  # one count for all levels: nested messages share it
            if reading.left < 0:
                raise Unreadable(f"more than {MOST_FIELDS} fields")
            field = table.get(number)
            if field is None:
                reading.unknown += 1
                continue
            if field.many:
                _append(tree, field, kind, value, reading)
            else:
                tree[field.name] = _value(field, kind, value, reading)
            if reading.left < 0:
                return tree
    except Unreadable as error:
        reading.problem = reading.problem or f"{name}: {error}"
    return tree


def _append(tree: Tree, field: Field, kind: int, value: Value, reading: Decoded) -> None:
    values = tree.setdefault(field.name, [])
    assert isinstance(values, list)
    # proto3 packs repeated numbers; a reader must accept both forms.
    if field.kind is FieldKind.ENUM and kind == BYTES and isinstance(value, bytes):
        numbers = packed(value)
        reading.left -= len(numbers)
        values.extend(_enum(field.of, number) for number in numbers)
    else:
        values.append(_value(field, kind, value, reading))


def _value(field: Field, kind: int, value: Value, reading: Decoded) -> object:
    if isinstance(value, int):
        if kind != VARINT:
            raise Unreadable(f"wire type {kind} of {field.name}")
        return _number(field, value)
    if kind == BYTES:
        if field.kind is FieldKind.MESSAGE:
            return _tree(field.of, value, reading)
        if field.kind is FieldKind.STRING:
            return value.decode("utf-8", "replace")
        if field.kind is FieldKind.BYTES:
            return value
    elif kind == FIXED_32 and field.kind is FieldKind.FLOAT:
        return float(struct.unpack("<f", value)[0])
    raise Unreadable(f"wire type {kind} of {field.name}")


def _number(field: Field, value: int) -> object:
    if field.kind is FieldKind.ENUM:
        return _enum(field.of, value)
    if field.kind is FieldKind.BOOL:
        return value != 0
    if field.kind is FieldKind.INT32:
        # Negative numbers are sent as 64 bits; as in Protocol Buffers, the low 32 count.
        low = value & 0xFFFFFFFF
        return low - (1 << 32) if low >> 31 else low
    if field.kind is FieldKind.INT64:
        return signed(value)
    raise Unreadable(f"a number in {field.name}")


def _enum(name: str, value: int) -> str:
    return ENUMS[name].get(value) or f"UNKNOWN({signed(value)})"


def text_at(tree: Tree, *names: str) -> str | None:
    """Return the text at a path of names, or None."""
    value = value_at(tree, *names)
    return value if isinstance(value, str) and value else None


def number_at(tree: Tree, *names: str) -> int | None:
    """Return the number at a path of names, or None."""
    value = value_at(tree, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def trees_at(tree: Tree, name: str) -> list[Tree]:
    """Return the messages of a repeated field."""
    value = tree.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def tree_at(tree: Tree, *names: str) -> Tree:
    """Return the message at a path of names, or an empty one."""
    value = value_at(tree, *names)
    return value if isinstance(value, dict) else {}


def value_at(tree: Tree, *names: str) -> object:
    """Return the value at a path of names, or None."""
    value: object = tree
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def nanoseconds_at(tree: Tree, *names: str) -> int | None:
    """Return a time or a duration in nanoseconds, or None if absent or out of range."""
    value = value_at(tree, *names)
    if not isinstance(value, dict):
        return None
    seconds, nanos = number_at(value, "seconds") or 0, number_at(value, "nanos") or 0
    total = seconds * 1_000_000_000 + nanos
    return total if -(1 << 63) < total < 1 << 63 else None
