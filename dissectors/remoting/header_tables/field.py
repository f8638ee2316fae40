"""The row type of the header tables, the types of fields, and the fields many classes inherit.

RocketMQ: CommandCustomHeader, CFNotNull, RpcRequestHeader, TopicRequestHeader.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from ...table_text import entries, parts_of


class FieldType(StrEnum):
    """Java types of header fields; boxed and primitive types are the same."""

    STRING = "string"
    INT = "int"
    LONG = "long"
    BOOLEAN = "boolean"
    DOUBLE = "double"
    BOUNDARY = "BoundaryType"


class HeaderField(NamedTuple):
    """An ext field of a header class, in any release since 4.0."""

    name: str
    """Java field name; the long one if the wire has a letter."""
    type: FieldType
    """Type of the text on the wire."""
    required: bool
    """Marked as not null in the class."""
    wire: str
    """Key in the ext fields."""
    since: str
    """First release with it, if later than its operation; `>5.5.0`: in none up to that one."""
    until: str
    """Last release with it; empty: still present."""


def fields_of(text: str) -> tuple[HeaderField, ...]:
    """Parse the fields of a table."""
    fields: list[HeaderField] = []
    for part in parts_of(text):
        if part.startswith("*"):
            fields += INHERITED[part[1:]]
        else:
            fields.append(_field_of(part))
    return tuple(fields)


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
    """Parse the header classes of a table."""
    return {name: fields_of(fields) for name, fields in entries(text)}


_NAMESPACE: Final = "ns? string since 5.0.0; nsd? boolean since 5.0.0"
_ONEWAY: Final = "oway? boolean since 5.0.0"
INHERITED: Final[dict[str, tuple[HeaderField, ...]]] = {}
"""fields that many classes inherit, by their placeholder in the tables"""
INHERITED["RPC"] = fields_of(f"{_NAMESPACE}; bname? string since 5.0.0; {_ONEWAY}")
"""for subclasses of RpcRequestHeader: namespace, namespaced, broker name, oneway"""
INHERITED["EARLY_RPC"] = fields_of(f"{_NAMESPACE}; bname? string since 4.9.5; {_ONEWAY}")
"""for classes with the broker name already in 4.9.5"""
INHERITED["TOPIC_RPC"] = fields_of("lo? boolean since 5.0.0; *RPC")
"""for subclasses of TopicRequestHeader: also the mark of a logical queue"""
INHERITED["EARLY_TOPIC_RPC"] = fields_of("lo? boolean since 5.0.0; *EARLY_RPC")
