"""Columns by SQL text: one call to Java for an expression instead of one for each of its parts.

A report of thirty columns written with `pyspark.sql.functions` is ten thousand calls over a socket,
three seconds before Spark has begun to work; as text it is a few hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def adding(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Return `frame` with new columns: name -> SQL expression over the columns it has."""
    return frame.selectExpr("*", *_named(columns))


def grouped(frame: DataFrame, keys: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
    """Return one row per group of `keys` (none: one row): name -> SQL aggregate."""
    chosen = [F.expr(text) for text in _named(columns)]
    return frame.groupBy(*keys).agg(*chosen) if keys else frame.agg(*chosen)


def total_of(number: str) -> str:
    """Return, as SQL, the sum of times or sizes as a floating-point number.

    It is exact up to 2^53. A sum in 64 bits overflows where a capture's clock was wrong by decades.
    """
    return f"sum(cast({number} as double))"


def ratio_of(total: str, number: str) -> str:
    """Return, as SQL, a total by `total_of` divided by another or by a count; null where that is 0.

    Not by `try_divide`: that of Sail takes whole numbers only.
    """
    return f"{total} / nullif({number}, 0)"


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


def _named(columns: Mapping[str, str]) -> list[str]:
    return [f"{sql} as `{name}`" for name, sql in columns.items()]
