"""What a column of a row is: declared beside its field, read from there by everything else.

A row is a struct whose fields are annotated with a `Description`; the columns follow from it.
"""

from __future__ import annotations

from types import NoneType
from typing import Final, NamedTuple, get_args, get_origin, get_type_hints


class Description(NamedTuple):
    """What a field of a row holds, beside its name and Python type."""

    meaning: str
    source: str = ""
    """where the value is taken from"""
    unit: str = ""
    """unit of a number; empty: none"""
    type: str = ""
    """column type where the Python type does not say it: `time` of an int or a text"""


class Column(NamedTuple):
    """What one column of a row holds."""

    name: str
    type: str
    """string, int, bool, time (UTC), list or object"""
    unit: str
    """unit of a number; empty: none"""
    meaning: str
    source: str
    """where the value is taken from"""


_TYPES: Final[dict[object, str]] = {
    str: "string",
    int: "int",
    bool: "bool",
    list: "list",
    dict: "object",
}


def columns_of(row: type) -> tuple[Column, ...]:
    """Return the columns of a class of rows, in the order of its fields."""
    hints = get_type_hints(row, include_extras=True)
    return tuple(_column_of(name, *get_args(hint)) for name, hint in hints.items())


def _column_of(name: str, python_type: object, description: Description) -> Column:
    kind = description.type or _TYPES[_plain(python_type)]
    return Column(name, kind, description.unit, description.meaning, description.source)


def _plain(python_type: object) -> object:
    """Return the class of a type: without None and without what a list or dict contains."""
    parts = [part for part in get_args(python_type) if part is not NoneType]
    origin = get_origin(python_type)
    if origin in _TYPES or not parts:
        return origin or python_type
    return _plain(parts[0])
