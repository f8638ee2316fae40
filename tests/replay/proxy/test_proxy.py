"""The proxy with sockets, in front of a sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Thread

import pytest

from dissectors.decode.pipeline import Decode
from replay.config import ProducerConfig, TlsSettings
from replay.errors import ConfigError
from replay.message import Message
from replay.producer import Producer
from replay.proxy.options import ProxyOptions, check_options
from replay.proxy.proxy import Proxy
from replay.proxy.recording import Recording, Tap
from replay.sandbox import SandboxEvent, SandboxOptions, TopicSpec, sandbox_thread
from tests.patience import wait_for
from tests.replay.certificates import make_certificate
from tests.replay.sandbox.talk import Talk, frame

from .proxied import proxied
from .test_grpc_relay import RECORDED

PROXY_PORT = 18081
"""what a RocketMQ proxy of the recordings says of itself"""

pytestmark = pytest.mark.slow
BOX = SandboxOptions(port=0, namesrv_port=0, brokers=2, vip=True, topics=[TopicSpec("T", 2)])


def test_clients_stay_on_the_proxy_and_a_recording_shows_the_real_cluster(tmp_path: Path) -> None:
    path = tmp_path / "p.pcapng"
    recording = Recording([Tap("p", os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))])
    with sandbox_thread(BOX) as box:
        real = set(box.addresses.values())
        with proxied(box.namesrv, wire=recording) as proxy:
            with Producer(ProducerConfig(group="g", namesrv=proxy.namesrv)) as producer:
                results = [producer.send(Message("T", b"x" * (n + 1))) for n in range(8)]
            fronts = {f"{one.host}:{one.port}" for one in proxy.proxy.fronts.known()}
            assert {attempt.address for one in results for attempt in one.attempts} == fronts
            assert proxy.proxy.counts["rewritten responses"] >= 1
        recording.finish()
    assert len(fronts) == 2
    assert not fronts & real
    rows = [row for batch in Decode([str(path)]).records() for row in batch]
    sends = [row for row in rows if row.request_code == 310]
    assert len(sends) == 8
    assert {row.server_address for row in sends} == real
    routes = {address for row in rows for address in row.brokers}
    assert {address.partition("=")[2] for address in routes} == real


def test_an_address_that_nobody_allowed_is_not_connected_to() -> None:
    events: list[SandboxEvent] = []
    with proxied("192.0.2.1:9876", on_event=events.append) as proxy:
        assert is_reset(proxy.namesrv, 105)
        wait_for("a refusal", lambda: proxy.proxy.counts["refused connections"] == 1)
    assert any("192.0.2.1:9876 is not a loopback address" in event.detail for event in events)


def test_a_route_cannot_lead_to_an_address_that_nobody_allowed() -> None:
    """The NameServer is allowed, the broker that it names is not."""
    body = b'{"brokerDatas":[{"brokerAddrs":{0:"192.0.2.7:10911"},"brokerName":"b"}]}'
    events: list[SandboxEvent] = []
    with answering(body) as names, proxied(names, on_event=events.append) as proxy:
        with Talk(proxy.namesrv) as talk:
            assert b"192.0.2.7" not in talk.ask(105, {"topic": "T"}).body
        assert is_reset(proxy.front_of("b"), 310)
        wait_for("a refusal", lambda: any("192.0.2.7:10911 is not" in one.detail for one in events))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_broker_that_is_down_at_an_own_address_is_no_loop(host: str) -> None:
    """Brokers with a wrong brokerIP1 advertise 127.0.0.1, where nobody but the proxy listens."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    body = b'{"brokerDatas":[{"brokerAddrs":{0:"%s:%d"},"brokerName":"b"}]}' % (
        host.encode(),
        port,
    )
    with answering(body) as names, proxied(names) as proxy:
        with Talk(proxy.namesrv) as talk:
            talk.ask(105, {"topic": "T"})
        assert proxy.front_of("b") != f"127.0.0.1:{port}"  # the broker may still start there
        own, _, front = proxy.front_of("b").rpartition(":")
        if host == "localhost":  # a name is looked up only for a client
            assert is_reset(f"{own}:{front}", 310)
            wait_for("a refusal", lambda: not connects(own, int(front)))
            assert proxy.proxy.counts["refused connections"] == 1
        assert not connects(own, int(front))
        assert proxy.proxy.counts["connections"] == (2 if host == "localhost" else 1)


