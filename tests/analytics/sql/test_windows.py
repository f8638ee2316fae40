"""Windows: their length, and rows whose time is months away from all others."""

from __future__ import annotations

from analytics.sql.windows import Usual, usual_of, window_of

DAY = 86_400_000_000


def test_few_rows_that_are_months_away_are_not_in_the_span() -> None:
    assert usual_of([(0, 0, 1), (20_000 * DAY, 20_000 * DAY + 5, 55)]) == Usual(
        20_000 * DAY, 20_000 * DAY + 5, 1
    )
    several = [
        (0, 3, 1),
        (500 * DAY, 500 * DAY, 99),
        (501 * DAY, 502 * DAY, 1),
        (900 * DAY, 900 * DAY, 2),
    ]
    assert usual_of(several) == Usual(500 * DAY, 502 * DAY, 3)


def test_many_rows_are_never_stray() -> None:
    assert usual_of([(0, 1, 50), (500 * DAY, 500 * DAY, 50)]) == Usual(0, 500 * DAY, 0)
    assert usual_of([(0, 1, 6), (500 * DAY, 500 * DAY, 94)]) == Usual(0, 500 * DAY, 0)
    assert usual_of([(number * 20 * DAY, number * 20 * DAY, 1) for number in range(9)]) == Usual(
        0, 160 * DAY, 0
    )
    assert usual_of([]) is None


def test_a_length_is_one_that_people_count_in() -> None:
    assert [window_of(span) for span in (None, 0, 60_000_001, DAY)] == [
        *(1_000_000, 1_000, 2_000_000),
        30 * 60_000_000,
    ]
