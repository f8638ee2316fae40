"""The filter line: compile expressions, complete words, convert cells to expressions.

Rules: the language is exactly that of ``--where``. Keys and selected ranges also write expressions
into the line, which can be read, edited, and used elsewhere.
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
_PATTERN_SIGNS: Final = frozenset(".+*?()|[]{}^$")
_LINKS: Final = ("and", "or")
_STARTS: Final = ("not", "has", "absent")


class Offer(NamedTuple):
    """Completions of a word."""

    start: int
    words: list[str]


def fields_of(table: str) -> FieldSet:
    """Return the filter fields of a table."""
    return table_named(table).fields(())


def test_of_text(text: str, table: str) -> Test | None:
    """Return the test, or None for an empty line; raise WhereError with the position."""
    return compile_where(text, fields_of(table)) if text.strip() else None


def offer(text: str, table: str, values: Callable[[str], Sequence[str]]) -> Offer:
    """Return the completions of the last word of `text`; `values`: known values of a column."""
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
        values_found = [
            _written(word)
            for word in _values_of(field, values)
            if begun.lower() in word.lower() and word.isprintable()
        ]
        values_found.sort(key=lambda word: not word.strip('"').lower().startswith(begun.lower()))
        return Offer(start, values_found[:MOST_OFFERED])
    if quoted:
        return Offer(start, [])
    last = before.rpartition(" ")[2].rpartition("(")[2]
    named = fields.find(last)
    if named is not None and last not in _STARTS:
        return Offer(start, [word for word in _operators_of(named) if word.startswith(begun)])
    if before and last not in (*_LINKS, *_STARTS, "") and not before.endswith("("):
        return Offer(start, [word for word in _LINKS if word.startswith(begun)])
    names = [*fields.names, *_STARTS]
    first = [word for word in names if word.startswith(begun)]
    return Offer(start, [*first, *(word for word in names if begun in word and word not in first)])


def _values_of(field: WhereField, values: Callable[[str], Sequence[str]]) -> list[str]:
    result = [value for name in field.columns or (field.name,) for value in values(name)]
    if field.known is not None:
        result += field.known()
    if field.type == "bool":
        result += ["true", "false"]
    if field.type == "list" and not field.columns:
        result += [value for name in ("client_address", "server_address") for value in values(name)]
    if field.unit in UNITS:
        result += [f"1{unit}" for unit in UNITS[field.unit]]
    return list(dict.fromkeys(result))


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


def _pattern_of(value: str) -> str:
    """Return a printable pattern that matches only this value."""
    return "".join(
        # Quotes and backslashes have a meaning in expressions, too.
        f"\\x{{{ord(char):x}}}" if char in "\"'\\" or not char.isprintable()
        else f"\\{char}" if char in _PATTERN_SIGNS else char
        for char in value
    )  # fmt: skip


def of_cell(field: str, value: object, wanted: bool) -> str:
    """Return the expression for rows with, or without, this value in a column."""
    if value is None or value == []:
        return f"absent {field}" if wanted else f"has {field}"
    if isinstance(value, list):
        value = value[0]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text.isprintable():
        test = f"{field} == {_written(text)}"
    else:  # the line is drawn and copied: escape sequences must not get into a terminal
        test = f'{field} ~ "^{_pattern_of(text)}$"'
    return test if wanted else f"not ({test})"


def of_row(field: WhereField, row: object, wanted: bool) -> str:
    """Return the expression for rows with, or without, the value of a field in this row."""
    value = field.get(row)
    if field.type == "time" and isinstance(value, int):
        value = _exact_time(value)
    return of_cell(field.name, value, wanted)


def of_range(field: str, first: int, end: int) -> str:
    """Return the expression for a time range in ns, without its end."""
    return f"{field} >= {_exact_time(first)} and {field} < {_exact_time(end)}"


def _exact_time(ns: int) -> str:
    """Return a time with its nanoseconds, which filters compare."""
    text = text_of_time(ns)
    rest = ns % 1000
    return f"{text[:-1]}{rest:03d}Z" if rest else text


def joined(text: str, more: str) -> str:
    """Return the conjunction of two expressions."""
    text = text.strip()
    if not text or text == more:
        return more
    if re.search(r"\bor\b|\|\|", text):  # `and` binds more closely
        text = f"({text})"
    return f"{text} and {more}"


def without_range(text: str, field: str) -> str:
    """Return an expression without the time range that `of_range` appended."""
    pattern = rf"(?:^| and ){re.escape(field)} >= \S+ and {re.escape(field)} < \S+$"
    return re.sub(pattern, "", text)
