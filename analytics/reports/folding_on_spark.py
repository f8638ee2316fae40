"""Keyed folds by Spark's tasks: each streams the sorted items of its keys.

Rules: memory does not depend on how many keys there are. What tasks found is merged by tasks, some
parts each, then all by one; the driver gets the result alone. It travels as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec
from pyspark.sql import functions as F

from ..consuming.items import Item
from ..consuming.known import CONNECTIONS_KNOWN_BY, KNOWN_BY, Known
from ..inputs.rows import connections_in, exchanges_in, findings_in, json_text_of, messages_in
from ..report import ReportInput, ReportTable, TableColumn
from ..schema import TYPES, arrow_rows, schema_of
from ..sql.expressions import text
from ..sql.relation import Relation
from .folding import ITEM, Folding, arrow_items

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from ..spark.engine import SparkEngine

Batches = Iterator["pyarrow.RecordBatch"]
T = TypeVar("T")
_TEXT: Final = (TableColumn("value", "string", "", ""),)
_ROW: Final = (TableColumn("table", "string", "", ""), TableColumn("value", "string", "", ""))
_PARTS: Final = 32
"""tasks that merge what others found, before one merges the rest"""


def known_by_tasks(given: ReportInput) -> Known:
    """Return what all rows together say; runs a job."""
    engine = _engine(given)
    parts = [(given.exchanges.select(*KNOWN_BY), _add_exchanges)]
    if given.conversations is not None:
        parts.append((given.conversations.select(*CONNECTIONS_KNOWN_BY), _add_connections))
    if given.findings is not None:
        parts.append((given.findings.select("kind"), _add_findings))
    every = _union(
        [
            engine.frame(relation).mapInArrow(_known(add), schema_of(_TEXT))
            for relation, add in parts
        ]
    )
    rows = _merged(every, Known, Known.merge, _as_text).collect()
    known = msgspec.json.decode(rows[0]["value"], type=Known) if rows else Known()
    known.with_connections = given.conversations is not None
    return known


def _add_exchanges(known: Known, batch: pyarrow.RecordBatch) -> None:
    known.add_exchanges(exchanges_in(batch))


def _add_connections(known: Known, batch: pyarrow.RecordBatch) -> None:
    for row in connections_in(batch):
        known.context.add_connection(row)


def _add_findings(known: Known, batch: pyarrow.RecordBatch) -> None:
    for info in findings_in(batch):
        known.context.add_finding(info)


def _known(add: Callable[[Known, pyarrow.RecordBatch], None]) -> Callable[[Batches], Batches]:
    def known(batches: Batches) -> Batches:
        found = Known()
        for batch in batches:
            add(found, batch)
        yield from arrow_rows([{"value": json_text_of(found)}], _TEXT).to_batches()

    return known


def folded_by_tasks(
    given: ReportInput,
    exchanges: Relation,
    folding: Folding[T],
    known: Known,
    tables: Iterable[ReportTable],
) -> Mapping[str, Relation]:
    """Return the tables; runs a job."""
    engine = _engine(given)
    whole = given.kept.frame(engine.given(_rows(given, exchanges, folding, known)))
    if whole.rows is not None:
        found: dict[str, list[dict[str, object]]] = {}
        for row in whole.rows.to_pylist():
            found.setdefault(row["table"], []).append(msgspec.json.decode(row["value"]))
        return {one.name: given.kept.here(found.get(one.name, []), one.columns) for one in tables}
    kept = engine.frame(whole)
    return {table.name: engine.given(_rows_of(kept, table)) for table in tables}


def _engine(given: ReportInput) -> SparkEngine:
    return cast("SparkEngine", given.kept.engine)


def _rows(given: ReportInput, exchanges: Relation, folding: Folding[T], known: Known) -> DataFrame:
    """Return the rows of all tables, each as JSON."""
    engine, said = _engine(given), json_text_of(known)
    parts: list[tuple[Relation | None, Callable[..., Any], Callable[..., Any] | None]] = [
        (exchanges, exchanges_in, folding.exchanges),
        (given.messages, messages_in, folding.messages),
        (given.conversations, connections_in, folding.connections),
    ]
    items = [
        engine.frame(relation).mapInArrow(_items(rows_in, make, said), schema_of(ITEM))
        for relation, rows_in, make in parts
        if relation is not None and make is not None
    ]
    if folding.more is not None:
        items.append(engine.frame(folding.more(given, known)))
    # Sorted and not grouped: a call of Python for each of thousands of keys takes longer than all
    # folds together.
    ordered = _union(items).repartition("key").sortWithinPartitions("key", "at", "then", "text")
    sums = ordered.mapInArrow(_folds(folding, said), schema_of(_TEXT))
    # One row more, so that there are tables where nothing was folded, too.
    every = sums.unionByName(engine.session.createDataFrame([("",)], schema_of(_TEXT)))

    def tables(found: T) -> pyarrow.Table:
        context = msgspec.json.decode(said, type=Known)
        rows = [
            {"table": name, "value": json_text_of(row)}
            for name, several in folding.tables(found, context).items()
            for row in several
        ]
        return arrow_rows(rows, _ROW)

    return _merged(every, folding.sums, folding.merge, tables, _ROW)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    first, *others = frames
    for other in others:
        first = first.unionByName(other)
    return first


def _items(
    rows_in: Callable[..., Any], make: Callable[..., Iterable[Item]], said: str
) -> Callable[[Batches], Batches]:
    def items(batches: Batches) -> Batches:
        known = msgspec.json.decode(said, type=Known)
        for batch in batches:
            yield from arrow_items(make(rows_in(batch), known)).to_batches()

    return items


def _folds(folding: Folding[T], said: str) -> Callable[[Batches], Batches]:
    def fold(batches: Batches) -> Batches:
        known = msgspec.json.decode(said, type=Known)
        sums = folding.fold(_items_in(batches), known)
        yield from _as_text(sums).to_batches()

    return fold


def _items_in(batches: Batches) -> Iterator[Item]:
    for batch in batches:
        columns = [batch.column(column.name).to_pylist() for column in ITEM]
        for values in zip(*columns, strict=True):
            yield Item(*values)


def _as_text(found: object) -> pyarrow.Table:
    return arrow_rows([{"value": json_text_of(found)}], _TEXT)


def _merged(
    parts: DataFrame,
    type_: type[T],
    merge: Callable[[T, T], None],
    conclude: Callable[[T], pyarrow.Table],
    columns: Sequence[TableColumn] = _TEXT,
) -> DataFrame:
    """Return what `conclude` makes of all parts, which are JSON: tasks merge some, one the rest."""

    def merging(then: Callable[[T], pyarrow.Table]) -> Callable[[pyarrow.Table], pyarrow.Table]:
        def merged(table: pyarrow.Table) -> pyarrow.Table:
            found = type_()
            for value in filter(None, table.column("value").to_pylist()):
                merge(found, msgspec.json.decode(value, type=type_))
            return then(found)

        return merged

    placed = parts.withColumn("part", F.spark_partition_id() % _PARTS)
    some = placed.groupBy("part").applyInArrow(merging(_as_text), schema_of(_TEXT))
    one = some.withColumn("part", F.lit(0)).groupBy("part")
    return one.applyInArrow(merging(conclude), schema_of(columns))


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
