from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.http2.connection import MOST_LOOKS, Happening, Http2End, Joining, StreamEvent
from dissectors.http2.frame import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    LARGEST,
    PADDED,
    RST_STREAM,
    StreamPlace,
)
from dissectors.http2.header_blocks import LARGEST_BLOCK, HeaderBlocks
from tests.traffic.http2 import Http2Writer as Writer
from tests.traffic.http2 import http2_frame as frame

from .talk import NOWHERE, events_of, kinds_of


def _some_calls() -> bytes:
    writer = Writer()
    for stream in range(1, 12, 2):
        writer.call(stream, "Heartbeat", b"x" * stream * 7)
    return bytes(writer.data)


@given(st.lists(st.integers(1, 1200), max_size=12))
def test_how_bytes_are_cut_changes_nothing(cuts: list[int]) -> None:
    data = _some_calls()
    assert [one._replace(place=NOWHERE) for one in events_of(data, cuts)] == [
        one._replace(place=NOWHERE) for one in events_of(data)
    ]


def test_padding_and_priority_are_no_content() -> None:
    writer = Writer()
    block = writer.encoder.encode([("a", "b")])
    padded = bytes((3,)) + b"\0\0\0\1\x10" + block + b"\0\0\0"
    data = frame(HEADERS, PADDED | 0x20 | END_HEADERS, 1, padded)
    data += frame(DATA, PADDED, 1, b"\x02hello\0\0")
    headers, body = events_of(bytes(writer.data) + data)
    assert headers.headers == [("a", "b")]
    assert body.data == b"hello"


def test_a_block_goes_on_in_continuations() -> None:
    writer = Writer()
    block = writer.encoder.encode([("name", "v" * 300)])
    data = frame(HEADERS, 0, 1, block[:10]) + frame(CONTINUATION, 0, 1, block[10:20])
    data += frame(CONTINUATION, END_HEADERS, 1, block[20:])
    (event,) = events_of(bytes(writer.data) + data)
    assert event.headers == [("name", "v" * 300)]


def test_resets_and_farewells_are_named() -> None:
    data = frame(RST_STREAM, 0, 3, (8).to_bytes(4))
    data += frame(GOAWAY, 0, 0, (5).to_bytes(4) + (11).to_bytes(4) + b"too_many_pings")
    reset, farewell = events_of(bytes(Writer().data) + data)
    assert (reset.stream, reset.reason) == (3, "CANCEL")
    assert (farewell.stream, farewell.reason) == (5, "ENHANCE_YOUR_CALM")


def test_a_hole_within_data_costs_only_that_data() -> None:
    writer = Writer()
    before = len(writer.data)
    writer.message(1, b"0123456789" * 5)
    writer.headers(1, [("late", "yes")], ends=True)
    data = bytes(writer.data)
    end = Http2End(joined=False)
    found: list[StreamEvent] = []
    end.receive(data[: before + 20], StreamPlace(1, 1, before + 20), found)
    end.receive_gap(10, StreamPlace(2, 2, before + 30), found)
    end.receive(data[before + 30 :], StreamPlace(3, 3, len(data)), found)
    assert end.problem is None
    assert (len(found[0].data), found[0].missing) == (11, 44)
    assert found[1].headers == [("late", "yes")]


@pytest.mark.parametrize("at", [30, 36, 40])
def test_behind_a_hole_elsewhere_a_certain_frame_is_looked_for(at: int) -> None:
    data = _some_calls()
    end = Http2End(joined=False)
    found: list[StreamEvent] = []
    end.receive(data[:at], NOWHERE, found)
    end.receive_gap(50, NOWHERE, found)
    end.receive(data[at + 50 :], NOWHERE, found)
    assert (found, end.losses, end.problem) == ([], 1, None)
    writer = Writer()
    writer.data.clear()
    writer.call(13, "Heartbeat", b"x")
    end.receive(bytes(writer.data), NOWHERE, found)
    assert kinds_of(found) == [Happening.HEADERS, Happening.DATA]
    assert found[0].headers[0] == (":method", "POST")


@pytest.mark.parametrize("what", ["in a body", "not POST", "cut", "by a server"])
def test_what_is_not_certainly_a_call_is_no_start(what: str) -> None:
    writer = Writer()
    writer.data.clear()
    method = "GET" if what == "not POST" else "POST"
    stream = 2 if what == "by a server" else 1
    writer.headers(stream, [(":method", method), (":scheme", "http"), (":path", "/")])
    data = bytes(writer.data)
    assert Joining().is_start(data) == (what in ("in a body", "cut"))
    if what == "cut":
        data = data[:-1]
    elif what == "in a body":
        data = frame(DATA, 0, 1, data)
    assert not Joining().is_start(data)


def test_looks_for_a_start_are_bounded() -> None:
    joining = Joining()
    fails = frame(HEADERS, END_HEADERS, 1, b"\xbe")
    assert not any(joining.is_start(fails) for _ in range(MOST_LOOKS))
    starts = frame(HEADERS, END_HEADERS, 1, b"\x88")
    assert Joining().is_start(starts)
    assert not joining.is_start(starts)


def test_headers_after_a_join_are_right_where_they_can_be_known() -> None:
    writer = Writer()
    ask = [(":method", "POST"), (":scheme", "http")]
    writer.headers(1, [("old", "1"), ("older", "2")])
    writer.data.clear()
    writer.headers(3, [*ask, ("old", "1"), ("new", "3")])
    writer.headers(5, [("new", "3"), ("older", "2")])
    first, second = events_of(bytes(writer.data), joined=True)
    assert first.headers == [*ask, ("", ""), ("new", "3")]
    assert second.headers == [("new", "3"), ("", "")]


def test_continuations_without_end_are_bounded() -> None:
    data = frame(HEADERS, 0, 1, b"\0") + frame(CONTINUATION, 0, 1, bytes(1000)) * 100
    end = Http2End(joined=False)
    found: list[StreamEvent] = []
    end.receive(bytes(Writer().data) + data, NOWHERE, found)
    assert end.problem == f"a header block of more than {LARGEST_BLOCK} bytes"
    assert (end.held, found) == (0, [])


def test_a_block_that_becomes_too_much_ends_the_headers() -> None:
    blocks = HeaderBlocks(joined=False)
    bomb = b"\x40\x01a\x7f\xa1\x1e" + b"v" * 4000 + b"\xbe" * 1000
    assert blocks.decode(bomb) is None
    assert blocks.problem is not None
    assert blocks.decode(b"\x82") is None


def test_a_number_without_end_is_refused() -> None:
    """hpack before 4.2 adds up all of its bytes, which takes a second for a block."""
    blocks = HeaderBlocks(joined=False)
    assert blocks.decode(b"\xff" * 100 + b"\x7f") is None
    assert blocks.problem == "a header block that does not decode: HPACKDecodingError"


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    end = Http2End(joined=True)
    found: list[StreamEvent] = []
    end.receive(data, NOWHERE, found)
    assert end.held <= len(data) + LARGEST


def test_every_kind_of_event_is_met() -> None:
    assert set(kinds_of(events_of(_some_calls()))) == {Happening.HEADERS, Happening.DATA}
