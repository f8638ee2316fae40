"""Points of a replication: few, over all of the time, and never too early."""

from __future__ import annotations

from dissectors.replication.progress import MOST_POINTS, Passed, passed_at


def test_points_are_in_order_and_say_when_an_offset_had_passed() -> None:
    passed = Passed()
    for offset, ts in ((100, 1), (100, 2), (90, 3), (250, 4)):
        passed.note(offset, ts)
    assert passed.points == ((100, 1), (250, 4))
    assert [passed_at(passed.points, offset) for offset in (0, 99, 100, 249, 250)] == [
        1,
        1,
        4,
        4,
        None,
    ]


def test_many_points_become_few_and_never_too_early() -> None:
    passed = Passed()
    for number in range(100_000):
        passed.note(10 * number + 10, number)
    assert MOST_POINTS // 2 <= len(passed.points) <= MOST_POINTS
    assert passed.points[0][1] < 2000
    assert passed.points[-1][1] > 98_000
    for offset in range(0, 900_000, 7919):
        at = passed_at(passed.points, offset)
        assert at is not None
        assert at >= offset // 10
