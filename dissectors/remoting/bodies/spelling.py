"""Members of body classes that are written in another way than Java writes them.

fastjson 1 (RocketMQ through 5.3) finds a member whatever the case of its name, with `_` and `-`
anywhere in it, and a boolean one behind `is`, too; fastjson2 (5.4 and later) ignores such members.
RocketMQ: fastjson's JavaBeanDeserializer.smartMatch.
"""

from __future__ import annotations

from functools import lru_cache

from ..fastjson.spelling import canonical_name
from .classes import CLASSES, ShortMember


@lru_cache(maxsize=512)
def spellings_of(class_name: str) -> dict[str, str]:
    """Return the members of a class of the tables by their names as fastjson 1 compares them."""
    found = {canonical_name(name): name for name in CLASSES[class_name]}
    for name, cell in CLASSES[class_name].items():
        if (cell.java_type if isinstance(cell, ShortMember) else cell) == "boolean":
            found.setdefault("is" + canonical_name(name), name)
    return found


@lru_cache(maxsize=64)
def _spellings_of_all(class_names: tuple[str, ...]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the members of some classes by their names as compared, and as Java writes them."""
    found: dict[str, str] = {}
    for class_name in class_names:
        found |= spellings_of(class_name)
    return found, frozenset(found.values())


def with_java_names(
    value: dict[str, object], class_names: tuple[str, ...]
) -> tuple[dict[str, object], list[str]]:
    """Return an object with its members, and those inside, named as in the classes.

    The names that were written in another way come with it, each once.
    """
    spellings, names = _spellings_of_all(class_names)
    if _is_written_so(value, names):  # as nearly all are
        return value, []
    others: dict[str, None] = {}
    found = _renamed(value, spellings, others)
    return (found if isinstance(found, dict) else value), list(others)


def _is_written_so(value: object, names: frozenset[str]) -> bool:
    """Return whether objects have no members but those named."""
    if type(value) is dict:
        if not value.keys() <= names:
            return False
        value = list(value.values())
    if type(value) is not list:
        return True
    return all(
        _is_written_so(one, names) for one in value if type(one) is dict or type(one) is list
    )


def _renamed(value: object, spellings: dict[str, str], others: dict[str, None]) -> object:
    if isinstance(value, dict):
        found: dict[str, object] = {}
        for name, item in value.items():
            java = spellings.get(canonical_name(name), name)
            if java != name and java not in value:
                others[name] = None
                name = java
            found.setdefault(name, _renamed(item, spellings, others))
        return found
    if type(value) is list:
        return [_renamed(item, spellings, others) for item in value]
    return value
