"""Fragments of Spark SQL: literals, lists, sums, and comparisons that both engines read alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

CONNECTION: Final = (
    "if(conversation is null, null, named_struct('source', source, 'conversation', conversation))"
)
"""Key of a TCP connection; null: unknown."""


def total_of(number: str) -> str:
    """Return, as SQL, the sum of times or sizes as a floating-point number, exact up to 2^53."""
    # A 64-bit sum overflows if a capture's clock was wrong by decades. Up to 2^53, this one does
    # not depend on the order of the rows either.
    return f"sum(cast({number} as double))"


def whole_of(total: str) -> str:
    """Return, as SQL, a total by `total_of` as a 64-bit integer, saturated at the maximum."""
    most = 2**63 - 1
    return f"if({total} >= {most}D, {most}L, cast({total} as bigint))"


def ratio_of(total: str, number: str) -> str:
    """Return, as SQL, a total by `total_of` divided by another or a count; null if that is 0."""
    return f"{total} / nullif({number}, 0)"


def ranked_by(total: str, key: str, part: str = "") -> dict[str, str]:
    """Return, as SQL, each row's share of a total, and the cumulative share, largest first.

    `key` breaks ties; `part` is a ``partition by``.
    """
    number = f"cast({whole_of(total)} as double)"
    order = f"{part} order by {number} desc nulls last, {key} rows unbounded preceding"
    whole = f"nullif(sum({number}) over ({part}), 0)"
    return {
        # engines add invalid numbers beyond 2^53 in different orders
        "time_share": f"round({number} / {whole}, 9)",
        "cumulative": f"round(sum({number}) over ({order}) / {whole}, 9)",
    }


def place_of(*columns: str) -> str:
    """Return, as SQL, a struct of columns whose `min` is the first row by them, nulls first."""
    # Engines order nulls within structs differently, so a flag precedes each column.
    fields = (f"'_{name}', {name} is not null, '{name}', {name}" for name in columns)
    return f"named_struct({', '.join(fields)})"


def number_of(columns: Iterable[str]) -> str:
    """Return, as SQL, a number for the values of columns: grouping by it is faster than by texts.

    Two rows of other values may have one number; what is computed by it must notice that.
    """
    # Spark's hash skips nulls: without the flags, (null, a) and (a, null) would have one number.
    return f"xxhash64({', '.join(f'`{name}` is null, `{name}`' for name in columns)})"


def names_of(column: str, most: int) -> str:
    """Return, as SQL, the distinct sorted values of a column, at most `most`."""
    return f"slice(array_sort(collect_set({column})), 1, {most})"


def text(value: str) -> str:
    """Return a text as an SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def texts(values: Iterable[str]) -> str:
    """Return texts as an SQL list, in order."""
    return f"({', '.join(text(value) for value in sorted(values))})"


def numbers(values: Iterable[int]) -> str:
    """Return numbers as an SQL list, in order."""
    return f"({', '.join(str(int(value)) for value in sorted(values))})"


def quoted(names: Sequence[str]) -> str:
    """Return names of columns as an SQL list without parentheses."""
    return ", ".join(f"`{name}`" for name in names)
