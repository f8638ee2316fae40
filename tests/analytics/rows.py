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
from dissectors.rows.record import COLUMNS, DERIVED

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
PLAIN: Mapping[str, object] = {
    "source": "test.pcap",
    "capture": "test.pcap",
    "conversation": 0,
    "client_address": "10.0.0.9:40000",
    "server_address": "10.0.0.1:10911",
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
    "findings": [],
}
"""An answered send."""
KEY = "7F00000100002A9F00000000000186A0"
HOSTILE_KEYS = (
    *(KEY[:20] + digits + KEY[28:] for digits in ("-FFFFFFF", " 1234567", "0x123456", "FFFFFFFF")),
    *(KEY[:-1] + last for last in ("G", "\n", " ", "-")),
    *("", "-" * 32, "é" * 16, "0" * 30 + "é", "F" * 56, "F" * 33, KEY.lower(), "x" * 5000),
)
"""Texts where a UNIQ_KEY should be."""
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
    return with_derived({**chosen, **values})


def with_derived(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row with the columns that the decoder computes, unless it has them."""
    values = {
        name: (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value
        for name, value in row.items()
    }
    return {name: make(*map(values.get, of)) for name, (make, of) in DERIVED.items()} | {**row}


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
