"""Computed reports: Arrow tables in this process, with their descriptions.

Rules: a table is computed once, for all outputs; a table with more than `MAX_ROWS` rows is cut and
marked. Tables of a report without data in the input are listed as unknown, never empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, overload

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
    made_of_cells,
    order_of,
    typed,
)
from .schema import arrow_schema_of
from .sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow

MAX_ROWS = 1_000_000
"""Most rows of a table collected into this process."""
_BATCH = 4096
_LAST_US = ((1 << 63) - 1) // 1000
"""Last µs that are a number of ns in 64 bits."""


@dataclass(frozen=True, slots=True)
class TableResult:
    """A computed table."""

    table: ReportTable
    """description of the table"""
    data: pyarrow.Table
    """its rows, with the described columns"""
    cut: bool = False
    """there are more rows than these"""

    def rows(self, limit: int | None = None) -> list[Row]:
        """Return all or the first rows as dictionaries; times are datetimes in UTC."""
        return list((self.data if limit is None else self.data.slice(0, limit)).to_pylist())

    def each_row(self) -> Iterator[Row]:
        """Yield the rows as in `rows`, with only some thousands in memory."""
        # dictionaries of all rows would take many times the memory of the columns
        for batch in self.data.to_batches(_BATCH):
            yield from batch.to_pylist()


class TableRows(Sequence[Row]):
    """Rows of a table, created on access: dictionaries take far more memory than columns."""

    def __init__(self, result: TableResult) -> None:
        self._result = result

    def __iter__(self) -> Iterator[Row]:
        return self._result.each_row()

    def __len__(self) -> int:
        return self._result.data.num_rows

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        import pyarrow

        places = range(len(self))[place]
        chosen = [places] if isinstance(places, int) else list(places)
        rows = self._result.data.take(pyarrow.array(chosen, "int64")).to_pylist()
        return rows[0] if isinstance(places, int) else rows


@dataclass(slots=True)
class ReportResult:
    """A computed report."""

    report: Report
    """description of the report"""
    tables: dict[str, TableResult] = field(default_factory=dict)
    """by name, in the report's order"""
    unknown: list[ReportTable] = field(default_factory=list)
    """tables without data in the input"""
    notes: list[str] = field(default_factory=list)
    """notes for the reader"""


WITHOUT_CONNECTIONS = (
    "The input has no TCP connections: what is the network's part, how connections ended, whether a"
    " missing response never came, is unknown."
)
"""Reason why a requested table cannot be computed."""
WITHOUT_MESSAGES = (
    "The input has no table of messages: which message was delivered to whom is unknown. Captures"
    " have it, and logs that were decoded without --no-message-rows."
)
"""Reason for reports that need messages if the input has none."""
NEED_ROWS = "What is unknown needs rows, which cells do not have: name logs or captures instead."
"""Reason for tables that cannot be computed from cells."""
Done = Callable[[str, str], None]
"""Progress: name of the report, and of the table being computed."""


def built(
    reports: Sequence[Report],
    report_input: ReportInput,
    options: ReportOptions,
    now: Done = lambda report, table: None,  # noqa: ARG005
) -> Iterator[tuple[Report, Mapping[str, Relation]]]:
    """Yield each report once with its tables, to be computed before the next one is requested.

    Relations kept for a report are then released, except those shared with a later one.
    """
    chosen = [
        replace(
            report,
            tables=tuple(
                table
                for table in report.tables
                if not table.option or getattr(options, table.option) is not None
            ),
        )
        for report in reports
    ]
    reports = each_table_once(chosen)
    for place, report in enumerate(reports, 1):
        now(report.name, "")
        tables = frozenset(table.name for table in report.tables)
        wanted = tables if options.tables is None else tables & options.tables
        # cells are counts, from which only some tables can be made
        if not report_input.kept.has_rows and report_input.kept.counted is not None:
            wanted &= made_of_cells(report, report_input.kept.counted)
        if report_input.kept.has_rows:
            # a generator: the caller computes these tables before the next report keeps more
            yield report, report.build(report_input, replace(options, tables=wanted))
        else:
            made = report.build(report_input, replace(options, tables=wanted)) if wanted else {}
            yield report, {name: relation for name, relation in made.items() if name in wanted}
        report_input.kept.release(but={name for later in reports[place:] for name in later.shares})


def computed(
    reports: Sequence[Report],
    report_input: ReportInput,
    options: ReportOptions,
    now: Done = lambda report, table: None,  # noqa: ARG005
) -> list[ReportResult]:
    """Return the reports, computed table by table."""
    results = []
    for report, frames in built(reports, report_input, options, now):
        result = ReportResult(report)
        for table in report.tables:
            if table.name not in frames:
                result.unknown.append(table)
                continue
            now(report.name, table.name)
            result.tables[table.name] = _collected(report_input.kept, frames[table.name], table)
        # notes look at few rows, so these are made when they are asked for
        rows = {name: TableRows(table) for name, table in result.tables.items()}
        result.notes = report.notes(rows) if rows or report_input.kept.has_rows else []
        if not report_input.kept.has_rows:
            if result.unknown:
                result.notes.append(NEED_ROWS)
        elif report.messages and report_input.messages is None:
            result.notes.append(WITHOUT_MESSAGES)
        elif result.unknown and report_input.conversations is None:
            result.notes.append(WITHOUT_CONNECTIONS)
        results.append(result)
    return results


def _collected(kept: Kept, relation: Relation, table: ReportTable) -> TableResult:
    """Return a table, sorted here: Spark would scan all rows again to sort them."""
    schema = arrow_schema_of(table.columns)
    rows = _as_declared(relation.rows, schema)
    chosen = typed(relation, table)
    if rows is None:
        # one row more than allowed shows that there are more
        rows = kept.rows(chosen.limited(MAX_ROWS + 1))
    cut = rows.num_rows > MAX_ROWS
    # of a table that is cut, the first rows count, which only the engine can find
    if rows.num_rows > 1 and (cut or not can_be_ordered(table)):
        rows = kept.rows(chosen.ordered(order_of(table), MAX_ROWS))
    else:
        rows = in_order(rows, table)
    return TableResult(table, _with_known_times(rows.cast(schema)), cut)


def _with_known_times(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows with nulls for times that are no number of ns in 64 bits.

    Foreign files may have them; a datetime, or the end of a window that begins then, cannot.
    """
    import pyarrow
    import pyarrow.compute as compute

    for place, name in enumerate(rows.column_names):
        if _is_time(rows.schema.types[place]):
            times = rows.column(place)
            first, last, absent = (
                pyarrow.scalar(us, times.type) for us in (-_LAST_US, _LAST_US, None)
            )
            known = compute.and_(
                compute.greater_equal(times, first), compute.less_equal(times, last)
            )
            rows = rows.set_column(place, name, compute.if_else(known, times, absent))
    return rows


def _as_declared(rows: pyarrow.Table | None, schema: pyarrow.Schema) -> pyarrow.Table | None:
    """Return rows of this process if their types match but for time zones, else None."""
    if rows is None:
        return None
    rows = rows.select(schema.names)
    same = (
        has == wanted or (_is_time(has) and _is_time(wanted))
        for has, wanted in zip(rows.schema.types, schema.types, strict=True)
    )
    return rows if all(same) else None  # Spark casts differently from Arrow


def _is_time(kind: pyarrow.DataType) -> bool:
    return str(kind).startswith("timestamp[us")
