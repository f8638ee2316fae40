"""One gRPC connection of the proxy, without sockets: recorded connections in whatever pieces."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given

from dissectors.http2.connection import Happening, Http2End, StreamEvent
from dissectors.http2.frame import DATA, HEADERS, PREFACE, RST_STREAM, StreamPlace
from replay.proxy.grpc_relay import GrpcRelay
from replay.sandbox.room import Room
from tests.streams import streams_of

from .test_relay import SAMPLES, Sides, cuts, pieces


def connections(sample: str) -> list[tuple[bytes, bytes]]:
    """Both directions of the gRPC connections of a capture: of the client, of the server."""
    streams = streams_of(SAMPLES / sample)
    by_ends = {(one.source, one.destination): one.data for one in streams}
    return [
        (data, by_ends[there, here])
        for (here, there), data in by_ends.items()
        if data.startswith(PREFACE)
    ]


RECORDED = [
    pair for name in ("grpc-send-5x.pcap", "grpc-consume-53.pcap") for pair in connections(name)
]


def passed(
    asked: bytes, told: bytes, front: tuple[str, int] | None, first: list[int], second: list[int]
) -> tuple[Sides, list[tuple[str, int]]]:
    """Send a connection through; the endpoints that were asked for."""
    seen: list[tuple[str, int]] = []

    def front_of(host: str, port: int, dialled: bool) -> tuple[str, int] | None:
        assert dialled  # a RocketMQ proxy names the host that its client named
        seen.append((host, port))
        return front

    sides = Sides()
    relay = GrpcRelay(sides, front_of, sides.room)
    for piece in pieces(asked, first):
        relay.from_client(piece)
    for piece in pieces(told, second):
        relay.from_server(piece)
    assert not sides.unread
    relay.close()
    assert sides.room.used == 0
    return sides, seen


def data_of(stream: bytes) -> dict[int, bytes]:
    """The DATA of each stream."""
    events: list[StreamEvent] = []
    end = Http2End(False)
    end.receive(stream, StreamPlace(0, 0, 0), events)
    assert end.problem is None
    found: dict[int, bytes] = {}
    for event in events:
        if event.what is Happening.DATA:
            found[event.stream] = found.get(event.stream, b"") + event.data
    return found


@given(first=cuts, second=cuts)
def test_without_fronts_all_bytes_pass(first: list[int], second: list[int]) -> None:
    for asked, told in RECORDED[:2]:
        sides, _ = passed(asked, told, None, first, second)
        assert sides.server == asked
        assert sides.client == sides.recorded == told


@given(first=cuts, second=cuts)
def test_routes_name_the_proxy(first: list[int], second: list[int]) -> None:
    asked, told = RECORDED[0]
    sides, seen = passed(asked, told, ("127.9.9.9", 18081), first, second)
    assert sides.recorded == told
    assert seen
    before, after = data_of(told), data_of(sides.client)
    assert before.keys() == after.keys()
    changed = [number for number in before if before[number] != after[number]]
    assert changed
    host = seen[0][0].encode()
    for number in changed:
        assert b"127.9.9.9" in after[number]
        assert host not in after[number]
        assert int.from_bytes(after[number][1:5]) == len(after[number]) - 5


def test_recorded_connections_have_routes() -> None:
    assert sum(bool(passed(*pair, None, [], [])[1]) for pair in RECORDED) >= 2


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", PREFACE + b"\xff" * 40])
def test_what_is_no_http2_passes(data: bytes) -> None:
    sides = Sides(Room())
    relay = GrpcRelay(sides, lambda host, port, dialled: None, sides.room)
    for at in range(len(data)):
        relay.from_client(data[at : at + 1])
    relay.from_server(b"\xff" * 100)
    relay.from_server(b"more")
    assert sides.server == data
    assert sides.client == b"\xff" * 100 + b"more"
    assert sides.unread


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def asking(stream: int) -> bytes:
    """A request for a route: :path as a literal that no table keeps."""
    path = b"/QueryRoute"
    return frame(HEADERS, 4, stream, b"\x04" + bytes((len(path),)) + path)


ENDINGS = {
    "only trailers": (b"", frame(HEADERS, 5, 1, b"\x88")),
    "reset by the server": (b"", frame(RST_STREAM, 0, 1, bytes(4))),
    "reset after HEADERS": (b"", frame(HEADERS, 4, 1, b"\x88") + frame(RST_STREAM, 0, 1, bytes(4))),
    "cancelled by the client": (frame(RST_STREAM, 0, 1, bytes(4)), b""),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_streams_that_end_without_a_route_are_forgotten(ending: str) -> None:
    asked, told = ENDINGS[ending]
    sides = Sides(Room())
    relay = GrpcRelay(sides, lambda host, port, dialled: None, sides.room)
    relay.from_client(PREFACE + asking(1))
    assert len(relay._asking) == 1
    relay.from_client(asked)
    relay.from_server(told)
    assert sides.client == told
    assert not relay._asking


def test_what_was_held_of_a_cancelled_stream_passes() -> None:
    sides = Sides(Room())
    relay = GrpcRelay(sides, lambda host, port, dialled: None, sides.room)
    relay.from_client(PREFACE + asking(1))
    told = frame(DATA, 0, 1, b"part")
    relay.from_server(told)
    assert sides.client == b""
    relay.from_client(frame(RST_STREAM, 0, 1, bytes(4)))
    assert sides.client == sides.recorded == told


@pytest.mark.parametrize("from_client", [True, False])
def test_what_is_held_passes_when_the_relay_gives_up(from_client: bool) -> None:
    sides = Sides(Room())
    relay = GrpcRelay(sides, lambda host, port, dialled: None, sides.room)
    relay.from_client(PREFACE + asking(1))
    told = frame(HEADERS, 4, 1, b"\x88") + frame(DATA, 0, 1, b"part") + b"\0\0\7"
    relay.from_server(told)
    if from_client:
        relay.from_client(b"\xff" * 40)
    else:
        more = b"\0" * 6 + b"\xff" * 20
        told += more
        relay.from_server(more)
    relay.from_server(b"rest")
    assert sides.unread == [from_client]
    assert sorted(sides.client) == sorted(told + b"rest")
    assert sorted(sides.recorded) == sorted(told + b"rest")
    relay.close()
    assert sides.room.used == 0


def test_a_route_in_many_frames_takes_linear_time() -> None:
    def seconds(count: int) -> float:
        sides = Sides(Room())
        relay = GrpcRelay(sides, lambda host, port, dialled: None, sides.room)
        relay.from_client(PREFACE + asking(1))
        told = frame(HEADERS, 4, 1, b"\x88") + frame(DATA, 0, 1, b"123456789") * count
        told += frame(DATA, 1, 1)
        begin = process_time()
        relay.from_server(told)
        assert sides.client == told
        return process_time() - begin

    assert seconds(60_000) < 12 * max(seconds(15_000), 0.01)
