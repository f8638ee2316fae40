"""The fault strategy replayed over attempts: windows, attempts at isolated brokers, the verdict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics.isolation.producer_attempts import Coded, ProducerAttempts
from analytics.isolation.strategy_replay import (
    ALL_ISOLATED,
    BROKEN,
    EDGE,
    OFF,
    ON,
    OTHER_GENERATION,
    REASONS,
    UNDETERMINED,
    Replay,
    replayed,
    verdict_of,
)
from analytics.sends import attempts as words
from replay.fault import GENERATIONS, AttemptEvent, FaultSettings, FaultStrategy

BASE = 1_795_000_000_000_000
MS, SECOND = 1000, 1_000_000
Made = tuple[int, str, str, int]
"""An attempt: begin (µs after BASE), broker, outcome, µs that it took."""


def producer_of(made: list[Made], last: list[str | None] | None = None) -> ProducerAttempts:
    """Return a producer of one topic with these attempts."""
    rows = sorted(made, key=lambda one: one[0])
    begin = np.array([BASE + at for at, _, _, _ in rows], dtype=np.int64)
    took = np.array([-1 if outcome == words.UNKNOWN else us for _, _, outcome, us in rows])
    return ProducerAttempts(
        topic=Coded.of(["T"] * len(rows)),
        broker=Coded.of([broker for _, broker, _, _ in rows]),
        last_broker=Coded.of(last or [None] * len(rows)),
        outcome=Coded.of([outcome for _, _, outcome, _ in rows]),
        cause=Coded.of([outcome for _, _, outcome, _ in rows]),
        begin=begin,
        end=np.where(took < 0, -1, begin + took).astype(np.int64),
    )


def windows(made: list[Made], generation: str) -> list[tuple[str, int, int, str]]:
    """Return broker, start and end (ms after BASE) and what ended each window."""
    found = replayed(producer_of(made), FaultSettings(generation)).windows
    return [
        (one.broker, (one.start - BASE) // MS, (one.end - BASE) // MS, one.ended_by)
        for one in found
    ]


def stored(at_ms: int, broker: str = "a", took_ms: int = 2) -> Made:
    return at_ms * MS, broker, words.STORED, took_ms * MS


def refused(at_ms: int, broker: str = "a") -> Made:
    return at_ms * MS, broker, words.REFUSED, 5 * MS


def test_a_failure_isolates_for_the_time_of_the_generation() -> None:
    made = [stored(0), stored(1, "b"), refused(10)]
    assert windows(made, "5.1") == [("a", 15, 10_015, "time")]
    assert windows(made, "4.8") == [("a", 15, 600_015, "time")]


def test_a_slow_answer_isolates_by_its_latency() -> None:
    made = [stored(0, took_ms=700), stored(5000, took_ms=549)]
    assert windows(made, "5.1") == [("a", 700, 2700, "time")]
    assert windows(made, "4.8") == [("a", 700, 5549, "response")]


def test_a_fast_answer_ends_an_isolation_before_5_1_4_only() -> None:
    made = [refused(10), stored(100)]
    assert windows(made, "4.8") == [("a", 15, 102, "response")]
    assert windows(made, "5.1") == [("a", 15, 10_015, "time")]


def test_failures_meanwhile_prolong_a_window_and_are_counted() -> None:
    made = [refused(10), refused(5000), refused(30_000)]
    (first, second) = replayed(producer_of(made), FaultSettings("5.1")).windows
    assert ((first.end - first.start) // MS, first.events) == (14_990, 2)
    assert (second.start - BASE) // MS == 30_005


def test_what_the_capture_does_not_show_changes_nothing() -> None:
    assert windows([(0, "a", words.UNKNOWN, 0), stored(9)], "5.1") == []
    assert windows([(0, "a", words.ONEWAY, 0)], "4.8") == []


def test_attempts_at_an_isolated_broker_and_why() -> None:
    made = [stored(0), stored(1, "b"), refused(10), stored(17), stored(500), stored(10_010)]
    found = replayed(producer_of(made), FaultSettings("5.1"))
    assert [REASONS[why] for why in found.violations.why] == [EDGE, BROKEN, EDGE]
    assert found.violations.attempt.tolist() == [3, 4, 5]
    assert found.broken == 1
    alone = replayed(producer_of([refused(10), stored(500)]), FaultSettings("5.1"))
    assert [REASONS[why] for why in alone.violations.why] == [ALL_ISOLATED]
    both = [refused(10), refused(11, "b"), stored(500)]
    assert replayed(producer_of(both), FaultSettings("5.1")).broken == 0


def round_robin(count: int, off: bool = True) -> list[Made]:
    """Return sends by turns to a and b, a refused at first; without strategy, or with it."""
    made = [stored(0), stored(1, "b"), refused(10)]
    made += [stored(100 + 50 * n, "b" if n % 2 or not off else "a") for n in range(count)]
    return made


def judged(made: list[Made], generation: str = "5.1", language: str = "JAVA") -> str:
    producer = producer_of(made)
    every = {name: replayed(producer, FaultSettings(name)) for name in GENERATIONS}
    return verdict_of(every[generation], every.items(), language).state


def test_the_verdict_is_by_what_the_client_did() -> None:
    assert judged(round_robin(20)) == OFF
    assert judged(round_robin(20, off=False)) == ON
    assert judged(round_robin(3, off=False)) == UNDETERMINED
    assert judged([stored(n, "ab"[n % 2]) for n in range(50)]) == UNDETERMINED
    assert judged(round_robin(20), language="GO") == "none"


def test_a_client_that_follows_another_generation_is_found() -> None:
    """It comes back after 10 s, which the table of the generation that it says does not allow."""
    made = [stored(0), stored(1, "b"), refused(10)]
    made += [stored(100 + 500 * n, "b") for n in range(19)]
    back = [(10_100 * MS + 50 * MS * n, "ab"[n % 2], words.UNKNOWN, 0) for n in range(40)]
    assert judged([*made, *back], "5.1") == ON
    assert judged([*made, *back], "4.8") == OTHER_GENERATION


def test_what_the_user_knows_needs_no_judgement() -> None:
    assert verdict_of(Replay(FaultSettings()), (), None, said=True).state == ON
    assert verdict_of(Replay(FaultSettings()), (), None, said=False).state == OFF


attempts_made = st.lists(
    st.tuples(
        st.integers(0, 40_000_000),
        st.sampled_from("abc"),
        st.sampled_from(
            [words.STORED, words.STORED, words.STORED, words.REFUSED, words.RESET, words.UNKNOWN]
        ),
        st.integers(1, 4_000_000),
    ),
    min_size=1,
    max_size=30,
    unique_by=lambda one: one[0],
)


@pytest.mark.slow
@pytest.mark.parametrize("generation", GENERATIONS)
@given(made=attempts_made)
def test_only_what_matters_is_replayed(generation: str, made: list[Made]) -> None:
    """Every attempt told to the strategy gives the same windows as those that may change one."""
    settings = FaultSettings(generation)
    producer = producer_of(made)
    strategy = FaultStrategy(settings)
    expected: list[list[object]] = []
    by_end = [
        index for index in np.argsort(producer.end, kind="stable") if producer.end[index] >= 0
    ]
    for index in by_end:
        broker, now = producer.broker.text(index), int(producer.end[index])
        event = {words.STORED: AttemptEvent.ANSWERED, words.REFUSED: AttemptEvent.BROKER_ERROR}.get(
            producer.outcome.text(index), AttemptEvent.TRANSPORT_ERROR
        )
        before = strategy.isolated_until(broker)
        strategy.report(broker, event, (now - int(producer.begin[index])) // MS, now // MS)
        after = strategy.isolated_until(broker)
        mine = [one for one in expected if one[0] == broker]
        if after > now // MS and before <= now // MS:
            expected.append([broker, now // MS, after])
        elif before > now // MS:
            mine[-1][2] = after
    found = [
        [one.broker, one.start // MS, one.end // MS] for one in replayed(producer, settings).windows
    ]
    assert found == expected


@pytest.mark.parametrize("generation", GENERATIONS)
@given(made=attempts_made)
@example(made=[(1, "b", "refused", 1), (0, "a", "refused", 1), (2, "a", "stored", 1)])
def test_each_attempt_at_an_isolated_broker_is_judged_as_if_alone(
    generation: str, made: list[Made]
) -> None:
    """Asking once for all attempts between two changes gives what asking for each does."""
    settings = FaultSettings(generation)
    producer = producer_of(made)
    strategy = FaultStrategy(settings)
    found = replayed(producer, settings)
    judged_as = dict(zip(found.violations.attempt.tolist(), found.violations.why, strict=True))
    reports = sorted(
        (int(producer.end[index]), index)
        for index in range(len(producer))
        if producer.end[index] >= 0
    )
    for index in range(len(producer)):
        begin = int(producer.begin[index])
        while reports and reports[0][0] <= begin:
            end, told = reports.pop(0)
            event = {
                words.STORED: AttemptEvent.ANSWERED,
                words.REFUSED: AttemptEvent.BROKER_ERROR,
            }.get(producer.outcome.text(told), AttemptEvent.TRANSPORT_ERROR)
            took = (end - int(producer.begin[told])) // MS
            strategy.report(producer.broker.text(told), event, took, end // MS)
        broker = producer.broker.text(index)
        if index not in judged_as or REASONS[judged_as[index]] == EDGE:
            assert index in judged_as or strategy.isolated_until(broker) <= begin // MS
            continue
        allowed, _ = strategy.allowed(set(producer.broker.names), None, begin // MS)
        assert (broker in allowed) == (REASONS[judged_as[index]] == ALL_ISOLATED)
