"""Two reports side by side: for every number, what it was before and by how much it grew.

Rules: rows belong together by what a table is grouped by; a table of moments (windows, single
exchanges) has no such thing and stays as it is. A row that one side does not have is unknown there,
not zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .report import ReportTable, Row, TableColumn
from .result import ReportResult, TableResult

if TYPE_CHECKING:
    import pyarrow

BEFORE, CHANGE = "_before", "_change"
"""Ends of columns' names: the value in the other input, and the growth since, as a share."""
_SHOWN_CHANGES = 3
"""Numbers of a terminal's table that have the other value and the growth beside them."""
_NUMBERS = ("int", "float")
_UNIT = re.compile(rf"_(?:us|bytes|ms)(?=(?:{BEFORE}|{CHANGE})?$)")


def head_of(name: str) -> str:
    """Return a column's name for people: words, without the unit, which the cells show."""
    words = _UNIT.sub("", name).split("_")
    return " ".join({"p999": "p99.9"}.get(word, word) for word in words)


def keys_of(table: ReportTable) -> tuple[str, ...]:
    """Return what the rows of a table are grouped by; empty: they cannot be compared."""
    keys = tuple(name for name in table.order if not name.startswith("-"))
    types = {column.name: column.type for column in table.columns}
    return () if any(types[name] not in ("string", "bool", "int") for name in keys) else keys


def compared(results: Sequence[ReportResult], others: Sequence[ReportResult]) -> list[ReportResult]:
    """Return `results` with the numbers of `others`, which are the same reports of other input."""
    before = {one.report.name: one for one in others}
    return [_compared_report(one, before[one.report.name]) for one in results]


def _compared_report(result: ReportResult, other: ReportResult) -> ReportResult:
    tables = dict(result.tables)
    for name, one in result.tables.items():
        if name in other.tables and keys_of(one.table):
            tables[name] = _compared_table(one, other.tables[name])
    report = replace(
        result.report,
        tables=tuple(
            tables[table.name].table if table.name in tables else table
            for table in result.report.tables
        ),
    )
    remarks = [*result.remarks, *(f"Before: {remark}" for remark in other.remarks)]
    return ReportResult(report, tables, result.unknown, remarks)


def _compared_table(now: TableResult, before: TableResult) -> TableResult:
    keys = keys_of(now.table)
    measures = [
        column
        for column in now.table.columns
        if column.type in _NUMBERS and column.name not in keys
    ]
    known = {_key(row, keys): row for row in before.rows()}
    rows = [_with_before(row, known.pop(_key(row, keys), {}), measures) for row in now.rows()]
    rows += [_gone(row, keys, measures) for row in known.values()]
    table = _described(now.table, measures)
    return TableResult(table, _arrow_of(rows, table, now.data), now.cut or before.cut)


def _key(row: Row, keys: Sequence[str]) -> tuple[object, ...]:
    return tuple(row.get(name) for name in keys)


def _with_before(row: Row, before: Row, measures: Sequence[TableColumn]) -> dict[str, object]:
    found = dict(row)
    for column in measures:
        name = column.name
        found[name + BEFORE] = before.get(name)
        found[name + CHANGE] = growth(before.get(name), row.get(name))
    return found


def _gone(row: Row, keys: Sequence[str], measures: Sequence[TableColumn]) -> dict[str, object]:
    """Return a row that only the other input has."""
    found: dict[str, object] = {name: row.get(name) for name in keys}
    return found | {column.name + BEFORE: row.get(column.name) for column in measures}


def growth(before: object, now: object) -> float | None:
    """Return by what share a number grew: 0.5 is half as much again; None: it cannot be said."""
    if not isinstance(before, int | float) or not isinstance(now, int | float) or not before:
        return None
    return (now - before) / before


def _described(table: ReportTable, measures: Sequence[TableColumn]) -> ReportTable:
    names = {column.name for column in measures}
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
    brief: list[str] = []
    shown = 0
    for name in table.brief or tuple(column.name for column in table.columns):
        brief.append(name)
        if name in names and shown < _SHOWN_CHANGES:
            shown += 1
            brief += (name + BEFORE, name + CHANGE)
    return table._replace(columns=tuple(columns), brief=tuple(brief))


def _arrow_of(
    rows: Sequence[Mapping[str, object]], table: ReportTable, like: pyarrow.Table
) -> pyarrow.Table:
    import pyarrow

    types = {field.name: field.type for field in like.schema}
    fields = []
    for column in table.columns:
        if column.name.endswith(CHANGE) and column.name not in types:
            fields.append(pyarrow.field(column.name, pyarrow.float64()))
        else:
            fields.append(pyarrow.field(column.name, types[column.name.removesuffix(BEFORE)]))
    columns = [pyarrow.array([row.get(field.name) for row in rows], field.type) for field in fields]
    return pyarrow.Table.from_arrays(columns, schema=pyarrow.schema(fields))
