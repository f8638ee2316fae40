"""What is held counts with what its parts cost, not by their bytes alone."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from dissectors.conversations.conversation_table import MAX_HELD
from dissectors.findings import FindingKind
from dissectors.remoting.framing.frame_decoder import KEEP_ALL, FrameDecoder
from dissectors.remoting.framing.search import PART_COST
from dissectors.tcp.reassembly import PIECE_COST
from tests.traffic.talk import ACK, BROKER, MICROSECOND, PSH, START, End, Tcp

from .test_conversation_table import Run

CONNECTIONS = 700


def _behind_holes() -> Iterator[Tcp]:
    """Two bytes of each connection at a time, two bytes between them never."""
    count = MAX_HELD // PIECE_COST + 20_000
    for at in range(count):
        round_, number = divmod(at, CONNECTIONS)
        src = End(f"10.1.{number >> 8}.{number & 255}", 40000)
        yield Tcp(src, BROKER, 1000 + round_ * 4, 1, PSH | ACK, b"ab", START + at * MICROSECOND)


@pytest.mark.slow
def test_tiny_segments_behind_holes_do_not_pile_up() -> None:
    segments = list(_behind_holes())
    assert sum(len(one.payload) for one in segments) < MAX_HELD // 50
    run = Run().feed(segments)
    assert run.count(FindingKind.REASSEMBLY_LIMIT) > 0


@pytest.mark.parametrize("synchronized", [False, True])
def test_tiny_parts_of_a_frame_count_more_than_their_bytes(synchronized: bool) -> None:
    decoder = FrameDecoder(0, [], KEEP_ALL, synchronized)
    stream = struct.pack(">II", 70_000, 60_000) + b'{"a":"' + b"x" * 786
    for at in range(0, len(stream), 2):
        decoder.receive(stream, at, at + 2, at, at, 0, [])
    assert decoder.held_bytes == len(stream)
    assert decoder.held_memory >= PART_COST * len(stream) // 4
    decoder.forget()
    assert decoder.held_memory == 0
