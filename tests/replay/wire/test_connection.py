"""The connection without a socket: cuts, garbage, late answers, requests of the peer."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand
from replay.config import ProducerConfig
from replay.errors import ConnectionLostError, ProtocolError
from replay.wire.channel import NEVER, Opaques, RemotingConnection
from replay.wire.request import encode_command, plain_request
from replay.wire.steps import Invoke

MS = 1_000_000
CONFIG = ProducerConfig(group="g", namesrv="127.0.0.1:9876")


class Waiter:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.done = False

    def resume(self, value: object) -> None:
        self.told.append(value)

    def fail(self, error: Exception) -> None:
        self.told.append(error)


class Conversation:
    """A connection and the requests that were begun on it."""

    def __init__(self) -> None:
        self.asked: list[tuple[RemotingCommand, bytes]] = []
        self.connection = RemotingConnection(
            1, "10.0.0.1:10911", "10.0.0.2:4000", Opaques(), self._request
        )

    def _request(self, _: RemotingConnection, command: RemotingCommand, body: bytes) -> None:
        self.asked.append((command, body))

    def begin(self, deadline: int = 3000 * MS, oneway: bool = False) -> tuple[Invoke, Waiter]:
        request = plain_request(CONFIG, 105, {"topic": "T"}, b"", oneway=oneway)
        invoke = Invoke("10.0.0.1:10911", request, deadline)
        waiter = Waiter()
        invoke.waiter = waiter
        self.connection.begin(invoke, 0)
        return invoke, waiter


def answer_to(invoke: Invoke, body: bytes = b"") -> bytes:
    return encode_command(
        RemotingCommand(0, invoke.opaque, RESPONSE_FLAG, "JAVA", 479, None, {"a": "b"}), body
    )


@given(st.lists(st.integers(1, 60)), st.lists(st.binary(max_size=40), min_size=1, max_size=6))
def test_answers_reach_their_requests_however_they_are_cut(
    cuts: list[int], bodies: list[bytes]
) -> None:
    talk = Conversation()
    begun = [talk.begin() for _ in bodies]
    # The last request is answered first: the order is the broker's.
    data = b"".join(
        answer_to(invoke, body)
        for (invoke, _), body in zip(reversed(begun), reversed(bodies), strict=True)
    )
    at = 0
    for cut in [*cuts, len(data)]:
        assert talk.connection.receive(data[at : at + cut], 5) is None
        at += cut
    for (invoke, waiter), body in zip(begun, bodies, strict=True):
        assert waiter.told == [invoke]
        assert invoke.body == body
        assert invoke.response_bytes == len(answer_to(invoke, body))
        assert invoke.ended == 5
    assert talk.connection.table == {}


@given(st.binary(min_size=1, max_size=200))
def test_no_bytes_raise_and_none_answer_a_request(data: bytes) -> None:
    talk = Conversation()
    _, waiter = talk.begin()
    error = talk.connection.receive(data, 0)
    assert error is None or isinstance(error, ProtocolError)
    assert waiter.told == []


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x7f\xff\xff\xff\x00\x00\x00\x10", "not a RocketMQ frame"),
        (b"\xff\xff\xff\xff\x00\x00\x00\x10", "not a RocketMQ frame"),
        (b"\x00\x00\x00\x10\x09\x00\x00\x04" + b"x" * 12, "not a RocketMQ frame"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"\x00\x00\x00\x08\x00\x00\x00\x04{,,}", "header"),
    ],
)
def test_garbage_is_said_as_what_it_looks_like(data: bytes, told: str) -> None:
    error = Conversation().connection.receive(data, 0)
    assert isinstance(error, ProtocolError)
    assert told in f"{error.reason} {error.hint}"


def test_an_answer_behind_bad_bytes_is_not_believed() -> None:
    talk = Conversation()
    first, told = talk.begin()
    second, untold = talk.begin()
    error = talk.connection.receive(answer_to(first) + b"x" * 20 + answer_to(second), 0)
    assert isinstance(error, ProtocolError)
    assert told.told == [first]
    assert untold.told == []


def test_what_is_held_is_bounded_by_one_frame() -> None:
    talk = Conversation()
    tracemalloc.start()
    assert (
        talk.connection.receive(b"\x00\xff\xff\xfc\x00\x00\x00\x10" + b"{" + b" " * 15, 0) is None
    )
    for _ in range(200):
        talk.connection.receive(bytes(1 << 17), 0)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held <= 17 << 20


def test_numbers_go_on_over_all_connections_and_never_become_negative() -> None:
    opaques = Opaques(0x7FFFFFFD)
    assert [opaques.next() for _ in range(4)] == [0x7FFFFFFE, 0x7FFFFFFF, 0, 1]


def test_one_way_requests_wait_for_nothing() -> None:
    talk = Conversation()
    talk.begin(oneway=True)
    assert talk.connection.table == {}
    assert talk.connection.earliest == NEVER


def test_requests_expire_at_their_time_each() -> None:
    talk = Conversation()
    begun = [talk.begin(number * MS) for number in (30, 10, 20)]
    assert talk.connection.earliest == 10 * MS
    assert talk.connection.expire(9 * MS) == []
    assert talk.connection.expire(20 * MS) == [begun[1][0], begun[2][0]]
    assert talk.connection.earliest == 30 * MS
    assert talk.connection.receive(answer_to(begun[1][0]), 0) is None
    assert talk.connection.orphans == 1
    assert begun[1][1].told == []


def test_the_end_fails_what_waits_once() -> None:
    talk = Conversation()
    begun = [talk.begin() for _ in range(3)]
    error = ConnectionLostError("gone")
    talk.connection.fail(error, 7)
    talk.connection.fail(error, 8)
    assert [waiter.told for _, waiter in begun] == [[error]] * 3
    assert talk.connection.receive(answer_to(begun[0][0]), 9) is None
    assert begun[0][1].told == [error]


def test_requests_of_the_peer_are_given_on() -> None:
    talk = Conversation()
    asked = encode_command(RemotingCommand(39, 5, 2, "JAVA", 479, None, {"x": "y"}), b"half")
    assert talk.connection.receive(asked, 0) is None
    ((command, body),) = talk.asked
    assert (command.code, command.ext_fields, body) == (39, {"x": "y"}, b"half")


def test_a_binary_answer_is_read() -> None:
    talk = Conversation()
    invoke, waiter = talk.begin()
    command = RemotingCommand(0, invoke.opaque, RESPONSE_FLAG, "JAVA", 479, None, {"a": "b"})
    command.serialize_type = "ROCKETMQ"
    talk.connection.receive(encode_command(command), 0)
    assert waiter.told == [invoke]
    assert invoke.command is not None
    assert invoke.command.ext_fields == {"a": "b"}