def test_a_broker_that_refuses_connections_is_refused_until_it_is_back() -> None:
    """Java's clients connect again at once after a reset, hundreds of times per second."""
    events: list[SandboxEvent] = []
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    body = b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:%d"},"brokerName":"b"}]}' % port
    with answering(body) as names, proxied(names, on_event=events.append) as proxy:
        with Talk(proxy.namesrv) as talk:
            talk.ask(105, {"topic": "T"})
        host, _, front = proxy.front_of("b").rpartition(":")
        for _ in range(
            20
        ):  # from the first one on: the proxy checked before it passed the route on
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((host, int(front)), 10)
        assert any("are refused" in event.detail for event in events)
        assert proxy.proxy.counts["refused connections"] == 0
        for _ in range(2):  # it comes back, and goes again
            with socket.create_server(("127.0.0.1", port)) as broker:
                Thread(target=echo_one, args=(broker,), daemon=True).start()
                wait_for("the broker", lambda: echoes(host, int(front)), 20)
            with suppress(OSError), Talk(f"{host}:{front}") as talk:
                talk.ask(310)
            wait_for("a refusal", lambda: not connects(host, int(front)))


def test_a_silent_broker_delays_its_route_only_for_a_moment() -> None:
    """It is not known to be down, so clients are connected, then reset."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as silent,
        ExitStack() as filling,  # the kernel drops a SYN where the queue is full
    ):
        with suppress(TimeoutError):
            for _ in range(10):
                filling.enter_context(socket.create_connection(silent.getsockname(), 0.5))
            pytest.fail("the queue is never full")
        port = silent.getsockname()[1]
        body = b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:%d"},"brokerName":"b"}]}' % port
        with answering(body) as names, proxied(names, connect_seconds=30.0) as proxy:
            begin = time.monotonic()
            with Talk(proxy.namesrv) as talk:
                talk.ask(105, {"topic": "T"})
            assert 0.2 < time.monotonic() - begin < 20
            host, _, front = proxy.front_of("b").rpartition(":")
            assert connects(host, int(front))


@pytest.mark.parametrize("goes_down", [True, False])
@pytest.mark.parametrize("reset", [False, True])
def test_a_broker_that_goes_down_refuses_connections_at_once(reset: bool, goes_down: bool) -> None:
    """Clients connect again as soon as they see the end, before the proxy has met a refusal."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        proxied(f"127.0.0.1:{listener.getsockname()[1]}") as proxy,
    ):
        host, _, port = proxy.namesrv.rpartition(":")
        own, real = (host, int(port)), listener.getsockname()
        with socket.create_connection(own, 30) as client:
            server, _ = listener.accept()
            client.sendall(b"hello")
            assert server.recv(5) == b"hello"
            if goes_down:
                listener.close()
            if reset:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            server.close()
            with pytest.raises(ConnectionResetError) if reset else nullcontext():
                assert client.recv(1) == b""
            assert connects(*own) is not goes_down
        assert proxy.proxy.counts["refused connections"] == 0
        if goes_down:
            with socket.create_server(real) as again:
                Thread(target=echo_one, args=(again,), daemon=True).start()
                wait_for("the broker", lambda: echoes(*own), 20)


def echo_one(listener: socket.socket) -> None:
    """Send back all bytes of each connection, one after the other, until it is closed."""
    with suppress(OSError):
        while True:
            one, _ = listener.accept()
            with one:
                while data := one.recv(65536):
                    one.sendall(data)


def is_reset(address: str, code: int) -> bool:
    """Return whether a request fails because its connection is accepted, then reset.

    The reset may come before the client's system has told it that it is connected.
    """
    try:
        with Talk(address) as talk:
            talk.ask(code, {"topic": "T"})
    except OSError as error:
        return not isinstance(error, ConnectionRefusedError)
    return False


