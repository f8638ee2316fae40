"""Frames of a stream that has holes or ends: what is lost, and that nothing is made up."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.findings import FindingKind
from dissectors.remoting.framing.frame import PREFIX

from .decoding import BIG, COMMANDS, STARTS, STREAM, Decoding, assert_frames


def test_a_hole_in_a_body_costs_its_bytes() -> None:
    start = STARTS[BIG] + PREFIX + len(COMMANDS[BIG].header)
    one = Decoding().feed(STREAM[: start + 100]).lose(1000).feed(STREAM[start + 1100 :])
    assert_frames(one.frames[:BIG] + one.frames[BIG + 1 :], COMMANDS[:BIG] + COMMANDS[BIG + 1 :])
    frame = one.frames[BIG]
    assert (frame.missing, frame.body_length) == (1000, len(COMMANDS[BIG].body))
    assert frame.body == COMMANDS[BIG].body[:100]
    assert frame.packet == 103
    assert one.findings == []


def test_a_hole_up_to_the_end_of_a_body() -> None:
    start = STARTS[BIG] + PREFIX + len(COMMANDS[BIG].header)
    end = STARTS[BIG + 1]
    one = Decoding().feed(STREAM[: start + 1]).lose(end - start - 1)
    assert one.frames[BIG].missing == end - start - 1
    assert one.frames[BIG].packet == 102
    one.feed(STREAM[end:])
    assert_frames(one.frames[BIG + 1 :], COMMANDS[BIG + 1 :])
    assert one.findings == []


def test_a_hole_over_a_whole_body_and_more() -> None:
    start = STARTS[BIG] + PREFIX + len(COMMANDS[BIG].header)
    one = Decoding().feed(STREAM[:start]).lose(STARTS[BIG + 1] - start + 3)
    one.feed(STREAM[STARTS[BIG + 1] + 3 :] + COMMANDS[0].frame)
    assert one.frames[BIG].missing == len(COMMANDS[BIG].body)
    assert one.frames[BIG].body == b""
    assert_frames(one.frames[BIG + 1 :], COMMANDS[:1])
    assert one.kinds == [FindingKind.RESYNCHRONIZED]


@pytest.mark.parametrize("at", [1, 7, 8, 9, 30])
def test_a_hole_in_a_prefix_or_header_costs_the_frame(at: int) -> None:
    start = STARTS[2]
    one = Decoding().feed(STREAM[: start + at]).lose(5).feed(STREAM[start + at + 5 :]).finish()
    assert_frames(one.frames, COMMANDS[:2] + COMMANDS[3:])
    assert one.kinds == [FindingKind.RESYNCHRONIZED]
    assert one.findings[0].offset == STARTS[3]


def test_a_hole_between_frames_costs_nothing_but_its_frames() -> None:
    one = Decoding().feed(STREAM[: STARTS[2]]).lose(STARTS[4] - STARTS[2])
    one.feed(STREAM[STARTS[4] :])
    assert_frames(one.frames, COMMANDS[:2] + COMMANDS[4:])
    assert one.kinds == [FindingKind.RESYNCHRONIZED]


def test_a_hole_of_unknown_size() -> None:
    start = STARTS[BIG] + PREFIX + len(COMMANDS[BIG].header)
    one = Decoding().feed(STREAM[: start + 100])
    one.lose(0)
    assert one.frames[BIG].missing == len(COMMANDS[BIG].body) - 100
    one.feed(STREAM)
    assert_frames(one.frames[BIG + 1 :], COMMANDS)


def test_a_hole_behind_a_frame_that_waits_for_a_doubtful_one() -> None:
    """What seemed to be a frame, and never was completed, hides none behind its start."""
    doubtful = struct.pack(">II", 50_000, 40_000) + b"{"
    head = COMMANDS[BIG].frame[:-2000]
    one = Decoding(False).feed(doubtful + COMMANDS[0].frame + head)
    assert one.frames == []
    one.lose(1500).feed(COMMANDS[BIG].frame[-500:] + COMMANDS[1].frame)
    assert_frames([one.frames[0], one.frames[2]], COMMANDS[:2])
    assert one.frames[1].missing == 1500
    assert one.frames[1].header == COMMANDS[BIG].header


@given(st.data())
def test_any_loss_gives_fewer_never_other(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(STREAM) - 1), max_size=16)))
    one = Decoding(data.draw(st.booleans()))
    for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        if data.draw(st.integers(0, 3)):
            one.feed(STREAM[start:end])
        else:
            one.lose(end - start)
    one.finish()
    seen = set()
    for found in one.frames:
        assert found.offset in STARTS
        assert found.offset not in seen
        seen.add(found.offset)
        command = COMMANDS[STARTS.index(found.offset)]
        assert (found.serialize_type, found.header) == (int(command.binary), command.header)
        assert found.body_length == len(command.body)
        assert command.body.startswith(found.body)
        assert len(found.body) + found.missing <= found.body_length
        assert found.missing or found.body == command.body
    assert one.decoder.held_bytes == 0


def test_the_end_inside_a_frame() -> None:
    cut = Decoding().feed(STREAM[: STARTS[1] - 2]).finish()
    assert cut.kinds == [FindingKind.FRAME_CUT]
    assert (cut.frames[0].missing, cut.frames[0].body) == (2, b"hel")
    for size in (1, 7, 8, 20):
        one = Decoding().feed(STREAM[:size]).finish()
        assert one.frames == []
        assert one.kinds == [FindingKind.FRAME_CUT]
        assert f"only {size} bytes" in one.findings[0].detail
    assert Decoding().feed(STREAM).finish().findings == []
