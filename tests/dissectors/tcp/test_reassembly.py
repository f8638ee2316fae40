"""Streams from segments: order, overlaps, wraps, holes, probes, other connections, limits."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.expert import ExpertInfo, ExpertKind
from dissectors.tcp.pieces import Data, Piece
from dissectors.tcp.reassembly import (
    FAR_SEGMENTS,
    HOLD_SEGMENTS,
    HOLD_TIME,
    KEEP_ALIVE_IDLE,
    MAX_DISTANCE,
    MAX_PENDING,
    MAX_RETRANSMISSION,
    UNACKED_SEGMENTS,
    UNACKED_TIME,
    StreamReassembler,
)
from dissectors.tcp.segment import ACK, SYN, Segment
from tests.traffic.talk import MILLISECOND, START

STREAM = random.Random(11).randbytes(200_000)
M32 = 0xFFFFFFFF


class Direction:
    """A reassembler under test; what it gives is checked as it comes."""

    def __init__(self, isn: int | None = 1000, sequence: int = 1001) -> None:
        self.experts: list[ExpertInfo] = []
        self.machine = StreamReassembler(7, self.experts)
        self.sequence = sequence
        self.packet = 0
        self.now = START
        self.given: list[Piece] = []
        self.next = 0
        if isn is not None:
            self.sequence = isn + 1
            self._take(lambda out: self.machine.synchronize(self._segment(isn, b"", SYN), out))

    def _segment(self, seq: int, data: bytes, flags: int = ACK, missing: int = 0) -> Segment:
        self.packet += 1
        surrounded = b"<<<" + data + b">>>"
        sequence = (((seq & M32) ^ 0x80000000) - 0x80000000) << 32  # signed, as the bytes are read
        return Segment(
            self.packet,
            self.now,
            b"",
            sequence,
            flags,
            0,
            surrounded,
            3,
            3 + len(data),
            missing,
        )

    def _take(self, feed: object) -> list[Piece]:
        out: list[Piece] = []
        feed(out)  # type: ignore[operator]
        for piece in out:
            # In order and without a hole: a byte is given once, or is said to be missing.
            assert piece.offset == self.next
            self.next += piece.end - piece.start if isinstance(piece, Data) else piece.length
        self.given += out
        return out

    def receive(
        self, at: int, end: int, *, data: bytes | None = None, missing: int = 0, later: int = 1000
    ) -> list[Piece]:
        """The bytes `at` to `end` of the stream."""
        payload = STREAM[at:end] if data is None else data
        segment = self._segment(self.sequence + at, payload, missing=missing)
        self.now += later
        return self._take(lambda out: self.machine.receive(segment, out))

    def acknowledge(self, at: int) -> list[Piece]:
        """The other end says that it has all before `at`."""
        segment = self._segment(0, b"")
        segment.ack = (self.sequence + at) & M32
        self.now += 1000
        if not self.machine.waiting:
            return []
        return self._take(lambda out: self.machine.acknowledge(segment, out))

    def finish(self) -> list[Piece]:
        return self._take(self.machine.finish)

    @property
    def kinds(self) -> list[ExpertKind]:
        return [info.kind for info in self.experts]

    @property
    def bytes(self) -> bytes:
        """All bytes that were given, gaps as nothing."""
        return b"".join(
            piece.data[piece.start : piece.end] for piece in self.given if isinstance(piece, Data)
        )

    @property
    def holes(self) -> list[tuple[int, int]]:
        return [(p.offset, p.length) for p in self.given if not isinstance(p, Data)]


def assert_real(direction: Direction, start: int = 0) -> None:
    """Every byte that was given stands in the stream where it is said to stand."""
    for piece in direction.given:
        if isinstance(piece, Data):
            at = piece.offset + start
            data = piece.data[piece.start : piece.end]
            assert data == STREAM[at : at + len(data)]


def test_in_order() -> None:
    one = Direction()
    for at in range(0, 1000, 100):
        (piece,) = one.receive(at, at + 100)
        assert isinstance(piece, Data)
        assert (piece.offset, piece.packet, piece.data[3:103]) == (
            at,
            one.packet,
            STREAM[at : at + 100],
        )
    assert one.bytes == STREAM[:1000]
    assert one.experts == []
    assert not one.machine.empty


@pytest.mark.parametrize("isn", [0, M32, M32 - 1, M32 - 500, 2**31 - 3, 2**31])
def test_a_wrap_is_nothing_special(isn: int) -> None:
    one = Direction(isn)
    order = [0, 2, 1, 3, 5, 4, 6, 8, 7, 9]
    for index in order:
        one.receive(index * 100, index * 100 + 100)
    one.receive(300, 500)
    assert one.bytes == STREAM[:1000]
    assert one.holes == []


@pytest.mark.parametrize("first", [0, 10**6, 2**31, M32 - 150])
def test_several_wraps(first: int) -> None:
    """More than 8 GiB of one stream, told by acknowledged jumps that the capture does not have."""
    one = Direction(None, first)
    at = 0
    for _ in range(12):
        one.receive(at, at + 10, data=b"0123456789")
        at += 10
        jump = MAX_DISTANCE - 100
        one.receive(at + jump, at + jump + 5, data=b"abcde")
        for _ in range(2 * HOLD_SEGMENTS + 2):
            one.acknowledge(at + jump + 5)
        at += jump + 5
    assert one.bytes == b"0123456789abcde" * 12
    assert [length for _, length in one.holes] == [MAX_DISTANCE - 100] * 12


@given(st.data())
def test_any_segments_of_a_stream(data: st.DataObject) -> None:
    """Any cuts, overlaps, orders, repetitions: every byte once, none invented."""
    size = data.draw(st.integers(1, 400))
    cuts = sorted(data.draw(st.sets(st.integers(1, size), max_size=12)) | {0, size})
    parts = list(pairwise(cuts))
    place = st.integers(0, size)
    more = data.draw(st.lists(st.tuples(place, place), max_size=6))
    segments = data.draw(st.permutations(parts + [(min(p), max(p)) for p in more]))
    opened = data.draw(st.booleans())
    isn = data.draw(st.sampled_from([0, M32, M32 - 100, 12345]))
    one = Direction(isn) if opened else Direction(None, isn + 1)
    for at, end in segments:
        one.receive(at, end, later=data.draw(st.sampled_from([1, MILLISECOND])))
    one.finish()
    assert one.bytes == STREAM[:size]
    assert one.holes == []
    assert one.machine.pending_bytes == 0
    assert ExpertKind.OVERLAP_MISMATCH not in one.kinds


@given(st.data())
def test_any_loss(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 400))
    place = st.integers(0, size)
    found = data.draw(st.lists(st.tuples(place, place), min_size=1, max_size=12))
    one = Direction()
    for pair in found:
        one.receive(min(pair), max(pair))
        if data.draw(st.booleans()):
            one.acknowledge(data.draw(place))
    one.finish()
    assert_real(one)
    there = bytearray(size)
    for pair in found:
        for index in range(min(pair), max(pair)):
            there[index] = 1
    assert len(one.bytes) == sum(there)
    assert sum(length for _, length in one.holes) == one.machine.gap_bytes
    assert len(one.holes) == one.machine.gaps


def test_the_first_copy_wins_and_a_difference_is_said() -> None:
    one = Direction()
    one.receive(10, 20)
    one.receive(5, 25, data=b"x" * 20)
    one.receive(0, 8, data=b"y" * 8)
    assert one.bytes == b"yyyyy" + b"xxxxx" + STREAM[10:20] + b"xxxxx"
    assert one.kinds.count(ExpertKind.OVERLAP_MISMATCH) == 2
    two = Direction()
    two.receive(10, 20)
    two.receive(0, 30)
    assert two.bytes == STREAM[:30]
    assert ExpertKind.OVERLAP_MISMATCH not in two.kinds


def test_a_retransmission_is_said_and_given_once() -> None:
    one = Direction()
    one.receive(0, 100)
    assert one.receive(0, 100) == []
    assert one.receive(50, 100) == []
    (piece,) = one.receive(50, 150)
    assert isinstance(piece, Data)
    assert piece.data[piece.start : piece.end] == STREAM[100:150]
    assert one.kinds == [ExpertKind.RETRANSMISSION] * 2


def test_out_of_order_is_said() -> None:
    one = Direction()
    one.receive(100, 200)
    one.receive(50, 100)
    one.receive(0, 50)
    assert one.bytes == STREAM[:200]
    assert set(one.kinds) == {ExpertKind.OUT_OF_ORDER}


# -- the start ----------------------------------------------------------------------------------


def test_without_a_syn_the_first_packets_may_be_out_of_order() -> None:
    one = Direction(None)
    for at in (100, 300, 0, 200):
        one.receive(at, at + 100)
    one.acknowledge(400)
    for _ in range(HOLD_SEGMENTS):
        one.acknowledge(400)
    assert one.bytes == STREAM[:400]
    assert one.holes == []


def test_a_syn_after_the_first_data() -> None:
    one = Direction(None, 1001)
    one.receive(100, 200)
    syn = one._segment(1000, b"", SYN)
    one._take(lambda out: one.machine.synchronize(syn, out))
    assert one.given == []
    one.receive(0, 100)
    assert one.bytes == STREAM[:200]


def test_data_with_the_syn() -> None:
    """TCP Fast Open: the caller adds one to the number, which is the SYN's own."""
    one = Direction(1000)
    one.receive(0, 10)
    assert one.bytes == STREAM[:10]


