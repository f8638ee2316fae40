"""The diagnosis by Spark's tasks: rows go to (rule, key), each of which is folded by one task.

Rules: what all rows together say (`Context`) is small and made first, by the one job that a report
starts while it is built. Attempts of messages are stitched host by host. What tasks run:
`analytics.reports.diagnosis_tasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from dissectors.remoting.code_sets import SENDS, STORED

from .. import derived
from ..diagnosis.context import Context
from ..diagnosis.messages import LONG_US
from ..report import ReportInput
from ..schema import SOURCE, schema_of
from ..sends import sends
from ..sends.broker_names import broker_names
from ..sends.telling import flagged_keys
from ..sql.expressions import numbers
from ..sql.relation import Relation
from .diagnosis_tables import ALL_COLUMNS
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
    folded,
    parts_of,
    stitched,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..spark.engine import SparkEngine


def rows_on_spark(given: ReportInput) -> Relation:
    """Return the rows of both tables, made by Spark's tasks."""
    engine = cast("SparkEngine", given.kept.engine)
    context = _context_of(given, engine)
    known = msgspec.json.encode(context).decode()
    exchanges = engine.frame(given.exchanges)
    items = exchanges.mapInArrow(exchange_items, schema_of(ITEM))
    items = items.unionByName(_message_items(given, engine, context))
    if given.conversations is not None:
        connections = engine.frame(given.conversations)
        items = items.unionByName(connections.mapInArrow(connection_items, schema_of(ITEM)))
    # Sorted and not grouped: a call of Python for each of thousands of keys takes longer than all
    # folds together.
    sorted_items = items.repartition("rule", "key").sortWithinPartitions("rule", "key")
    found = sorted_items.mapInArrow(folded(known), schema_of(TEXT))
    # One row more, so that the limits are said where nothing is wrong, too.
    every = found.unionByName(engine.session.createDataFrame([("",)], schema_of(TEXT)))
    together = every.selectExpr("*", "1 as one").groupBy("one")
    rows = together.applyInArrow(concluded_rows(known), schema_of(ALL_COLUMNS))
    return given.kept.frame(engine.given(rows))


# -- what all rows say ----------------------------------------------------------------------------


def _context_of(given: ReportInput, engine: SparkEngine) -> Context:
    """Return what all rows together say; runs a job."""
    parts = [engine.frame(given.exchanges).mapInArrow(exchange_context, schema_of(TEXT))]
    if given.conversations is not None:
        connections = engine.frame(given.conversations)
        parts.append(connections.mapInArrow(connection_context, schema_of(TEXT)))
    if given.findings is not None:
        findings = engine.frame(given.findings.select("kind"))
        parts.append(findings.mapInArrow(finding_context, schema_of(TEXT)))
    context = Context()
    for part in parts:
        for row in part.toLocalIterator():
            context.merge(msgspec.json.decode(row["value"], type=Context))
    return context


def _message_items(given: ReportInput, engine: SparkEngine, context: Context) -> DataFrame:
    """Return the messages that need a closer look, for the rules that take messages."""
    names = broker_names(given)
    produced = sends.sends_of(given.exchanges)
    failures = None
    if given.conversations is not None:
        failures = sends.connect_failures(given.conversations, names)
    flagged = flagged_keys(produced, names, failures, LONG_US * 10 // 9)
    quick = (
        f"(coalesce(response_code in {numbers(STORED)} and latency_us <= {LONG_US}, false)"
        " or status = 'oneway')"
    )
    others = produced.where(f"unique_key is not null and not {quick}")
    repeated = given.kept.repeated(flagged)
    keys = repeated.union(others.select(f"{sends.KEY} as key")).distinct()
    chosen = given.exchanges.where(
        f"request_code in {numbers(SENDS)} and unique_key is not null and status != 'orphan'"
        f" and request_time is not null and not {sends.OF_CONSUMERS}"
    ).join(keys, f"{sends.KEY} = key", "left semi", small=True)
    placed = chosen.adding({"host": sends.HOST})
    parts = engine.frame(placed).mapInArrow(parts_of(EXCHANGE), schema_of(PART))
    if given.conversations is not None:
        where = placed.select(SOURCE, "conversation").distinct()
        used = given.conversations.join(where, [SOURCE, "conversation"], "left semi")
        failed = given.conversations.where(sends.NEVER_OPENED)
        for relation, kind in ((used, CONNECTION), (failed, FAILURE)):
            hosted = engine.frame(relation.adding({"host": derived.address_of("client")}))
            parts = parts.unionByName(hosted.mapInArrow(parts_of(kind), schema_of(PART)))
    return parts.groupBy("host").applyInArrow(
        stitched(msgspec.json.encode(context.names_of_ports()).decode()), schema_of(ITEM)
    )
