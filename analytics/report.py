"""Contract of a report: documented tables, and a pure function that computes them.

A report is one file in `reports/` that exports `REPORT`; its name is in `reports.REPORT_MODULES`.
`build` takes and returns relations, one for each described table; it reads no files, and executes
only what is used more than once (`ReportInput.kept`). A table is Spark SQL text, which Spark or
DuckDB executes with the same rows; sequential state is computed in Python (`Kept.by_group`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from textwrap import dedent
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from dissectors.table_text import entries
from dissectors.times import Bounds

from .kept import Kept
from .schema import TYPES
from .sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow

    from .cells import CellTable, Counted

WITH_MESSAGES: Final = frozenset({"delivery"})
"""Reports that use the table of messages; captures are decoded to it only for them."""
Row = Mapping[str, object]
"""A row of a computed table: column -> value; a time is a datetime in UTC."""
Rows = Mapping[str, Sequence[Row]]
"""Table name -> rows."""


def sum_of(rows: Sequence[Row], name: str) -> int:
    """Return the sum of the integers in a column."""
    return sum(value for row in rows if isinstance(value := row.get(name), int))


class TableColumn(NamedTuple):
    """A column of a report table."""

    name: str
    """name in all outputs"""
    type: str
    """string, int, float, bool, time or list, as in `analytics.schema.TYPES`"""
    unit: str
    """unit of a number: µs, bytes, share (0 to 1), 1/s; empty: none"""
    meaning: str
    """one-line description for the documentation"""


def table_columns(text: str) -> tuple[TableColumn, ...]:
    """Return the columns in a text: ``name type unit: meaning``, the unit only if there is one.

    A line that is indented further continues the one before.
    """
    columns = []
    for head, meaning in entries(dedent(text)):
        name, type_, *unit = head.split()
        columns.append(TableColumn(name, type_, "".join(unit), meaning))
    return tuple(columns)


def column_names(text: str) -> tuple[str, ...]:
    """Return the names of columns in a text, separated by blanks."""
    return tuple(text.split())


class ReportTable(NamedTuple):
    """A table of a report."""

    name: str
    """name in all outputs; a table of several reports is one object, shown with the first"""
    title: str
    """heading for people"""
    meaning: str
    """meaning and order of the rows"""
    columns: tuple[TableColumn, ...]
    """in order"""
    order: tuple[str, ...] = ()
    """sort columns, `-name` for descending; must define a total order"""
    brief: tuple[str, ...] = ()
    """columns shown in a terminal, most important first; empty: all, in order"""
    shown: int = 20
    """rows shown in a terminal; 0: none, only in files and on the page"""
    aside: bool = False
    """on the page, show it behind the switch More, like tables without terminal rows"""
    option: str = ""
    """field of `ReportOptions` that enables the table; empty: always enabled"""


class Chart(NamedTuple):
    """A chart of the HTML page: maps columns of a table to chart parts.

    kind: parts. `lines`: x (time), y (number columns, separated by blanks), axis (label), and
    optionally width (window length in µs: a missing window interrupts the line) or by (column: one
    line per value; a single one only with `each`). `heat`: x (time), y (number, lower bound of a
    bucket), axis (label), value, width. `flows`: start, end, value, and optionally label.
    `topology`: role (`produces` or `consumes`), topic, party, value. `timeline`: row (text columns,
    separated by blanks), start, end (times; no end: until the end), colour (text column: kind of
    stretch). `incidents`: time (any time column; the columns are those of the diagnosis), drawn as
    cards.
    """

    kind: str
    """lines, heat, flows, topology, timeline or incidents"""
    title: str
    """heading for people"""
    table: str
    """name of its table"""
    parts: Mapping[str, str]
    """part -> column"""


@dataclass(frozen=True, slots=True)
class ReportInput:
    """Input of the reports. All tables have the column `source` besides their own."""

    exchanges: Relation
    """one row per exchange; the columns of all tables: `analytics.schema.INPUT_TABLES`"""
    kept: Kept = field(compare=False, repr=False)
    """engine, and relations cached for several uses"""
    # missing rows are unknown: without them, no column may be zero
    conversations: Relation | None = None
    """one row per TCP connection; None: unknown"""
    findings: Relation | None = None
    """one row per finding; None: unknown"""
    messages: Relation | None = None
    """one row per message and exchange; None: not used by the requested reports, or missing in the
    input
    """
    asked: Bounds | None = None
    """requested time range; None: unrestricted"""

    @property
    def is_distributed(self) -> bool:
        """Whether Spark's tasks hold and fold the rows, instead of this process."""
        return self.kept.engine.is_distributed and not self.exchanges.is_here


