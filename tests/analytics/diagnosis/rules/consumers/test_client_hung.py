"""client-hung: consumers whose timer makes up for what it missed, and those that are only quiet."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from analytics.diagnosis.problem import Confidence, ProblemSeverity, ProblemState, Subject
from analytics.diagnosis.rules.consumers import client_hung
from analytics.diagnosis.rules.consumers.client_hung import RULE
from dissectors.grpc.names import OK
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_facts import Stall, stall_fact
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    START,
    connection,
    exchange,
    oneway,
    problems,
    problems_of_sample,
    same_in_any_order,
    sample,
)

PULL = int(RequestCode.PULL_MESSAGE)
COMMIT = int(RequestCode.UPDATE_CONSUMER_OFFSET)
HEARTBEAT = int(RequestCode.HEART_BEAT)
ALIVE = [exchange(0, HEARTBEAT, facts=["client=10.0.0.9@7"])]


def rounds(*seconds: float) -> Iterable[ExchangeRecord]:
    """Return rounds of stored offsets of two queues."""
    for second in seconds:
        for queue in (0, 1):
            at = second * 1000 + queue
            yield oneway(at, COMMIT, group="cg", topic="T", queue_id=queue)


def pulls(*seconds: float, answered_ms: float = 400) -> Iterable[ExchangeRecord]:
    for second in seconds:
        yield exchange(second * 1000, PULL, 19, answered_ms, group="cg", topic="T", queue_id=0)


STOPPED = [
    *ALIVE,
    *pulls(4, 9, 14, 19.9),
    *rounds(10, 15, 20),
    # stopped after 20 s, and the answer of the pull at 19.9 s came at 20.3 s
    *pulls(36),
    *rounds(36, 36.002, 36.004, 40, 45),
]


def test_a_process_that_was_stopped_and_went_on() -> None:
    (one,) = problems(RULE, STOPPED, [connection(0, 60_000)])
    assert one.title == (
        "consumer 10.0.0.9@7 of group cg hung: it sent no requests from 11:07:00 to"
        " 11:07:16 UTC (15.9 s), then committed all overdue offsets at once"
    )
    assert (one.severity, one.confidence) == (ProblemSeverity.WARNING, Confidence.CERTAIN)
    assert one.subject == Subject(client="10.0.0.9@7", group="cg")
    assert (one.count, one.state) == (1, ProblemState.OVER)
    assert [evidence.time - START for evidence in one.evidence] == [20_000_000_000, 36_000_000_000]
    assert same_in_any_order(RULE, STOPPED, [connection(0, 60_000)])


def test_without_an_answer_the_network_may_have_been_cut() -> None:
    rows = [*ALIVE, *rounds(10, 15, 20, 36, 36.002, 36.004, 40)]
    (one,) = problems(RULE, rows, [connection(0, 60_000)])
    assert one.confidence is Confidence.LIKELY
    assert one.reason is not None
    assert "network" in one.reason


def test_packets_that_nobody_acknowledged_are_told_of_elsewhere() -> None:
    stall = stall_fact(Stall("server", START + 21_000_000_000, START + 35_000_000_000, 5))
    lost = connection(0, 60_000, facts=[stall])
    assert problems(RULE, STOPPED, [lost]) == []


def test_a_timer_that_waits_for_a_broker_does_not_stand_still() -> None:
    """The timer of a consumer sends heartbeats to all brokers, and waits 15 s for each."""
    hung = {"server_address": "10.0.0.3:10911", "client_address": "10.0.0.9:40001", "end": "closed"}
    alive = exchange(0, HEARTBEAT, facts=["client=10.0.0.9@7"], **hung)
    beat = exchange(20_050, HEARTBEAT, None, facts=["client=10.0.0.9@7"], **hung)
    assert problems(RULE, [*STOPPED, alive, beat]) == []
    late = exchange(20_050, HEARTBEAT, 0, 15_900, facts=["client=10.0.0.9@7"], **hung)
    assert problems(RULE, [*STOPPED, alive, late]) == []
    early = exchange(10_050, HEARTBEAT, None, facts=["client=10.0.0.9@7"], **hung)
    assert len(problems(RULE, [*STOPPED, alive, early])) == 1


def test_a_rhythm_that_is_kept_is_none() -> None:
    idle = [*ALIVE, *rounds(10, 15, 20, 25, 30, 35, 40)]
    assert problems(RULE, idle) == []
    late = [*ALIVE, *pulls(4), *rounds(10, 15, 22.5, 22.501, 25)]
    assert problems(RULE, late) == []
    handed_over = [*ALIVE, *pulls(4), *rounds(10, 15, 15.1, 20)]
    assert problems(RULE, handed_over) == []


def test_another_connection_that_asks_shows_that_it_lives() -> None:
    other = {"client_address": "10.0.0.9:40001", "server_address": "10.0.0.3:10911"}
    beat = exchange(0, HEARTBEAT, facts=["client=10.0.0.9@7"], **other)
    beside = [exchange(1000 * at, PULL, 19, group="cg", topic="T", **other) for at in range(60)]
    assert problems(RULE, [*STOPPED, beat, *beside]) == []
    assert len(problems(RULE, [*STOPPED, *beside])) == 1  # of another client


def test_silence_alone_must_be_long() -> None:
    rows = [*ALIVE, *pulls(4, 9, 14, 19.9), *rounds(10, 15, 20, 50)]
    assert problems(RULE, rows) == []
    rows = [*ALIVE, *pulls(4, 9, 14, 19.9), *rounds(10, 15, 20, 62, 67)]
    (one,) = problems(RULE, rows)
    assert (one.confidence, one.reason) == (Confidence.LIKELY, "only its silence is visible")


def test_a_client_that_is_silent_to_the_end() -> None:
    end = exchange(80_000, HEARTBEAT, client_address="10.0.0.8:1")
    rows = [*ALIVE, *pulls(4, 9, 14, 19.9), *rounds(10, 15, 20), end]
    (one,) = problems(RULE, rows, [connection(0, 80_000, end="open", ended_by=None)])
    assert (one.confidence, one.state) == (Confidence.LIKELY, ProblemState.GOING_ON)
    assert problems(RULE, rows, [connection(0, 20_500)]) == []  # it left


def test_a_broker_takes_it_for_dead_after_two_minutes() -> None:
    more = rounds(160, 160.002, 165)
    rows = [*ALIVE, *pulls(4, 9, 14, 19.9), *rounds(10, 15, 20), *more]
    ended = connection(0, 140_000, ended_by="server")
    (one,) = problems(RULE, rows, [ended])
    assert one.details[-1] == "a broker considered it dead at 11:09:00 UTC and ended its connection"


def test_a_pull_consumer_stores_offsets_when_it_wants() -> None:
    facts = ["client=10.0.0.9@7", "consumer=CONSUME_ACTIVELY CLUSTERING cg"]
    assert problems(RULE, [exchange(0, HEARTBEAT, facts=facts), *STOPPED[1:]]) == []


def call(at_s: float, name: str, latency_ms: float = 5, answer: int | None = OK) -> ExchangeRecord:
    return exchange(
        at_s * 1000,
        0,
        answer,
        latency_ms,
        request_code=None,
        request_name=name,
        server_address="10.0.0.8:8081",
        group="cg",
        facts=["client=host@7"],
    )


def calling(until: float, first: float = 0) -> list[ExchangeRecord]:
    """Calls of a push consumer by its timers."""
    beats = [call(at, "Heartbeat") for at in range(int(first), int(until), 10)]
    return [*beats, *(call(at + 1.3, "QueryAssignment") for at in range(int(first), int(until), 5))]


def test_a_consumer_by_grpc_that_was_stopped() -> None:
    (one,) = problems_of_sample(RULE, "grpc-client-hung-5x.pcap.gz")
    assert one.title.endswith(
        " of group still_pushers hung: it sent no requests from 20:55:54 to 20:56:27 UTC (33.6 s)"
    )
    assert (one.state, one.confidence) == (ProblemState.OVER, Confidence.LIKELY)
    assert one.details == ["responses reached its host meanwhile: the network worked"]
    rows = sample("grpc-client-hung-5x.pcap.gz")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def test_a_live_consumer_by_grpc_makes_calls_by_its_timers() -> None:
    proxy = connection(0, 90_000, server_address="10.0.0.8:8081")
    assert problems(RULE, calling(90), [proxy]) == []
    stopped = [*calling(30), *calling(90, 52)]
    assert len(problems(RULE, stopped, [proxy])) == 1
    beats = [row for row in stopped if row.request_name == "Heartbeat"]
    assert [one.count for one in problems(RULE, beats, [proxy])] == [1], "20 s to 52 s"
    short = [call(at, "Heartbeat") for at in (0, 10, 20, 44, 54)]
    assert problems(RULE, short, [proxy]) == [], "one Heartbeat may be late"


def test_the_end_of_a_capture_of_weeks_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*ALIVE, *pulls(*range(4, 250, 5)), *rounds(*range(5, 250, 5))]
    end = [exchange(400_000, HEARTBEAT, client_address="10.0.0.8:1", facts=["client=10.0.0.8@1"])]
    (one,) = problems(RULE, [*rows, *end])
    assert one.state is not ProblemState.OVER
    monkeypatch.setattr(client_hung, "MAX_CHUNKS", 1)
    assert problems(RULE, [*rows, *end]) == []
