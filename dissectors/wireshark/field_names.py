"""How Wireshark's filters name what rmqtool knows: `rocketmq.` and the name that RocketMQ gives.

Rules: a header field is `rocketmq.<field>` by its long name, `rocketmq.header.<field>` where the
command itself has a member of that name; a message property is `rocketmq.property.<NAME>` less the
characters that a filter cannot have. A name stands for one type everywhere.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..remoting.header_tables.field import FieldType
from ..remoting.headers import HEADERS, HOOK_FIELDS, SECRET_FIELDS
from ..remoting.ids.trace_context import SW8, TRACEPARENT
from ..remoting.messages.properties import PROPERTIES, PropertyType

OWN: Final = frozenset(
    [
        "body",
        "code",
        "data",
        "expert",
        "ext",
        "flag",
        "json",
        "kind",
        "language",
        "length",
        "message",
        "missing",
        "name",
        "opaque",
        "operation",
        "other",
        "property",
        "remark",
        "skipped",
        "text",
        "time",
        "version",
    ]
)
"""Names of the dissector's own fields that a header field must not take."""

_PROPERTY_TYPES: Final = {
    PropertyType.TEXT: FieldType.STRING,
    PropertyType.BOOLEAN: FieldType.BOOLEAN,
    PropertyType.INT: FieldType.LONG,
    PropertyType.TIME_MS: FieldType.LONG,
    PropertyType.MS: FieldType.LONG,
    PropertyType.SECONDS: FieldType.LONG,
}
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_.-]")


class FilterField(NamedTuple):
    """One field that a filter can name."""

    name: str
    """RocketMQ's name: the long one of a header field, that of a property."""
    abbreviation: str
    """What stands behind `rocketmq.` in a filter."""
    type: FieldType
    """How it is read and compared."""
    meaning: str = ""
    """`time` where a number is milliseconds since the epoch."""


def header_filter(name: str) -> str:
    """Return what stands behind `rocketmq.` for a header field of that long name."""
    return f"header.{name}" if name in OWN else name


def property_filter(name: str) -> str:
    """Return what stands behind `rocketmq.` for a message property of that name."""
    return f"property.{_NOT_ALLOWED.sub('', name)}"


def header_filters() -> tuple[FilterField, ...]:
    """Return every header field of any class, hook fields and credentials among them, by name.

    A name that has two types is a text.
    """
    types: dict[str, FieldType] = {}
    for fields in HEADERS.values():
        for field in fields:
            known = types.setdefault(field.name, field.type)
            types[field.name] = field.type if known is field.type else FieldType.STRING
    for name in (*HOOK_FIELDS, *SECRET_FIELDS):
        types.setdefault(name, FieldType.STRING)
    return tuple(FilterField(name, header_filter(name), types[name]) for name in sorted(types))


def property_filters() -> tuple[FilterField, ...]:
    """Return every property that has a name of its own in filters."""
    known = [
        FilterField(
            row.name,
            property_filter(row.name),
            _PROPERTY_TYPES[row.type],
            "time" if row.type is PropertyType.TIME_MS else "",
        )
        for row in PROPERTIES
    ]
    traces = (
        FilterField(name, property_filter(name), FieldType.STRING) for name in (TRACEPARENT, SW8)
    )
    return (*known, *traces)
