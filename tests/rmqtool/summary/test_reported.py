"""Summary, reports, diagnosis, and traces show the same numbers: over all samples.

The summary is a fold without DuckDB, as it must keep up with the decoder; a report is a query. They
share what makes a number: outcome classes, relays, and the buckets of percentiles.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.messages import ObservedMessage
from analytics.diagnosis.problem import Problem
from analytics.diagnosis.producers import JudgedProducer, ProducerFold
from analytics.diagnosis.registry import rules
from analytics.isolation.strategy_replay import NO_STRATEGY, OFF
from analytics.life import search as life_search
from analytics.life.lanes import CONNECT_FAILED
from analytics.life.life import MessageTrace, TraceStep
from analytics.sends.attempt_table import cause_of
from analytics.sends.attempts import LATE, REFUSED, STORED, STORED_UNCONFIRMED
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows import message_record
from dissectors.rows.outcome import is_send
from dissectors.rows.record import ORPHAN
from rmqtool.summary.summary import Summary
from rmqtool.summary.summary_json import summary_json
from tests.analytics.life.lives import lives_in
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
    problems: list[Problem]
    producers: list[JudgedProducer]
    lives: list[MessageTrace]


@pytest.fixture(scope="module")
def views() -> Iterator[Views]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(life_search, "MOST_MESSAGES", 1 << 20)
        yield _views()


def _views() -> Views:
    decode = Decode(CAPTURES, DecodeOptions(conversations=True))
    summary, engine = Summary(), Engine(rules())
    for rows in decode.records():
        summary.add(rows)
        engine.add_exchanges(rows)
        engine.add_connections(decode.take_conversations())
    engine.add_connections(decode.take_conversations())
    problems = engine.diagnosis().problems
    names = {
        "overview": ("clients", "errors"),
        "latency": ("operations", "latency_slowest", "relays", "latency_unavailable"),
        "retries": ("retry_messages", "retry_attempts"),
        "isolation": ("isolation_producers",),
        "consumers": ("consumer_queues_odd", "consumer_offsets"),
        "delivery": ("delivery_groups",),
    }
    tables = {
        name: rows
        for report, chosen in names.items()
        for name, rows in tables_of(report, CAPTURES, *chosen).items()
    }
    for table in ("operations", "clients"):
        for row in tables[table]:
            row["unanswered"] = sum(row[one] for one in ("no_response", "unknown", "withdrawn"))  # type: ignore[misc]
    shown = json.loads(summary_json(summary, decode.stats))
    messages = engine._store.messages(engine.context.names_of_ports())
    taker = engine._taker_of["isolated-broker-still-used"]
    folds = [fold for fold in taker.folds.values() if isinstance(fold, ProducerFold)]
    producers = [one for fold in folds for one in fold.producers(engine.context)]
    # Several captures in one search are of one cluster, these are not.
    lives = [life for capture in CAPTURES for life in lives_in(capture)]
    return Views(shown, tables, messages, problems, producers, lives)


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
    answers = views.summary["responses"]
    keys, ours = ("code", "response"), ("response_code", "response_name")
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
    assert shown == sums(views.tables["relays"], ("relay", "server_address"), ["sends"])


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


def micros(time: Any) -> int:
    """Return a time of a table in µs since the epoch."""
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def own_sends(life: MessageTrace) -> list[TraceStep]:
    """Return the sends of the producer in a life: what relays made of them is not its own."""
    return [
        step
        for step in life.steps
        if is_send(step.row.request_name) and not step.why.startswith("behind the proxy")
    ]


TRACED = {
    STORED: message_record.STORED,
    LATE: message_record.STORED,
    REFUSED: message_record.REFUSED,
}
"""outcome of an attempt -> event of the send; others have no response, or one that tells little"""


def test_attempts_of_lives(views: Views) -> None:
    """A trace has the attempts of the reports, as far as they were captured.

    Failed connects are inferred from the connections of the input: here a trace has one capture,
    the reports have all. `test_life` compares them within one capture.
    """
    lives = {(life.name, life.topic): life for life in views.lives}
    compared = 0
    for message in views.messages:
        life = lives[message.key, message.last.send.topic]
        steps = [step for step in own_sends(life) if step.row.event != CONNECT_FAILED]
        attempts = [one for one in message.attempts if not one.inferred]
        assert len(steps) == len(attempts), life.name
        stored = sum(step.row.event == message_record.STORED for step in steps)
        if not any(
            one.outcome == STORED_UNCONFIRMED for one in attempts
        ):  # a broker told it, or its proxy
            assert stored == message.chain.copies, life.name
        for attempt, step in zip(attempts, steps, strict=True):
            if attempt.outcome != STORED_UNCONFIRMED:
                expected = TRACED.get(attempt.outcome, message_record.SENT)
                assert step.row.event == expected, (life.name, attempt.outcome)
        compared += 1
    assert compared > 300
    others = lives.keys() - {(one.key, one.last.send.topic) for one in views.messages}
    assert {key for key in others if len(own_sends(lives[key])) > 1} == set()


def test_deliveries_of_lives(views: Views) -> None:
    traced: dict[tuple[object, object], Counter[str]] = {}
    for life in views.lives:
        of_life: dict[str, Counter[str]] = {}
        for step in life.steps:
            group = step.row.consumer_group
            is_delivery = step.row.event == message_record.DELIVERED and group is not None
            if is_delivery and not step.why.startswith("behind the proxy"):
                counts = of_life.setdefault(str(group), Counter(delivered=1))
                counts["deliveries"] += 1
                counts["again"] += step.why.startswith(("redelivered", "duplicate"))
        for group, counts in of_life.items():
            traced.setdefault((life.topic, group), Counter()).update(counts)
    names = ("delivered", "deliveries", "again")
    reported = {
        (row["topic"], row["group"]): [row[name] for name in names]
        for row in views.tables["delivery_groups"]
        if row["delivered"]
    }
    assert reported == {key: [counts[name] for name in names] for key, counts in traced.items()}


def test_outages(views: Views) -> None:
    gone = [one for one in views.problems if one.rule in ("broker-gone", "namesrv-gone")]
    diagnosed = {span for one in gone for span in one.spans}
    reported = [
        (micros(row["first_time"]), row["lasted_us"]) for row in views.tables["latency_unavailable"]
    ]
    assert len(reported) > 20
    assert sorted(reported) == sorted(
        (first // 1000, (last - first) // 1000) for first, last in diagnosed
    )


def test_producers_and_their_isolation_windows(views: Views) -> None:
    """A send without a key, as clients without a strategy make some, is in reports alone."""
    reported = {
        (row["client"], row["group"], micros(row["first_time"])): [
            row[name] for name in ("attempts", "windows", "to_isolated", "strategy")
        ]
        for row in views.tables["isolation_producers"]
        if row["windows"] and row["strategy"] != NO_STRATEGY
    }
    diagnosed = {
        (one.host, one.group, int(one.attempts.begin[0])): [
            len(one.attempts),
            len(one.replay.windows),
            len(one.replay.violations),
            one.verdict.state,
        ]
        for one in views.producers
        if one.verdict.state != NO_STRATEGY
    }
    assert len(reported) > 20
    assert diagnosed == reported


@pytest.mark.parametrize(
    ("table", "column", "shown", "of"),
    [
        (
            "consumer_queues_odd",
            "what",
            "two clients pulled",
            {"queue-shared", "duplicate-client-id"},
        ),
        ("consumer_offsets", "what", "moved by the broker", {"offset-moved", "offset-reset"}),
        ("consumer_offsets", "what", "skipped", {"offset-moved"}),
        ("consumer_offsets", "what", "reset by an administrator", {"offset-reset"}),
        ("isolation_producers", "strategy", OFF, {"isolated-broker-still-used"}),
    ],
)
def test_what_reports_show_as_abnormal_is_diagnosed(
    views: Views, table: str, column: str, shown: str, of: set[str]
) -> None:
    rows = [row for row in views.tables[table] if row[column] == shown]
    groups = {row["group"] for row in rows if row.get("not_followed") != 0}
    assert groups
    diagnosed = {problem.subject.group for problem in views.problems if problem.rule in of}
    assert groups - diagnosed == set()
