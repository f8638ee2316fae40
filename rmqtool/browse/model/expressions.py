"""The filter line: expressions become tests, words are completed, cells become expressions.

Rules: the language is that of ``--where``, whole and alone: what a key or a picked range does is an
expression in the line, too, so that it can be read, changed and used elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dissectors.times import text_of_time
from dissectors.where.fields import UNITS, FieldSet, WhereField
from dissectors.where.filter import compile_where

from ...api.tables.named import table_named
from .listing import Test

MOST_OFFERED: Final = 50
_WORD: Final = re.compile(r"[^\s\"'()=<>~!,&|]*$")
_QUOTED: Final = re.compile(r"[\"']([^\"']*)$")
_BEFORE: Final = re.compile(r"(?P<name>[\w.]+)\s*(?P<op>==|!=|<=|>=|!~|=~|=|<|>|~|in)\s*(?:\(.*)?$")
_PLAIN: Final = re.compile(r"[\w.%@/-]+")
_LINKS: Final = ("and", "or")
_STARTS: Final = ("not", "has", "absent")


class Offer(NamedTuple):
    """What a word may become."""

    start: int
    """where the word begins"""
    words: list[str]
    """the whole words"""


def fields_of(table: str) -> FieldSet:
    """Return what a filter of a table can test."""
    return table_named(table).fields(())


def test_of_text(text: str, table: str) -> Test | None:
    """Return the test, None for an empty line; raise WhereError, which knows the place."""
    return compile_where(text, fields_of(table)) if text.strip() else None


def offer(text: str, table: str, values: Callable[[str], Sequence[str]]) -> Offer:
    """Return what the word at the end of `text` may become; `values`: those a column had."""
    fields = fields_of(table)
    quoted = _QUOTED.search(text)
    match = quoted or _WORD.search(text)
    assert match is not None
    begun = match[1] if quoted else match[0]
    start = match.start()
    before = text[:start].rstrip()
    asked = _BEFORE.search(before)
    field = fields.find(asked["name"]) if asked is not None else None
    if field is not None:
        found = [_written(one) for one in _values_of(field, values) if begun.lower() in one.lower()]
        found.sort(key=lambda one: not one.strip('"').lower().startswith(begun.lower()))
        return Offer(start, found[:MOST_OFFERED])
    if quoted:
        return Offer(start, [])
    last = before.rpartition(" ")[2].rpartition("(")[2]
    named = fields.find(last)
    if named is not None and last not in _STARTS:
        return Offer(start, [one for one in _operators_of(named) if one.startswith(begun)])
    if before and last not in (*_LINKS, *_STARTS, "") and not before.endswith("("):
        return Offer(start, [one for one in _LINKS if one.startswith(begun)])
    names = [*fields.names, *_STARTS]
    first = [one for one in names if one.startswith(begun)]
    return Offer(start, [*first, *(one for one in names if begun in one and one not in first)])


def _values_of(field: WhereField, values: Callable[[str], Sequence[str]]) -> list[str]:
    found = [one for name in field.columns or (field.name,) for one in values(name)]
    if field.known is not None:
        found += field.known()
    if field.type == "bool":
        found += ["true", "false"]
    if field.type == "list" and not field.columns:
        found += [one for name in ("client_address", "broker_address") for one in values(name)]
    if field.unit in UNITS:
        found += [f"1{unit}" for unit in UNITS[field.unit]]
    return list(dict.fromkeys(found))


def _operators_of(field: WhereField) -> Sequence[str]:
    if field.type in ("int", "time"):
        return ("==", "!=", "<", "<=", ">", ">=")
    return ("==", "!=", "~", "!~", "in")


def _written(value: str) -> str:
    """Return a value as it is written in an expression."""
    if _PLAIN.fullmatch(value) and value not in (*_LINKS, *_STARTS, "in"):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def of_cell(field: str, value: object, wanted: bool) -> str:
    """Return the expression for rows that have this value in a column, or do not have it."""
    if value is None or value == []:
        return f"absent {field}" if wanted else f"has {field}"
    if isinstance(value, list):
        value = value[0]
    written = _written(str(value).lower() if isinstance(value, bool) else str(value))
    return f"{field} == {written}" if wanted else f"not ({field} == {written})"


def of_range(field: str, first: int, end: int) -> str:
    """Return the expression for a part of the time: ns, the end not included."""
    return f"{field} >= {text_of_time(first)} and {field} < {text_of_time(end)}"


def joined(text: str, more: str) -> str:
    """Return the expression for rows for which both hold."""
    text = text.strip()
    if not text or text == more:
        return more
    if re.search(r"\bor\b|\|\|", text):
        text = f"({text})"
    return f"{text} and {more}"


def without_range(text: str, field: str) -> str:
    """Return an expression less the part of the time that `of_range` put behind it."""
    pattern = rf"(?:^| and ){re.escape(field)} >= \S+ and {re.escape(field)} < \S+$"
    return re.sub(pattern, "", text)
