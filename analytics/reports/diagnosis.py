"""What is wrong, why, and what to do: the rules of `analytics.diagnosis`, on Spark.

Rules: the same folds as in one pass, so that both say the same. Rows are given to (rule, key), each
of which is folded by one task; what all rows together say (`Context`) is small and made first, by
the one job that a report starts while it is built. Attempts of messages are stitched host by host.
A small input is judged in this process, by the one pass itself. What tasks run:
`analytics.reports.diagnosis_tasks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql import functions as F

from dissectors.remoting.code_sets import SENDS, STORED

from .. import derived
from ..diagnosis.context import Context
from ..diagnosis.engine import Engine
from ..diagnosis.messages import LONG_US
from ..diagnosis.registry import rules
from ..inputs.rows import connections_in, exchanges_in
from ..report import Chart, Report, ReportInput, ReportOptions, Row, Rows
from ..schema import SOURCE, arrow_rows, schema_of
from ..sends import sends
from ..sends.broker_names import broker_names
from ..sends.telling import telling_keys
from ..spark.expressions import adding, numbers
from .diagnosis_tables import ALL_COLUMNS, LIMITS, PROBLEMS, rows_of
from .diagnosis_tasks import (
    CONNECTION,
    EXCHANGE,
    FAILURE,
    ITEM,
    PART,
    TEXT,
    concluded_rows,
    connection_context,
    connection_items,
    exchange_context,
    exchange_items,
    finding_context,
    findings_in,
    folded,
    parts_of,
    stitched,
)

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, DataFrame]:  # noqa: ARG001
    """Return the tables."""
    whole = _in_one_pass(given) if given.small else given.kept.frame(_on_spark(given))
    return {
        PROBLEMS.name: given.kept.part(whole, "kind", "problem"),
        LIMITS.name: given.kept.part(whole, "kind", "limit"),
    }


def _on_spark(given: ReportInput) -> DataFrame:
    """Return the rows of both tables, made by Spark's tasks."""
    context = _context_of(given)
    known = msgspec.json.encode(context).decode()
    items = given.exchanges.mapInArrow(exchange_items, schema_of(ITEM))
    items = items.unionByName(_message_items(given, context))
    if given.conversations is not None:
        items = items.unionByName(given.conversations.mapInArrow(connection_items, schema_of(ITEM)))
    # Sorted and not grouped: a call of Python for each of thousands of keys takes longer than all
    # folds together.
    sorted_items = items.repartition("rule", "key").sortWithinPartitions("rule", "key")
    found = sorted_items.mapInArrow(folded(known), schema_of(TEXT))
    # One row more, so that the limits are said where nothing is wrong, too.
    spark = given.exchanges.sparkSession
    every = found.unionByName(spark.createDataFrame([("",)], schema_of(TEXT)))
    grouped = adding(every, {"one": "1"}).groupBy("one")
    return grouped.applyInArrow(concluded_rows(known), schema_of(ALL_COLUMNS))


def _in_one_pass(given: ReportInput) -> DataFrame:
    """Return the rows of both tables, made here from all rows; runs a job for each table."""

    engine = Engine(rules())
    exchanges = _by_source(given, given.exchanges)
    connections = _by_source(given, given.conversations)
    for source in sorted(exchanges.keys() | connections.keys()):
        engine.begin_input(source)
        for batch in exchanges.get(source, ()):
            engine.add_exchanges(exchanges_in(batch))
        for batch in connections.get(source, ()):
            engine.add_connections(connections_in(batch))
    if given.findings is not None:
        for batch in given.kept.rows(given.findings).select(["kind"]).to_batches():
            engine.add_findings(findings_in(batch))
    rows = rows_of(engine.diagnosis())
    table = arrow_rows(rows, ALL_COLUMNS)
    return given.kept.here(given.exchanges.sparkSession, table, schema_of(ALL_COLUMNS))