class LatencyObjective(NamedTuple):
    """A service level objective: the share of requests that must be answered in time."""

    latency_us: int
    """a slower response is late"""
    target: Decimal = Decimal("0.99")
    """share of requests that must be answered in time without a failure; below 1"""

    @property
    def budget(self) -> str:
        """The allowed share of misses, as SQL."""
        return f"{1 - self.target:f}D"


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of the reports."""

    tables: frozenset[str] | None = None
    """names of the requested tables, others may be skipped; None: all"""
    window_us: int | None = None
    """length of time windows; None: about sixty windows"""
    slowest: int = 20
    """number of slowest exchanges to list"""
    slo: LatencyObjective | None = None
    """objective of `latency_slo`; None: skip the table"""
    send_timeout_ms: int | None = None
    """sendMsgTimeout of the producers; None: 3000, the default of the Java client"""
    retry_times: int | None = None
    """retryTimesWhenSendFailed of the producers; None: 2, the default"""
    generation: str | None = None
    """generation of the fault strategy, a name of `replay.fault`; None: by the client's version"""
    latency_max_ms: tuple[int, ...] | None = None
    """latencyMax of the fault strategy; None: that of the generation"""
    not_available_ms: tuple[int, ...] | None = None
    """notAvailableDuration of the fault strategy; None: that of the generation"""
    fault_strategy: bool | None = None
    """whether the clients had sendLatencyFaultEnable; None: inferred from their behavior"""


Build = Callable[[ReportInput, ReportOptions], Mapping[str, Relation]]


def _nothing_to_say(rows: Rows) -> list[str]:  # noqa: ARG001
    return []


@dataclass(frozen=True, slots=True)
class Report:
    """A report, as shown by `rmqtool report NAME`."""

    name: str
    """name on the command line"""
    title: str
    """heading for people"""
    question: str
    """its purpose, in one sentence"""
    tables: tuple[ReportTable, ...]
    """its tables, in order"""
    build: Build
    """(input, options) -> table name -> relation; a table is absent if the input has no data for
    it, and is then shown as unknown
    """
    charts: tuple[Chart, ...] = ()
    """charts above the tables on the HTML page"""
    notes: Callable[[Rows], list[str]] = field(default=_nothing_to_say)
    """computed tables -> notes shown above them"""
    shares: tuple[str, ...] = ()
    """shares of `ReportInput.kept` used together with other reports"""
    cells: tuple[CellTable, ...] = ()
    """counts made with `Kept.cells`"""
    additive: frozenset[str] = frozenset()
    """names of tables computed from cells alone, and so from several runs"""
    unrelayed: frozenset[str] = frozenset()
    """names of those that count a send through a proxy once, which requires rows"""

    @property
    def messages(self) -> bool:
        """Whether it uses the table of messages."""
        return self.name in WITH_MESSAGES


def each_table_once(reports: Sequence[Report]) -> list[Report]:
    """Return the reports without tables of the reports before them."""
    seen: set[str] = set()
    result = []
    for report in reports:
        tables = tuple(table for table in report.tables if table.name not in seen)
        seen.update(table.name for table in tables)
        result.append(replace(report, tables=tables))
    return result


def made_of_cells(report: Report, counted: Counted) -> frozenset[str]:
    """Return the names of the tables that the cells determine as rows would."""
    if not counted.has(report.name):
        return frozenset()
    return report.additive - (report.unrelayed if counted.is_relayed else frozenset())


def typed(relation: Relation, table: ReportTable) -> Relation:
    """Return the columns of `table` from a relation: in order, typed."""
    # `build` may return more columns, in any order, and with the types of an engine's sums
    return relation.select(
        *(
            f"`{column.name}`"
            if column.type == "list"  # there is no other
            else f"cast(`{column.name}` as {TYPES[column.type]}) as `{column.name}`"
            for column in table.columns
        )
    )


def order_of(table: ReportTable) -> list[str]:
    """Return, as SQL, the sort order of a table."""
    return [
        f"`{name[1:]}` desc nulls last" if name.startswith("-") else f"`{name}` asc nulls last"
        for name in table.order
    ]


def conforming(relation: Relation, table: ReportTable) -> Relation:
    """Return the columns of `table` from a relation: in order, typed, sorted."""
    chosen = typed(relation, table)
    return chosen.sorted_by(order_of(table)) if table.order else chosen


def can_be_ordered(table: ReportTable) -> bool:
    """Return whether `in_order` can sort a table; Arrow does not compare lists."""
    lists = {column.name for column in table.columns if column.type == "list"}
    return lists.isdisjoint(name.removeprefix("-") for name in table.order)


def in_order(rows: pyarrow.Table, table: ReportTable) -> pyarrow.Table:
    """Return the rows of a table sorted by its `order_of`."""
    if not table.order or rows.num_rows < 2:
        return rows
    import pyarrow.compute

    keys: list[tuple[str, Literal["ascending", "descending"]]] = [
        (name[1:], "descending") if name.startswith("-") else (name, "ascending")
        for name in table.order
    ]
    return rows.take(pyarrow.compute.sort_indices(rows, keys))  # nulls last, which is the default
