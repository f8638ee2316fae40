"""The retry report: on recorded fault runs what the Java producers logged; on rows, each rule."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from dissectors.remoting.code_sets import FETCHES
from replay.fault import AttemptEvent
from tests.analytics.reported import Tables, tables_from, tables_of
from tests.analytics.rows import START, conversations, exchanges, moment, report_input, row
from tests.replay.recorded import ALL_RUNS, SAMPLES, run_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAUSES = {
    "fault-kill-5x": "connection reset",
    "fault-kill-4x": "connect refused",
    "fault-proxy-kill-5x": "connection closed",
    "fault-proxy-kill-4x": "connection closed",
    "fault-freeze-5x": "no answer in time",
    "fault-freeze-4x": "no answer in time",
    "fault-freeze-detector-5x": "no answer in time",
    "fault-freeze-plain-5x": "no answer in time",
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
def recorded(spark: SparkSession) -> Tables:
    """The report of all recorded fault runs together."""
    files = [str(SAMPLES / f"{name}.pcap") for name in ALL_RUNS]
    return tables_of(spark, "retries", files, send_timeout_ms=1500)


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
def others(spark: SparkSession) -> Tables:
    """The report of recorded traffic with other kinds of retries."""
    names = (
        "acl-5x",
        "push-retry-dlq-5x",
        "push-retry-dlq-4x",
        "one-direction-5x",
        "fault-unknown-topic-5x",
    )
    return tables_of(spark, "retries", [str(SAMPLES / f"{name}.pcap") for name in names])


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


def key(number: int, born_us: int = 0) -> str:
    """Return a UNIQ_KEY of process 7 that was born `born_us` after START."""
    of_month = START - datetime(START.year, START.month, 1, tzinfo=UTC)
    milliseconds = of_month // timedelta(milliseconds=1) + born_us // 1000
    return f"0A00000900070A0B0C0D{milliseconds:08X}{number:04X}"


def sent(number: int, at: int, broker: str = "a", **values: object) -> dict[str, object]:
    """Return a send of message `number` at a broker."""
    given: dict[str, object] = {
        "unique_key": key(number, number * 10_000),
        "responder": f"10.0.0.{1 + 'abc'.index(broker)}:10911",
        "broker_name": f"broker-{broker}",
        "opaque": at,
        "offset_msg_id": f"{broker}-{at}",
        "source": "one.pcap",
        "conversation": "abc".index(broker),
    }
    return row(number * 10_000 + at, **{**given, **values})


REFUSED = {"response_code": 2, "response_name": "SYSTEM_BUSY", "offset_msg_id": None}
LOST = {"latency_us": None, "end": "reset", "offset_msg_id": None}
ROWS = [
    # every broker is asked by its name more often than by another's
    *(sent(100 + n, 0, "abc"[n % 3]) for n in range(30)),
    # 1: the answer came when the next attempt had begun: stored twice
    sent(1, 1000, latency_us=5000),
    sent(1, 4000, "b"),
    # 2: an asynchronous retry: the other broker gets the first one's name and queue
    sent(2, 1000, **LOST),
    sent(2, 3000, "b", broker_name="broker-a", queue_id=7, **REFUSED),
    # 3: seen by two captures, once
    sent(3, 1000),
    sent(3, 1050, source="two.pcap", capture="two.pcap", opaque=1000),
    # 4: seen by two captures, an attempt in each
    sent(4, 1000, **REFUSED),
    sent(4, 3000, "b", source="two.pcap", capture="two.pcap"),
    # 5: a client that is too old to retry this code
    sent(5, 1000, version=395, version_name="V4_9_1", **REFUSED),
    # 6: an attempt after the time is over
    sent(6, 1000, **REFUSED),
    sent(6, 4_000_000, "b"),
    # 7: a connect to c was refused before the request
    sent(7, 3000, "b"),
    # 8: no answer when the capture ended
    sent(8, 1000, latency_us=None, end="open", offset_msg_id=None),
    # 9: a key of another form, refused
    sent(9, 1000, unique_key="my own", **REFUSED),
    # no key at all
    sent(10, 1000, unique_key=None),
    # a producer of another group, sent to the retry topic by a consumer
    sent(11, 1000, topic="%RETRY%readers", group="CLIENT_INNER_PRODUCER"),
]


def connection(number: int, **values: object) -> dict[str, object]:
    return {
        "source": "one.pcap",
        "capture": "test.pcap",
        "conversation": number,
        "client": "10.0.0.9:40000",
        "server": f"10.0.0.{1 + number}:10911",
        "start": "midstream",
        "end": "reset",
        "ended_by": "server",
        "start_time": moment(0),
        "end_time": moment(2_000_000),
        "directions": "both",
        "gaps": 0,
        **values,
    }


CONNECTIONS = [
    *(connection(number, end="open") for number in (1, 2)),
    connection(0),
    connection(
        8,
        server="10.0.0.3:10911",
        start="syn",
        end="refused",
        start_time=moment(70_500),
        end_time=moment(70_600),
    ),
]


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> Tables:
    """The report of rows made up, with connections."""
    from analytics.report import ReportInput

    return tables_from(
        "retries", ReportInput(exchanges(spark, ROWS), conversations(spark, CONNECTIONS))
    )


def message(tables: Tables, number: int) -> dict[str, object]:
    (found,) = (
        one for one in tables["retry_messages"] if one["unique_key"] == key(number, number * 10_000)
    )
    return found


def test_a_late_answer_makes_a_copy(made: Tables) -> None:
    found = message(made, 1)
    assert found["causes"] == "stored too late → stored"
    assert (found["final"], found["copies"], found["late"]) == ("stored", 2, 1)


def test_an_asynchronous_retry_brings_the_first_brokers_queue(made: Tables) -> None:
    found = message(made, 2)
    assert found["brokers"] == "broker-a → broker-b"
    assert (found["final"], found["unsure"]) == ("may be stored", 1)
    stale = [one for one in made["retry_attempts"] if one["stale_queue"]]
    assert [(one["unique_key"], one["attempt"], one["queue_id"]) for one in stale] == [
        (found["unique_key"], 2, 7)
    ]
    flow = {"from_broker": "broker-a", "to_broker": "broker-b", "cause": "connection reset"}
    (seen,) = (one for one in made["retry_flows"] if flow.items() <= one.items())
    assert (seen["retries"], seen["stale_queue"], seen["stored"]) == (1, 1, 0)


def test_a_request_in_two_captures_is_one_attempt(made: Tables) -> None:
    assert key(3, 30_000) not in {one["unique_key"] for one in made["retry_messages"]}
    found = message(made, 4)
    assert (found["attempts"], found["causes"]) == (2, "SYSTEM_BUSY → stored")


def test_a_code_that_only_newer_clients_retry(made: Tables) -> None:
    assert str(message(made, 5)["verdict"]).startswith("not retried: only newer clients")


def test_an_attempt_after_the_time_budget(made: Tables) -> None:
    assert message(made, 6)["over_budget"] == 1
    late = [one["attempt"] for one in made["retry_attempts"] if one["after_budget"]]
    assert late == [2]


def test_a_refused_connect_is_an_attempt_without_request(made: Tables) -> None:
    found = message(made, 7)
    assert (found["brokers"], found["causes"]) == (
        "broker-c → broker-b",
        "connect refused → stored",
    )
    first = next(one for one in made["retry_attempts"] if one["inferred"])
    assert (first["conversation"], first["request_packet"]) == (8, None)


def test_totals_count_every_message_once(made: Tables) -> None:
    by_process = {one["process"]: one for one in made["retry_totals"]}
    known = by_process["7-0A0B0C0D"]
    assert (known["messages"], known["attempts"]) == (38, 43)
    assert (known["retried"], known["failed"], known["maybe"]) == (5, 1, 1)
    assert (known["unknown"], known["duplicates"], known["copies"]) == (1, 1, 1)
    assert (known["over_budget"], known["stale_queue"], known["unsure"]) == (1, 1, 1)
    assert known["amplification"] == pytest.approx(43 / 38)
    own = by_process[None]
    assert (own["messages"], own["attempts"], own["failed"]) == (2, 2, 1)


def test_what_consumers_send_again_is_theirs(made: Tables) -> None:
    (only,) = made["consumer_retries"]
    assert (only["group"], only["sent_again"], only["sent_back"]) == ("readers", 1, 0)


def test_dead_letters_are_told_by_how_often_a_message_was_sent_back(spark: SparkSession) -> None:
    """A message may be delivered again twice; then at once; then of one that had no such limit."""

    def back(key: str, at: int, limit: int | None, code: int = 0) -> dict[str, object]:
        return row(
            at,
            request_code=36,
            request_name="CONSUMER_SEND_MSG_BACK",
            response_code=code,
            group="readers",
            unique_key=key,
            max_reconsume_times=limit,
        )

    pulled = {"request_code": 11, "request_name": "PULL_MESSAGE", "message_count": 3}
    rows = [
        *(back("twice", at, 2) for at in (0, 1)),
        *(back("thrice", at, 2) for at in (0, 1, 2)),
        *(back("refused", at, 2, code=1 if at else 0) for at in (0, 1, 2)),
        back("at once", 0, 0),
        *(back("unlimited", at, None) for at in range(20)),
        row(5, topic="%DLQ%readers", group="tools", **pulled),
        row(6, topic="%DLQ%readers", group="CLIENT_INNER_PRODUCER"),
    ]
    tables = tables_from("retries", report_input(spark, rows))
    found = {
        one["group"]: (one["dead_letters"], one["dead_letters_read"])
        for one in tables["consumer_retries"]
    }
    assert found == {"readers": (3, 0), "tools": (0, 3)}


def test_every_way_to_fetch_counts_as_a_delivery(spark: SparkSession) -> None:
    rows = [
        row(at, request_code=code, topic="%RETRY%readers", group="readers", message_count=2)
        for at, code in enumerate(sorted(FETCHES))
    ]
    (one,) = tables_from("retries", report_input(spark, rows))["consumer_retries"]
    assert one["redelivered"] == 2 * len(rows) == 8


def test_remarks_say_what_a_reader_must_know(made: Tables) -> None:
    from analytics.reports.retries import remarks

    said = " ".join(remarks(made))
    assert "Of 1 messages the capture does not show" in said
    assert "1 copies too many" in said
    assert "1 attempts are inferred" in said
    assert "1 attempts without an answer came before a retry" in said
    assert "queue of another one" in said
    assert remarks({}) == []


def test_without_connections_nothing_is_inferred_and_nothing_is_certain(
    spark: SparkSession,
) -> None:
    tables = tables_from("retries", report_input(spark, ROWS))
    assert message(tables, 2)["causes"] == "connection reset → SYSTEM_BUSY"
    reset = [one for one in tables["retry_attempts"] if one["outcome"] == "connection reset"]
    assert [one["certain"] for one in reset] == [False]
    assert not [one for one in tables["retry_attempts"] if one["inferred"]]


def test_attempts_that_our_own_producer_logged(spark: SparkSession) -> None:
    """A row an attempt without packets: one that could not connect has no address of its own."""
    own = {"request_packet": None, "response_packet": None, "source": "log", "capture": "-"}
    rows = [
        sent(1, 1000, **own, **{**LOST, "end": None}, requester="", opaque=0, remark="refused"),
        sent(1, 1500, "c", **own, **{**LOST, "end": "open"}),
        sent(1, 3000, "b", **own),
        sent(2, 1000, **own),
    ]
    tables = tables_from("retries", report_input(spark, rows))
    found = message(tables, 1)
    assert found["causes"] == "not sent → no answer in time → stored"
    assert found["client"] == "10.0.0.9"
    assert {one["certain"] for one in tables["retry_attempts"]} == {True}
    (counts,) = tables["retry_totals"]
    assert (counts["messages"], counts["attempts"], counts["unknown"]) == (2, 4, 0)
