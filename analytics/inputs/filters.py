"""Filters of a report's exchanges: `--where`, `--since`, `--until`.

A filter means the same as in `rmqtool decode pcap`. The engines evaluate the part that SQL can
express (`where_sql`) and skip data by it; the rest of an `and` is tested by `dissectors.where`, in
this process or by Python workers of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from dissectors.rows.record import COLUMNS
from dissectors.times import UTC_ZONE, Moment, bounds, zone_named
from dissectors.where.conditions import AllOf, Test, fields_of
from dissectors.where.fields import FieldSet, WhereField, columns_of, exchange_fields
from dissectors.where.filter import parse_where

from .. import derived
from ..report import ReportInput
from ..schema import SOURCE
from ..sql.engine import SqlEngine
from ..sql.relation import Relation
from .where_sql import sql_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column

    from ..spark.engine import SparkEngine

    Arrays = pyarrow.Array[pyarrow.Scalar[pyarrow.DataType]]
    Columns = Arrays | pyarrow.ChunkedArray[pyarrow.Scalar[pyarrow.DataType]]

_TIMES = frozenset(column.name for column in COLUMNS if column.type == "time")


class _Rest(NamedTuple):
    """The part of a filter that SQL cannot express."""

    sql: list[str]
    """SQL conditions that must hold as well"""
    holds: Test | None
    """test of a row with the columns `names`; None: no rest"""
    names: tuple[str, ...]
    """columns of the test"""


@lru_cache(maxsize=8)
def compiled(expression: str, zone: str = UTC_ZONE.name) -> _Rest:
    """Return a filter as SQL and a test for the rest.

    `zone` applies to times without an offset. Raise WhereError if the expression is invalid.
    """
    known = exchange_fields()
    clocks = zone_named(zone) or UTC_ZONE
    sql, left = sql_of(parse_where(expression, known, clocks))
    if not left:
        return _Rest(sql, None, ())
    asked = (
        column
        for condition in left
        for field in fields_of(condition)
        for column in columns_of(field)
    )
    names = tuple(dict.fromkeys(asked))
    fields = (known.find(name) for name in known.names)
    # Parsed once more with fields that read a tuple of columns instead of an exchange.
    of_rows = FieldSet([_of_row(field, names) for field in fields if field is not None])
    _, left = sql_of(parse_where(expression, of_rows, clocks))
    return _Rest(sql, AllOf(tuple(left)).test(), names)


def _of_row(field: WhereField, names: tuple[str, ...]) -> WhereField:
    """Return a field that reads its value from a row with some columns."""
    columns, value = columns_of(field), field.value
    if not set(columns) <= set(names):
        return field  # the rest does not use it
    indexes = tuple(map(names.index, columns))

    def get(row: object) -> object:
        assert isinstance(row, tuple)
        if value is None:
            return row[indexes[0]]
        return value(*(row[index] for index in indexes))

    return replace(field, get=get)


def chosen(
    report_input: ReportInput,
    where: str = "",
    since: Moment | None = None,
    until: Moment | None = None,
    zone: str = UTC_ZONE.name,
) -> ReportInput:
    """Return the input limited to the matching exchanges and to the connections of that time.

    A time without a date is on the day of the first exchange; `zone` is that of times in `where`.
    Raise WhereError.
    """
    exchanges, conversations, findings = (
        report_input.exchanges,
        report_input.conversations,
        report_input.findings,
    )
    first = 0
    if any(moment is not None and not moment.has_date for moment in (since, until)):
        first = _first_time(report_input)
    asked = bounds(since, until, first)
    for time, compare in zip(asked, (">=", "<"), strict=True):
        if time is None:
            continue
        bound = f"{compare} timestamp_micros({time // 1000}L)"
        # a comparison of one column with a constant lets readers skip; the second part decides
        exchanges = exchanges.where(
            f"(request_time {bound} or request_time is null) and {derived.HAPPENED} {bound}"
        )
        if conversations is not None:
            end = "end_time" if compare == ">=" else "start_time"
            conversations = conversations.where(f"{end} {bound}")
        if findings is not None:  # findings without a time concern a whole capture
            findings = findings.where(f"(time {bound} or time is null)")
    engine = report_input.kept.engine
    if where.strip():
        rest = compiled(where, zone)
        if rest.sql:
            exchanges = exchanges.where(" and ".join(rest.sql))
        if rest.holds is not None and report_input.is_distributed:
            on_spark = cast("SparkEngine", engine)
            exchanges = on_spark.given(on_spark.frame(exchanges).where(_column_of(where, zone)))
        elif rest.holds is not None:
            exchanges = engine.hold(_rows_for_which(engine, exchanges, rest))
    messages = report_input.messages
    # a filter is one of exchanges: it keeps the messages that they carry
    if messages is not None and exchanges is not report_input.exchanges:
        messages = _messages_in(messages, exchanges)

    def read(relation: Relation | None) -> Relation | None:
        """Return a table of the input; rows of this process are filtered only once."""
        if relation is None or relation.rows is not None or not relation.is_here:
            return relation
        return engine.keep(relation)

    return ReportInput(
        read(exchanges) or exchanges,
        report_input.kept,
        read(conversations),
        read(findings),
        read(messages),
        None if asked == (None, None) else asked,
    )


_OF_EXCHANGE = (SOURCE, "conversation", "capture", "request_packet", "request_name", "latency_us")
"""Columns shared by messages and exchanges: equal values mean the same exchange, or two requests in
one packet that took equally long.
"""


def _messages_in(messages: Relation, exchanges: Relation) -> Relation:
    """Return the messages carried by these exchanges."""
    # Messages have no number of their exchange, so equal columns must tell.
    chosen = exchanges.select_distinct(*(f"{name} as _{name}" for name in _OF_EXCHANGE))
    same = " and ".join(f"{name} <=> _{name}" for name in _OF_EXCHANGE)
    return messages.join(chosen, same, "left semi")


def _first_time(report_input: ReportInput) -> int:
    """Return the time of the first exchange in nanoseconds since the epoch."""
    first = report_input.exchanges.grouped((), {"first": f"min(unix_micros({derived.HAPPENED}))"})
    micros = report_input.kept.rows(first).column("first")[0].as_py()
    return int(micros or 0) * 1000


def _rows_for_which(engine: SqlEngine, exchanges: Relation, rest: _Rest) -> pyarrow.Table:
    """Return the rows that match the rest of a filter; rows of this process need no worker."""
    import pyarrow

    chosen = []
    for batch in engine.batches(exchanges):
        matches = _which(rest, [batch.column(name) for name in rest.names])
        chosen.append(
            pyarrow.Table.from_batches([batch]).filter(pyarrow.array(matches, pyarrow.bool_()))
        )
    return pyarrow.concat_tables(chosen) if chosen else engine.rows(exchanges)


def _column_of(where: str, zone: str) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType

    names = compiled(where, zone).names

    def test(*columns: Arrays) -> Arrays:
        import pyarrow

        return pyarrow.array(_which(compiled(where, zone), columns), pyarrow.bool_())

    import pyarrow

    # Spark inspects the type annotations themselves, which are strings here
    test.__annotations__ = {"columns": pyarrow.Array, "return": pyarrow.Array}
    return F.arrow_udf(test, BooleanType())(*(F.col(name) for name in names))


def _which(rest: _Rest, columns: Sequence[Columns]) -> list[bool]:
    """Return a mask of the rows that match the rest."""
    assert rest.holds is not None
    return [rest.holds(row) for row in _rows_of(columns, rest.names)]


def _rows_of(columns: Sequence[Columns], names: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Yield rows as the filter expects them: times are nanoseconds since the epoch."""
    import pyarrow

    values: list[list[object]] = []
    for name, column in zip(names, columns, strict=True):
        if name in _TIMES:
            micros = column.cast(pyarrow.int64())
            values.append([None if value is None else value * 1000 for value in micros.to_pylist()])
        else:
            values.append([value.as_py() for value in column])
    yield from zip(*values, strict=True)
