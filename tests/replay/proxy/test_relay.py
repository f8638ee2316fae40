"""One connection of the proxy, without sockets: what passes, what changes, in whatever pieces."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.remoting.broker_addresses import answered_with_addresses, with_broker_addresses
from dissectors.remoting.code_names import request_name
from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand
from dissectors.remoting.framing.frame import MAX_FRAME, encode_frame
from dissectors.remoting.header_codec import BINARY_TYPE, JSON_TYPE, encode_header
from replay.proxy.relay import ProxyRelay
from replay.sandbox.room import Room
from tests.streams import streams_of

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"b-a",'
    b'"cluster":"C"}],"filterServerTable":{},"queueDatas":[]}'
)
FRONTED = ROUTE.replace(b"10.0.0.1:10911", b"127.0.0.1:1").replace(
    b"10.0.0.2:10911", b"127.0.0.1:1"
)
kinds = st.sampled_from([JSON_TYPE, BINARY_TYPE])


class Sides:
    """Both ends of a connection."""

    def __init__(self, room: Room | None = None) -> None:
        self.server = self.client = self.recorded = self.asked = b""
        self.unread: list[bool] = []
        self.overflows = 0
        self.room = room or Room()
        self.relay = ProxyRelay(self, self.rewrite, self.room)

    def rewrite(self, body: bytes) -> bytes:
        return with_broker_addresses(body, lambda name, address: "127.0.0.1:1")

    def to_server(self, data: bytes) -> None:
        self.seen(data)
        self.forward(data)

    def forward(self, data: bytes) -> None:
        self.server += data

    def to_client(self, data: bytes, shown: bytes | None = None) -> None:
        self.client += data
        self.recorded += data if shown is None else shown

    def seen(self, data: bytes, fault: str = "") -> None:
        self.asked += data

    def unreadable(self, from_client: bool) -> None:
        self.unread.append(from_client)

    def overflow(self) -> None:
        self.overflows += 1


def command(kind: int, code: int, opaque: int, flag: int = 0, body: bytes = b"") -> bytes:
    """A frame."""
    header = RemotingCommand(code, opaque, flag, "JAVA", 477, None, {"topic": "T"})
    return encode_frame(kind, encode_header(header, kind), body)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The same bytes in pieces."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[at:end] for at, end in pairwise(places)]


cuts = st.lists(st.integers(0, 1 << 20), max_size=12)


@given(
    sent=st.lists(st.tuples(kinds, st.integers(-5, 70_000), st.binary(max_size=300)), max_size=6),
    rest=st.binary(max_size=40),
    first=cuts,
    second=cuts,
)
@example(sent=[], rest=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", first=[3], second=[])
@example(sent=[(0, 310, b"x")], rest=b"\xff\xff\xff\xff\0\0\0\0", first=[], second=[1, 2])
def test_all_bytes_pass_in_whatever_pieces(
    sent: list[tuple[int, int, bytes]], rest: bytes, first: list[int], second: list[int]
) -> None:
    asked = b"".join(command(kind, code, n, 0, body) for n, (kind, code, body) in enumerate(sent))
    told = b"".join(
        command(kind, 0, n, RESPONSE_FLAG, body) for n, (kind, _, body) in enumerate(sent)
    )
    sides = Sides()
    for piece in pieces(asked + rest, first):
        before = len(sides.server)
        sides.relay.from_client(piece)
        assert sides.server[before:] == piece  # at once, whatever it is
    for piece in pieces(told + rest, second):
        sides.relay.from_server(piece)
    sides.relay.close()
    assert sides.server == sides.asked == asked + rest
    assert (told + rest).startswith(sides.client)  # less the frame that never came to its end
    assert sides.recorded == sides.client
    assert sides.room.used == 0


@given(kind=kinds, answered=kinds, before=cuts, after=cuts, others=st.integers(0, 3))
def test_a_route_is_rewritten_in_whatever_pieces(
    kind: int, answered: int, before: list[int], after: list[int], others: int
) -> None:
    sends = b"".join(command(kind, 310, 100 + n, 0, b"body" * n) for n in range(others))
    asked = sends + command(kind, 105, 7) + sends
    results = b"".join(
        command(answered, 0, 100 + n, RESPONSE_FLAG, b"z" * n) for n in range(others)
    )
    sides = Sides()
    for piece in pieces(asked, before):
        sides.relay.from_client(piece)
    for piece in pieces(results + command(answered, 0, 7, 1, ROUTE) + results, after):
        sides.relay.from_server(piece)
    assert sides.client == results + command(answered, 0, 7, 1, FRONTED) + results
    # A recording shows what the real server said.
    assert sides.recorded == results + command(answered, 0, 7, 1, ROUTE) + results
    assert sides.server == asked


def test_a_frame_that_began_before_the_request_for_a_route_is_not_its_response() -> None:
    sides = Sides()
    other = command(0, 0, 7, RESPONSE_FLAG, ROUTE)
    sides.relay.from_server(other[:30])
    sides.relay.from_client(command(0, 105, 7))
    sides.relay.from_server(other[30:])
    sides.relay.from_server(command(0, 0, 7, RESPONSE_FLAG, ROUTE))
    assert sides.client == other + command(0, 0, 7, RESPONSE_FLAG, FRONTED)


def test_requests_of_servers_and_responses_of_clients_pass() -> None:
    sides = Sides()
    sides.relay.from_client(command(0, 105, 7))
    check = command(1, 39, 7, 0, ROUTE)
    sides.relay.from_server(check)
    sides.relay.from_client(command(1, 105, 7, RESPONSE_FLAG, b"x"))
    assert sides.client == check
    sides.relay.from_server(command(0, 0, 7, RESPONSE_FLAG, ROUTE))
    assert sides.client == check + command(0, 0, 7, RESPONSE_FLAG, FRONTED)


@pytest.mark.parametrize("from_client", [True, False])
def test_a_connection_that_ends_while_bytes_pass_takes_no_memory(from_client: bool) -> None:
    class Ending(Sides):
        def forward(self, data: bytes) -> None:
            self.relay.close()

        def to_client(self, data: bytes, shown: bytes | None = None) -> None:
            self.relay.close()

    sides = Ending()
    data = command(0, 310, 1) + command(0, 310, 2)[:-1]
    (sides.relay.from_client if from_client else sides.relay.from_server)(data)
    assert sides.room.used == 0


def test_frames_that_are_not_whole_are_bounded() -> None:
    sides = Sides(Room(1 << 20))
    sides.relay.from_client(command(0, 105, 7))
    frame = command(0, 0, 7, RESPONSE_FLAG, bytes(MAX_FRAME // 2))
    for at in range(0, len(frame), 65536):
        sides.relay.from_server(frame[at : at + 65536])
        if sides.overflows:
            break
    assert sides.overflows == 1
    assert sides.room.used <= 1 << 20


@pytest.mark.parametrize(
    "sample",
    ["routes-differ-4x.pcap", "routes-differ-5x.pcap", "admin-4x.pcap", "admin-5x.pcap"],
)
def test_real_streams_pass_but_for_addresses(sample: str) -> None:
    """Each direction of a recorded connection; all addresses of brokers are other ones."""
    streams = streams_of(SAMPLES / sample)
    by_ends = {(one.source, one.destination): one.data for one in streams}
    changed = 0
    for (source, destination), asked in by_ends.items():
        told = by_ends.get((destination, source), b"")
        if int(source.rpartition(":")[2]) < int(destination.rpartition(":")[2]):
            continue
        sides = Sides()
        sides.relay.from_client(asked)
        sides.relay.from_server(told)
        sides.relay.close()
        assert sides.server == asked
        assert sides.recorded == told
        if sides.client != told:
            changed += 1
            assert b"127.0.0.1:1" in sides.client
    assert changed


def test_bodies_with_addresses_in_both_dialects() -> None:
    def front(name: str, address: str) -> str:
        return f"{name}@{address}"

    group = b'{"brokerAddrs" : {"0" : "h-1.x:1"},"brokerName":"a","cluster":"c"}'
    assert with_broker_addresses(group, front) == group.replace(b'"h-1', b'"a@h-1')
    cluster = {
        "brokerAddrTable": {"a": {"brokerAddrs": {"0": "[::1]:5"}, "brokerName": "a"}},
        "clusterAddrTable": {"c": ["a"]},
    }
    new = json.loads(with_broker_addresses(json.dumps(cluster).encode(), front))
    assert new["brokerAddrTable"]["a"]["brokerAddrs"] == {"0": "a@[::1]:5"}
    stats = b'{"brokerAddr":"10.0.0.1:5","totalDiff":0}'
    assert with_broker_addresses(stats, front) == b'{"brokerAddr":"@10.0.0.1:5","totalDiff":0}'
    text = json.dumps({"remark": '"brokerAddrs":{0:"10.0.0.1:5"}'}).encode()
    assert with_broker_addresses(text, front) == text


def test_which_responses_name_brokers() -> None:
    names = {request_name(code) for code in answered_with_addresses()}
    assert names >= {
        "GET_ROUTEINFO_BY_TOPIC",
        "GET_BROKER_CLUSTER_INFO",
        "GET_BROKER_MEMBER_GROUP",
        "GET_SYSTEM_TOPIC_LIST_FROM_NS",
        "GET_BROKER_CONSUME_STATS",
    }
    assert "GET_CONSUMER_CONNECTION_LIST" not in names  # the addresses of clients stay
