"""Times as text and back."""

from __future__ import annotations

import pytest

from dissectors.times import moment_of, start_of_day, text_of_time

from .rows import START


def test_times_come_back() -> None:
    for ns in (0, START, START + 999_999_000, 4_102_444_800_000_000_000):
        moment = moment_of(text_of_time(ns))
        assert moment is not None
        assert moment.ns == ns
        assert moment.has_date


@pytest.mark.parametrize("text", ["", "x", "10", "25:00", "2026-13-01", "2026-11-20T", "10:00Z"])
def test_what_is_no_time(text: str) -> None:
    assert moment_of(text) is None


def test_times_that_no_calendar_has_are_shown_as_its_ends() -> None:
    assert text_of_time(2**80).startswith("9999-12-31T23:59:59")
    assert text_of_time(-1).startswith("1970-01-01T00:00:00")


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2026-11-20T10:00", START),
        ("2026-11-20 10:00:00", START),
        ("2026-11-20T18:00:00+08:00", START),
        ("2026-11-20T05:30:00-0430", START),
        ("2026-11-20T10:00:00.000000001Z", START + 1),
        ("2026-11-20T10:00:00,5", START + 500_000_000),
        ("2026-11-20", START - 36_000 * 10**9),
    ],
)
def test_ways_to_write_a_time(text: str, ns: int) -> None:
    moment = moment_of(text)
    assert moment is not None
    assert moment.ns == ns
    assert moment.has_date


def test_a_time_of_day() -> None:
    moment = moment_of("9:05:03.25")
    assert moment is not None
    assert (moment.ns, moment.has_date) == (32_703_250_000_000, False)
    assert start_of_day(START) == START - 36_000 * 10**9