def _by_source(given: ReportInput, frame: DataFrame | None) -> dict[str, list[pyarrow.RecordBatch]]:
    """Return the rows of each input."""
    if frame is None:
        return {}
    import pyarrow.compute

    table = given.kept.rows(frame)
    return {
        str(source): table.filter(pyarrow.compute.field(SOURCE) == source).to_batches()
        for source in table.column(SOURCE).unique().to_pylist()
    }


# -- what all rows say ----------------------------------------------------------------------------


def _context_of(given: ReportInput) -> Context:
    """Return what all rows together say; runs a job."""
    parts = [given.exchanges.mapInArrow(exchange_context, schema_of(TEXT))]
    if given.conversations is not None:
        parts.append(given.conversations.mapInArrow(connection_context, schema_of(TEXT)))
    if given.findings is not None:
        parts.append(given.findings.select("kind").mapInArrow(finding_context, schema_of(TEXT)))
    context = Context()
    for part in parts:
        for row in part.toLocalIterator():
            context.merge(msgspec.json.decode(row["value"], type=Context))
    return context


def _message_items(given: ReportInput, context: Context) -> DataFrame:
    """Return the messages that need a closer look, for the rules that take messages."""
    names = broker_names(given)
    produced = sends.sends_of(given.exchanges)
    failures = None
    if given.conversations is not None:
        failures = sends.connect_failures(given.conversations, names)
    keys = telling_keys(produced, names, failures, LONG_US * 10 // 9)
    quick = (
        f"(coalesce(response_code in {numbers(STORED)} and latency_us <= {LONG_US}, false)"
        " or status = 'oneway')"
    )
    others = produced.where(f"unique_key is not null and not {quick}")
    keys = keys.unionByName(others.selectExpr(f"{sends.KEY} as key")).distinct()
    chosen = given.exchanges.where(
        f"request_code in {numbers(SENDS)} and unique_key is not null and status != 'orphan'"
        f" and request_time is not null and not {sends.OF_CONSUMERS}"
    ).join(F.broadcast(keys), F.expr(f"{sends.KEY} = key"), "left_semi")
    placed = adding(chosen, {"host": sends.HOST})
    parts = placed.mapInArrow(parts_of(EXCHANGE), schema_of(PART))
    if given.conversations is not None:
        where = placed.select(SOURCE, "conversation").distinct()
        used = given.conversations.join(where, [SOURCE, "conversation"], "left_semi")
        failed = given.conversations.where("`end` in ('refused', 'no_answer')")
        for frame, kind in ((used, CONNECTION), (failed, FAILURE)):
            hosted = adding(frame, {"host": derived.address_of("client")})
            parts = parts.unionByName(hosted.mapInArrow(parts_of(kind), schema_of(PART)))
    return parts.groupBy("host").applyInArrow(
        stitched(msgspec.json.encode(context.names_of_ports()).decode()), schema_of(ITEM)
    )


# -- words ----------------------------------------------------------------------------------------


def remarks(rows: Rows) -> list[str]:
    """Return the verdict, and what the capture could not show."""
    found = rows.get(PROBLEMS.name)
    if found is None:
        return []
    if not found:
        return ["Nothing wrong was found."]
    causes = [row for row in found if row["consequence_of"] is None]
    said = [_sentence(row) for row in causes[:_MOST_SAID]]
    if len(causes) > _MOST_SAID:
        said.append(f"{len(causes) - _MOST_SAID} further problems are in the table.")
    return said


_MOST_SAID: Final = 5


def _sentence(row: Row) -> str:
    return f"{str(row['severity']).upper()}: {row['title']}"


REPORT = Report(
    name="diagnosis",
    title="Diagnosis",
    question="What is wrong, why, and what can be done about it?",
    tables=(PROBLEMS, LIMITS),
    build=build,
    charts=(Chart("incidents", "Incidents", PROBLEMS.name, {"time": "first_time"}),),
    remarks=remarks,
)
