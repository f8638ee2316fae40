"""Compare two reports: for every number, its previous value and its growth.

Rows are matched by the grouping columns of a table; a table of moments (windows, single exchanges)
has none and stays unchanged. A row missing on one side is unknown there, not zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .report import ReportTable, Row, TableColumn
from .result import ReportResult, TableResult

if TYPE_CHECKING:
    import pyarrow

BEFORE, CHANGE = "_before", "_change"
"""Suffixes of column names: the value in the other input, and the growth since, as a share."""
_SHOWN_CHANGES = 4
"""Most compared numbers in a terminal's table; no shares."""
_NUMBERS = ("int", "float")
SIGNIFICANT: Final = "significant"
"""Column with the significant changes."""
_LEVEL: Final = 0.01
"""Probability that chance alone makes any difference in a table significant."""
_FEWEST: Final = 30
"""Minimum number of values per side, below which their distribution matters too much."""
_FEWEST_CASES: Final = 5
"""Minimum number of cases and of others on both sides, below which shares are not compared."""
_MEAN, _SD = "bucket_mean", "bucket_sd"
_SHARES: Final = (
    ("failed", "failures"),
    ("no_response", "missing responses"),
    ("retried", "retries"),
)
"""Column of cases -> its name in output."""
_WHOLES: Final = ("answered", "messages", "exchanges")
"""Columns with the total of the cases: the first that a table has."""
_UNIT = re.compile(rf"_(?:us|bytes|ms)(?=(?:{BEFORE}|{CHANGE})?$)")


_HEADS: Final = {
    "broker_us": "broker time",
    "open": "ongoing",
    "strangers": "unknown clients",
}
"""Column -> its heading, if the words of its name would mislead."""


def head_of(name: str) -> str:
    """Return a column's heading: words without the unit, which the cells show."""
    if name in _HEADS:
        return _HEADS[name]
    words = _UNIT.sub("", name).split("_")
    return " ".join({"p999": "p99.9"}.get(word, word) for word in words)


def keys_of(table: ReportTable) -> tuple[str, ...]:
    """Return the grouping columns of a table; empty: its rows cannot be compared."""
    keys = tuple(name for name in table.order if not name.startswith("-"))
    types = {column.name: column.type for column in table.columns}
    return () if any(types[name] not in ("string", "bool", "int") for name in keys) else keys


def compared(results: Sequence[ReportResult], others: Sequence[ReportResult]) -> list[ReportResult]:
    """Return `results` with the numbers of `others`, the same reports of another input."""
    before = {result.report.name: result for result in others}
    return [_compared_report(result, before[result.report.name]) for result in results]


def _compared_report(result: ReportResult, other: ReportResult) -> ReportResult:
    tables = dict(result.tables)
    for name, table in result.tables.items():
        if name in other.tables and keys_of(table.table):
            tables[name] = _compared_table(table, other.tables[name])
    report = replace(
        result.report,
        tables=tuple(
            tables[table.name].table if table.name in tables else table
            for table in result.report.tables
        ),
    )
    notes = [*result.notes, *(f"Before: {note}" for note in other.notes)]
    return ReportResult(report, tables, result.unknown, notes)


def _compared_table(now: TableResult, before: TableResult) -> TableResult:
    keys = keys_of(now.table)
    measures = [
        column
        for column in now.table.columns
        if column.type in _NUMBERS and column.name not in (*keys, _MEAN, _SD)
    ]
    known = {_key(row, keys): row for row in before.rows()}
    pairs = [(row, known.pop(_key(row, keys), {})) for row in now.rows()]
    rows = [_with_before(row, other, measures) for row, other in pairs]
    tests = [_tested(row, other) for row, other in pairs]
    level = _LEVEL / max(1, sum(map(len, tests)))  # Bonferroni
    is_tested = any(tests)
    for row, differences in zip(rows, tests, strict=True):
        if is_tested:
            changes = [change for change, probability in differences if probability < level]
            row[SIGNIFICANT] = changes if differences else None  # not tested: unknown
    # rows that only the other input has
    rows += [_gone(row, keys, measures) for row in known.values()]
    table = _described(now.table, measures, is_tested)
    return TableResult(table, _arrow_of(rows, table, now.data), now.cut or before.cut)


def _key(row: Row, keys: Sequence[str]) -> tuple[object, ...]:
    return tuple(row.get(name) for name in keys)


def _with_before(row: Row, before: Row, measures: Sequence[TableColumn]) -> dict[str, object]:
    result = dict(row)
    for column in measures:
        name = column.name
        result[name + BEFORE] = before.get(name)
        result[name + CHANGE] = growth(before.get(name), row.get(name))
    return result


