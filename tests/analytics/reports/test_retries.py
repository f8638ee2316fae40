"""The retry report: on recorded fault runs what the Java producers logged; on rows, each rule."""

from __future__ import annotations

from collections import defaultdict

import pytest

from replay.fault import AttemptEvent
from tests.analytics.reported import Tables, tables_of
from tests.replay.recorded import ALL_RUNS, SAMPLES, run_of

CAUSES = {
    "fault-kill-5x": "connection reset",
    "fault-kill-4x": "connect refused",
    "fault-proxy-kill-5x": "connection closed",
    "fault-proxy-kill-4x": "connection closed",
    "fault-freeze-5x": "timeout",
    "fault-freeze-4x": "timeout",
    "fault-freeze-detector-5x": "timeout",
    "fault-freeze-plain-5x": "timeout",
    "fault-disk-full-5x": "SERVICE_NOT_AVAILABLE",
    "fault-disk-full-4x": "SERVICE_NOT_AVAILABLE",
    "fault-disk-full-plain-5x": "SERVICE_NOT_AVAILABLE",
    "fault-no-permission-5x": "NO_PERMISSION",
    "fault-no-permission-4x": "NO_PERMISSION",
    "fault-reset-5x": "connection reset",
    "fault-reset-4x": "connection reset",
}
"""Runs in which attempts failed, and as what the packets show it."""
QUIET = set(ALL_RUNS) - set(CAUSES)


@pytest.fixture(scope="module")
def recorded() -> Tables:
    """The report of all recorded fault runs together."""
    files = [str(SAMPLES / f"{name}.pcap") for name in ALL_RUNS]
    return tables_of("retries", files, send_timeout_ms=1500)


def attempts_by_message(tables: Tables) -> dict[object, list[dict[str, object]]]:
    found = defaultdict(list)
    for attempt in sorted(tables["retry_attempts"], key=lambda one: int(str(one["attempt"]))):
        found[attempt["unique_key"]].append(attempt)
    return found


@pytest.mark.parametrize("name", ALL_RUNS)
def test_attempts_are_those_that_java_logged(recorded: Tables, name: str) -> None:
    """Each attempt, its broker and cause; messages that went through at once are not listed."""
    reported = attempts_by_message(recorded)
    failed = 0
    for step in run_of(name).steps:
        if step.kind != "send":
            continue
        attempts = reported.pop(step.unique_key, [])
        logged = [
            update.broker for update in step.updates if update.event is not AttemptEvent.ANSWERED
        ]
        if not attempts:
            assert not logged
            assert not step.error
            continue
        broken = attempts if step.error else attempts[:-1]
        failed += len(broken)
        assert [attempt["attempt"] for attempt in attempts] == [*range(1, len(attempts) + 1)]
        assert {attempt["cause"] for attempt in broken} == {CAUSES[name]}
        if run_of(name).settings.enabled:
            assert [attempt["broker"] for attempt in broken] == logged
        if not step.error:
            last = attempts[-1]
            assert last["outcome"] == "stored"
            assert (last["broker"], last["queue_id"]) == (step.broker, step.queue_id)
        assert {attempt["certain"] for attempt in attempts} == {True}
    assert (failed > 0) == (name in CAUSES)
    run = {step.unique_key for step in run_of(name).steps}
    assert not run & set(reported)


def test_what_is_sent_to_two_topics_is_two_messages() -> None:
    """Java keeps the UNIQ_KEY of what a consumer forwards, and of an object that is sent again."""
    found = tables_of("retries", [str(SAMPLES / "forwarded-5x.pcap")])
    totals = sorted(
        (row["topic"], row["group"], row["messages"], row["attempts"], row["retried"])
        for row in found["retry_totals"]
    )
    assert totals == [
        ("Audit", "forwarders", 8, 8, 0),
        ("Audit", "sample_group", 4, 4, 0),
        ("Orders", "sample_group", 4, 4, 0),
        ("Orders", "sample_group", 8, 8, 0),
    ]
    assert found["retry_messages"] == []


def test_a_batch_counts_with_its_messages() -> None:
    (totals,) = tables_of("retries", [str(SAMPLES / "send-batch-4x.pcap")])["retry_totals"]
    assert (totals["messages"], totals["sends"], totals["attempts"]) == (12, 3, 3)
    assert totals["amplification"] == 1.0


