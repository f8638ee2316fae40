"""Exchanges for the tests of the reports: what is not said has a plain value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from analytics.kept import Kept
from analytics.report import ReportInput
from analytics.schema import SOURCE, conversation_schema, exchange_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
PLAIN: Mapping[str, object] = {
    "source": "test.pcap",
    "capture": "test.pcap",
    "conversation": 0,
    "requester": "10.0.0.9:40000",
    "responder": "10.0.0.1:10911",
    "status": "answered",
    "request_packet": 1,
    "response_packet": 2,
    "latency_us": 1000,
    "opaque": 1,
    "request_code": 310,
    "request_name": "SEND_MESSAGE_V2",
    "response_code": 0,
    "response_name": "SUCCESS",
    "language": "JAVA",
    "version": 515,
    "version_name": "V5_3_2",
    "serialize_type": "JSON",
    "topic": "orders",
    "group": "shop",
    "queue_id": 0,
    "broker_name": "broker-a",
    "body_bytes": 100,
    "request_bytes": 300,
    "response_bytes": 200,
    "missing_bytes": 0,
    "message_count": 1,
    "expert": [],
}
"""An answered send."""
_NO_ANSWER = ("response_packet", "response_code", "response_name", "response_bytes")


def row(at_us: int = 0, **values: object) -> dict[str, object]:
    """Return an exchange that began `at_us` after `START`; without `latency_us`: unanswered."""
    chosen = {**PLAIN, **values}
    latency = chosen["latency_us"]
    chosen["request_time"] = moment(at_us)
    if latency is None:
        chosen.update(dict.fromkeys(_NO_ANSWER))
        if "status" not in values:
            chosen["status"] = "unanswered"
    else:
        assert isinstance(latency, int)
        chosen["response_time"] = moment(at_us + latency)
    return {**chosen, **values}


def moment(at_us: int) -> datetime:
    """Return the time that is `at_us` after `START`."""
    return START + timedelta(microseconds=at_us)


def exchanges(spark: SparkSession, rows: Iterable[Mapping[str, object]]) -> DataFrame:
    """Return exchanges as reports get them; a column that a row does not have is null."""
    return _frame(spark, rows, exchange_schema().fieldNames(), conversations=False)


def conversations(spark: SparkSession, rows: Iterable[Mapping[str, object]]) -> DataFrame:
    """Return connections as reports get them; a column that a row does not have is null."""
    return _frame(spark, rows, conversation_schema().fieldNames(), conversations=True)


def report_input(
    spark: SparkSession,
    rows: Iterable[Mapping[str, object]],
    connections: Iterable[Mapping[str, object]] | None = None,
) -> ReportInput:
    """Return a small input of exchanges and of connections, None: of those nothing is known."""
    ends = None if connections is None else conversations(spark, connections)
    return ReportInput(exchanges(spark, rows), ends, kept=Kept(small=True))


def _frame(
    spark: SparkSession,
    rows: Iterable[Mapping[str, object]],
    names: list[str],
    conversations: bool,
) -> DataFrame:
    schema = conversation_schema() if conversations else exchange_schema()
    schema = schema.add(SOURCE, "string")
    data = [tuple(one.get(name) for name in (*names, SOURCE)) for one in rows]
    return spark.createDataFrame(data, schema)
