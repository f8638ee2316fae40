"""Frames from streams: any cuts, holes, damage, limits, the search for the next frame."""

from __future__ import annotations

import random
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.findings import FindingKind
from dissectors.remoting.framing.frame import MAX_FRAME, PREFIX, encode_frame
from dissectors.remoting.framing.frame_decoder import (
    KEEP_ALL,
    KEEP_CARRIED,
    KEEP_MESSAGES,
    KEEP_NONE,
    MANY_PARTS,
    ROUTE_LIMIT,
)
from dissectors.remoting.framing.search import MAX_SOUGHT_HEADER, PART_COST
from dissectors.remoting.row_bodies import CARRYING_REQUESTS
from tests.traffic.commands import Command, frame

from .decoding import BIG, COMMANDS, STARTS, STREAM, Decoding, assert_frames


def test_whole() -> None:
    one = Decoding().feed(STREAM).finish()
    assert_frames(one.frames, COMMANDS)
    assert [frame.offset for frame in one.frames] == STARTS[:-1]
    assert {(frame.packet, frame.ts) for frame in one.frames} == {(101, 1010)}
    assert one.findings == []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 100, 1448])
@pytest.mark.parametrize("synchronized", [True, False])
def test_any_piece_size(size: int, synchronized: bool) -> None:
    one = Decoding(synchronized)
    for at in range(0, len(STREAM), size):
        one.feed(STREAM[at : at + size])
    assert_frames(one.frames, COMMANDS)
    assert one.findings == []
    for number, found in enumerate(one.frames):
        last = STARTS[number + 1] - 1  # the packet of a frame is the one that completed it
        assert found.packet == 101 + last // size
        assert found.ts == found.packet * 10


@given(st.data())
def test_any_cut(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(STREAM) - 1), max_size=20)))
    one = Decoding(data.draw(st.booleans()), data.draw(st.sampled_from([KEEP_ALL, KEEP_NONE])))
    for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        one.feed(STREAM[start:end])
    assert_frames(one.frames, COMMANDS, bodies=one.keep == KEEP_ALL)
    assert one.findings == []
    assert one.decoder.held_bytes == 0


def test_bodies_that_nobody_wants_are_not_held() -> None:
    none = Decoding(keep=KEEP_NONE)
    some = Decoding(keep=KEEP_MESSAGES)
    for part in (STREAM[at : at + 50] for at in range(0, len(STREAM), 50)):
        none.feed(part)
        some.feed(part)
        assert none.decoder.held == 0
    assert {found.body for found in none.frames} == {b""}
    route = next(one.body for one in COMMANDS if b"brokerDatas" in one.body)
    assert [found.body for found in some.frames if found.body] == [route, COMMANDS[7].body]


def test_bodies_in_which_messages_may_be_are_held() -> None:
    some = Decoding(keep=KEEP_CARRIED).feed(STREAM)
    kept = CARRYING_REQUESTS
    wanted = [
        one.body if one.binary or one.code <= 0 or one.code in kept else b"" for one in COMMANDS
    ]
    assert [found.body for found in some.frames] == wanted
    assert len({bool(one) for one in wanted}) == 2


def test_an_answer_that_is_too_long_for_a_route_is_not_held() -> None:
    answers = [Command(0, 2, 1, body=b"x" * size) for size in (ROUTE_LIMIT, ROUTE_LIMIT + 1)]
    some = Decoding(keep=KEEP_MESSAGES).feed(b"".join(one.frame for one in answers))
    assert [len(found.body) for found in some.frames] == [ROUTE_LIMIT, 0]


# -- damage -------------------------------------------------------------------------------------

