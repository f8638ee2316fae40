"""Spark SQL as text for DuckDB: what the two write differently, and macros for what it lacks.

Rules: a translation changes spelling only; a function that behaves differently is a macro that
behaves as Spark's does, within what the reports use. There is no other dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<text>'(?:[^'\\]|\\.|'')*')
    | (?P<quoted>`[^`]*`)
    | (?P<number>(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[LD]?(?!\w))
    | (?P<word>[A-Za-z_]\w*)
    | (?P<hint>/\*.*?\*/)
    | (?P<arrow>->)
    | (?P<same><=>)
    | (?P<other>\s+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)

_FUNCTIONS: Final = {
    "array": "list_value",
    "array_join": "array_to_string",
    "array_sort": "list_sort",
    "cast": "try_cast",
    "explode": "unnest",
    "regexp_like": "regexp_matches",
    "sequence": "generate_series",
    "startswith": "starts_with",
    "unix_micros": "epoch_us",
    "xxhash64": "hash",
    **{
        name: f"spark_{name}"
        for name in (
            *("array_position", "btrim", "collect_set", "conv", "first", "get", "ln"),
            *("octet_length", "pmod", "regexp_extract", "regexp_replace", "round", "shiftleft"),
            *("shiftright", "size", "slice", "substr", "substring", "substring_index"),
            *("timestamp_micros", "trim", "try_divide"),
        )
    },
}
"""Function of Spark -> function or macro of DuckDB."""

_AT_END: Final = (
    "case when p < 0 and length(s) + p < 0 then greatest(n + length(s) + p, 0) else n end"
)
MACROS: Final = (
    "spark_array_position(l, x) as coalesce(list_position(l, x), 0)",
    "spark_btrim(s, chars) as trim(s, chars)",
    "spark_collect_set(x) as coalesce(list(distinct x) filter (x is not null), [])",
    # digits as far as there are any; a sign is none, as keys have none
    "spark_conv(s, base, into_base) as cast(try_cast(coalesce('0x' ||"
    " nullif(regexp_extract(trim(s, ' '), '^[0-9A-Fa-f]+'), ''), '0x0') as ubigint) as varchar)"
    " || if(s is null, null, '')",
    "spark_first(x) as any_value(x)",
    "spark_get(l, place) as list_extract(l, place + 1)",
    "spark_ln(x) as if(x > 0, ln(x), null)",
    "spark_octet_length(s) as strlen(s)",
    "spark_pmod(a, b) as ((a % b) + b) % b",
    "spark_regexp_extract(s, pattern, part) as regexp_extract(s, pattern, part)",
    "spark_regexp_replace(s, pattern, instead) as regexp_replace(s, pattern, instead, 'g')",
    "spark_round(x, digits) as round(x, digits)",
    # of 64 bits, without a sign
    "spark_shiftleft(x, bits) as if(bits between 0 and 62, cast(x as bigint) * cast(pow(2, bits)"
    " as bigint), 0)",
    "spark_shiftright(x, bits) as if(bits between 0 and 63, cast(x as bigint) >> bits, 0)",
    "spark_size(l) as coalesce(len(l), -1)",
    "spark_slice(l, first, number) as list_slice(l, first, first + number - 1)",
    f"spark_substr(s, p, n := 2147483647) as substr(s, p, {_AT_END})",
    f"spark_substring(s, p, n := 2147483647) as substr(s, p, {_AT_END})",
    # of the first or the last part
    "spark_substring_index(s, separator, place) as split_part(s, separator, place)",
    "spark_timestamp_micros(us) as make_timestamp(us)",
    "spark_trim(s) as trim(s, ' ')",
    "spark_try_divide(a, b) as a / nullif(b, 0)",
)
"""What `create macro` is followed by."""
SETTINGS: Final = (
    "set ieee_floating_point_ops = false",
    "set error_on_division_by_zero = false",
    "set default_null_order = 'nulls_first_on_asc_last_on_desc'",
    "set preserve_insertion_order = false",
)
"""Statements after which DuckDB divides and sorts as Spark does."""


def for_duckdb(spark_sql: str) -> str:
    """Return the same text as DuckDB reads it."""
    return "".join(_translated(list(_tokens(spark_sql))))


def _tokens(spark_sql: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(spark_sql):
        assert match.lastgroup is not None
        yield match.lastgroup, match[0]


def _translated(tokens: Sequence[tuple[str, str]]) -> Iterator[str]:
    place = 0
    while place < len(tokens):
        kind, token = tokens[place]
        place += 1
        if kind == "text":
            yield _literal(token)
        elif kind == "quoted":
            yield f'"{token[1:-1]}"'
        elif kind == "number":
            yield _number(token)
        elif kind == "same":
            yield "is not distinct from"
        elif kind == "hint":
            yield ""
        elif kind == "word":
            following = _word_at(tokens, place)
            if _word_at(tokens, place, skip=False) == "(" and token == "named_struct":
                end = _end_of(tokens, place)
                yield _struct(tokens[place + 1 : end])
                place = end + 1
            elif _word_at(tokens, place, skip=False) == "(":
                yield _FUNCTIONS.get(token.lower(), token)
            elif following == "->":
                yield f"lambda {token}:"
                place = next(at for at in range(place, len(tokens)) if tokens[at][1] == "->") + 1
            elif token == "div":
                yield "//"
            elif token == "left" and following in ("semi", "anti"):
                yield ""
            else:
                yield token
        else:
            yield token


def _word_at(tokens: Sequence[tuple[str, str]], place: int, skip: bool = True) -> str:
    """Return the token at a place, or the next one that is not blank."""
    while skip and place < len(tokens) and tokens[place][1].isspace():
        place += 1
    return tokens[place][1] if place < len(tokens) else ""


def _end_of(tokens: Sequence[tuple[str, str]], start: int) -> int:
    """Return the place of the parenthesis that closes the one at `start`."""
    depth = 0
    for place in range(start, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place][1], 0)
        if not depth:
            return place
    raise ValueError("a parenthesis is not closed")


def _struct(tokens: Sequence[tuple[str, str]]) -> str:
    """Return ``named_struct('a', x, …)``, of which these are the arguments, as ``{'a': x, …}``."""
    arguments: list[list[tuple[str, str]]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token[1], 0)
        if token[1] == "," and not depth:
            arguments.append([])
        else:
            arguments[-1].append(token)
    written = ["".join(_translated(one)).strip() for one in arguments]
    fields = zip(written[::2], written[1::2], strict=True)
    return "{" + ", ".join(f"{name}: {value}" for name, value in fields) + "}"


def _literal(token: str) -> str:
    value = _ESCAPE.sub(_escaped, token[1:-1].replace("''", "'"))
    return "'" + value.replace("'", "''") + "'"


def _escaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[1])


def _number(token: str) -> str:
    if token.endswith("D"):
        return f"{token[:-1]}e0" if "e" not in token.lower() else token[:-1]
    return token.removesuffix("L")
