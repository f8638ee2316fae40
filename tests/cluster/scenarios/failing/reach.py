"""Servers that clients cannot reach, or that hang up: addresses, ports, TLS, idle, going away.

Each scenario's text says what was provoked: which address, which client, what the peer did.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator

from tests.cluster.clients.clients import run_java
from tests.cluster.scenarios.scene import NETWORK, Scenario, Scene, both, on_both, single_5x
from tests.cluster.servers import faults, probe
from tests.cluster.servers.artifacts import NEWEST_5
from tests.cluster.servers.cluster import PLAIN, BrokerSpec, Cluster

from .faulty import PROXY_HOST, SEEN_BY_CLIENTS, masters_5x

SEND_MESSAGE = 10
GET_MAX_OFFSET = 30
LARGEST_FRAME = 16777216
SILENT_HOST = f"{NETWORK}.99"
IDLE_SECONDS = 4
LOOPBACK = "127.0.0.1"


def advertised_5x(host: str) -> Callable[[], Cluster]:
    """A broker whose brokerIP1 is not where it listens."""

    def make() -> Cluster:
        return Cluster([BrokerSpec(advertised=host)], version=NEWEST_5, network=NETWORK)

    return make


refused_5x = advertised_5x(LOOPBACK)
unresolved_5x = advertised_5x("broker-host")
silent_5x = advertised_5x(SILENT_HOST)


def idle(version: str) -> Cluster:
    """A broker that closes a connection after four seconds without a frame."""
    spec = BrokerSpec(settings={"serverChannelMaxIdleTimeSeconds": IDLE_SECONDS})
    return Cluster([spec], version=version, network=NETWORK)


def leaving_5x() -> Cluster:
    """Two masters that tell their clients before they go."""
    settings = {"enableShutdownGracefully": "true", "shutdownWaitTimeSeconds": 1}
    specs = [BrokerSpec(name, settings=settings) for name in ("broker-a", "broker-b")]
    return Cluster(specs, version=NEWEST_5, network=NETWORK)


def waiting_5x() -> Cluster:
    """A NameServer that answers no routes in its first ten minutes."""
    settings = {"needWaitForService": "true", "waitSecondsForService": 600}
    return Cluster([BrokerSpec()], version=NEWEST_5, network=NETWORK, namesrv_settings=settings)


def address_refused(scene: Scene) -> None:
    """The route names 127.0.0.1 as broker-a's host, where nobody listens: each connect is reset.

    A producer sends twice to WrongTopic, a consumer of wrong_group pulls from it; nothing comes
    to the broker.
    """
    _wrong_address(scene, f"port {scene.broker.port}")


def address_silent(scene: Scene) -> None:
    """The route names 127.77.0.99 as broker-a's host, which answers no SYN.

    A producer sends twice to WrongTopic, a consumer of wrong_group pulls from it; nothing comes
    to the broker.
    """
    with silence((SILENT_HOST, scene.broker.port)):
        _wrong_address(scene, f"net {NETWORK}.0/24")


def address_unresolved(scene: Scene) -> None:
    """The route names broker-a by a host name, broker-host, that no client can resolve.

    A producer sends twice to WrongTopic, a consumer of wrong_group pulls from it; neither
    connects to the broker.
    """
    _wrong_address(scene, f"port {scene.broker.port}")


def _wrong_address(scene: Scene, more: str) -> None:
    scene.cluster.make_topic("WrongTopic", queues=2)
    with scene.capture(f"not host {probe.SOURCE} and (net {NETWORK}.0/24 or {more})"):
        scene.run(
            "Send",
            topic="WrongTopic",
            instance="producer",
            group="wrong_producers",
            count=2,
            may_fail=True,
        )
        scene.run(
            "PushConsume",
            topic="WrongTopic",
            instance="consumer",
            group="wrong_group",
            wait_ms=5000,
            expect=3,
        )


@contextlib.contextmanager
def silence(address: tuple[str, int]) -> Iterator[None]:
    """An address that takes no connection and refuses none: SYNs come and nobody answers."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(address, backlog=0))
        assert server
        # The kernel drops the SYNs of those who come when the queue of who waits is full.
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.bind((probe.SOURCE, 0))
            with contextlib.suppress(BlockingIOError):
                waiting.connect(address)
            time.sleep(0.1)
        yield


