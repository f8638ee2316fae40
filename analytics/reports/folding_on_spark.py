"""Keyed folds in Spark tasks: each task streams the sorted items of its keys.

Memory does not depend on the number of keys. Partial sums travel as JSON; the driver gets only the
result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec
from pyspark.sql import functions as F

from ..consuming.items import Item
from ..consuming.known import CONNECTIONS_KNOWN_BY, KNOWN_BY, Known
from ..inputs.rows import connections_in, exchanges_in, findings_in, json_text_of, messages_in
from ..report import ReportInput, ReportTable, TableColumn, table_columns
from ..schema import TYPES, arrow_rows, schema_of
from ..sql.expressions import text
from ..sql.relation import Relation
from .folding import ITEM, Folding, arrow_items, here

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from ..spark.engine import SparkEngine

Batches = Iterator["pyarrow.RecordBatch"]
T = TypeVar("T")
_TEXT: Final = (TableColumn("value", "string", "", ""),)
_ROW: Final = table_columns("""
    table string
    value string
""")
_PARTS: Final = 32
"""tasks of the first merge step, before one task merges their results"""


def known_by_tasks(report_input: ReportInput) -> Known:
    """Return the shared facts of all rows; runs a job."""
    engine = _engine(report_input)
    parts = [(report_input.exchanges.select(*KNOWN_BY), _add_exchanges)]
    if report_input.conversations is not None:
        parts.append((report_input.conversations.select(*CONNECTIONS_KNOWN_BY), _add_connections))
    if report_input.findings is not None:
        parts.append((report_input.findings.select("kind"), _add_findings))
    frames = _union(
        [
            engine.frame(relation).mapInArrow(_known(add), schema_of(_TEXT))
            for relation, add in parts
        ]
    )
    rows = _merged(frames, Known, Known.merge, _as_text).collect()
    known = msgspec.json.decode(rows[0]["value"], type=Known) if rows else Known()
    known.with_connections = report_input.conversations is not None
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
        known_facts = Known()
        for batch in batches:
            add(known_facts, batch)
        yield from arrow_rows([{"value": json_text_of(known_facts)}], _TEXT).to_batches()

    return known


def folded_by_tasks(
    report_input: ReportInput,
    exchanges: Relation,
    folding: Folding[T],
    known: Known,
    tables: Iterable[ReportTable],
) -> Mapping[str, Relation]:
    """Return the tables; runs a job."""
    engine = _engine(report_input)
    whole = report_input.kept.frame(engine.given(_rows(report_input, exchanges, folding, known)))
    if whole.rows is not None:  # few rows, which the driver has already
        values: dict[str, list[dict[str, object]]] = {}
        for row in whole.rows.to_pylist():
            values.setdefault(row["table"], []).append(msgspec.json.decode(row["value"]))
        return here(report_input, values, tables)
    kept = engine.frame(whole)
    return {table.name: engine.given(_rows_of(kept, table)) for table in tables}


def _engine(report_input: ReportInput) -> SparkEngine:
    return cast("SparkEngine", report_input.kept.engine)


def _rows(
    report_input: ReportInput, exchanges: Relation, folding: Folding[T], known: Known
) -> DataFrame:
    """Return the rows of all tables as JSON."""
    engine, known_json = _engine(report_input), json_text_of(known)
    parts: list[tuple[Relation | None, Callable[..., Any], Callable[..., Any] | None]] = [
        (exchanges, exchanges_in, folding.exchanges),
        (report_input.messages, messages_in, folding.messages),
        (report_input.conversations, connections_in, folding.connections),
    ]
    items = [
        engine.frame(relation).mapInArrow(_items(rows_in, make, known_json), schema_of(ITEM))
        for relation, rows_in, make in parts
        if relation is not None and make is not None
    ]
    if folding.more is not None:
        items.append(engine.frame(folding.more(report_input, known)))
    # Sorted, not grouped: a Python call for each of thousands of keys takes longer than all
    # folds together.
    ordered = _union(items).repartition("key").sortWithinPartitions("key", "at", "then", "text")
    sums = ordered.mapInArrow(_folds(folding, known_json), schema_of(_TEXT))
    # Adds an empty row, so that there are tables even without items.
    all_sums = sums.unionByName(engine.session.createDataFrame([("",)], schema_of(_TEXT)))

    def tables(merged: T) -> pyarrow.Table:
        context = msgspec.json.decode(known_json, type=Known)
        rows = [
            {"table": name, "value": json_text_of(row)}
            for name, several in folding.tables(merged, context).items()
            for row in several
        ]
        return arrow_rows(rows, _ROW)

    return _merged(all_sums, folding.sums, folding.merge, tables, _ROW)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    first, *others = frames
    for other in others:
        first = first.unionByName(other)
    return first


def _items(
    rows_in: Callable[..., Any], make: Callable[..., Iterable[Item]], known_json: str
) -> Callable[[Batches], Batches]:
    def items(batches: Batches) -> Batches:
        known = msgspec.json.decode(known_json, type=Known)
        for batch in batches:
            yield from arrow_items(make(rows_in(batch), known)).to_batches()

    return items


def _folds(folding: Folding[T], known_json: str) -> Callable[[Batches], Batches]:
    def fold(batches: Batches) -> Batches:
        known = msgspec.json.decode(known_json, type=Known)
        sums = folding.fold(_items_in(batches), known)
        yield from _as_text(sums).to_batches()

    return fold


def _items_in(batches: Batches) -> Iterator[Item]:
    for batch in batches:
        columns = [batch.column(column.name).to_pylist() for column in ITEM]
        for values in zip(*columns, strict=True):
            yield Item(*values)


def _as_text(value: object) -> pyarrow.Table:
    return arrow_rows([{"value": json_text_of(value)}], _TEXT)


def _merged(
    parts: DataFrame,
    type_: type[T],
    merge: Callable[[T, T], None],
    conclude: Callable[[T], pyarrow.Table],
    columns: Sequence[TableColumn] = _TEXT,
) -> DataFrame:
    """Return the result of `conclude` on the merged JSON parts; runs two merge steps."""

    def merging(then: Callable[[T], pyarrow.Table]) -> Callable[[pyarrow.Table], pyarrow.Table]:
        def merged(table: pyarrow.Table) -> pyarrow.Table:
            total = type_()
            for value in filter(None, table.column("value").to_pylist()):
                merge(total, msgspec.json.decode(value, type=type_))
            return then(total)

        return merged

    # in two steps, so that no single task gets the sums of all others at once
    placed = parts.withColumn("part", F.spark_partition_id() % _PARTS)
    some = placed.groupBy("part").applyInArrow(merging(_as_text), schema_of(_TEXT))
    single = some.withColumn("part", F.lit(0)).groupBy("part")
    return single.applyInArrow(merging(conclude), schema_of(columns))


def _rows_of(whole: DataFrame, table: ReportTable) -> DataFrame:
    """Return the rows of one table; JSON has times in microseconds."""
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