def test_a_syn_that_comes_again_changes_nothing() -> None:
    one = Direction(1000)
    one.receive(0, 10)
    syn = one._segment(1000, b"", SYN)
    one._take(lambda out: one.machine.synchronize(syn, out))
    one.receive(10, 20)
    assert one.bytes == STREAM[:20]


# -- holes --------------------------------------------------------------------------------------


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
    (info,) = [info for info in one.experts if info.kind is ExpertKind.GAP]
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
    assert one.kinds == [ExpertKind.GAP] * 2
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
    """What is cut off is no hole to wait for, whatever comes first."""
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
    assert ExpertKind.GAP not in one.kinds


def test_a_repeated_segment_that_was_cut_off() -> None:
    one = Direction()
    for _ in range(3):
        one.receive(0, 10, missing=90)
    one.receive(100, 200)
    assert one.holes == [(10, 90)]
    one.receive(50, 60, missing=100)
    assert one.kinds == [ExpertKind.RETRANSMISSION] * 3
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


# -- probes -------------------------------------------------------------------------------------


def test_keep_alives_are_no_data() -> None:
    one = Direction()
    one.receive(0, 100)
    for _ in range(3):
        one.now += KEEP_ALIVE_IDLE * 2
        assert one.receive(99, 100, data=b"\0") == []
        assert one.receive(99, 99) == []
    one.receive(100, 200)
    assert one.bytes == STREAM[:200]
    assert one.experts == []


