"""Answers are remembered by the interval, whatever the order in which they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis.silences import FIRST_INTERVAL, MAX_INTERVALS, ResponseTimes

times = st.lists(st.integers(0, 20 * FIRST_INTERVAL), max_size=30)


@given(times, st.integers(1, 30))
def test_answers_together_are_as_one_by_one(answers: list[int], size: int) -> None:
    together, one_by_one = ResponseTimes(), ResponseTimes()
    for at in range(0, len(answers), size):
        together.add(answers[at : at + size])
    for time in reversed(answers):
        one_by_one.add([time])
    expected: dict[int, tuple[int, int]] = {}
    for time in answers:
        first, last = expected.get(time // FIRST_INTERVAL, (time, time))
        expected[time // FIRST_INTERVAL] = min(first, time), max(last, time)
    assert together.times() == one_by_one.times() == sorted(expected.values())


def test_intervals_grow_where_there_are_too_many() -> None:
    every = [number * FIRST_INTERVAL for number in range(MAX_INTERVALS + 2)]
    together, apart = ResponseTimes(), ResponseTimes()
    together.add(every)
    for time in every:
        apart.add([time])
    assert together.times() == apart.times()
    assert len(together.times()) == MAX_INTERVALS // 2 + 1