def vip_closed(scene: Scene) -> None:
    """A producer with the VIP channel on: the port two below broker-a's is closed at 127.77.0.61.

    Connects to it are reset and the sends go to broker-b by its VIP port; heartbeats reach both
    brokers, as they do not use the VIP channel.
    """
    broker = scene.cluster.broker("broker-a")
    with faults.Proxy((PROXY_HOST, broker.port), broker.address):
        scene.cluster.make_topic("VipTopic", queues=2)
        with scene.capture(SEEN_BY_CLIENTS):
            scene.run(
                "Send",
                topic="VipTopic",
                instance="producer",
                vip=True,
                count=6,
                may_fail=True,
                linger_ms=500,
            )


def clear(version: str) -> Cluster:
    """Servers that take no TLS; RocketMQ's own default takes it."""
    return Cluster([BrokerSpec()], version=version, network=NETWORK, properties=[PLAIN])


def tls_refused(scene: Scene) -> None:
    """A producer with TLS on comes to a NameServer that takes none: it hangs up.

    Its send to TlsTopic fails. Then another program greets broker-a with TLS, with the same end.
    """
    scene.cluster.make_topic("TlsTopic", queues=2)
    with scene.capture():
        scene.run("Send", topic="TlsTopic", instance="producer", tls=True, count=1, expect=None)
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with (
            socket.create_connection(scene.broker.address, 5.0) as connection,
            contextlib.suppress(OSError),
        ):
            context.wrap_socket(connection)


def idle_closed(scene: Scene) -> None:
    """broker-a closes connections after four seconds without a frame.

    A producer that sends three messages to IdleTopic, nine seconds apart, connects anew for each;
    another program that does not look sends its second request to the closed connection.
    """
    scene.cluster.make_topic("IdleTopic", queues=2)
    with scene.capture():
        scene.run(
            "Send",
            topic="IdleTopic",
            instance="producer",
            count=3,
            pause_ms=9000,
            heartbeat_ms=60_000,
        )
        frame = _frame(GET_MAX_OFFSET, {"topic": "IdleTopic", "queueId": "0"})
        with socket.create_connection(scene.broker.address, 5.0) as connection:
            connection.sendall(frame)
            connection.recv(4096)
            time.sleep(IDLE_SECONDS + 3)
            connection.sendall(frame)
            time.sleep(0.5)


def frame_too_long(scene: Scene) -> None:
    """A send of 16,777,216 bytes of body to LongTopic: a broker takes frames up to 16 MiB.

    broker-a hangs up as soon as it has the length. The client's own limit of 4 MiB would keep it
    from this, so the first 20 kB of it are sent by a program of ours, on a connection on which it
    asked for something before.
    """
    fields = {
        "producerGroup": "long_group",
        "topic": "LongTopic",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": "0",
        "bornTimestamp": str(int(time.time() * 1000)),
        "flag": "0",
        "properties": "",
    }
    scene.cluster.make_topic("LongTopic")
    start = _frame(SEND_MESSAGE, fields, LARGEST_FRAME)
    with (
        scene.capture(),
        socket.create_connection(scene.broker.address, 5.0) as connection,
        contextlib.suppress(OSError),
    ):
        connection.sendall(_frame(GET_MAX_OFFSET, {"topic": "LongTopic", "queueId": "0"}))
        connection.recv(4096)
        for part in (start, b"x" * 10_000, b"x" * 10_000):
            connection.sendall(part)
            time.sleep(0.5)


def _frame(code: int, fields: dict[str, str], body: int = 0) -> bytes:
    """A request without its body, whose length is declared."""
    header = json.dumps(
        {
            "code": code,
            "language": "JAVA",
            "version": 401,
            "opaque": 1,
            "flag": 0,
            "extFields": fields,
        }
    ).encode()
    return struct.pack(">II", 4 + len(header) + body, len(header)) + header


def going_away(scene: Scene) -> None:
    """broker-b ends in order while a producer sends 60 messages to AwayTopic: for a second it
    serves nobody and answers 1500, go away.

    The client connects again, sends a heartbeat, gets response 1500 again, and so on; its sends
    go to broker-a in the end.
    """
    scene.cluster.make_topic("AwayTopic", queues=2)
    broker = scene.cluster.broker("broker-b")
    with scene.capture():
        sender = scene.start(
            "Send",
            topic="AwayTopic",
            instance="producer",
            count=60,
            pause_ms=200,
            timeout_ms=3000,
            may_fail=True,
        )
        sender.wait_for("SEND_OK")
        time.sleep(1.5)
        broker.stop()
        sender.finish(120.0)
    faults.restart(scene.cluster, broker)