BAD = {
    "too large": (struct.pack(">II", MAX_FRAME - 3, 10), FindingKind.FRAME_TOO_LARGE),
    "negative": (struct.pack(">iI", -5, 10), FindingKind.BAD_FRAME),
    "header over frame": (struct.pack(">II", 20, 17), FindingKind.BAD_FRAME),
    "total too small": (struct.pack(">II", 3, 0), FindingKind.BAD_FRAME),
    "type": (struct.pack(">II", 100, 2 << 24 | 30), FindingKind.BAD_FRAME),
    "no header": (struct.pack(">II", 100, 0), FindingKind.BAD_FRAME),
    "binary header": (struct.pack(">II", 100, 1 << 24 | 20), FindingKind.BAD_FRAME),
    "no JSON": (struct.pack(">II", 100, 50) + b"x" * 92, FindingKind.BAD_FRAME),
}


@pytest.mark.parametrize("name", sorted(BAD))
@pytest.mark.parametrize("size", [1, 1000])
def test_a_prefix_that_cannot_be_one(name: str, size: int) -> None:
    bad, kind = BAD[name]
    data = COMMANDS[0].frame + bad + COMMANDS[1].frame + COMMANDS[2].frame
    one = Decoding()
    for at in range(0, len(data), size):
        one.feed(data[at : at + size])
    one.finish()
    assert_frames(one.frames, COMMANDS[:3])
    assert one.kinds == [kind, FindingKind.RESYNCHRONIZED]
    assert one.findings[0].offset == STARTS[1]
    assert one.findings[1].offset == STARTS[1] + len(bad)
    assert one.findings[0].conversation == 9


def test_the_largest_frame() -> None:
    """16 MiB with its four length bytes: what RocketMQ accepts."""
    command = Command(0, 1, 1)
    body = bytes(MAX_FRAME - PREFIX - len(command.header))
    data = frame(command.header, body)
    assert len(data) == MAX_FRAME
    one = Decoding(keep=KEEP_NONE).feed(data).feed(COMMANDS[0].frame)
    assert [found.body_length for found in one.frames] == [len(body), 5]
    assert encode_frame(0, command.header, body) == data
    with pytest.raises(ValueError, match="at most 16777216"):
        encode_frame(0, command.header, body + b"x")


@pytest.mark.parametrize("command", COMMANDS)
def test_encoding(command: Command) -> None:
    assert encode_frame(int(command.binary), command.header, command.body) == command.frame


