"""Holes of a stream: when they become gaps, and what is never taken for data."""

from __future__ import annotations

import pytest

from dissectors.findings import FindingKind
from dissectors.tcp.reassembly import (
    FAR_SEGMENTS,
    HOLD_SEGMENTS,
    HOLD_TIME,
    MAX_DISTANCE,
    MAX_PENDING,
    MAX_RETRANSMISSION,
    UNACKED_SEGMENTS,
    UNACKED_TIME,
    Piece,
)

from .direction import STREAM, Direction, assert_real


def test_a_hole_is_a_gap_when_it_was_acknowledged_and_later_packets_came() -> None:
    one = Direction()
    one.receive(0, 100)
    one.receive(200, 300)
    one.acknowledge(300)
    given: list[Piece] = []
    count = 0
    while not given:
        given = one.acknowledge(300)
        count += 1
    assert count == HOLD_SEGMENTS
    assert one.holes == [(100, 100)]
    assert one.bytes == STREAM[:100] + STREAM[200:300]
    (info,) = [info for info in one.findings if info.kind is FindingKind.GAP]
    assert (info.offset, info.conversation, info.packet) == (100, 7, 3)
    assert one.receive(100, 200) == []  # too late
    assert_real(one)


def test_a_hole_is_a_gap_a_while_after_it_was_acknowledged() -> None:
    one = Direction()
    one.receive(200, 300)
    one.acknowledge(300)
    one.now += HOLD_TIME + 1
    one.acknowledge(300)
    assert one.holes == [(0, 200)]


def test_a_hole_that_was_not_acknowledged_waits_longer() -> None:
    one = Direction()
    one.receive(200, 300)
    for _ in range(HOLD_SEGMENTS * 4):
        one.acknowledge(100)
    assert one.given == []
    one.receive(0, 200)
    assert one.bytes == STREAM[:300]


def test_without_any_acknowledgement_a_hole_is_a_gap_after_many_packets() -> None:
    one = Direction()
    for at in range(200, 200 + UNACKED_SEGMENTS * 10, 10):
        one.receive(at, at + 10)
    assert one.given == []
    one.receive(at + 10, at + 20)
    assert one.holes == [(0, 200)]


def test_without_any_acknowledgement_a_hole_is_a_gap_after_a_long_time() -> None:
    one = Direction()
    one.receive(200, 300)
    one.now += UNACKED_TIME + 1
    one.receive(300, 400)
    assert one.holes == [(0, 200)]


def test_the_end_gives_out_what_waits() -> None:
    one = Direction()
    one.receive(100, 200)
    one.receive(300, 400)
    one.finish()
    assert one.holes == [(0, 100), (200, 100)]
    assert one.kinds == [FindingKind.GAP] * 2
    one.receive(400, 500)
    assert one.bytes == STREAM[100:200] + STREAM[300:500]


@pytest.mark.slow
@pytest.mark.parametrize("acked", [False, True])
def test_many_holes_do_not_add_up_their_waiting(acked: bool) -> None:
    """Every other packet is missing: what waits stays within the limit for one hole."""
    one = Direction()
    most = 0
    for at in range(0, 150_000, 20):
        one.receive(at + 10, at + 20)
        if acked:
            one.acknowledge(at + 20)
        most = max(most, one.machine.pending_bytes)
    limit = HOLD_SEGMENTS if acked else UNACKED_SEGMENTS
    assert most <= 2 * 10 * (limit + 2)
    one.finish()
    assert len(one.holes) == 7500
    assert_real(one)


def test_bytes_that_the_snap_length_cut_off_are_a_gap_at_once() -> None:
    one = Direction()
    one.receive(0, 10, missing=90)
    one.receive(100, 110, missing=0)
    assert one.holes == [(10, 90)]
    assert one.bytes == STREAM[:10] + STREAM[100:110]
    one.receive(110, 110, missing=40)
    assert one.holes[1:] == [(110, 40)]


@pytest.mark.parametrize("opened", [False, True])
def test_snap_length_and_disorder(opened: bool) -> None:
    """What is cut off is not a hole to wait for, whatever comes first."""
    one = Direction(1000 if opened else None)
    for at in range(0, 100_000, 1000):
        second, first = (at, at + 500) if at % 3000 == 0 else (at + 500, at)
        for place in (first, second):
            one.receive(place, place + 40, missing=460)
        one.acknowledge(at + 1000)
    assert one.machine.pending_bytes <= 40 * 2 * (HOLD_SEGMENTS + 2)
    assert one.next >= 100_000 - 500 * HOLD_SEGMENTS
    one.finish()
    assert len(one.bytes) == 8000
    assert [length for _, length in one.holes] == [460] * 200
    assert_real(one)
    assert FindingKind.GAP not in one.kinds


def test_a_repeated_segment_that_was_cut_off() -> None:
    one = Direction()
    for _ in range(3):
        one.receive(0, 10, missing=90)
    one.receive(100, 200)
    assert one.holes == [(10, 90)]
    one.receive(50, 60, missing=100)
    assert one.kinds == [FindingKind.RETRANSMISSION] * 3
    assert one.bytes == STREAM[:10] + STREAM[100:200]


def test_more_than_a_window_behind_a_hole_is_given_up() -> None:
    one = Direction()
    block = b"z" * 60_000
    at = 100
    while not one.given:
        one.receive(at, at + len(block), data=block)
        at += len(block)
        assert one.machine.pending_bytes <= MAX_PENDING + len(block)
    assert one.holes == [(0, 100)]
    assert one.machine.pending_bytes == 0
    assert at > MAX_PENDING


@pytest.mark.parametrize("distance", [MAX_DISTANCE + 1000, -MAX_RETRANSMISSION - 1000, 2**31 - 1])
def test_a_stray_segment_is_not_believed(distance: int) -> None:
    one = Direction()
    one.receive(0, 100)
    for round_ in range(FAR_SEGMENTS * 3):
        assert one.receive(distance, distance + 50, data=b"x" * 50) == []
        one.receive(100 + round_ * 10, 110 + round_ * 10)
    assert one.bytes == STREAM[: 100 + FAR_SEGMENTS * 30]
    assert one.holes == []


def test_another_connection_without_a_syn_is_believed_in_the_end() -> None:
    one = Direction()
    one.receive(0, 100)
    one.receive(200, 300)
    far = MAX_DISTANCE + 5000
    for index in range(FAR_SEGMENTS + 5):
        one.receive(far + index * 10, far + index * 10 + 10, data=b"%010d" % index)
    assert one.bytes == STREAM[:100] + STREAM[200:300] + b"".join(
        b"%010d" % index for index in range(FAR_SEGMENTS - 1, FAR_SEGMENTS + 5)
    )
    assert one.holes == [(100, 100), (300, 0)]
    assert one.kinds == [FindingKind.GAP] * 2