def test_a_keep_alive_where_the_real_byte_was_not_captured() -> None:
    one = Direction()
    one.receive(0, 100)
    one.now += KEEP_ALIVE_IDLE  # 100 to 200 are missing
    one.receive(199, 200, data=b"\0")
    one.receive(200, 300)
    one.finish()
    assert one.bytes == STREAM[:100] + STREAM[200:300]
    assert one.holes == [(100, 100)]


def test_zero_window_probes_are_the_next_byte_once() -> None:
    """Stacks that probe with a byte of data send it again until the window opens."""
    one = Direction()
    one.receive(0, 100)
    for _ in range(3):
        one.receive(100, 101, later=KEEP_ALIVE_IDLE)
    one.receive(100, 200)
    assert one.bytes == STREAM[:200]


def test_a_first_segment_of_one_byte_is_data() -> None:
    for opened in (False, True):
        one = Direction(1000 if opened else None)
        one.receive(0, 1)
        one.receive(1, 100)
        one.finish()
        assert one.bytes == STREAM[:100]


def test_single_bytes() -> None:
    one = Direction()
    order = list(range(300))
    random.Random(5).shuffle(order)
    for at in order:
        one.receive(at, at + 1)
    assert one.bytes == STREAM[:300]


# -- far away -----------------------------------------------------------------------------------


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
    assert one.kinds == [ExpertKind.GAP] * 2


# -- time ---------------------------------------------------------------------------------------


def _orders(count: int) -> Iterable[tuple[str, list[int]]]:
    yield "backwards", list(range(count, 0, -1))
    yield "every other", list(range(1, count, 2)) + list(range(0, count, 2))
    shuffled = list(range(1, count))
    random.Random(1).shuffle(shuffled)
    yield "shuffled", shuffled


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in _orders(2)])
def test_single_bytes_in_bad_orders_take_linear_time(name: str) -> None:
    order = dict(_orders(60_000))[name]
    one = Direction()
    began = time.process_time()
    for at in order:
        one.receive(at, at + 1, later=0)
    one.finish()
    assert time.process_time() - began < 20
    assert_real(one)
