"""Exchanges for the tests of the reports: what is not said has a plain value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow

from analytics.kept import Kept
from analytics.report import ReportInput
from analytics.schema import SOURCE, Described, arrow_schema_of
from analytics.sql.engine import SqlEngine
from analytics.sql.local import LocalEngine
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS
from dissectors.rows.outcome import outcome_class_of
from dissectors.rows.record import COLUMNS

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
    return with_outcome_class({**chosen, **values})


def with_outcome_class(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row with the column that the decoder computes, unless it has one."""
    return {
        "outcome_class": outcome_class_of(
            *(row.get(name) for name in ("status", "request_name", "response_name", "topic"))  # type: ignore[arg-type]
        ),
        **row,
    }


def moment(at_us: int) -> datetime:
    """Return the time that is `at_us` after `START`."""
    return START + timedelta(microseconds=at_us)


def evaluated(rows: Iterable[Mapping[str, object]], *expressions: str) -> list[dict[str, object]]:
    """Return SQL expressions (``expression as name``) for each of some exchanges."""
    given = report_input(rows)
    return list(given.kept.rows(given.exchanges.select(*expressions)).to_pylist())


def report_input(
    rows: Iterable[Mapping[str, object]],
    connections: Iterable[Mapping[str, object]] | None = None,
    engine: SqlEngine | None = None,
) -> ReportInput:
    """Return a small input of exchanges and of connections, None: of those nothing is known.

    As of `rmqtool report`: this process has the rows. `engine` is the local one if there is none.
    """
    engine = engine or LocalEngine()
    held = engine.hold(_table(rows, COLUMNS))
    if connections is None:
        return ReportInput(held, Kept(engine))
    return ReportInput(held, Kept(engine), engine.hold(_table(connections, CONVERSATION_COLUMNS)))


def _table(rows: Iterable[Mapping[str, object]], columns: Sequence[Described]) -> pyarrow.Table:
    schema = arrow_schema_of(columns).append(pyarrow.field(SOURCE, pyarrow.string()))
    return pyarrow.Table.from_pylist(list(rows), schema)
