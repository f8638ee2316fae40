"""Parse the Java types of body members in the class tables.

Known are the scalar types, `List<T>`, `Set<T>`, `Map<K, V>`, `BitSet`, and the names of the tables.
The texts come from our own tables, so an unknown type is an internal error. RocketMQ: the getters
of its RemotingSerializable classes.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from .classes import CLASSES, ENUMS


class TypeKind(Enum):
    """Kind of a type."""

    STRING = "a string"
    INTEGER = "an integer"
    DOUBLE = "a number"
    BOOLEAN = "a boolean"
    BITS = "a bit set in base64"
    ENUM = "an enum name"
    CLASS = "an object"
    LIST = "a list"
    MAP = "a map"
    ANY = "any value"


class JavaType(NamedTuple):
    """One type; `key` and `item` are None unless the kind has them."""

    kind: TypeKind
    """Kind of the type."""
    name: str
    """Spelling in the table."""
    key: JavaType | None = None
    """Type of the keys of a map."""
    item: JavaType | None = None
    """Type of the values of a map or of the items of a list."""


_SCALARS: Final = {
    "String": TypeKind.STRING,
    "int": TypeKind.INTEGER,
    "Integer": TypeKind.INTEGER,
    "long": TypeKind.INTEGER,
    "Long": TypeKind.INTEGER,
    "byte": TypeKind.INTEGER,
    "double": TypeKind.DOUBLE,
    "boolean": TypeKind.BOOLEAN,
    "Boolean": TypeKind.BOOLEAN,
    "BitSet": TypeKind.BITS,
    "Object": TypeKind.ANY,
}


@lru_cache(maxsize=512)
def java_type_of(text: str) -> JavaType:
    """Parse a type of a table; raise ValueError if it is invalid."""
    text = text.strip()
    outer, bracket, inner = text.partition("<")
    if bracket and text.endswith(">"):
        inner = inner[:-1]
        if outer in ("List", "Set"):
            return JavaType(TypeKind.LIST, text, item=java_type_of(inner))
        if outer == "Map":
            key, _, item = inner.partition(",")  # no key type of the tables has a comma
            return JavaType(TypeKind.MAP, text, java_type_of(key), java_type_of(item))
    if text in _SCALARS:
        return JavaType(_SCALARS[text], text)
    if text in ENUMS:
        return JavaType(TypeKind.ENUM, text)
    if text in CLASSES:
        return JavaType(TypeKind.CLASS, text)
    raise ValueError(f"{text!r} is not a type of the tables")
