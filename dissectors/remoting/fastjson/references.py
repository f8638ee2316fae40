"""Resolve fastjson's references, `{"$ref": path}`.

fastjson writes a repeated object as a path to its first place. A reference to a complete object is
replaced by the object itself (shared, not copied); one to an enclosing object would make the value
infinite and stays, as do paths that lead nowhere. RocketMQ: fastjson's SerializerFeature default
(circular reference detection on).
"""

from __future__ import annotations

from typing import Final

from ...foreign import natural_of
from .reader import DEPTH_LIMIT, PairMap

EXPANSION_LIMIT: Final = 200_000
"""Maximum values that references may add to a text."""

EXPANSION_TIMES: Final = 8
"""Maximum values that they may add per character: a few hundred could double repeatedly."""

_MOST_JOINED_NAMES: Final = 8
"""Parts of a path tried as one name, because some writers do not escape dots in names."""

_NULL_KEY: Final = "null"
"""fastjson's path part for a place without a name: the key of a map."""


class ReferenceResolver:
    """Resolves the references of one value; others stay as they are."""

    __slots__ = ("_expanded", "_measures", "_most", "_root")

    def __init__(self, root: object, length: int) -> None:
        """`length` is the length of the text in characters."""
        self._most = min(EXPANSION_LIMIT, EXPANSION_TIMES * length)
        self._root = root
        self._expanded = 0
        # Complete containers: id -> (values written out, levels). Ids are safe as keys
        # because the root keeps every container alive.
        self._measures: dict[int, tuple[int, int]] = {}

    def resolve(self) -> object:
        """Return the value with its references resolved where possible."""
        self._visit(self._root, 0)
        return self._root

    def _visit(self, value: object, depth: int) -> tuple[int, int]:
        """Resolve references in `value` in text order; return values written out, and levels."""
        if isinstance(value, PairMap):
            parts = self._visit_pairs(value, depth)
        elif isinstance(value, dict):
            parts = [self._visit_slot(value, name, depth) for name in list(value)]
        elif isinstance(value, list):
            parts = [self._visit_slot(value, place, depth) for place in range(len(value))]
        else:
            return 1, 0
        size = 1 + sum(part[0] for part in parts)
        levels = 1 + max((part[1] for part in parts), default=0)
        self._measures[id(value)] = size, levels
        return size, levels

    def _visit_pairs(self, pairs: PairMap, depth: int) -> list[tuple[int, int]]:
        parts: list[tuple[int, int]] = []
        for place, (key, value) in enumerate(pairs):
            key, key_measure = self._resolved(key, depth)
            pairs[place] = key, value
            value, value_measure = self._resolved(value, depth)
            pairs[place] = key, value
            parts += (key_measure, value_measure)
        return parts

    def _visit_slot(
        self, holder: dict[object, object] | list[object], slot: object, depth: int
    ) -> tuple[int, int]:
        holder[slot], measure = self._resolved(holder[slot], depth)  # type: ignore[call-overload]
        return measure

    def _resolved(self, value: object, depth: int) -> tuple[object, tuple[int, int]]:
        path = _path_of(value)
        if path is None:
            return value, self._visit(value, depth + 1)
        target = self._follow(path)
        measure = self._measures.get(id(target))  # None: it encloses the reference, or follows it
        if (
            measure is None
            or self._expanded + measure[0] > self._most
            or depth + 1 + measure[1] > DEPTH_LIMIT
        ):
            # As written out: an object with one text.
            return value, (2, 1)
        self._expanded += measure[0]
        return target, measure

    def _follow(self, path: str) -> object:
        """Return the value at a path from the root, or None."""
        if not path.startswith("$"):
            return None
        at = 1
        value = self._root
        while at < len(path):
            if path[at] == "[" and isinstance(value, list):
                end = path.find("]", at)
                index = natural_of(path[at + 1 : end])
                if end < 0 or index is None or index >= len(value):
                    return None
                value = value[index]
                at = end + 1
            elif path[at] == ".":
                value, at = _member(value, path, at + 1)
                if at < 0:
                    return None
            else:
                return None
        return value


def _path_of(value: object) -> str | None:
    if isinstance(value, dict) and len(value) == 1:
        path = value.get("$ref")
        return path if isinstance(path, str) else None
    return None


def _member(value: object, path: str, at: int) -> tuple[object, int]:
    """Return the member of `value` named at `at`, and the next position in the path, or -1."""
    name = ""
    for _ in range(_MOST_JOINED_NAMES):
        part, at = _name_at(path, at)
        name += part
        if isinstance(value, PairMap):
            # A key has no name. With several keys the path is ambiguous.
            if name == _NULL_KEY and len(value) == 1:
                return value[0][0], at
            return None, -1
        elif isinstance(value, dict) and name in value:
            return value[name], at
        if at >= len(path) or path[at] != ".":
            break
        name += "."
        at += 1
    return None, -1


def _name_at(path: str, at: int) -> tuple[str, int]:
    """Return the name at `at`, with backslash escapes, and its end."""
    chars: list[str] = []
    while at < len(path) and path[at] not in ".[":
        if path[at] == "\\":
            at += 1
        chars.append(path[at : at + 1])
        at += 1
    return "".join(chars), at
