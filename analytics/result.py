"""Reports as computed: Arrow tables in this process, with what describes them.

Rules: a table is computed once, for all outputs; a table with more than `MAX_ROWS` rows is cut, and
says so. Tables of a report that the input cannot say anything about are named, never empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .kept import Kept
from .report import (
    Report,
    ReportInput,
    ReportOptions,
    ReportTable,
    Row,
    can_be_ordered,
    each_table_once,
    in_order,
    order_of,
    typed,
)
from .schema import arrow_schema_of
from .sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow

MAX_ROWS = 1_000_000
"""Rows of a table that are taken to this process."""


@dataclass(frozen=True, slots=True)
class TableResult:
    """A table that was computed."""

    table: ReportTable
    """what it is"""
    data: pyarrow.Table
    """its rows, columns as described"""
    cut: bool = False
    """there are more rows than these"""

    def rows(self, limit: int | None = None) -> list[Row]:
        """Return its rows, or the first of them, as dictionaries; times are datetimes in UTC."""
        return list((self.data if limit is None else self.data.slice(0, limit)).to_pylist())


@dataclass(slots=True)
class ReportResult:
    """A report that was computed."""

    report: Report
    """what it is"""
    tables: dict[str, TableResult] = field(default_factory=dict)
    """by name, in the report's order"""
    unknown: list[ReportTable] = field(default_factory=list)
    """tables that the input cannot say anything about"""
    remarks: list[str] = field(default_factory=list)
    """what a reader must know first"""


WITHOUT_CONNECTIONS = (
    "The input has no TCP connections: what is the network's part, how connections ended, whether a"
    " missing answer never came, is unknown."
)
"""Said where a table that is wanted cannot be filled."""
WITHOUT_MESSAGES = (
    "The input has no table of messages: which message was delivered to whom is unknown. Captures"
    " have it, and logs that were decoded without --no-message-rows."
)
"""Said where a report takes messages and the input has none."""
Done = Callable[[str, str], None]
"""Progress: name of the report, of the table that is computed now."""


def built(
    reports: Sequence[Report],
    given: ReportInput,
    options: ReportOptions,
    now: Done = lambda report, table: None,  # noqa: ARG005
) -> Iterator[tuple[Report, Mapping[str, Relation]]]:
    """Give each report with its tables, to be computed before the next one is asked for; once each.

    What is kept in memory for a report is let go then, but for what a later one shares.
    """
    reports = each_table_once(reports)
    for place, report in enumerate(reports, 1):
        now(report.name, "")
        tables = frozenset(table.name for table in report.tables)
        wanted = tables if options.tables is None else tables & options.tables
        yield report, report.build(given, replace(options, tables=wanted))
        given.kept.let_go(but={name for later in reports[place:] for name in later.shares})


def computed(
    reports: Sequence[Report],
    given: ReportInput,
    options: ReportOptions,
    now: Done = lambda report, table: None,  # noqa: ARG005
) -> list[ReportResult]:
    """Return the reports, computed one table after the other."""
    results = []
    for report, frames in built(reports, given, options, now):
        result = ReportResult(report)
        for table in report.tables:
            if table.name not in frames:
                result.unknown.append(table)
                continue
            now(report.name, table.name)
            result.tables[table.name] = _collected(given.kept, frames[table.name], table)
        rows = {name: one.rows() for name, one in result.tables.items()}
        result.remarks = report.remarks(rows)
        if report.messages and given.messages is None:
            result.remarks.append(WITHOUT_MESSAGES)
        elif result.unknown and given.conversations is None:
            result.remarks.append(WITHOUT_CONNECTIONS)
        results.append(result)
    return results


def _collected(kept: Kept, relation: Relation, table: ReportTable) -> TableResult:
    """Return a table, sorted here: Spark would look at all rows once more to sort them."""
    schema = arrow_schema_of(table.columns)
    rows = _as_declared(relation.rows, schema)
    chosen = typed(relation, table)
    if rows is None:
        rows = kept.rows(chosen.limited(MAX_ROWS + 1))
    cut = rows.num_rows > MAX_ROWS
    if rows.num_rows > 1 and (cut or not can_be_ordered(table)):
        rows = kept.rows(chosen.ordered(order_of(table), MAX_ROWS))
    else:
        rows = in_order(rows, table)
    return TableResult(table, rows.cast(schema), cut)


def _as_declared(rows: pyarrow.Table | None, schema: pyarrow.Schema) -> pyarrow.Table | None:
    """Return rows that this process has, if their types are those of a table but for zones."""
    if rows is None:
        return None
    rows = rows.select(schema.names)
    same = (
        has == wanted or (_is_time(has) and _is_time(wanted))
        for has, wanted in zip(rows.schema.types, schema.types, strict=True)
    )
    return rows if all(same) else None  # Spark casts otherwise than Arrow


def _is_time(kind: pyarrow.DataType) -> bool:
    return str(kind).startswith("timestamp[us")