def namesrv_not_ready(scene: Scene) -> None:
    """A NameServer that has just started and is told to wait answers routes 1, not ready.

    A producer wants to send two messages to ReadyTopic; nothing goes to the broker.
    """
    with scene.capture():
        scene.run("Send", topic="ReadyTopic", instance="producer", count=2, may_fail=True)


def routes_differ(scene: Scene) -> None:
    """NameServer 127.77.0.2 was added later and no broker knows it; 127.77.0.1 knows RouteTopic.

    127.0.0.1@first asks the first one and sends three messages; 127.0.0.1@second asks the second
    one, gets response 17, and fails three times.
    """
    scene.cluster.make_topic("RouteTopic", queues=2)
    with scene.cluster.unknown_namesrv() as added, scene.capture():
        for node, instance in ((scene.cluster.namesrvs[0], "first"), (added, "second")):
            run_java(
                "Send",
                node.text,
                version=scene.client,
                topic="RouteTopic",
                instance=instance,
                count=3,
                pause_ms=300,
                may_fail=True,
            )


def network_narrow(scene: Scene) -> None:
    """Four threads of a producer send five messages of 3 kB each over a network of 400 kbit/s.

    broker-a answers at once; what takes so long is the way: acknowledgements are as late as
    answers, and what the network drops is sent again.
    """
    scene.cluster.make_topic("NarrowTopic", queues=2)
    with faults.narrow_network(), scene.capture():
        scene.run(
            "Send",
            topic="NarrowTopic",
            instance="producer",
            threads=4,
            count=5,
            body=3000,
            pause_ms=0,
            api_ms=20_000,
            timeout_ms=30_000,
        )


REACH: tuple[Scenario, ...] = (
    *both(
        "address-refused",
        address_refused,
        "The broker registers as 127.0.0.1, where it does not listen",
        "each connect is reset; the producer fails without a request, the consumer never starts to "
        "pull",
        clusters=(refused_5x, refused_5x),
        shows=("wrong-broker-address",),
    ),
    *both(
        "address-unresolved",
        address_unresolved,
        "The route names the broker by a host name that clients cannot resolve",
        "routes are answered, and no connection to the broker follows",
        clusters=(unresolved_5x, unresolved_5x),
        shows=("wrong-broker-address",),
        packed=True,
    ),
    *both(
        "address-silent",
        address_silent,
        "The broker registers an address that does not respond to SYN",
        "each connect sends three SYNs and gives up",
        clusters=(silent_5x, silent_5x),
        shows=("wrong-broker-address",),
    ),
    *both(
        "vip-closed",
        vip_closed,
        "A producer with the VIP channel on where one of two brokers has that port closed",
        "connects to the port two below are reset while the port itself is served",
        clusters=(masters_5x, masters_5x),
        shows=("vip-port-unreachable",),
    ),
    *both(
        "tls-refused",
        tls_refused,
        "A TLS client connects to servers without TLS",
        "the server ends the connection after the ClientHello",
        clusters=on_both(clear),
        shows=("tls-mismatch",),
    ),
    *both(
        "idle-closed",
        idle_closed,
        "A broker that closes connections after four seconds without a frame",
        "FIN by the server; a client that still sends receives a RST",
        clusters=on_both(idle),
        shows=("idle-close",),
    ),
    Scenario(
        "frame-too-long-5x",
        single_5x,
        frame_too_long,
        "A request, then the start of one of more than 16 MiB on the same connection",
        "the broker closes the connection once it has the length",
        shows=("frame-too-long",),
    ),
    Scenario(
        "going-away-5x",
        leaving_5x,
        going_away,
        "A graceful broker shutdown with GO_AWAY",
        "response 1500 for a few seconds; the client reconnects or uses another broker",
        shows=("go-away",),
    ),
    Scenario(
        "namesrv-not-ready-5x",
        waiting_5x,
        namesrv_not_ready,
        "A NameServer that delays route responses after its start",
        "105 gets response 1, not 17",
        shows=("namesrv-not-ready",),
    ),
    *both(
        "routes-differ",
        routes_differ,
        "A second NameServer that no broker registers with",
        "105 for the same topic gets response 0 from one and 17 from the other",
        shows=("inconsistent-route",),
    ),
    *both(
        "network-narrow",
        network_narrow,
        "Sends of 3 kB over a network of 400 kbit/s",
        "retransmissions, late acknowledgements; the broker itself is quick",
        shows=("broker-slow-vs-network",),
    ),
)
