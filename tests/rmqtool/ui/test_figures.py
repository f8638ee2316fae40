"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.times import SECOND
from rmqtool.ui.figures import clock, day, duration, moment, share, size, text_of_counts


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (None, "-"),
        (0, "0 µs"),
        (999, "999 µs"),
        (1000, "1.00 ms"),
        (9994, "9.99 ms"),
        (9996, "10.0 ms"),
        (99_960, "100 ms"),
        (999_499, "999 ms"),
        (999_600, "1.00 s"),
        (12_345_678, "12.3 s"),
        (99_960_000, "100 s"),
        (119_499_000, "119 s"),
        (119_600_000, "2 min"),
        (302_000_000, "5 min 2 s"),
        (5_999_000_000, "99 min 59 s"),
        (6_000_000_000, "1 h 40 min"),
        (7_200_000_000, "2 h"),
        (49_302_100_000, "13 h 41 min"),
        (180_000_000_000, "2 d 2 h"),
        (-250, "-250 µs"),
    ],
)
def test_duration(us: int | None, text: str) -> None:
    assert duration(us) == text


@given(st.integers(0, 359_000_000_000))
def test_a_duration_is_short(us: int) -> None:
    assert len(duration(us)) <= (7 if us < 119_500_000 else 11)


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "-"), (999, "999 B"), (1000, "1.00 kB"), (999_600, "1.00 MB"), (2 * 10**12, "2.00 TB")],
)
def test_size(number: int | None, text: str) -> None:
    assert size(number) == text


def test_shares_are_not_rounded_to_nothing_or_all() -> None:
    assert share(0, 5) == "0%"
    assert share(1, 100_000) == "<0.1%"
    assert share(99_999, 100_000) == "99.9%"
    assert share(5, 5) == "100%"
    assert share(0, 0) == "0%"


def test_counts_and_times() -> None:
    assert text_of_counts({"TLS\x1b": 1, "HTTP": 2}) == r"HTTP 2, TLS\x1b 1"
    ns = 1_795_168_800 * SECOND + 123_456_789
    assert clock(ns) == "10:00:00.123"
    assert day(ns) == "2026-11-20"
    assert moment(ns) == "2026-11-20T10:00:00.123456Z"
    assert moment(None) == clock(None) == "-"
