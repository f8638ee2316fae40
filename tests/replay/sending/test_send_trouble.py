"""Sends that meet bad answers, missing routes, lost connections, or are given up."""

from __future__ import annotations

import pytest

from dissectors.remoting.bodies.registry import encode_body
from dissectors.remoting.command import RemotingCommand
from replay.errors import (
    ClientError,
    ConnectError,
    ConnectionLostError,
    NameServerError,
    ProtocolError,
    ResponseError,
    RouteError,
    SendFailed,
    SendTimeoutError,
)
from replay.message import Attempt, AttemptOutcome, Message, MessageQueue, SendMode

from ..script import MS, Bench, ScriptLink, dropping, mute, refusing
from .sends import ASYNC, SYNC, every_broker, failure_of, message, result_of, send


def test_an_unusable_answer_is_tried_elsewhere_if_synchronous_only() -> None:
    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        link.answer(command, 0, {"msgId": "A"})

    for mode, count in ((SYNC, 3), (ASYNC, 1)):
        bench = Bench()
        every_broker(bench, serve)
        error = failure_of(send(bench, mode))
        assert isinstance(error.cause, ResponseError)
        assert [one.outcome for one in error.attempts] == [AttemptOutcome.GARBAGE] * count


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x7f\xff\xff\xff\x00\x00\x00\x10" + b"x" * 64,
        b"\x00" * 64,
        b"\x00\x00\x00\x0c\x00\x00\x00\x08{nothing",
        b"\x15\x03\x03\x00\x02\x02\x46",
    ],
)
@pytest.mark.parametrize("mode", [SYNC, ASYNC])
def test_garbage_ends_the_connection_and_the_next_broker_is_asked(
    garbage: bytes, mode: SendMode
) -> None:
    bench = Bench()
    for name in ("broker-a", "broker-b"):
        bench.network.peers[bench.brokers[name]] = lambda link, command, body: link.send(garbage)
    for _ in range(12):
        result = result_of(send(bench, mode))
        for attempt in result.attempts[:-1]:
            assert attempt.outcome == AttemptOutcome.GARBAGE
    assert [link.open for link in bench.network.links if link.peer != "10.0.1.3:10911"][1:] == (
        [False] * (len([one for one in bench.network.links if one.peer != "10.0.1.3:10911"]) - 1)
    )
    every_broker(bench, lambda link, command, body: link.send(garbage))
    error = failure_of(send(bench, mode))
    assert isinstance(error.cause, ProtocolError)


def test_half_a_frame_and_then_nothing_is_a_timeout() -> None:
    bench = Bench(send_timeout_ms=300)
    every_broker(bench, lambda link, command, body: link.send(b"\x00\x00\x00\x40\x00\x00"))
    assert isinstance(failure_of(send(bench)).cause, SendTimeoutError)


def test_no_master_and_no_route() -> None:
    bench = Bench()
    bench.known = set()
    bench.network.peers["10.0.0.1:9876"] = lambda link, command, body: link.answer(command, 17)
    assert isinstance(send(bench).error, RouteError)
    assert [one.ext_fields["topic"] for _, one in bench.network.sent(105)] == ["T", "TBW102"]


def test_an_unknown_topic_is_made_from_tbw102() -> None:
    bench = Bench(default_topic_queue_nums=2)
    bench.known = {"TBW102"}
    queues = {result_of(send(bench)).queue for _ in range(20)}
    assert {(queue.topic, queue.queue_id) for queue in queues} == {("T", 0), ("T", 1)}
    assert [one.ext_fields["topic"] for _, one in bench.network.sent(105)] == ["T", "TBW102"]
    assert bench.network.sent(310)[0][1].ext_fields["c"] == "TBW102"


def test_a_read_only_broker_and_one_without_a_master_are_left_out() -> None:
    bench = Bench()
    body = encode_body(
        105,
        True,
        {
            "brokerDatas": [
                {"brokerAddrs": {"0": bench.brokers["broker-a"]}, "brokerName": "broker-a"},
                {"brokerAddrs": {"0": bench.brokers["broker-b"]}, "brokerName": "broker-b"},
                {"brokerAddrs": {"1": bench.brokers["broker-c"]}, "brokerName": "broker-c"},
            ],
            "queueDatas": [
                {"brokerName": f"broker-{name}", "perm": perm, "writeQueueNums": 2}
                for name, perm in (("a", 4), ("b", 6), ("c", 6))
            ],
        },
    )
    bench.network.peers["10.0.0.1:9876"] = lambda link, c, b: link.answer(c, 0, {}, body)
    queues = {result_of(send(bench)).queue for _ in range(8)}
    assert queues == {MessageQueue("T", "broker-b", 0), MessageQueue("T", "broker-b", 1)}


