"""The row type of the header tables, the types of fields, and the fields many classes inherit.

RocketMQ: CommandCustomHeader, CFNotNull, RpcRequestHeader, TopicRequestHeader.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from ...table_text import entries, parts_of


class FieldType(StrEnum):
    """The Java types of header fields; a box and its primitive are one."""

    STRING = "string"
    INT = "int"
    LONG = "long"
    BOOLEAN = "boolean"
    DOUBLE = "double"
    BOUNDARY = "BoundaryType"


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


def fields_of(text: str) -> tuple[HeaderField, ...]:
    """Return the fields that the text of a table names."""
    found: list[HeaderField] = []
    for part in parts_of(text):
        if part.startswith("*"):
            found += INHERITED[part[1:]]
        else:
            found.append(_field_of(part))
    return tuple(found)


def _field_of(part: str) -> HeaderField:
    spelled, type_, *releases = part.split(" ")
    since_until = dict(zip(releases[::2], releases[1::2], strict=True))
    name, _, wire = spelled.partition("=")
    name = name.removesuffix("?")
    return HeaderField(
        name,
        FieldType(type_),
        "?" not in spelled,
        wire or name,
        since_until.get("since", ""),
        since_until.get("until", ""),
    )


def headers_of(text: str) -> dict[str, tuple[HeaderField, ...]]:
    """Return the header classes of a table."""
    return {name: fields_of(fields) for name, fields in entries(text)}


_NAMESPACE: Final = "ns? string since 5.0.0; nsd? boolean since 5.0.0"
_ONEWAY: Final = "oway? boolean since 5.0.0"
INHERITED: Final[dict[str, tuple[HeaderField, ...]]] = {}
"""fields that many classes inherit, by what stands for them in the tables"""
INHERITED["RPC"] = fields_of(f"{_NAMESPACE}; bname? string since 5.0.0; {_ONEWAY}")
"""of classes that extend RpcRequestHeader: namespace, namespaced, broker name, oneway"""
INHERITED["EARLY_RPC"] = fields_of(f"{_NAMESPACE}; bname? string since 4.9.5; {_ONEWAY}")
"""of those that had the broker name in 4.9.5 already"""
INHERITED["TOPIC_RPC"] = fields_of("lo? boolean since 5.0.0; *RPC")
"""of classes that extend TopicRequestHeader: also the mark of a logical queue"""
INHERITED["EARLY_TOPIC_RPC"] = fields_of("lo? boolean since 5.0.0; *EARLY_RPC")
