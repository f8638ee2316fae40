"""The row type of the header tables, the types of fields, and the fields many classes inherit.

RocketMQ: CommandCustomHeader, CFNotNull, RpcRequestHeader, TopicRequestHeader.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class FieldType(StrEnum):
    """The Java types of header fields; a box and its primitive are one."""

    STRING = "string"
    INT = "int"
    LONG = "long"
    BOOLEAN = "boolean"
    DOUBLE = "double"
    BOUNDARY = "BoundaryType"


STRING: Final = FieldType.STRING
INT: Final = FieldType.INT
LONG: Final = FieldType.LONG
BOOLEAN: Final = FieldType.BOOLEAN
DOUBLE: Final = FieldType.DOUBLE
BOUNDARY: Final = FieldType.BOUNDARY


class HeaderField(NamedTuple):
    """One ext field of a header class, as any release from 4.0 on knows it."""

    name: str
    """Java field name; the long one where the wire has a letter."""
    type: FieldType
    """How the text on the wire is read."""
    required: bool
    """The class marks it as not null."""
    wire: str
    """Key in the ext fields."""
    since: str
    """First release that has it, if later than its operation; `>5.5.0`: in none up to that one."""
    until: str
    """Last release that has it; empty: still there."""


def must(
    name: str, type_: FieldType, *, wire: str = "", since: str = "", until: str = ""
) -> HeaderField:
    """Return a row for a field that must not be null."""
    return HeaderField(name, type_, True, wire or name, since, until)


def may(
    name: str, type_: FieldType, *, wire: str = "", since: str = "", until: str = ""
) -> HeaderField:
    """Return a row for a field that may be absent."""
    return HeaderField(name, type_, False, wire or name, since, until)


def _rpc(bname_since: str) -> tuple[HeaderField, ...]:
    return (
        may("ns", STRING, since="5.0.0"),
        may("nsd", BOOLEAN, since="5.0.0"),
        may("bname", STRING, since=bname_since),
        may("oway", BOOLEAN, since="5.0.0"),
    )


RPC: Final = _rpc("5.0.0")
"""Namespace, namespaced, broker name, oneway: of every class that extends RpcRequestHeader."""

EARLY_RPC: Final = _rpc("4.9.5")
"""The same of the few classes that had the broker name in 4.9.5 already."""

TOPIC_RPC: Final = (may("lo", BOOLEAN, since="5.0.0"), *RPC)
"""The same with the mark of a logical queue: of classes that extend TopicRequestHeader."""

EARLY_TOPIC_RPC: Final = (may("lo", BOOLEAN, since="5.0.0"), *EARLY_RPC)
"""That, of the few classes."""