def test_nameserver_trouble_is_said_as_such() -> None:
    bench = Bench(send_timeout_ms=400)
    bench.network.peers["10.0.0.1:9876"] = mute
    began = bench.network.time
    error = send(bench).error
    assert isinstance(error, NameServerError)
    assert (bench.network.time - began) // MS <= 420
    del bench.network.peers["10.0.0.1:9876"]
    error = send(bench).error
    assert isinstance(error, NameServerError)
    assert "10.0.0.1:9876" in str(error)


def test_what_waits_for_one_route_asks_once() -> None:
    bench = Bench()
    started = [bench.client.runner.start(bench.sender.send(message(), ASYNC)) for _ in range(50)]
    bench.network.run(100)
    assert all(one.error is None and one.done for one in started)
    assert len(bench.network.sent(105)) == 1


def test_who_has_more_time_for_the_route_uses_it() -> None:
    bench = Bench(connect_timeout_ms=60_000, api_timeout_ms=60_000)

    def late(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        bench.network.later(500, lambda: link.open and bench.name_server(link, command, body))

    bench.network.peers["10.0.0.1:9876"] = late
    hasty = bench.client.runner.start(bench.sender.send(message(), ASYNC, 300))
    patient = bench.client.runner.start(bench.sender.send(message(), ASYNC, 3000))
    bench.network.run(3000)
    assert isinstance(hasty.error, NameServerError)
    assert patient.done
    assert patient.error is None


def test_a_send_that_is_given_up_gives_everything_back() -> None:
    seen: list[Attempt] = []
    bench = Bench(async_limit=1, on_attempt=lambda _, attempt: seen.append(attempt))
    result_of(send(bench))
    every_broker(bench, mute)
    operation = bench.client.runner.start(bench.sender.send(message(), ASYNC))
    bench.network.run(10)
    operation.cancel()
    assert bench.sender.attempts.permits[ASYNC].free == 1
    assert seen[-1].outcome == AttemptOutcome.CANCELLED
    bench.network.run(5000)
    assert bench.client.channels.in_flight == 0


def test_an_answer_that_comes_too_late_is_dropped() -> None:
    bench = Bench(send_timeout_ms=200)

    def late(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        link.answer(command, 0, {"msgId": "A", "queueId": "1", "queueOffset": "2"}, delay_ms=300)

    every_broker(bench, late)
    failure_of(send(bench, ASYNC))
    bench.network.run(500)
    channel = bench.client.channels.get(bench.addresses()[0])
    assert channel is not None
    assert channel.connection is not None
    assert channel.connection.orphans == 1


def test_failures_leave_nothing_behind() -> None:
    bench = Bench(send_timeout_ms=100)
    behaviours = [mute, dropping, refusing(14), lambda link, c, b: link.send(b"rubbish" * 9)]
    for number in range(400):
        every_broker(bench, behaviours[number % 4])
        with pytest.raises(ClientError):
            send(bench, (SYNC, ASYNC)[number // 4 % 2]).result  # noqa: B018
    bench.network.run(5000)
    assert bench.client.channels.in_flight == 0
    assert bench.client.channels.open_count <= 4
    assert len([link for link in bench.network.links if link.open]) <= 4


def test_lost_connections_are_told_apart_from_refused_ones() -> None:
    bench = Bench(retries=0)
    every_broker(bench, dropping)
    assert isinstance(failure_of(send(bench)).cause, ConnectionLostError)
    for address in bench.brokers.values():
        bench.network.silent.add(address)
        del bench.network.peers[address]
    began = bench.network.time
    error = failure_of(send(bench))
    assert isinstance(error.cause, ConnectError)
    assert (bench.network.time - began) // MS <= 3010


def test_what_is_given_up_while_the_connection_is_opened_is_not_written() -> None:
    bench = Bench()
    bench.network.connect_ms = 50
    result_of(send(bench))
    bench.client.channels.close_silent(1 << 62, lambda _: False)
    before = len(bench.network.sent(310))
    operation = bench.client.runner.start(bench.sender.send(message(), ASYNC))
    bench.network.run(10)
    operation.cancel()
    bench.network.run(200)
    assert len(bench.network.sent(310)) == before


def test_errors_that_are_kept_do_not_keep_what_was_sent() -> None:
    bench = Bench()
    for address in bench.brokers.values():
        del bench.network.peers[address]
    sent = [Message("T", bytes(100)) for _ in range(5)]
    kept = [bench.run(bench.sender.send(one, SYNC)).error for one in sent]
    assert all(isinstance(error, SendFailed) for error in kept)
    for error in kept:
        assert error is not None
        assert error.__traceback__ is None
        assert error.__cause__ is not None
        assert error.__cause__.__traceback__ is None
