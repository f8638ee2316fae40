"""Due times."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.plan.pace import Pace, PaceError, PaceOptions, Rate, duration_of, rate_of, speed_of

from ..replayed import MS, SECOND

TIMES = [5 * SECOND, 5 * SECOND + 10 * MS, 65 * SECOND, 64 * SECOND, 66 * SECOND]


def dues(options: PaceOptions, times: list[int] = TIMES) -> list[int]:
    pace = Pace(options)
    return [pace.due(time) for time in times]


def test_the_captured_pace_begins_at_once_and_never_goes_back() -> None:
    expected = [0, 10 * MS, 60 * SECOND, 60 * SECOND, 61 * SECOND]
    assert dues(PaceOptions()) == expected
    assert dues(PaceOptions(speed=Fraction(2))) == [due // 2 for due in expected]


def test_long_gaps_are_cut_before_the_speed_counts() -> None:
    options = PaceOptions(max_gap=SECOND, speed=Fraction(1, 2))
    assert dues(options) == [0, 20 * MS, 2020 * MS, 2020 * MS, 4020 * MS]


def test_a_rate_is_of_messages() -> None:
    pace = Pace(PaceOptions(rate=Rate(Fraction(4))))
    assert [
        pace.due(time, weight) for time, weight in zip(TIMES, (1, 2, 1, 1, 1), strict=True)
    ] == [
        0,
        SECOND // 4,
        SECOND * 3 // 4,
        SECOND,
        SECOND * 5 // 4,
    ]


def test_top_speed_waits_for_nothing() -> None:
    assert dues(PaceOptions(top_speed=True)) == [0] * 5


def test_the_next_loop_follows_after_a_usual_gap() -> None:
    pace = Pace(PaceOptions())
    assert [pace.due(time) for time in (0, SECOND, 4 * SECOND)] == [0, SECOND, 4 * SECOND]
    pace.again()
    assert [pace.due(time) for time in (0, SECOND)] == [6 * SECOND, 7 * SECOND]


@given(
    st.lists(st.integers(0, 10**15), min_size=1, max_size=30),
    st.fractions(Fraction(1, 100), 100),
    st.none() | st.integers(0, 10**12),
)
def test_due_times_never_decrease(times: list[int], speed: Fraction, gap: int | None) -> None:
    found = dues(PaceOptions(speed, None, False, gap), times)
    assert found == sorted(found)
    assert found[0] == 0


@pytest.mark.parametrize(("text", "speed"), [("2x", 2), ("0.5", Fraction(1, 2)), ("50%", 0.5)])
def test_speeds(text: str, speed: Fraction) -> None:
    assert speed_of(text) == speed


@pytest.mark.parametrize(("text", "rate"), [("500/s", 500), ("500", 500), ("30000/min", 500)])
def test_rates(text: str, rate: int) -> None:
    assert rate_of(text) == Rate(Fraction(rate))


def test_a_ramp_has_the_right_count_at_its_end_and_is_constant_after_it() -> None:
    ramp = rate_of("100..5000/5m")
    assert ramp == Rate(Fraction(5000), Fraction(100), 300 * SECOND)
    whole = (100 + 5000) * 300 // 2
    assert ramp.due(whole - 1) < ramp.due(whole) == 300 * SECOND
    assert ramp.due(whole + 5000) == 301 * SECOND
    half = 100 * 150 + (2550 - 100) * 150 // 2
    assert abs(ramp.due(half) - 150 * SECOND) < 1000
    assert str(ramp) == "100/s to 5,000/s over 300 s, then constant"


@given(
    st.integers(0, 10_000),
    st.integers(1, 10_000),
    st.integers(1, 600 * SECOND),
    st.lists(st.integers(0, 5_000_000), min_size=1, max_size=40),
)
def test_a_ramp_follows_its_count(first: int, last: int, length: int, counts: list[int]) -> None:
    ramp = Rate(Fraction(last), Fraction(first), length)
    counts = sorted([0, *counts, (first + last) * length // (2 * SECOND)])
    found = [ramp.due(count) for count in counts]
    assert found == sorted(found)
    assert found[0] == 0
    for number, due in zip(counts, found, strict=True):
        at = Fraction(due, SECOND)
        over = min(at, Fraction(length, SECOND))
        slope = Fraction(last - first) * SECOND / length
        through = first * over + slope * over * over / 2 + last * (at - over)
        assert abs(through - number) < Fraction(1, 1000) + number * Fraction(1, 10**9)


@pytest.mark.parametrize("text", ["100..5000", "1..0/5m", "1..2/0s", "1..2/s", "..5/5m", "a..2/5m"])
def test_a_wrong_ramp_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(PaceError, match=r"a ramp such as 100\.\.5000/5m"):
        rate_of(text)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("90s", 90 * SECOND), ("1.5min", 90 * SECOND), ("3", 3 * SECOND), ("200ms", 200 * MS)],
)
def test_durations(text: str, ns: int) -> None:
    assert duration_of(text) == ns


@pytest.mark.parametrize("read", [speed_of, rate_of, duration_of])
@pytest.mark.parametrize("text", ["", "fast", "-1", "1e9", "x2", "1/day", "٣"])
def test_what_is_no_number_says_what_would_be(read: object, text: str) -> None:
    with pytest.raises(PaceError, match="give"):
        read(text)  # type: ignore[operator]


@pytest.mark.parametrize("read", [speed_of, rate_of])
def test_nothing_is_no_speed(read: object) -> None:
    with pytest.raises(PaceError):
        read("0")  # type: ignore[operator]
