"""Columns of rows, derived from the declaration of their fields.

A row is a struct whose fields are annotated with a `Description`; the columns follow from it.
"""

from __future__ import annotations

from collections.abc import Container
from types import NoneType
from typing import Final, NamedTuple, get_args, get_origin, get_type_hints


class Description(NamedTuple):
    """Description of a field, besides its name and Python type."""

    meaning: str
    source: str = ""
    """origin of the value"""
    unit: str = ""
    """unit of a number; empty: none"""
    type: str = ""
    """column type if the Python type is ambiguous: `time` of an int or a str"""


class Column(NamedTuple):
    """A column of a row."""

    name: str
    type: str
    """string, int, bool, time (UTC), list or object"""
    unit: str
    """unit of a number; empty: none"""
    meaning: str
    source: str
    """origin of the value"""


RENAMED: Final = {
    "requester": "client_address",
    "responder": "server_address",
    "broker_address": "server_address",
    "client": "client_address",
    "server": "server_address",
    "expert": "findings",
    "header_length": "header_bytes",
    "body_length": "body_bytes",
    "missing": "missing_bytes",
}
"""Name of a column before schema 2 → its current name. Old logs can be read, and filters and
options accept old names unless a table has such a column.
"""
NAMES: Final[dict[str, tuple[str, ...]]] = {
    new: (new, *(old for old, name in RENAMED.items() if name == new)) for new in RENAMED.values()
}
"""Name of a renamed column → all its names, the current one first."""


DISTINCT_TEXTS: Final = frozenset(("unique_key", "keys", "offset_msg_id", "transaction_id", "body"))
"""Columns of texts that rarely repeat."""


def stored_name(name: str, stored: Container[str]) -> str:
    """Return the name of a column among the `stored` ones: the current or an old one."""
    return next((candidate for candidate in NAMES.get(name, ()) if candidate in stored), name)


_TYPES: Final[dict[object, str]] = {
    str: "string",
    int: "int",
    bool: "bool",
    list: "list",
    dict: "object",
}


def columns_of(row: type) -> tuple[Column, ...]:
    """Return the columns of a row class, in field order."""
    hints = get_type_hints(row, include_extras=True)
    return tuple(_column_of(name, *get_args(hint)) for name, hint in hints.items())


def _column_of(name: str, python_type: object, description: Description) -> Column:
    kind = description.type or _TYPES[_plain(python_type)]
    return Column(name, kind, description.unit, description.meaning, description.source)


def _plain(python_type: object) -> object:
    """Return the class of a type annotation, without None and type parameters."""
    parts = [part for part in get_args(python_type) if part is not NoneType]
    origin = get_origin(python_type)
    if origin in _TYPES or not parts:
        return origin or python_type
    return _plain(parts[0])