def test_every_logged_call_is_a_message(recorded: Tables) -> None:
    counted = sorted(row["messages"] for row in recorded["retry_totals"])
    assert counted == sorted(
        sum(step.kind == "send" for step in run_of(name).steps) for name in ALL_RUNS
    )


def test_messages_say_what_became_of_them(recorded: Tables) -> None:
    finals = {message["unique_key"]: message["final"] for message in recorded["retry_messages"]}
    for name in ALL_RUNS:
        for step in run_of(name).steps:
            if step.unique_key in finals:
                expected = "may be stored" if step.error else "stored"
                assert finals[step.unique_key] == expected


def test_flows_lead_from_the_broken_broker_to_the_other(recorded: Tables) -> None:
    flows = {
        (flow["cause"], flow["from_broker"], flow["to_broker"]): flow["retries"]
        for flow in recorded["retry_flows"]
    }
    assert flows["SERVICE_NOT_AVAILABLE", "broker-a", "broker-b"] == 18
    assert flows["connect refused", "broker-b", "broker-a"] == 1
    assert flows["connection reset", "broker-b", "broker-a"] == 1
    assert all(start != end for _, start, end in flows)


# other recorded traffic


@pytest.fixture(scope="module")
def others() -> Tables:
    """The report of recorded traffic with other kinds of retries."""
    names = (
        "acl-5x",
        "push-retry-dlq-5x",
        "push-retry-dlq-4x",
        "one-direction-5x",
        "fault-unknown-topic-5x",
    )
    return tables_of("retries", [str(SAMPLES / f"{name}.pcap") for name in names])


def total(tables: Tables, topic: str, column: str) -> int:
    rows = [row for row in tables["retry_totals"] if row["topic"] == topic]
    assert rows
    return sum(int(str(row[column])) for row in rows)


def test_unsigned_and_wrongly_signed_sends_are_retried_without_sense(others: Tables) -> None:
    verdicts = {
        (row["verdict"], row["cause"]): (row["messages"], row["attempts"])
        for row in others["retry_verdicts"]
    }
    assert verdicts == {
        ("retried without sense", "NO_PERMISSION"): (6, 18),
        ("retried without sense", "TOPIC_NOT_EXIST"): (2, 6),
    }
    assert total(others, "SignedTopic", "failed") == 6


def test_consumers_retries_are_counted_apart(others: Tables) -> None:
    """Eight messages, each delivered three times and sent back each time; then to %DLQ%."""
    groups = {one["group"]: one for one in others["consumer_retries"]}
    assert set(groups) == {"push_retry_dlq_5x_group", "push_retry_dlq_4x_group"}
    for one in groups.values():
        counts = [one[name] for name in ("sent_back", "messages", "most_times", "redelivered")]
        assert counts == [24, 8, 3, 16]
        assert (one["refused"], one["unanswered"], one["sent_again"]) == (0, 0, 0)
        assert (one["dead_letters"], one["dead_letters_read"]) == (8, 0)
    assert not any("%" in str(row["topic"]) for row in others["retry_totals"])


def test_answers_that_were_not_captured_are_unknown_not_failed(others: Tables) -> None:
    assert total(others, "HalfTopic", "messages") == 6
    assert total(others, "HalfTopic", "unknown") == 6
    assert total(others, "HalfTopic", "failed") == 0
    assert not [row for row in others["retry_messages"] if row["topic"] == "HalfTopic"]


# what no recorded traffic has


def test_windows_have_each_attempt_once(recorded: Tables) -> None:
    """Against the attempts themselves, and those of messages that needed no look."""
    windows = recorded["retry_over_time"]
    length = windows[0]["window_us"]
    assert isinstance(length, int)
    totals = sum(int(str(row["attempts"])) for row in recorded["retry_totals"])
    assert sum(int(str(row["attempts"])) for row in windows) == totals
    retries: dict[object, int] = defaultdict(int)
    for row in recorded["retry_attempts"]:
        if int(str(row["attempt"])) > 1:
            micros = round(row["attempt_begin"].timestamp() * 1_000_000)  # type: ignore[attr-defined]
            retries[micros - micros % length] += 1
    assert retries
    for row in windows:
        start = round(row["window_start"].timestamp() * 1_000_000)  # type: ignore[attr-defined]
        assert row["retries"] == retries[start]
        first = int(str(row["attempts"])) - retries[start]
        expected = int(str(row["attempts"])) / first if first else None
        assert row["amplification"] == expected
