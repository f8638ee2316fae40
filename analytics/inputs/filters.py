"""Which exchanges a report is about: `--where`, `--since`, `--until`.

Rules: a filter means the same as in `rmqtool decode pcap`, by the same code
(`dissectors.where.filter`): in this process, or by Python workers of Spark, to which only the
columns that the expression names are sent. Times are compared by the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from dissectors.rows.record import COLUMNS
from dissectors.times import UTC_ZONE, Moment, zone_named
from dissectors.where.fields import FieldSet, Getter, WhereField, exchange_fields
from dissectors.where.filter import Test, compile_where

from .. import derived
from ..report import ReportInput
from ..schema import SOURCE
from ..sql.engine import SqlEngine
from ..sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column

    from ..spark.engine import SparkEngine

    Arrays = pyarrow.Array[pyarrow.Scalar[pyarrow.DataType]]
    Columns = Arrays | pyarrow.ChunkedArray[pyarrow.Scalar[pyarrow.DataType]]

_TIMES = frozenset(column.name for column in COLUMNS if column.type == "time")


class _Naming(FieldSet):
    """The columns of an exchange; remembers which an expression asks for."""

    def __init__(self) -> None:
        known = exchange_fields()
        fields = [known.find(name) for name in known.names]
        super().__init__([field for field in fields if field is not None])
        self.asked: list[str] = []

    def find(self, name: str) -> WhereField | None:
        field = super().find(name)
        if field is None:
            return None
        columns = field.columns or (name,)
        self.asked += [column for column in columns if column not in self.asked]
        indexes = tuple(self.asked.index(column) for column in columns)
        return replace(field, get=_getter(indexes, field.value))


def _getter(indexes: tuple[int, ...], value: Callable[..., object] | None) -> Getter:
    """Return what takes a value from a row of the columns that are asked for."""

    def get(row: object) -> object:
        assert isinstance(row, tuple)
        if value is None:
            return row[indexes[0]]
        return value(*(row[index] for index in indexes))

    return get


@lru_cache(maxsize=8)
def compiled(expression: str, zone: str = UTC_ZONE.name) -> tuple[Test, tuple[str, ...]]:
    """Return the test of a row of the columns that it needs, and their names.

    `zone` is where times without an offset are from. Raise WhereError where the expression is none.
    """
    fields = _Naming()
    test = compile_where(expression, fields, zone_named(zone) or UTC_ZONE)
    return test, tuple(fields.asked)


def chosen(
    given: ReportInput,
    where: str = "",
    since: Moment | None = None,
    until: Moment | None = None,
    zone: str = UTC_ZONE.name,
) -> ReportInput:
    """Return the input with the exchanges that are asked for, and the connections of that time.

    A time without a date is on the day of the first exchange; `zone` is that of times in `where`.
    Raise WhereError.
    """
    exchanges, conversations = given.exchanges, given.conversations
    first = 0
    if any(moment is not None and not moment.has_date for moment in (since, until)):
        first = _first_time(given)
    for moment, compare in ((since, ">="), (until, "<")):
        if moment is None:
            continue
        micros = moment.on_day_of(first) // 1000
        exchanges = exchanges.where(f"unix_micros({derived.HAPPENED}) {compare} {micros}")
        if conversations is not None:
            end = "end_time" if compare == ">=" else "start_time"
            conversations = conversations.where(f"unix_micros({end}) {compare} {micros}")
    engine = given.kept.engine
    if where and given.is_distributed:
        on_spark = cast("SparkEngine", engine)
        exchanges = on_spark.given(on_spark.frame(exchanges).where(_column_of(where, zone)))
    elif where:
        exchanges = engine.hold(_rows_for_which(engine, exchanges, where, zone))
    messages = given.messages
    if messages is not None and exchanges is not given.exchanges:
        messages = _messages_in(messages, exchanges)

    def read(relation: Relation | None) -> Relation | None:
        """Return a table of the input: what is chosen of rows of this process is chosen once."""
        if relation is None or relation.rows is not None or not relation.is_here:
            return relation
        return engine.keep(relation)

    return ReportInput(
        read(exchanges) or exchanges,
        given.kept,
        read(conversations),
        read(given.findings),
        read(messages),
    )


_OF_EXCHANGE = (SOURCE, "conversation", "capture", "request_packet", "request_name", "latency_us")
"""Columns that messages and exchanges have in common: equal ones are of one exchange, or of two
that were asked in one packet and took equally long."""


def _messages_in(messages: Relation, exchanges: Relation) -> Relation:
    """Return the messages that these exchanges carried."""
    chosen = exchanges.select_distinct(*(f"{name} as _{name}" for name in _OF_EXCHANGE))
    same = " and ".join(f"{name} <=> _{name}" for name in _OF_EXCHANGE)
    return messages.join(chosen, same, "left semi")


def _first_time(given: ReportInput) -> int:
    """Return the time of the first exchange, nanoseconds since the epoch."""
    first = given.exchanges.grouped((), {"first": f"min(unix_micros({derived.HAPPENED}))"})
    micros = given.kept.rows(first).column("first")[0].as_py()
    return int(micros or 0) * 1000


def _rows_for_which(engine: SqlEngine, exchanges: Relation, where: str, zone: str) -> pyarrow.Table:
    """Return the rows for which an expression holds; without a worker that reads them."""
    import pyarrow

    holds, names = compiled(where, zone)
    chosen = []
    for batch in engine.batches(exchanges):
        found = [holds(row) for row in _rows_of([batch.column(name) for name in names], names)]
        chosen.append(
            pyarrow.Table.from_batches([batch]).filter(pyarrow.array(found, pyarrow.bool_()))
        )
    return pyarrow.concat_tables(chosen) if chosen else engine.rows(exchanges)


def _column_of(where: str, zone: str) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType

    _, names = compiled(where, zone)

    def test(*columns: Arrays) -> Arrays:
        import pyarrow

        holds, asked = compiled(where, zone)
        return pyarrow.array([holds(row) for row in _rows_of(columns, asked)], pyarrow.bool_())

    import pyarrow

    # Spark looks at the types themselves, which are texts here
    test.__annotations__ = {"columns": pyarrow.Array, "return": pyarrow.Array}
    return F.arrow_udf(test, BooleanType())(*(F.col(name) for name in names))


def _rows_of(columns: Sequence[Columns], names: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Give rows as the filter knows them: times are nanoseconds since the epoch."""
    import pyarrow

    values: list[list[object]] = []
    for name, column in zip(names, columns, strict=True):
        if name in _TIMES:
            micros = column.cast(pyarrow.int64())
            values.append([None if one is None else one * 1000 for one in micros.to_pylist()])
        else:
            values.append([one.as_py() for one in column])
    yield from zip(*values, strict=True)
