"""Find entries of the catalog: by number, by name or a part of it, by the name of a field.

Rules: what matches whole is found alone; only if nothing does, parts of names and words of
descriptions and remarks are looked at, and then fields. Capitals do not matter, and blanks and
hyphens are as good as underscores.
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
"""Characters of a query from which on descriptions are looked at."""
_DESCRIBED = (EntryKind.request, EntryKind.response, EntryKind.property)
"""What has a description of its own; of headers and bodies it is where they are used."""
_NUMBER = re.compile(r"[+-]?(?:0x[0-9a-f]{1,16}|\d{1,19})", re.ASCII | re.IGNORECASE)
_PLURALS = {"bodies": EntryKind.body, "properties": EntryKind.property}


class SearchResult(NamedTuple):
    """What a query finds."""

    entries: tuple[Entry, ...]
    """in the order of the catalog"""
    exact: bool
    """they are what was asked for, not merely like it"""
    alike: tuple[Entry, ...] = ()
    """names that have the query as a part, where others match it whole"""


class Query(NamedTuple):
    """A query taken apart."""

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
    """Return the number that a text is, decimal or hexadecimal; None where it is none."""
    if _NUMBER.fullmatch(text) is None:
        return None
    sign, _, digits = text.lower().rpartition("0x")
    if "x" not in text.lower():
        return integer_of(text)
    number = hexadecimal_of(digits)
    return -number if number is not None and sign == "-" else number


def find(query: Query) -> SearchResult:
    """Return what the query finds; no entries where there is nothing."""
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
    """Return whether all words of a query begin words of the description or the remarks."""
    if len(text) < _SHORTEST_WORD or entry.kind not in _DESCRIBED:
        return False
    said = " ".join((entry.about, *entry.remarks)).casefold()
    words = text.casefold().replace("_", " ").split()
    return all(re.search(rf"\b{re.escape(word)}", said) for word in words)


def _has(entry: Entry, number: int) -> bool:
    if entry.number is None:
        return False
    if entry.number == number:
        return True
    if entry.kind is not EntryKind.request or (cut := cut_code(entry.number)) is None:
        return False
    return number in (cut, cut & 0xFFFF)


def _names(entry: Entry) -> Iterable[str]:
    return (entry.name, *entry.other_names)


def _plain(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")


def suggestions(query: Query) -> list[str]:
    """Return names that may have been meant, the nearest first."""
    names: dict[str, str] = {}
    for entry in catalog():
        if query.kind in (None, entry.kind):
            for name in (*_names(entry), *entry.parts):
                names.setdefault(_plain(name), name)
    near = difflib.get_close_matches(_plain(query.text), names, MOST_SUGGESTIONS, 0.7)
    return [names[name] for name in near]
