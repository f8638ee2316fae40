"""Both drivers against real sockets that do what brokers and networks do when they fail."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import socket
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dissectors.remoting.command import RemotingCommand
from replay import AsyncProducer, Message, Producer, ProducerConfig, SendMode
from replay.errors import (
    ClientError,
    ConnectError,
    ConnectionLostError,
    NameServerError,
    ProtocolError,
    SendFailed,
    SendTimeoutError,
)
from replay.message import SendResult
from replay.transport.aio import AioLink, AioNetwork
from replay.wire.network import Link
from replay.wire.request import encode_command
from tests.patience import PATIENCE, Stopwatch, wait_for

from ..responder import Responder, Serve, free_address, hang_up, reset, saying, silence, store
from .drivers import (
    ASYNC,
    ONEWAY,
    SLACK_MS,
    SYNC,
    Driver,
    blocking,
    config_of,
    every_driver,
    message,
)


@every_driver
def test_all_modes(driver: Driver, responder: Responder) -> None:
    found = driver(config_of(responder), [SYNC, ASYNC, ONEWAY])
    assert all(isinstance(one, SendResult) for one in found), found
    assert [command.flag for command in responder.wait_for_sends(3)] == [0, 0, 2]
    assert responder.accepted == 1
    local = {one.attempts[0].local for one in found if isinstance(one, SendResult)}
    assert len(local) == 1


def test_a_name_may_have_any_number_of_addresses_that_fail_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # nobody connects to a broadcast address: the system refuses it without a packet
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("255.255.255.255", 9))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [entry] * 2000)
    config = ProducerConfig("g", "many.example:9876", client_ip="127.0.0.1")
    (error,) = blocking(config, [SYNC])
    assert isinstance(error, NameServerError), error


FAILURES: list[tuple[str, Serve, type[ClientError]]] = [
    ("garbage", saying(b"\x00\x00\x00\x20" + b"garbage!" * 8), ProtocolError),
    ("gigabytes", saying(b"\x7f\xff\xff\xff\x00\x00\x00\x40"), ProtocolError),
    ("http", saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), ProtocolError),
    ("bad header", saying(b"\x00\x00\x00\x0c\x00\x00\x00\x08{nothing"), ProtocolError),
    ("nothing", silence, SendTimeoutError),
    ("half a frame", saying(b"\x00\x00\x01\x00\x00\x00\x00"), SendTimeoutError),
    ("hangs up", hang_up, ConnectionLostError),
    ("resets", reset, ConnectionLostError),
]


@pytest.mark.slow
@every_driver
@pytest.mark.parametrize("mode", [SYNC, ASYNC])
@pytest.mark.parametrize(("name", "serve", "kind"), FAILURES, ids=[row[0] for row in FAILURES])
def test_failures_are_what_they_are_and_in_time(
    driver: Driver,
    mode: SendMode,
    name: str,
    serve: Serve,
    kind: type[ClientError],
    responder: Responder,
) -> None:
    responder.serve = serve
    watch = Stopwatch()
    # What fails at once must do so, however busy the machine is, before the time is over.
    timeout_ms = 1000 if kind is SendTimeoutError else 30_000
    (error,) = driver(config_of(responder, send_timeout_ms=timeout_ms), [mode])
    took = watch.own * 1000
    assert isinstance(error, SendFailed), error
    assert isinstance(error.cause, kind), error.cause
    assert took < 1000 + SLACK_MS
    assert error.attempts
    assert str(error).count("\n") <= 1
    assert all(one.error or one.code is not None for one in error.attempts)


@every_driver
def test_nothing_listens_at_the_broker(driver: Driver, responder: Responder) -> None:
    from ..responder import answer
    from ..script import route_body

    nowhere = free_address()
    responder.serve_route = lambda connection, command, body: answer(
        connection, command, 0, {}, route_body({"broker-a": nowhere})
    )
    watch = Stopwatch()
    (error,) = driver(config_of(responder), [SYNC])
    assert watch.own < 1
    assert isinstance(error, SendFailed)
    assert isinstance(error.cause, ConnectError)
    assert len(error.attempts) == 3
    assert nowhere in str(error)
    assert "nothing is listening there" in error.hint


@every_driver
def test_nothing_listens_at_the_nameserver(driver: Driver) -> None:
    watch = Stopwatch()
    (error,) = driver(ProducerConfig(group="g", namesrv=free_address()), [SYNC])
    assert watch.own < 1
    assert isinstance(error, NameServerError)
    assert "nothing is listening there" in str(error)


@every_driver
def test_hints_name_who_failed(driver: Driver, responder: Responder) -> None:
    """A NameServer stores nothing, and a server that never said anything may expect TLS."""
    for serve, hinted in ((silence, "the server is slow"), (hang_up, "both sides use TLS")):
        responder.serve_route = serve
        config = replace(config_of(responder), send_timeout_ms=500)
        (error,) = driver(config, [SYNC])
        assert isinstance(error, NameServerError)
        assert hinted in error.hint
        assert "stored" not in error.hint
        assert "broker" not in error.hint


@every_driver
def test_access_control_of_older_brokers_is_named(driver: Driver, responder: Responder) -> None:
    remark = "org.apache.rocketmq.acl.common.AclException: No accessKey is configured"

    def refuse(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
        response = RemotingCommand(1, command.opaque, 1, "JAVA", 409, remark, {})
        connection.sendall(encode_command(response, b""))

    responder.serve = refuse
    (error,) = driver(config_of(responder), [SYNC])
    assert isinstance(error, ClientError)
    assert "check the credentials" in error.hint


@every_driver
def test_the_next_nameserver_is_asked(driver: Driver, responder: Responder) -> None:
    servers = f"{free_address()};{free_address()};{responder.address}"
    for _ in range(4):
        found = driver(ProducerConfig(group="g", namesrv=servers), [SYNC])
        assert isinstance(found[0], SendResult)


@pytest.mark.slow
@every_driver
def test_a_frozen_nameserver_leaves_time_for_the_next_one(
    driver: Driver, responder: Responder
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        servers = f"127.0.0.1:{frozen.getsockname()[1]};{responder.address}"
        config = ProducerConfig(group="g", namesrv=servers, send_timeout_ms=1000)
        for _ in range(3):
            found = driver(config, [SYNC])
            assert isinstance(found[0], SendResult), found


@every_driver
def test_a_name_that_is_not_known(driver: Driver) -> None:
    (error,) = driver(
        ProducerConfig(group="g", namesrv="no-such-host.invalid:9876", send_timeout_ms=3000), [SYNC]
    )
    assert isinstance(error, NameServerError)


@every_driver
def test_garbage_from_a_nameserver(driver: Driver, responder: Responder) -> None:
    responder.serve_route = saying(b"SSH-2.0-OpenSSH_9.6\r\n")
    (error,) = driver(config_of(responder, send_timeout_ms=500), [SYNC])
    assert isinstance(error, NameServerError)
    assert "SSH" in str(error)


@pytest.mark.slow
@every_driver
def test_a_connection_that_ended_while_nobody_sent(driver: Driver, responder: Responder) -> None:
    config = config_of(responder, retries=0, retries_async=0)
    if driver is blocking:
        with Producer(config) as producer:
            producer.send(message())
            responder.hang_up_all()
            time.sleep(1.2)
            assert producer.send(message()).queue_offset == 7
    else:

        async def run() -> None:
            async with AsyncProducer(config) as producer:
                await producer.send(message())
                responder.hang_up_all()
                await asyncio.sleep(0.2)
                assert (await producer.send(message())).queue_offset == 7

        asyncio.run(run())
    assert responder.accepted == 2


@every_driver
def test_what_was_written_leaves_before_the_end(driver: Driver, responder: Responder) -> None:
    driver(config_of(responder), [ONEWAY] * 2000)
    opaques = [command.opaque for command in responder.wait_for_sends(2000)]
    assert len(opaques) == 2000
    assert opaques == sorted(opaques)


@pytest.mark.slow
def test_a_broker_that_does_not_read_stops_one_way_sends(responder: Responder) -> None:
    config = config_of(responder, oneway_limit=8, send_timeout_ms=300, max_message_size=1 << 21)
    big = Message("T", os.urandom(1 << 20))

    async def run() -> list[object]:
        async with AsyncProducer(config) as producer:
            await producer.send(message(), timeout_ms=30_000)
            responder.reading.clear()
            started = [producer.send(big, mode=ONEWAY) for _ in range(64)]
            return list(await asyncio.gather(*started, return_exceptions=True))

    try:
        found = asyncio.run(run())
    finally:
        responder.reading.set()
    assert any(isinstance(one, SendFailed) for one in found)
    assert sum(isinstance(one, SendResult) for one in found) < 40


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [True, False])
def test_answers_to_a_broker_that_does_not_read_are_bounded(
    responder: Responder, blocks: bool
) -> None:
    """A broker that only asks got answers into memory, without an end."""
    request = encode_command(RemotingCommand(9999, 1, 0, "JAVA", 479), b"") * 1000
    ended: list[bool] = []

    def ask(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
        store(connection, command, body)
        try:
            for _ in range(500):
                connection.sendall(request)
        except OSError:
            ended.append(True)
        else:
            ended.append(False)

    responder.serve = ask
    tracemalloc.start()
    try:
        if blocks:
            with Producer(config_of(responder, api_timeout_ms=600_000)) as producer:
                producer.send(message())
                wait_for("the end", lambda: producer.poll(0.05) or ended)
        else:
            asyncio.run(_send_and_wait(config_of(responder, api_timeout_ms=600_000), ended))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ended == [True]
    assert most < 24 << 20


async def _send_and_wait(config: ProducerConfig, ended: list[bool]) -> None:
    async with AsyncProducer(config) as producer:
        await producer.send(message())
        async with asyncio.timeout(PATIENCE):
            while not ended:
                await asyncio.sleep(0.02)


def test_one_loop_turn_is_one_write(responder: Responder, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    connection_made = AioLink.connection_made

    def counted(link: AioLink, transport: Any) -> None:
        write = transport.write
        transport.write = lambda data: (writes.append(len(data)), write(data))[1]
        connection_made(link, transport)

    monkeypatch.setattr(AioLink, "connection_made", counted)

    async def run() -> None:
        async with AsyncProducer(config_of(responder)) as producer:
            await producer.send(message())
            writes.clear()
            await asyncio.gather(*[producer.send(message()) for _ in range(32)])
            assert len(writes) == 1  # further ones wait for a response

    asyncio.run(run())


def test_a_cancelled_future_gives_its_send_up(responder: Responder) -> None:
    async def run() -> None:
        async with AsyncProducer(config_of(responder, async_limit=1)) as producer:
            await producer.send(message())
            responder.serve = silence
            future = producer.send(message())
            await asyncio.sleep(0.05)
            future.cancel()
            await asyncio.sleep(0.05)
            responder.serve = store
            await producer.send(message())  # the only permit is free again

    asyncio.run(run())


def test_sends_in_flight_fail_when_the_producer_is_closed(responder: Responder) -> None:
    async def run() -> None:
        async with AsyncProducer(config_of(responder)) as producer:
            await producer.send(message())
            responder.serve = silence
            future = producer.send(message())
            await asyncio.sleep(0.05)
            assert (await producer.close(0.1)).unfinished == 1
        with pytest.raises(SendFailed, match="closed"):
            await future
        with pytest.raises(ClientError, match="closed"):
            await producer.send(message())

    asyncio.run(run())


# -- nothing is left behind --------------------------------------------------------------------


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc here")
@every_driver
def test_a_thousand_failures_leave_nothing_behind(driver: Driver, responder: Responder) -> None:
    serves = [saying(b"rubbish" * 9), hang_up, reset]

    def serve(*given: object) -> None:
        serves[len(responder.received) % 3](*given)  # type: ignore[arg-type]

    responder.serve = serve
    config = config_of(responder, retries=1, retries_async=1)
    driver(config, [SYNC, ASYNC] * 20)
    gc.collect()
    before = open_files()
    tracemalloc.start()
    try:
        driver(config, [SYNC, ASYNC] * 50)
        responder.received.clear()
        gc.collect()
        first, _ = tracemalloc.get_traced_memory()
        found = driver(config, [SYNC, ASYNC] * 500)
        assert all(isinstance(one, SendFailed) for one in found)
        found.clear()
        responder.received.clear()
        gc.collect()
        last, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    wait_for("files are closed", lambda: open_files() <= before + 4)
    assert last - first < 400_000


# -- TLS ------------------------------------------------------------------------------------------


def test_the_default_behaviour_is_stored(responder: Responder) -> None:
    assert responder.serve is store


class _User:
    """Notes what becomes of a connection."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def opened(self, link: Link) -> None:
        self.notes.append("opened")

    def refused(self, reason: str, hint: str) -> None:
        self.notes.append(reason)

    def received(self, data: bytes) -> None: ...

    def ended(self, reason: str) -> None:
        self.notes.append("ended")

    def resumed(self) -> None: ...


def test_a_connect_that_succeeded_while_the_process_stood_still_is_no_timeout() -> None:
    user = _User()

    async def run() -> None:
        network = AioNetwork(None)
        with socket.create_server(("127.0.0.1", 0)) as server:
            network.open(f"127.0.0.1:{server.getsockname()[1]}", 100_000_000, user)
            while not select.select([server], [], [], 0)[0]:
                await asyncio.sleep(0)
            time.sleep(0.3)  # as a process that a busy machine does not run
            await asyncio.sleep(0.5)
            assert user.notes == ["opened"]
            await network.close()

    asyncio.run(run())


def test_a_connect_that_stays_unanswered_times_out() -> None:
    user = _User()

    async def run() -> None:
        network = AioNetwork(None)
        with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
            address = server.getsockname()
            with socket.create_connection(address):  # the queue is full now
                network.open(f"127.0.0.1:{address[1]}", 200_000_000, user)
                await asyncio.sleep(1)
                assert user.notes == ["no response in time"]
            await network.close()

    asyncio.run(run())
