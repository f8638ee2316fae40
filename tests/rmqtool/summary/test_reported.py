"""Summary, reports, and diagnosis show the same numbers wherever they show one: over all samples.

The summary is a fold without DuckDB, as it must keep up with the decoder; a report is a query. They
share what makes a number: outcome classes, relays, and the buckets of percentiles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.messages import ObservedMessage
from analytics.sends.attempt_table import cause_of
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.record import ORPHAN
from rmqtool.summary.summary import Summary
from rmqtool.summary.summary_json import summary_json
from tests.analytics.reported import Tables, tables_of
from tests.expected import SAMPLES

CAPTURES = sorted(
    str(path) for path in SAMPLES.iterdir() if ".pcap" in path.name and path.suffix != ".gz"
)
COUNTS = ("exchanges", "failed", "unanswered")


class Views(NamedTuple):
    """What each view shows of all samples."""

    summary: Mapping[str, Any]
    tables: Tables
    messages: list[ObservedMessage]


@pytest.fixture(scope="module")
def views() -> Views:
    decode = Decode(CAPTURES, DecodeOptions(conversations=True))
    summary, engine = Summary(), Engine([])
    for rows in decode.records():
        summary.add(rows)
        engine.add_exchanges(rows)
        engine.add_connections(decode.take_conversations())
    engine.add_connections(decode.take_conversations())
    engine.diagnosis()
    names = {
        "overview": ("clients", "errors"),
        "latency": ("operations", "latency_slowest", "relays"),
        "retries": ("retry_messages", "retry_attempts"),
    }
    tables = {
        name: rows
        for report, chosen in names.items()
        for name, rows in tables_of(report, CAPTURES, *chosen).items()
    }
    for table in ("operations", "clients"):
        for row in tables[table]:
            row["unanswered"] = sum(row[one] for one in ("no_answer", "unknown", "withdrawn"))  # type: ignore[misc]
    shown = json.loads(summary_json(summary, decode.stats))
    return Views(shown, tables, engine._store.messages(engine.context.names_of_ports()))


Sums = dict[tuple[object, ...], list[int]]


def sums(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], values: Sequence[str]) -> Sums:
    """Return the sums of some columns by others."""
    found: Sums = {}
    for row in rows:
        counts = found.setdefault(tuple(row[key] or "" for key in keys), [0] * len(values))
        for place, name in enumerate(values):
            counts[place] += row[name] or 0
    return found


def test_operations(views: Views) -> None:
    times = ("p50_us", "p99_us", "max_us")
    ours = ("count", "failed", "unanswered", "oneway")
    shown = views.summary["operations"]
    assert sum(row["count"] for row in shown) == (
        views.summary["exchanges"] - views.summary["statuses"][ORPHAN]
    )
    names = (*COUNTS, "oneway", "bytes", *times)
    assert sums(shown, ["request_name"], (*ours, "bytes", *times)) == sums(
        views.tables["operations"], ["operation"], names
    )


def test_clients(views: Views) -> None:
    keys, values = ("language", "version"), (*COUNTS, "bytes", "connections")
    shown = sums(views.summary["clients"], ("address", *keys), values)
    assert shown == sums(views.tables["clients"], ("client", *keys), values)


def test_errors(views: Views) -> None:
    classes = ("failed", "expected", "stored, not durable")
    rows = [row for row in views.tables["errors"] if row["class"] in classes]
    failed = [row for row in rows if row["class"] == "failed"]
    answers = views.summary["answers"]
    keys, ours = ("code", "answer"), ("response_code", "response_name")
    shown = sums([row for row in answers if row["failed"]], ours, ["failed"])
    assert shown == sums(failed, keys, ["exchanges"])
    every = sums(rows, keys, ["exchanges"])
    counted = sums(answers, ours, ["count"])
    assert every.items() <= counted.items(), "no code is an error in some rows only"


def test_slowest(views: Views) -> None:
    keys = ("latency_us", "request_packet")
    shown = [[row[key] for key in keys] for row in views.summary["slowest"]]
    rows = views.tables["latency_slowest"][: len(shown)]
    assert shown == [[row[key] for key in keys] for row in rows]


def test_relays(views: Views) -> None:
    shown = sums(views.summary["proxies"], ("proxy", "broker"), ["sends"])
    assert shown == sums(views.tables["relays"], ("relay", "server"), ["sends"])


def test_attempts_of_messages(views: Views) -> None:
    """The diagnosis looks at messages by remoting alone, and at those with a UNIQ_KEY."""
    attempts = views.tables["retry_attempts"]
    calls = {row["unique_key"] for row in attempts if row["protocol"] != "remoting"} | {None}
    reported = {
        row["unique_key"]: tuple(
            row[name] for name in ("attempts", "final", "copies", "verdict", "causes", "brokers")
        )
        for row in views.tables["retry_messages"]
        if row["unique_key"] not in calls
    }
    diagnosed = {
        message.key: (
            len(message.attempts),
            message.chain.final,
            message.chain.copies,
            message.chain.verdict,
            " → ".join(map(cause_of, message.attempts)),
            " → ".join(one.send.broker for one in message.attempts),
        )
        for message in views.messages
        if message.key not in calls
    }
    assert len(reported) > 200
    assert {key: diagnosed.get(key) for key in reported} == reported
    others = {key: one for key, one in diagnosed.items() if key not in reported}
    assert {one for one in others.values() if one[0] > 1 or one[3]} == set()
