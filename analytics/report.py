"""What a report is: a description with documented tables, and a pure function that fills them.

A report is one file in `reports/` that exports `REPORT`. Rules: `build` takes relations and gives
relations, one for each table it describes, with at least the table's columns (`typed` takes those,
in order and typed); it reads no file, and executes nothing but what is asked for more than once:
that is kept by `ReportInput.kept`, and let go when no report that is wanted needs it. A table is
Spark SQL text, which Spark or DuckDB executes with the same rows; where state is sequential,
`Kept.by_group` calls Python. Rows that are not there are unknown: `ReportInput.conversations` is
None for input that has no connections, and no column may then say zero. To add a report: its file,
and its name in `reports.REPORT_MODULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from .kept import Kept
from .schema import TYPES
from .sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow

WITH_MESSAGES: Final = frozenset({"delivery"})
"""names of the reports that take the table of messages; captures are decoded to it only for them"""
Row = Mapping[str, object]
"""A row of a table that was computed: column -> value; a time is a datetime in UTC."""
Rows = Mapping[str, Sequence[Row]]
"""Name of a table -> its rows."""


def sum_of(rows: Sequence[Row], name: str) -> int:
    """Return the sum of the whole numbers in a column."""
    return sum(value for row in rows if isinstance(value := row.get(name), int))


class TableColumn(NamedTuple):
    """A column of a report table."""

    name: str
    """as in all outputs"""
    type: str
    """string, int, float, bool, time or list, as in `analytics.schema.TYPES`"""
    unit: str
    """unit of a number: µs, bytes, share (0 to 1), 1/s; empty: none"""
    meaning: str
    """one line for the documentation"""


class ReportTable(NamedTuple):
    """A table of a report."""

    name: str
    """as in all outputs; a table of several reports is one object, and shown with the first"""
    title: str
    """heading for people"""
    meaning: str
    """what a row is, and what the rows are ordered by"""
    columns: tuple[TableColumn, ...]
    """in order"""
    order: tuple[str, ...] = ()
    """columns that the rows are sorted by, `-name` for the largest first; must settle the order"""
    brief: tuple[str, ...] = ()
    """columns that a terminal shows, the most important first; empty: all, in order"""
    shown: int = 20
    """rows that a terminal shows; 0: none, the table is for files and for the page"""
    aside: bool = False
    """on the page, it is behind the switch More, as tables are that a terminal does not show"""


class Chart(NamedTuple):
    """A chart of the HTML page: which columns of a table play which part.

    kind: parts. `lines`: x (time), y (number columns, separated by blanks), axis (what they are),
    and optionally width (length of a window in µs: a missing one interrupts the line) or by
    (column: a line for each of its values; one alone only with `each`). `heat`: x (time), y
    (number, lower bound of a bucket), axis (what it is), value, width. `flows`: start, end, value,
    and optionally label.
    `timeline`: row (text columns, separated by blanks), start, end (times; no end: until the end),
    colour (text column: what kind of stretch it is). `incidents`: time (any column of times; the
    columns are those of the diagnosis), drawn as cards.
    """

    kind: str
    """lines, heat, flows or timeline"""
    title: str
    """heading for people"""
    table: str
    """table that it shows"""
    parts: Mapping[str, str]
    """part -> column"""


@dataclass(frozen=True, slots=True)
class ReportInput:
    """What reports are made from. All tables have the column `source` besides their own."""

    exchanges: Relation
    """one row per exchange: `analytics.schema.exchange_schema`"""
    kept: Kept = field(compare=False, repr=False)
    """what executes them, and what reports made of them and ask for more than once"""
    conversations: Relation | None = None
    """one row per TCP connection: `conversation_schema`; None: unknown to the input"""
    findings: Relation | None = None
    """one row per finding: `finding_schema`; None: the input does not say"""
    messages: Relation | None = None
    """one row per message and exchange: `message_schema`; None: no report that is wanted takes
    them, or the input has none"""

    @property
    def is_distributed(self) -> bool:
        """Whether the rows are with Spark's tasks, which fold them, and not with this process."""
        return self.kept.engine.is_distributed and not self.exchanges.is_here


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What can be set."""

    tables: frozenset[str] | None = None
    """names of the tables that are wanted, others may be left out; None: all"""
    window_us: int | None = None
    """length of a window over time; None: chosen so that there are about sixty"""
    slowest: int = 20
    """how many of the slowest exchanges are listed"""
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
    """whether the clients had sendLatencyFaultEnable; None: judged by what they did"""


Build = Callable[[ReportInput, ReportOptions], Mapping[str, Relation]]


def _nothing_to_say(rows: Rows) -> list[str]:  # noqa: ARG001
    return []


@dataclass(frozen=True, slots=True)
class Report:
    """A report: what `rmqtool report NAME` shows."""

    name: str
    """as on the command line"""
    title: str
    """heading for people"""
    question: str
    """what it answers, one sentence"""
    tables: tuple[ReportTable, ...]
    """what it consists of, in order"""
    build: Build
    """(input, options) -> name of a table -> relation; a table may be absent where the input
    cannot say anything about it, which is then shown as unknown"""
    charts: tuple[Chart, ...] = ()
    """what the HTML page draws above the tables"""
    remarks: Callable[[Rows], list[str]] = field(default=_nothing_to_say)
    """tables as computed -> sentences shown above them: what a reader must know first"""
    shares: tuple[str, ...] = ()
    """what it takes from `ReportInput.kept` that other reports may have made, or may use"""

    @property
    def messages(self) -> bool:
        """Whether it takes the table of messages."""
        return self.name in WITH_MESSAGES


def each_table_once(reports: Sequence[Report]) -> list[Report]:
    """Return the reports without the tables that one before them has."""
    seen: set[str] = set()
    found = []
    for report in reports:
        tables = tuple(table for table in report.tables if table.name not in seen)
        seen.update(table.name for table in tables)
        found.append(replace(report, tables=tables))
    return found


def typed(relation: Relation, table: ReportTable) -> Relation:
    """Return the columns of `table` of a relation: in order, typed."""
    return relation.select(
        *(
            f"`{column.name}`"
            if column.type == "list"  # there is no other
            else f"cast(`{column.name}` as {TYPES[column.type]}) as `{column.name}`"
            for column in table.columns
        )
    )


def order_of(table: ReportTable) -> list[str]:
    """Return, as SQL, what the rows of a table are sorted by."""
    return [
        f"`{name[1:]}` desc nulls last" if name.startswith("-") else f"`{name}` asc nulls last"
        for name in table.order
    ]


def conforming(relation: Relation, table: ReportTable) -> Relation:
    """Return the columns of `table` of a relation: in order, typed, the rows sorted."""
    chosen = typed(relation, table)
    return chosen.sorted_by(order_of(table)) if table.order else chosen


def can_be_ordered(table: ReportTable) -> bool:
    """Return whether `in_order` can sort a table; Arrow does not compare lists."""
    lists = {column.name for column in table.columns if column.type == "list"}
    return lists.isdisjoint(name.removeprefix("-") for name in table.order)


def in_order(rows: pyarrow.Table, table: ReportTable) -> pyarrow.Table:
    """Return the rows of a table sorted by `order_of` it."""
    if not table.order or rows.num_rows < 2:
        return rows
    import pyarrow.compute

    keys: list[tuple[str, Literal["ascending", "descending"]]] = [
        (name[1:], "descending") if name.startswith("-") else (name, "ascending")
        for name in table.order
    ]
    return rows.take(pyarrow.compute.sort_indices(rows, keys))  # nulls last, as it is by default