def test_the_search_finds_every_frame_behind_any_bytes() -> None:
    rng = random.Random(4)
    for size in (0, 1, 5, 100, 5000, 100_000):
        for junk in (
            bytes(size),
            b"\xff" * size,
            b"\x00\x00\x00{" * (size // 4),
            rng.randbytes(size),
        ):
            one = Decoding(False).feed(junk + STREAM)
            assert_frames(one.frames, COMMANDS)
            assert one.kinds == [FindingKind.RESYNCHRONIZED] * (len(junk) > 0)
            two = Decoding(False)
            for at in range(0, len(junk) + len(STREAM), 777):
                two.feed((junk + STREAM)[at : at + 777])
            assert_frames(two.finish().frames, COMMANDS)


def test_the_search_is_not_misled_by_the_beginning_of_a_frame() -> None:
    for command in COMMANDS[:5]:
        for cut in (1, 7, 8, 9, 20):
            one = Decoding(False).feed(command.frame[:cut] + STREAM).finish()
            assert_frames(one.frames, COMMANDS)


def test_the_largest_header_that_is_sought() -> None:
    for size, found in ((MAX_SOUGHT_HEADER, 2), (MAX_SOUGHT_HEADER + 1, 1)):
        command = Command(10, 1, ext={"a": ""})
        command = Command(10, 1, ext={"a": "x" * (size - len(command.header))})
        assert len(command.header) == size
        one = Decoding(False).feed(command.frame + COMMANDS[0].frame).finish()
        assert len(one.frames) == found
        assert len(Decoding(True).feed(command.frame).frames) == 1


def test_at_the_known_start_the_header_may_be_any_that_java_reads() -> None:
    header = (
        b"{code:105,extFields:{topic:'Orders',nums:4},flag:0,language:'CPP',opaque:1,version:1}"
    )
    strict = Decoding(False).feed(frame(header) + COMMANDS[0].frame).finish()
    assert_frames(strict.frames, COMMANDS[:1])
    for size in (1, 9, 1000):
        tolerant = Decoding(False, started=True)
        data = frame(header, b"body") + frame(header)
        for at in range(0, len(data), size):
            tolerant.feed(data[at : at + size])
        assert [found.header for found in tolerant.frames] == [header, header]
        assert tolerant.findings == []


def test_giving_up_what_is_held() -> None:
    start = STARTS[BIG] + PREFIX + len(COMMANDS[BIG].header)
    one = Decoding().feed(STREAM[: start + 1000])
    assert one.decoder.held_bytes == 1000
    one.decoder.release()
    assert one.decoder.held_bytes == 0
    one.feed(STREAM[start + 1000 :])
    assert [found.offset for found in one.frames] == STARTS[:-1]
    assert one.frames[BIG].body == b""
    head = Decoding().feed(STREAM[:50])
    assert head.decoder.held_bytes == 50
    head.decoder.release()
    assert head.decoder.held_bytes == 0
    head.feed(STREAM[50:])
    assert_frames(head.frames, COMMANDS[1:])
    search = Decoding(False).feed(STREAM[:50])
    assert search.decoder.held_bytes == 50
    search.decoder.release()
    assert search.decoder.held_bytes == 0


# -- time and memory ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_frame_in_small_pieces() -> None:
    """Header and body of megabytes, one byte per packet: linear, and no object for every byte."""
    ext = {"a": "x" * 400_000}
    command = Command(10, 1, ext=ext, body=b"y" * 400_000)
    data = command.frame
    began = time.process_time()
    one = Decoding()
    for at in range(0, len(data), 2):
        one.feed(data[at : at + 2])
    assert time.process_time() - began < 15
    assert_frames(one.frames, [command])
    assert one.frames[0].body == command.body
    half = Decoding().feed(data[:100])
    for at in range(100, 200_000, 2):
        half.feed(data[at : at + 2])
    overhead = half.decoder.held_memory - half.decoder.held_bytes
    assert overhead < (200 + MANY_PARTS) * PART_COST


FALSE_PREFIXES = {
    "prefixes": struct.pack(">II", 60_000, 50_000) + b"{",
    "binary prefixes": struct.pack(">II", 60_000, 1 << 24 | 50_000) + b"\x00",
    "zeros": b"\0",
    "braces": b"\0\0\0\0{",
    "bad frames": struct.pack(">II", 60, 50) + b'{"code":1,"opaque":1}',
    "frames and a byte": Command(1, 1).frame + b"!",
    "deep": struct.pack(">II", 9000, 9000 - 4) + b'{"code":' + b"[" * 200,
}


@pytest.mark.parametrize("name", sorted(FALSE_PREFIXES))
@pytest.mark.parametrize("size", [1, 1448, 65000])
def test_false_prefixes_take_linear_time(name: str, size: int) -> None:
    data = FALSE_PREFIXES[name] * (300_000 // len(FALSE_PREFIXES[name]))
    if size == 1:
        data = data[:70_000]
    one = Decoding(False)
    began = time.process_time()
    for at in range(0, len(data), size):
        one.feed(data[at : at + size])
        assert one.decoder.held_bytes <= MAX_SOUGHT_HEADER + PREFIX + size
    one.finish()
    assert time.process_time() - began < 20


@given(st.binary(max_size=400), st.integers(1, 50), st.booleans())
def test_arbitrary_bytes(data: bytes, size: int, synchronized: bool) -> None:
    one = Decoding(synchronized)
    for at in range(0, len(data), size):
        one.feed(data[at : at + size])
    one.finish()
    assert sum(PREFIX + len(found.header) + len(found.body) for found in one.frames) <= len(data)
    assert one.decoder.held_bytes == 0
