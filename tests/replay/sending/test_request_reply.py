"""Request and reply: the reply is told by its correlation id, whenever it comes."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.messages.compression import compress
from dissectors.remoting.messages.properties import decode_properties, encode_properties
from replay import AsyncProducer, Message, Producer, ProducerConfig
from replay.errors import ReplyTimeoutError, SendFailed
from replay.sending.request_reply import REPLIES, PendingRequests
from replay.wire.request import encode_command
from tests.patience import Stopwatch

from ..responder import Responder, responding, store
from ..script import Bench, ScriptLink
from .sends import message


def push(properties: dict[str, str], body: bytes, sys_flag: int = 0) -> bytes:
    """A reply as a broker pushes it."""
    fields = {
        "topic": "c_REPLY_TOPIC",
        "properties": encode_properties(properties),
        "sysFlag": str(sys_flag),
        "flag": "7",
    }
    return encode_command(RemotingCommand(326, 99, 0, "JAVA", 479, None, fields), body)


def replying(order: str, body: bytes = b"pong", sys_flag: int = 0) -> object:
    """A broker that pushes the reply before or after it says that the request is stored."""

    def serve(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
        asked = decode_properties(command.ext_fields["i"])
        correlation = {"CORRELATION_ID": asked["CORRELATION_ID"], "MSG_TYPE": "reply"}
        frame = push(correlation, body, sys_flag)
        stranger = push({"CORRELATION_ID": "another one"}, b"not for you")
        if order == "before":
            connection.sendall(stranger + frame)
        store(connection, command, b"")
        if order == "after":
            time.sleep(0.05)
            connection.sendall(stranger + frame + frame)

    return serve


def ask(responder: Responder, blocking: bool, timeout_ms: int = 2000) -> Message:
    config = ProducerConfig(group="g", namesrv=responder.address)
    message = Message("T", b"ping", tags="tag")
    if blocking:
        with Producer(config) as producer:
            reply = producer.request(message, timeout_ms=timeout_ms)
            producer.poll(0.05)
            return reply

    async def run() -> Message:
        async with AsyncProducer(config) as producer:
            reply = await producer.request(message, timeout_ms=timeout_ms)
            await asyncio.sleep(0.05)
            return reply

    return asyncio.run(run())


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("order", ["before", "after"])
def test_the_reply_is_that_of_the_request(blocking: bool, order: str) -> None:
    with responding() as responder:
        responder.serve = replying(order)  # type: ignore[assignment]
        reply = ask(responder, blocking)
        (request,) = responder.sends()
        codes = [command.code for command, _ in responder.received]
        answers = [command for command, _ in responder.received if command.is_response]
    assert (reply.topic, reply.body, reply.flag) == ("c_REPLY_TOPIC", b"pong", 7)
    assert int(reply.properties["ARRIVE_TIME"]) > 1_600_000_000_000
    properties = decode_properties(request.ext_fields["i"])
    assert properties["TTL"] == "2000"
    assert "@" in properties["REPLY_TO_CLIENT"]
    assert codes.index(34) < codes.index(310), "brokers know us before they have to push"
    assert answers
    assert {(one.code, one.opaque) for one in answers} == {(0, 99)}


def test_a_compressed_reply_is_opened() -> None:
    with responding() as responder:
        body = compress(b"pong" * 1000, "zlib")
        responder.serve = replying("after", body, 1 | 0x300)  # type: ignore[assignment]
        assert ask(responder, True).body == b"pong" * 1000


def test_replies_that_wait_to_be_taken_are_bounded_by_their_bytes() -> None:
    """16 KB on the wire for each; 16 MiB of zeros opened."""
    bench = Bench()
    requests = PendingRequests(bench.sender)
    body = compress(bytes(16 << 20), "zlib")
    asked: list[str] = []
    answered: list[int] = []

    def serve(link: ScriptLink, command: RemotingCommand, _: bytes) -> None:
        if command.is_response:
            answered.append(command.code)
        elif command.code != 310:
            link.answer(command, 0, {})
        else:  # none is said to be stored, so that all of them wait
            asked.append(decode_properties(command.ext_fields["i"])["CORRELATION_ID"])
            link.send(push({"CORRELATION_ID": "a stranger"}, body, 1 | 0x300))
            link.send(push({"CORRELATION_ID": asked[-1]}, body, 1 | 0x300))

    for address in bench.brokers.values():
        bench.network.peers[address] = serve
    bound = bench.config.budget.bound(*REPLIES)
    waiting = [bench.client.runner.start(requests.request(message(), 2000)) for _ in range(6)]
    bench.network.run(500)
    assert len(asked) == 6
    assert (bound.held, bound.ended) == (64 << 20, 2)
    assert answered.count(0) == 6 + 4
    assert answered.count(1) == 2
    assert requests.dropped == 6
    bench.network.run(10_000)
    assert all(one.done for one in waiting)
    assert bound.held == 0


@pytest.mark.parametrize("blocking", [True, False])
def test_no_reply_in_time(blocking: bool) -> None:
    with responding() as responder:
        watch = Stopwatch()
        with pytest.raises(ReplyTimeoutError, match="no reply") as late:
            ask(responder, blocking, 400)
        assert watch.own < 1.0
    assert [attempt.code for attempt in late.value.attempts] == [0]  # it was stored


def test_a_request_that_is_not_stored_is_a_failed_send() -> None:
    with responding() as responder:
        from ..responder import answer

        responder.serve = lambda connection, command, body: answer(connection, command, 14)
        with pytest.raises(SendFailed) as failed:
            ask(responder, True)
    assert failed.value.code == 14