def connects(host: str, port: int) -> bool:
    """Return whether something listens."""
    try:
        socket.create_connection((host, port), 10).close()
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:
        pass  # it was accepted
    return True


def echoes(host: str, port: int) -> bool:
    """Return whether a connection leads to a server that sends all bytes back."""
    try:
        with socket.create_connection((host, port), 10) as one:
            one.sendall(b"hello")
            one.settimeout(10)
            return one.recv(5) == b"hello"
    except OSError:
        return False


def test_a_route_that_names_the_proxy_is_no_loop() -> None:
    """A name may lead to the proxy, which is known only once it is looked up."""
    events: list[SandboxEvent] = []
    with answering(b"{}") as names, proxied(names, on_event=events.append) as proxy:
        own = proxy.namesrv
        with proxied(own, guard=proxy.proxy.why_not, on_event=events.append) as second:
            assert is_reset(second.namesrv, 105)
            wait_for("a refusal", lambda: second.proxy.counts["refused connections"] == 1)
    assert any(f"{own} is this proxy" in event.detail for event in events)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_proxy_of_itself_does_not_start(host: str) -> None:
    with socket.create_server((host, 0)) as closed:
        port = closed.getsockname()[1]
    options = ProxyOptions((f"127.0.0.1:{port}",), host=host, port=port, allow_remote=True)
    with pytest.raises(ConfigError, match="the proxy listens on"):
        asyncio.run(Proxy(options).start())


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """A server that answers each request with this body."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                one, _ = listener.accept()
                with one:
                    while data := one.recv(65536):
                        header = json.loads(data[8 : 8 + int.from_bytes(data[5:8], "big")])
                        one.sendall(frame(0, {}, body, flag=1, opaque=header["opaque"]))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def echoing() -> Iterator[tuple[str, list[int]]]:
    """A server that sends all bytes back, once it may; and how many it has read."""
    counted = [0]

    def serve() -> None:
        with suppress(OSError):
            one, _ = listener.accept()
            with one:
                while data := one.recv(65536):
                    counted[0] += len(data)
                    one.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", counted
        listener.close()


def test_other_protocols_pass_and_slow_readers_are_bounded() -> None:
    whole = 512 << 20
    with echoing() as (address, counted), proxied(address) as proxy:
        host, _, port = proxy.namesrv.rpartition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(100) == b"GET / HTTP/1.1\r\n\r\n"
            client.setblocking(False)
            sent = 0
            quiet = 0
            while quiet < 20 and sent < whole:  # until nothing more is taken for a second
                try:
                    sent += client.send(bytes(65536))
                    quiet = 0
                except BlockingIOError:
                    quiet += 1
                    time.sleep(0.05)
            assert sent < whole  # nobody reads what comes back
            assert proxy.proxy.room.used < 4 << 20
            client.settimeout(30)
            got = 0
            while got < sent:
                got += len(client.recv(1 << 20))
        wait_for("the end", lambda: not proxy.proxy.connections)
        assert counted[0] == sent + 18
        assert proxy.proxy.room.used == 0


def test_tls_on_both_sides(tmp_path: Path) -> None:
    folder = make_certificate(tmp_path, "IP:127.0.0.1")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    trusting = TlsSettings(ca_file=cert)
    own = {"listen_cert": cert, "listen_key": key}
    # the outer proxy speaks TLS to the inner one, and its clients TLS to it
    with (
        sandbox_thread(BOX) as box,
        proxied(box.namesrv, **own) as inner,
        proxied(inner.namesrv, tls=trusting, **own) as outer,
    ):
        with Producer(ProducerConfig(group="g", namesrv=outer.namesrv, tls=trusting)) as producer:
            result = producer.send(Message("T", b"x"))
        fronts = {f"{one.host}:{one.port}" for one in outer.proxy.fronts.known()}
        assert result.attempts[0].address in fronts


def test_what_cannot_be_set_up_is_said() -> None:
    for options, words in (
        ({"host": "0.0.0.0"}, "no access control"),
        ({"host": "here"}, "is not an IP address"),
        ({"listen_key": "k"}, "needs --listen-cert"),
    ):
        with pytest.raises(ConfigError, match=words):
            check_options(ProxyOptions(("127.0.0.1:9876",), **options))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="cannot listen"):
            asyncio.run(Proxy(ProxyOptions(("127.0.0.1:9876",), port=port)).start())


def test_a_reader_of_the_recording_that_stands_still_loses_whole_packets() -> None:
    reading, writing = os.pipe()
    tap = Tap("pipe", writing)
    recording = Recording([tap])
    packet = bytes(1 << 16)
    for _ in range(2000):  # 125 MiB, twice what may wait
        recording.write(packet)
    assert 0 < tap.lost < 2000
    with os.fdopen(reading, "rb") as pipe:
        threading.Thread(target=recording.finish, daemon=True).start()
        got = len(pipe.read())
    assert got == (2000 - tap.lost) * len(packet)


@pytest.mark.parametrize("own_port", [False, True])
def test_clients_of_grpc_get_the_fronts_of_endpoints(own_port: bool) -> None:
    """A server that says what a real proxy said to a recorded client.

    With its own port, it is what the client connected to, and there is no other front.
    """
    asked, told = RECORDED[0]

    def serve() -> None:
        one, _ = listener.accept()
        with one:
            got = b""
            while len(got) < len(asked):
                got += one.recv(65536)
            one.sendall(told)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=serve, daemon=True).start()
        number = listener.getsockname()[1]
        if own_port:
            told = told.replace(_varint(PROXY_PORT), _varint(number))
        real = f"127.0.0.1:{number}"
        with proxied("127.0.0.1:1", grpc=real, grpc_port=0) as proxy:
            host, _, port = proxy.proxy.grpc.rpartition(":")
            with socket.create_connection((host, int(port)), 30) as client:
                client.sendall(asked)
                got = b""
                while more := client.recv(65536):
                    got += more
            fronts = [one for one in proxy.proxy.fronts.known() if one.grpc]
    assert len(fronts) == (1 if own_port else 2)  # of the user, and of the route
    assert got != told
    assert b"127.0.0.1" in got
    assert all(one.targets[0] != f"{one.host}:{one.port}" for one in fronts)


@pytest.mark.parametrize("first", ["client", "server"])
def test_a_side_that_sends_no_more_still_reads(tmp_path: Path, first: str) -> None:
    """The other one sends 4 MiB after it has seen the end, also part of a frame at last."""
    path = tmp_path / "p.pcapng"
    recording = Recording([Tap("p", os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))])
    asked = frame(105, {"topic": "T"}, b"") + frame(105, {"topic": "T"}, b"")[:20]
    many = frame(310, {"a": "T"}, bytes(65536)) * 64
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        proxied(f"127.0.0.1:{listener.getsockname()[1]}", wire=recording) as proxy,
    ):
        host, _, port = proxy.namesrv.rpartition(":")
        with socket.create_connection((host, int(port)), 30) as client:
            server, _ = listener.accept()
            with server:
                server.settimeout(30)
                one, other = (client, server) if first == "client" else (server, client)
                one.sendall(asked)
                one.shutdown(socket.SHUT_WR)
                assert _until_end(other) == asked
                Thread(target=_say_all, args=(other, many), daemon=True).start()
                time.sleep(0.3)  # the buffers fill
                assert _until_end(one) == many
        wait_for("the end", lambda: not proxy.proxy.connections)
        assert proxy.proxy.room.used == 0
    recording.finish()
    rows = [row for batch in Decode([str(path)]).records() for row in batch]
    assert sum(row.request_code == 310 for row in rows) == 64


def _varint(number: int) -> bytes:
    """A number of up to 21 bits, in three bytes."""
    return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14))


def _say_all(one: socket.socket, data: bytes) -> None:
    one.sendall(data)
    one.close()


def _until_end(one: socket.socket) -> bytes:
    data = bytearray()
    while more := one.recv(1 << 20):
        data += more
    return bytes(data)
