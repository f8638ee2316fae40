"""Members of body classes that are spelled differently from Java.

fastjson 1 (RocketMQ through 5.3) ignores case, `_`, and `-` in member names, and accepts `is`
before a boolean one; fastjson2 (5.4 and later) ignores such members. RocketMQ: fastjson's
JavaBeanDeserializer.smartMatch.
"""

from __future__ import annotations

from functools import lru_cache

from ..fastjson.reader import canonical_name
from .classes import CLASSES, ShortMember


@lru_cache(maxsize=512)
def spellings_of(class_name: str) -> dict[str, str]:
    """Return the members of a class by their names as fastjson 1 compares them."""
    names = {canonical_name(name): name for name in CLASSES[class_name]}
    for name, cell in CLASSES[class_name].items():
        if (cell.java_type if isinstance(cell, ShortMember) else cell) == "boolean":
            # A member of that very name would come first.
            names.setdefault("is" + canonical_name(name), name)
    return names


@lru_cache(maxsize=64)
def _spellings_of_all(class_names: tuple[str, ...]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the members of classes by their compared names, and their Java names."""
    names: dict[str, str] = {}
    for class_name in class_names:
        names |= spellings_of(class_name)
    return names, frozenset(names.values())


def with_java_names(
    value: dict[str, object], class_names: tuple[str, ...]
) -> tuple[dict[str, object], list[str]]:
    """Rename the members of an object, recursively, to those of the classes.

    Also return the names that were spelled differently, each once.
    """
    spellings, names = _spellings_of_all(class_names)
    if _is_written_so(value, names):  # the usual case
        return value, []
    others: dict[str, None] = {}
    renamed = _renamed(value, spellings, others)
    return (renamed if isinstance(renamed, dict) else value), list(others)


def _is_written_so(value: object, names: frozenset[str]) -> bool:
    """Return whether objects have only members with these names."""
    if type(value) is dict:
        if not value.keys() <= names:
            return False
        value = list(value.values())
    if type(value) is not list:
        return True
    return all(
        _is_written_so(item, names) for item in value if type(item) is dict or type(item) is list
    )


def _renamed(value: object, spellings: dict[str, str], others: dict[str, None]) -> object:
    if isinstance(value, dict):
        renamed: dict[str, object] = {}
        for name, item in value.items():
            java = spellings.get(canonical_name(name), name)
            if java != name and java not in value:
                others[name] = None
                name = java
            renamed.setdefault(name, _renamed(item, spellings, others))
        return renamed
    if type(value) is list:
        return [_renamed(item, spellings, others) for item in value]
    return value
