"""Search the catalog: by number, name, part of a name, or field.

Rules: exact matches exclude others; only without them are parts of names, words of descriptions
and remarks, and then fields searched. Case does not matter, and blanks and hyphens equal
underscores.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple

from dissectors.foreign import hexadecimal_of, integer_of

from .catalog import Entry, catalog, cut_code
from .options import EntryKind

MOST_SUGGESTIONS = 5
_SHORTEST_WORD = 3
"""Shortest query that searches descriptions."""
_DESCRIBED = (EntryKind.request, EntryKind.response, EntryKind.property)
"""Kinds with descriptions of their own; headers and bodies are described by their use."""
_NUMBER = re.compile(r"[+-]?(?:0x[0-9a-f]{1,16}|\d{1,19})", re.ASCII | re.IGNORECASE)
_PLURALS = {"bodies": EntryKind.body, "properties": EntryKind.property}


class SearchResult(NamedTuple):
    """The result of a query."""

    entries: tuple[Entry, ...]
    """in catalog order"""
    exact: bool
    alike: tuple[Entry, ...] = ()
    """names that contain the query, next to exact matches"""


class Query(NamedTuple):
    """A parsed query."""

    text: str
    """name, part of a name, or number; empty: everything"""
    kind: EntryKind | None
    """only entries of this kind"""


def query_of(text: str, kind: EntryKind | None) -> Query:
    """Return the query of a command line: ``response 17`` names the kind first."""
    text = " ".join(text.split())
    if kind is None:
        first, _, rest = text.partition(" ")
        kind = _kind_of(first.lower())
        text = text if kind is None else rest
    return Query(text, kind)


def _kind_of(word: str) -> EntryKind | None:
    if word in _PLURALS:
        return _PLURALS[word]
    singular = word.removesuffix("s")
    return EntryKind(singular) if singular in list(EntryKind) else None


def number_of(text: str) -> int | None:
    """Return a decimal or hexadecimal number, or None."""
    if _NUMBER.fullmatch(text) is None:
        return None
    sign, _, digits = text.lower().rpartition("0x")
    if "x" not in text.lower():
        return integer_of(text)
    number = hexadecimal_of(digits)
    return -number if number is not None and sign == "-" else number


def find(query: Query) -> SearchResult:
    """Return the matches of a query."""
    entries = [entry for entry in catalog() if query.kind in (None, entry.kind)]
    if not query.text:
        return SearchResult(tuple(entries), exact=False)
    number = number_of(query.text)
    if number is not None:
        return SearchResult(tuple(entry for entry in entries if _has(entry, number)), exact=True)
    wanted = _plain(query.text)
    whole = tuple(entry for entry in entries if wanted in map(_plain, _names(entry)))
    alike = tuple(
        entry
        for entry in entries
        if entry not in whole and any(wanted in _plain(name) for name in _names(entry))
    )
    if whole:
        return SearchResult(whole, True, alike)
    described = tuple(e for e in entries if e not in alike and _is_described(e, query.text))
    if alike or described:
        return SearchResult(tuple(e for e in entries if e in alike or e in described), exact=False)
    return SearchResult(tuple(e for e in entries if wanted in map(_plain, e.parts)), exact=False)


def _is_described(entry: Entry, text: str) -> bool:
    """Return whether all words of a query are prefixes of words in description or remarks."""
    if len(text) < _SHORTEST_WORD or entry.kind not in _DESCRIBED:
        return False
    description = " ".join((entry.about, *entry.remarks)).casefold()
    words = text.casefold().replace("_", " ").split()
    return all(re.search(rf"\b{re.escape(word)}", description) for word in words)


def _has(entry: Entry, number: int) -> bool:
    if entry.number is None:
        return False
    if entry.number == number:
        return True
    if entry.kind is not EntryKind.request or (cut := cut_code(entry.number)) is None:
        return False
    return number in (cut, cut & 0xFFFF)  # as Java shows it, signed, and as its bytes


def _names(entry: Entry) -> Iterable[str]:
    return (entry.name, *entry.other_names)


def _plain(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")


def suggestions(query: Query) -> list[str]:
    """Return similar names, the closest first."""
    names: dict[str, str] = {}
    for entry in catalog():
        if query.kind in (None, entry.kind):
            for name in (*_names(entry), *entry.parts):
                names.setdefault(_plain(name), name)
    near = difflib.get_close_matches(_plain(query.text), names, MOST_SUGGESTIONS, 0.7)
    return [names[name] for name in near]
