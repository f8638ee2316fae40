"""Stalls: one segment that is sent again and again, by its place and its times."""

from __future__ import annotations

from dissectors.tcp.reassembly import LEAST_NS, LEAST_REPEATS, MAX_STALLS, Repeats, noted

SECOND = 1_000_000_000
SIZE = 1460


def stalls_of(*segments: tuple[int, float]) -> list[tuple[int, int, int, int]]:
    """The stalls of repeated segments, each a place and a time in seconds."""
    repeats = Repeats()
    for place, seconds in segments:
        repeats.note(place, SIZE, int(seconds * SECOND))
    return repeats.stalls()


def test_a_segment_with_pauses_that_double() -> None:
    found = stalls_of((40, 0.2), (40, 0.6), (40, 1.4), (40, 3.0))
    assert found == [(int(0.2 * SECOND), 3 * SECOND, 4, SIZE)]


def test_a_look_at_what_goes_on_does_not_end_it() -> None:
    repeats = Repeats()
    for seconds in (0.2, 0.6, 1.4):
        repeats.note(40, SIZE, int(seconds * SECOND))
        repeats.stalls()
    assert repeats.stalls() == repeats.stalls() == [(int(0.2 * SECOND), int(1.4 * SECOND), 3, SIZE)]
    repeats.note(40, SIZE, 3 * SECOND)
    assert repeats.stalls() == [(int(0.2 * SECOND), 3 * SECOND, 4, SIZE)]


def test_what_is_no_stall() -> None:
    assert stalls_of() == []
    assert stalls_of((40, 0.2), (40, 3.0)) == [], "sent again twice only"
    assert stalls_of((40, 0.2), (40, 0.201), (40, 0.202)) == [], "captured several times"
    assert stalls_of((40, 0.2), (90, 0.9), (140, 1.6), (190, 2.2)) == [], (
        "losses, one after another"
    )


def test_one_byte_may_be_a_probe_of_a_window_of_0() -> None:
    assert noted(None, 40, 1, SECOND) is None
    found = noted(None, 40, 2, SECOND)
    assert found is not None
    assert noted(found, 90, 1, SECOND) is found


def test_each_run_is_one() -> None:
    first = [(40, 1.0), (40, 2.0), (40, 4.0)]
    other = [(90, 10.0), (90, 11.0), (90, 12.0), (90, 14.0)]
    found = stalls_of(*first, (60, 5.0), *other)
    assert [(begin // SECOND, end // SECOND, count) for begin, end, count, _ in found] == [
        (1, 4, 3),
        (10, 14, 4),
    ]


def test_what_is_remembered_has_a_bound() -> None:
    segments = [
        (place, place * 10.0 + step) for place in range(100) for step in range(LEAST_REPEATS)
    ]
    assert len(stalls_of(*segments)) == MAX_STALLS
    assert LEAST_NS < SECOND
