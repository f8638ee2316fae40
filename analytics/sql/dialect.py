"""Spark SQL translated for DuckDB: syntax differences, and macros for missing functions.

Rules: a translation changes syntax only; a function with different behavior is a macro that behaves
like Spark's, as far as the reports use it. There is no other dialect.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)

_FUNCTIONS: Final = {
    "array": "list_value",
    "array_join": "array_to_string",
    # Spark without ANSI mode gives null for what cannot be cast; DuckDB would fail the query.
    "cast": "try_cast",
    "explode": "unnest",
    "regexp_like": "regexp_matches",
    "sequence": "generate_series",
    "endswith": "ends_with",
    "startswith": "starts_with",
    "unix_micros": "epoch_us",
    "xxhash64": "hash",
    **{
        name: f"spark_{name}"
        for name in (
            *("array_position", "array_sort", "btrim", "collect_set", "conv", "count_if", "first"),
            *("get", "ln"),
            *("octet_length", "pmod", "regexp_extract", "regexp_replace", "round", "shiftleft"),
            *("shiftright", "size", "slice", "substr", "substring", "substring_index"),
            *("timestamp_micros", "trim", "try_divide"),
        )
    },
}
"""Spark function -> DuckDB function or macro."""

_BEFORE: Final = "p < 0 and length(s) + p < 0"
"""SQL: a part of a text starts before its beginning; the missing characters count."""
_PART: Final = (
    f"(s, p, n := 2147483647) as substr(s, if({_BEFORE}, 1, p),"
    f" if({_BEFORE}, greatest(n + length(s) + p, 0), n))"
)
MACROS: Final = (
    "spark_array_position(l, x) as if(x is null, null, coalesce(list_position(l, x), 0))",
    "spark_array_sort(l) as list_sort(l, 'asc', 'nulls last')",
    "spark_btrim(s, chars) as trim(s, chars)",
    "spark_collect_set(x) as coalesce(list(distinct x) filter (x is not null), [])",
    # parses leading digits; a negative number is the two's complement of 64 bits
    "spark_conv(s, base, into_base) as if(s is null or s = '', null, cast((if("
    "starts_with(trim(s, ' '), '-'), 18446744073709551616, 0)"
    " + if(starts_with(trim(s, ' '), '-'), -1, 1) * cast(try_cast('0x' || coalesce(nullif("
    "regexp_extract(trim(s, ' '), '^-?([0-9A-Fa-f]+)', 1), ''), '0') as ubigint) as hugeint))"
    " % 18446744073709551616 as varchar))",
    "spark_first(x) as any_value(x)",
    "spark_get(l, place) as list_extract(l, place + 1)",
    "spark_ln(x) as if(x > 0, ln(x), null)",
    "spark_octet_length(s) as strlen(s)",
    # count_if of DuckDB is null if all conditions are
    "spark_count_if(x) as count(*) filter (where x)",
    # `%` has the sign of `a`; pmod is never negative.
    "spark_pmod(a, b) as ((a % b) + b) % b",
    "spark_regexp_extract(s, pattern, part) as regexp_extract(s, pattern, part)",
    "spark_regexp_replace(s, pattern, instead) as regexp_replace(s, pattern, instead, 'g')",
    "spark_round(x, digits) as round(x, digits)",
    # 64 bits, unsigned
    "spark_shiftleft(x, bits) as case when bits not between 0 and 62 then 0"
    " else cast(x as bigint) << bits end",
    "spark_shiftright(x, bits) as cast(x as bigint) >> bits",  # 0 if there are fewer
    "spark_size(l) as coalesce(len(l), -1)",
    "spark_slice(l, first, number) as list_slice(l, first, first + number - 1)",
    f"spark_substr{_PART}",
    f"spark_substring{_PART}",
    # the first or last part
    "spark_substring_index(s, separator, place) as split_part(s, separator, place)",
    "spark_timestamp_micros(us) as make_timestamptz(us)",
    "spark_trim(s) as trim(s, ' ')",
    "spark_try_divide(a, b) as a / nullif(b, 0)",
)
"""What `create macro` is followed by."""
SETTINGS: Final = (
    "set timezone = 'UTC'",
    "set ieee_floating_point_ops = false",
    "set error_on_division_by_zero = false",
    "set default_null_order = 'nulls_first_on_asc_last_on_desc'",
    # A relation has no order, and keeping one takes memory.
    "set preserve_insertion_order = false",
    "set enable_progress_bar = false",  # on by default in a program without a file; goes to stdout
)
"""Statements that make DuckDB divide, sort, and show times like Spark, without progress output."""


_DIFFERENT: Final = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|/\*.*?\*/|<=>|\b\d+(?:\.\d+)?[LD]\b|\bdiv\b"
    r"|\btimestamp(?=\))|\bleft (?=semi |anti )|\b\w+(?= ->)| ->|\b(?:"
    + "|".join(_FUNCTIONS)
    + r")(?=\()",
    re.DOTALL,
)
"""Tokens that differ, and texts and names, which stay unchanged."""
_STRUCT: Final = "named_struct("


@lru_cache(maxsize=256)
def for_duckdb(spark_sql: str) -> str:
    """Return the same text for DuckDB."""
    return _with_structs(_DIFFERENT.sub(_translated, spark_sql))


def _translated(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == "'":
        return _literal(token) if "\\" in token else token
    if token[0] == "`":
        return token
    if token[0].isdigit():
        return f"{token[:-1]}e0" if token[-1] == "D" else token[:-1]
    return _SPELLED.get(token) or _FUNCTIONS.get(token) or _of_lambda(token)


_SPELLED: Final = {
    "<=>": "is not distinct from",
    "div": "//",
    " ->": ":",
    "timestamp": "timestamptz",
}


def _of_lambda(token: str) -> str:
    """Return the list argument of a lambda function; nothing for Spark-only syntax."""
    return "" if token.startswith("/*") or token == "left " else f"lambda {token}"


def _with_structs(text: str) -> str:
    """Return a text with ``named_struct('a', x, …)`` as ``{'a': x, …}``, innermost first."""
    while (start := text.rfind(_STRUCT)) >= 0:
        arguments, end = _arguments_at(text, start + len(_STRUCT))
        fields = zip(arguments[::2], arguments[1::2], strict=True)
        struct = ", ".join(f"{name}: {value}" for name, value in fields)
        text = f"{text[:start]}{{{struct}}}{text[end:]}"
    return text


_DELIMITER: Final = re.compile(r"'(?:[^']|'')*'|`[^`]*`|[(){}\[\],]")


def _arguments_at(text: str, start: int) -> tuple[list[str], int]:
    """Return the arguments of a call that start at `start`, and where they end."""
    arguments: list[str] = []
    depth, begin = 0, start
    for match in _DELIMITER.finditer(text, start):
        mark = match[0]
        if mark in "([{":
            depth += 1
        elif depth and mark in ")]}":
            depth -= 1
        elif not depth and mark in "),":
            arguments.append(text[begin : match.start()].strip())
            begin = match.end()
            if mark == ")":
                return arguments, match.end()
    raise ValueError("a parenthesis is not closed")


def _literal(token: str) -> str:
    value = _ESCAPE.sub(_escaped, token[1:-1].replace("''", "'"))
    return "'" + value.replace("'", "''") + "'"


def _escaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[1])