def _gone(row: Row, keys: Sequence[str], measures: Sequence[TableColumn]) -> dict[str, object]:
    """Return a row that only the other input has."""
    result: dict[str, object] = {name: row.get(name) for name in keys}
    return result | {column.name + BEFORE: row.get(column.name) for column in measures}


def growth(before: object, now: object) -> float | None:
    """Return the relative growth of a number (0.5: half as much again), or None if undefined."""
    if not isinstance(before, int | float) or not isinstance(now, int | float) or not before:
        return None
    return (now - before) / before


def _tested(now: Row, before: Row) -> list[tuple[str, float]]:
    """Return the differences with their probabilities by chance."""

    def pair(name: str) -> tuple[float, float] | None:
        old, new = before.get(name), now.get(name)
        if isinstance(old, int | float) and isinstance(new, int | float):
            return old, new
        return None

    differences: list[tuple[str, float | None]] = []
    means, spreads, counts = (pair(name) for name in (_MEAN, _SD, "answered"))
    if means and spreads and counts:
        # of the buckets, which are nearly logarithms: latencies themselves are far from normal
        probability = welch(*zip(means, spreads, counts, strict=True))
        differences.append((f"latency {_direction(means)}", probability))
    name = next((column for column in _WHOLES if column in now), "")
    for column, label in _SHARES:
        cases, wholes = pair(column), pair(name)
        if cases is None or wholes is None:
            continue
        if column == "no_response" and name == "answered":  # a case is not part of that whole
            wholes = (wholes[0] + cases[0], wholes[1] + cases[1])
        if all(wholes):
            shares = (cases[0] / wholes[0], cases[1] / wholes[1])
            probability = two_shares(cases[0], wholes[0], cases[1], wholes[1])
            differences.append((f"{label} {_direction(shares)}", probability))
    return [(change, probability) for change, probability in differences if probability is not None]


def _direction(values: tuple[float, float]) -> str:
    return "up" if values[1] > values[0] else "down"


def welch(before: tuple[float, float, float], now: tuple[float, float, float]) -> float | None:
    """Return the probability of two means by chance, or None for too few values.

    Each is (mean, standard deviation, count); for so many values, Student's distribution is normal.
    """
    (mean, spread, count), (new_mean, new_spread, new_count) = before, now
    if min(count, new_count) < _FEWEST:
        return None
    error = math.sqrt(spread * spread / count + new_spread * new_spread / new_count)
    if not error:  # neither side varies
        return 1.0 if mean == new_mean else 0.0
    return math.erfc(abs(new_mean - mean) / error / math.sqrt(2))


def two_shares(cases: float, count: float, new_cases: float, new_count: float) -> float | None:
    """Return the probability of two shares by chance, or None for too few cases."""
    if min(count, new_count) < _FEWEST:
        return None
    together = (cases + new_cases) / (count + new_count)
    if min(together, 1 - together) * (count + new_count) < _FEWEST_CASES:
        return None
    error = math.sqrt(together * (1 - together) * (1 / count + 1 / new_count))
    return math.erfc(abs(new_cases / new_count - cases / count) / error / math.sqrt(2))


def _described(table: ReportTable, measures: Sequence[TableColumn], is_tested: bool) -> ReportTable:
    names = {column.name for column in measures}
    shares = {column.name for column in measures if column.unit == "share"}
    columns: list[TableColumn] = []
    for column in table.columns:
        columns.append(column)
        if column.name in names:
            columns += (
                TableColumn(
                    column.name + BEFORE, column.type, column.unit, "the same, in the other input"
                ),
                TableColumn(column.name + CHANGE, "float", "share", "growth since"),
            )
    if is_tested:
        meaning = f"what changed by more than chance (probability below {_LEVEL:.0%} for the table)"
        columns.append(TableColumn(SIGNIFICANT, "list", "", meaning))
    brief: list[str] = []
    shown = 0
    for name in table.brief or tuple(column.name for column in table.columns):
        if is_tested and name in names and SIGNIFICANT not in brief:
            brief.append(SIGNIFICANT)
        brief.append(name)
        if name in names - shares and shown < _SHOWN_CHANGES:
            shown += 1
            brief += (name + BEFORE, name + CHANGE)
    return table._replace(columns=tuple(columns), brief=tuple(brief))


def _arrow_of(
    rows: Sequence[Mapping[str, object]], table: ReportTable, like: pyarrow.Table
) -> pyarrow.Table:
    import pyarrow

    types = {field.name: field.type for field in like.schema}
    types |= {f"{name}{BEFORE}": kind for name, kind in types.items()}
    types[SIGNIFICANT] = pyarrow.list_(pyarrow.string())
    fields = [(column.name, types.get(column.name, pyarrow.float64())) for column in table.columns]
    return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(fields))
