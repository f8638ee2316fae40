"""Keyed folds by Spark's tasks: each streams the sorted items of its keys.

Rules: memory does not depend on how many keys there are; sums are merged by one task, as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar, cast

import msgspec
from pyspark.sql import functions as F

from ..consuming.items import Item
from ..consuming.known import Known
from ..inputs.rows import connections_in, exchanges_in, json_text_of, messages_in
from ..report import ReportInput, ReportTable, TableColumn
from ..schema import TYPES, arrow_schema_of, schema_of
from ..sql.expressions import text
from ..sql.relation import Relation
from .folding import Folding

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from ..spark.engine import SparkEngine

Batches = Iterator["pyarrow.RecordBatch"]
T = TypeVar("T")
_ITEM: Final = (
    TableColumn("key", "string", "", ""),
    TableColumn("at", "int", "", ""),
    TableColumn("then", "int", "", ""),
    TableColumn("text", "string", "", ""),
)
_TEXT: Final = (TableColumn("value", "string", "", ""),)
_ROW: Final = (TableColumn("table", "string", "", ""), TableColumn("value", "string", "", ""))


def known_by_tasks(given: ReportInput) -> Known:
    """Return what all rows together say; runs a job."""
    known = Known(with_connections=given.conversations is not None)
    exchanges = _engine(given).frame(given.exchanges)
    for row in exchanges.mapInArrow(_known_rows, schema_of(_TEXT)).toLocalIterator():
        known.merge(msgspec.json.decode(row["value"], type=Known))
    return known


def _known_rows(batches: Batches) -> Batches:
    known = Known()
    for batch in batches:
        known.add_exchanges(exchanges_in(batch))
    yield _batch(_TEXT, [(json_text_of(known),)])


def folded_by_tasks(
    given: ReportInput,
    exchanges: Relation,
    folding: Folding[T],
    known: Known,
    tables: Iterable[ReportTable],
) -> Mapping[str, Relation]:
    """Return the tables; runs a job."""
    engine = _engine(given)
    rows = _by_tasks(given, engine.frame(exchanges), folding, known)
    whole = given.kept.frame(engine.given(rows))
    kept = engine.frame(whole)
    return {table.name: engine.given(_rows_of(kept, table)) for table in tables}


def _engine(given: ReportInput) -> SparkEngine:
    return cast("SparkEngine", given.kept.engine)


def _by_tasks(
    given: ReportInput, exchanges: DataFrame, folding: Folding[T], known: Known
) -> DataFrame:
    """Return the rows of all tables, each as JSON."""
    said = json_text_of(known)
    items = exchanges.mapInArrow(_items_of_exchanges(folding, said), schema_of(_ITEM))
    if folding.messages is not None and given.messages is not None:
        messages = _engine(given).frame(given.messages)
        more = messages.mapInArrow(_items_of_messages(folding, said), schema_of(_ITEM))
        items = items.unionByName(more)
    if folding.connections is not None and given.conversations is not None:
        conversations = _engine(given).frame(given.conversations)
        begun = conversations.mapInArrow(_items_of_connections(folding, said), schema_of(_ITEM))
        items = items.unionByName(begun)
    ordered = items.repartition("key").sortWithinPartitions("key", "at", "then", "text")
    sums = ordered.mapInArrow(_folds(folding, said), schema_of(_TEXT))
    # One row more, so that there are tables where nothing was folded, too.
    session = _engine(given).session
    every = sums.unionByName(session.createDataFrame([("",)], schema_of(_TEXT)))
    return every.coalesce(1).mapInArrow(_concluded(folding, said), schema_of(_ROW))


def _items_of_exchanges(folding: Folding[T], said: str) -> Callable[[Batches], Batches]:
    def items(batches: Batches) -> Batches:
        known = msgspec.json.decode(said, type=Known)
        for batch in batches:
            yield _batch(_ITEM, list(folding.exchanges(exchanges_in(batch), known)))

    return items


def _items_of_messages(folding: Folding[T], said: str) -> Callable[[Batches], Batches]:
    make = folding.messages
    assert make is not None

    def items(batches: Batches) -> Batches:
        known = msgspec.json.decode(said, type=Known)
        for batch in batches:
            yield _batch(_ITEM, list(make(messages_in(batch), known)))

    return items


def _items_of_connections(folding: Folding[T], said: str) -> Callable[[Batches], Batches]:
    make = folding.connections
    assert make is not None

    def items(batches: Batches) -> Batches:
        known = msgspec.json.decode(said, type=Known)
        for batch in batches:
            yield _batch(_ITEM, list(make(connections_in(batch), known)))

    return items


def _folds(folding: Folding[T], said: str) -> Callable[[Batches], Batches]:
    def fold(batches: Batches) -> Batches:
        known = msgspec.json.decode(said, type=Known)
        sums = folding.fold(_items_in(batches), known)
        yield _batch(_TEXT, [(json_text_of(sums),)])

    return fold


def _items_in(batches: Batches) -> Iterator[Item]:
    for batch in batches:
        columns = [batch.column(column.name).to_pylist() for column in _ITEM]
        for values in zip(*columns, strict=True):
            yield Item(*values)


def _concluded(folding: Folding[T], said: str) -> Callable[[Batches], Batches]:
    def conclude(batches: Batches) -> Batches:
        known = msgspec.json.decode(said, type=Known)
        sums = folding.sums()
        for batch in batches:
            for value in batch.column("value").to_pylist():
                if value:
                    folding.merge(sums, msgspec.json.decode(value, type=folding.sums))
        for name, rows in folding.tables(sums, known).items():
            yield _batch(_ROW, [(name, json_text_of(row)) for row in rows])

    return conclude


def _rows_of(whole: DataFrame, table: ReportTable) -> DataFrame:
    """Return the rows of one table; in JSON a time is a number of microseconds."""
    chosen = whole.where(f"table = {text(table.name)}")
    plain = ", ".join(
        f"`{column.name}` {_JSON_TYPES.get(column.type, TYPES[column.type])}"
        for column in table.columns
    )
    parsed = chosen.select(F.from_json("value", plain).alias("row")).select("row.*")
    times = {column.name for column in table.columns if column.type == "time"}
    return parsed.selectExpr(
        *(
            f"timestamp_micros(`{column.name}`) as `{column.name}`"
            if column.name in times
            else f"`{column.name}`"
            for column in table.columns
        )
    )


_JSON_TYPES: Final = {"time": "bigint"}


def _batch(columns: tuple[TableColumn, ...], rows: list[tuple[object, ...]]) -> pyarrow.RecordBatch:
    import pyarrow

    schema = arrow_schema_of(columns)
    values: Iterable[object] = zip(*rows, strict=True) if rows else [()] * len(columns)
    arrays = [
        pyarrow.array(list(column), field.type)  # type: ignore[call-overload]
        for column, field in zip(values, schema, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
