"""Captured against replayed, and the conditions over it."""

from __future__ import annotations

import pytest

from replay.run.compare import MAX_EXAMPLES, Comparison, ConditionError, captured_side, condition_of
from replay.run.journal_rows import Result

from ..replayed import captured, seen
from .test_journal import outcome


def compared(*rows: object) -> Comparison:
    found = Comparison()
    for row in rows:
        found.add(row)  # type: ignore[arg-type]
    return found


STORED = {"captured_result": Result.stored, "captured_code": 0}
GOOD = outcome(0, Result.stored, code=0, latency_us=2000, captured_latency_us=1000, **STORED)
BROKEN = outcome(1, Result.failed, code=14, reason="disk full", latency_us=9000, **STORED)
HEALED = outcome(2, code=0, captured_result=Result.failed, captured_code=2, captured_attempts=3)
LOST = outcome(3, Result.unknown, reason="no response in 3000 ms", **STORED)
AGAIN = outcome(4, code=0, maybe_twice=True, differences=["queue 1 → 2"], late_us=70_000, **STORED)


def test_what_came_out_otherwise_is_counted_and_named() -> None:
    found = compared(GOOD, BROKEN, HEALED, LOST, AGAIN)
    assert (found.steps, found.messages) == (5, 5)
    assert (found.failures, found.captured_failures) == (2, 1)
    assert (found.new_failures, found.fixed, found.maybe_twice, found.moved) == (2, 1, 1, 1)
    assert found.outcomes["SUCCESS", "SUCCESS"] == 2
    assert found.outcomes["SUCCESS", "SERVICE_NOT_AVAILABLE"] == 1
    assert found.outcomes["SYSTEM_BUSY", "SUCCESS"] == 1
    assert found.outcomes["SUCCESS", "no response"] == 1
    (first, second) = found.examples["new_failures"]
    assert (first.unique_key, first.replayed) == ("K1", "SERVICE_NOT_AVAILABLE: disk full")
    assert second.replayed == "no response: no response in 3000 ms"
    assert [one.unique_key for one in found.examples["fixed"]] == ["K2"]
    assert [one.unique_key for one in found.examples["maybe_twice"]] == ["K4"]


def test_latencies_stand_side_by_side_for_each_broker() -> None:
    rows = [
        outcome(n, code=0, latency_us=n, captured_latency_us=2 * n, broker="new", **STORED)
        for n in range(1, 101)
    ]
    for row in rows:
        row.captured_broker = "old"
    found = compared(*rows)
    assert found.replayed_latency.percentile(50) == 50
    assert found.captured_latency.percentile(50) == 100
    assert set(found.brokers) == {("old", "new")}
    assert found.brokers["old", "new"].replayed_messages == 100


def test_examples_are_bounded() -> None:
    found = compared(*(outcome(n, Result.failed, **STORED) for n in range(100)))
    assert len(found.examples["new_failures"]) == MAX_EXAMPLES
    assert found.new_failures == 100


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("new-failures", True),
        ("new-failures>2", False),
        ("new_failures >= 2", True),
        ("failures>39%", True),
        ("failures>40%", False),
        ("failures>1.5x", True),
        ("failures>2x", False),
        ("fixed", True),
        ("maybe-twice!=1", False),
        ("moved==1", True),
        ("p99>8ms", True),
        ("p50>2.1ms", False),
        ("p50>1.9x", True),
        ("max>9s", False),
        ("late-max>50ms", True),
        ("late-p50>50ms", False),
        ("attempts<7", True),
        ("messages=5", True),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    found = compared(GOOD, BROKEN, HEALED, LOST, AGAIN)
    assert condition_of(text).holds(found) is holds


def test_nothing_measured_holds_nothing() -> None:
    empty = Comparison()
    for text in ("p99>0us", "p99>2x", "late-p99>0us", "new-failures", "failures>0%"):
        assert not condition_of(text).holds(empty)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a valid condition"),
        ("errors", "the figures are"),
        ("p99", "compare it with a duration"),
        ("p99>50", "is a duration"),
        ("p99>5%", "is a duration"),
        ("failures>50ms", "is a number"),
        ("new-failures>2x", "is a number"),
        ("late-p99>2x", "is a duration"),
        ("failures>>1", "not a valid condition"),
    ],
)
def test_what_is_no_condition_says_what_would_be(text: str, says: str) -> None:
    with pytest.raises(ConditionError, match=says):
        condition_of(text)


def test_the_captured_outcome_is_told_by_answer_and_flag() -> None:
    one = captured(seen())
    assert str(captured_side(one)) == "no response"
    assert captured_side(one).is_failed
    one.response.status = "oneway"
    assert str(captured_side(one)) == "oneway"
    assert not captured_side(one).is_failed
    one.response.status, one.response.code = "answered", 12
    assert str(captured_side(one)) == "FLUSH_SLAVE_TIMEOUT"
    assert not captured_side(one).is_failed
