"""What a live peer sends, read strictly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.decode.strict_reader import StrictReader
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.framing.frame import encode_frame
from dissectors.remoting.header_codec import JSON_TYPE, encode_header


def frame(opaque: int, body: bytes = b"") -> bytes:
    command = RemotingCommand(105, opaque, 0, "JAVA", 479, None, {"topic": "T"})
    return encode_frame(JSON_TYPE, encode_header(command), body)


def opaques(reader: StrictReader, *pieces: bytes) -> list[int]:
    return [one.command.opaque for piece in pieces for one in reader.receive(piece)]


@given(st.lists(st.integers(1, 400), max_size=8))
def test_commands_come_whole_however_they_are_cut(cuts: list[int]) -> None:
    data = frame(1) + frame(2, b"body") + frame(3)
    reader = StrictReader()
    pieces = []
    for cut in [*cuts, len(data)]:
        pieces.append(data[:cut])
        data = data[cut:]
    received = [one for piece in pieces for one in reader.receive(piece)]
    assert [(one.command.opaque, one.body) for one in received] == [
        (1, b""),
        (2, b"body"),
        (3, b""),
    ]
    assert [one.size for one in received] == [len(frame(1)), len(frame(2, b"body")), len(frame(3))]
    assert reader.problem is None
    assert reader.held_bytes == 0


@pytest.mark.parametrize("bad", [b"x" * 20, b"x" * 3000, b"\0\0\0\x10\x09\0\0\4" + b"y" * 12])
def test_nothing_behind_bad_bytes_is_read(bad: bytes) -> None:
    reader = StrictReader()
    assert opaques(reader, frame(1) + bad + frame(2), frame(3)) == [1]
    assert reader.problem is not None
    assert (reader.problem.protocol, reader.problem.bad_header) == (None, False)


@pytest.mark.parametrize("size", [1, 7, 400])
def test_another_protocol_is_named_however_it_is_cut(size: int) -> None:
    data = b"GET /index.html HTTP/1.1\r\nHost: h\r\n\r\n"
    reader = StrictReader()
    assert opaques(reader, *(data[at : at + size] for at in range(0, len(data), size))) == []
    assert reader.problem is not None
    assert reader.problem.protocol == ("HTTP" if size > 24 else None)


def test_a_header_that_cannot_be_read_ends_the_reading() -> None:
    reader = StrictReader()
    bad = b"\x00\x00\x00\x08\x00\x00\x00\x04{,,}"
    assert opaques(reader, frame(1) + bad + frame(2)) == [1]
    assert reader.problem is not None
    assert reader.problem.bad_header


@given(st.lists(st.binary(max_size=100), max_size=5))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    reader = StrictReader()
    opaques(reader, *pieces)
