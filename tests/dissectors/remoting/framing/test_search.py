"""Looking for a frame costs a bounded number of bytes for each byte of the stream.

Work is counted and not timed: what is scanned, joined and judged.
"""

from __future__ import annotations

import random
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.framing.frame import Frame
from dissectors.remoting.framing.frame_decoder import KEEP_NONE, FrameDecoder
from dissectors.remoting.framing.search import FREE_WORK, MAX_SOUGHT_HEADER, WORK_PER_BYTE
from tests.traffic.commands import frame, send

PERIOD = 59
LARGE = MAX_SOUGHT_HEADER - 1
MOST_PER_BYTE = 5 * WORK_PER_BYTE
"""what is paid for is kept, joined, scanned and judged; and every byte is scanned once"""


def nearly_binary(count: int, size: int = LARGE) -> bytes:
    """Binary headers of `size` bytes, one every 59: each entry ends where the next unit needs it.

    A unit is a prefix, the fixed fields, and one entry that reaches into the next unit; so from
    each unit on all lengths fit, up to the last byte.
    """
    prefix = struct.pack(">IBBH", size + 4, 1, size >> 16, size & 0xFFFF)
    fixed = struct.pack(">HBHiiII", 310, 0, 401, 7, 0, 0, size - 21)
    value = PERIOD - 2 - 1 - 4
    entry = struct.pack(">H", 1) + b"k" + struct.pack(">I", value)
    unit = prefix + fixed + entry
    return (unit + b"v" * (PERIOD - len(unit))) * count


def nearly_json(count: int) -> bytes:
    """Objects that begin every 40 bytes, within strings of each other, and are never closed."""
    prefix = struct.pack(">IBBH", LARGE + 4, 0, 0, LARGE)
    return (prefix + b'{"code":1,"opaque":1,"remark":"'.ljust(32, b"x")) * count


def with_small_frames(count: int) -> bytes:
    """A claim to a large header, then a whole frame: found, lost, found, …"""
    claim = struct.pack(">IBBH", LARGE + 4, 1, LARGE >> 16, LARGE & 0xFFFF) + bytes(13)
    return (claim + frame(b'{"code":1,"opaque":1}') + b"\xff") * count


MAKERS = {one.__name__: one for one in (nearly_binary, nearly_json, with_small_frames)}


def work_of(stream: bytes, size: int) -> tuple[int, list[Frame]]:
    """The work for a stream in pieces of `size`, and its frames."""
    found: list[Frame] = []
    decoder = FrameDecoder(0, [], KEEP_NONE, False)
    for number, at in enumerate(range(0, len(stream), size)):
        piece = stream[at : at + size]
        decoder.receive(piece, 0, len(piece), at, number, number, found)
    decoder.finish(found)
    return decoder.search.work, found


@pytest.mark.slow
@pytest.mark.parametrize("size", [59, 1448, 65_000])
@pytest.mark.parametrize("name", MAKERS)
def test_twice_the_stream_is_twice_the_work(name: str, size: int) -> None:
    units = 524_288 // len(MAKERS[name](1))
    streams = [MAKERS[name](units * factor) for factor in (1, 2, 4)]
    works = [work_of(stream, size)[0] for stream in streams]
    for stream, work in zip(streams, works, strict=True):
        assert work <= MOST_PER_BYTE * len(stream) + 3 * FREE_WORK
    for less, more in pairwise(works):
        assert more <= 2.2 * less


def test_a_frame_behind_all_that_is_found() -> None:
    noise = nearly_binary(4000)
    stream = noise + send(7).frame
    for size in (59, 1448, 65_000):
        _, found = work_of(stream, size)
        assert [one.offset for one in found] == [len(noise)]


@given(st.integers(0, 2**32), st.sampled_from([60, 700, 1448, 65_000]))
def test_what_is_found_does_not_depend_on_the_pieces(seed: int, size: int) -> None:
    source = random.Random(seed)
    parts = (
        lambda: nearly_binary(source.randint(1, 60), source.choice([90, 400, LARGE])),
        lambda: nearly_json(source.randint(1, 60)),
        lambda: with_small_frames(source.randint(1, 8)),
        lambda: send(source.randint(0, 9), binary=source.random() < 0.5).frame,
        lambda: source.randbytes(source.randint(1, 300)),
    )
    stream = b"".join(source.choice(parts)() for _ in range(source.randint(1, 30)))
    work, found = work_of(stream, size)
    assert [one.offset for one in found] == [one.offset for one in work_of(stream, 333)[1]]
    assert work <= MOST_PER_BYTE * len(stream) + 3 * FREE_WORK
