"""Streams from segments: order, overlaps, wraps, holes, probes, other connections, limits."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.findings import FindingKind
from dissectors.tcp.reassembly import HOLD_SEGMENTS, KEEP_ALIVE_IDLE, MAX_DISTANCE, Data
from dissectors.tcp.segment import SYN
from tests.traffic.talk import MILLISECOND

from .direction import M32, STREAM, Direction, assert_real


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
    assert one.findings == []
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
    assert FindingKind.OVERLAP_MISMATCH not in one.kinds


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
    assert one.kinds.count(FindingKind.OVERLAP_MISMATCH) == 2
    two = Direction()
    two.receive(10, 20)
    two.receive(0, 30)
    assert two.bytes == STREAM[:30]
    assert FindingKind.OVERLAP_MISMATCH not in two.kinds


def test_a_retransmission_is_said_and_given_once() -> None:
    one = Direction()
    one.receive(0, 100)
    assert one.receive(0, 100) == []
    assert one.receive(50, 100) == []
    (piece,) = one.receive(50, 150)
    assert isinstance(piece, Data)
    assert piece.data[piece.start : piece.end] == STREAM[100:150]
    assert one.kinds == [FindingKind.RETRANSMISSION] * 2


def test_out_of_order_is_said() -> None:
    one = Direction()
    one.receive(100, 200)
    one.receive(50, 100)
    one.receive(0, 50)
    assert one.bytes == STREAM[:200]
    assert set(one.kinds) == {FindingKind.OUT_OF_ORDER}


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
    syn = one.segment(1000, b"", SYN)
    one.take(lambda out: one.machine.synchronize(syn, out))
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
    syn = one.segment(1000, b"", SYN)
    one.take(lambda out: one.machine.synchronize(syn, out))
    one.receive(10, 20)
    assert one.bytes == STREAM[:20]


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
    assert one.findings == []


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
