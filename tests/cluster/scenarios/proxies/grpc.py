"""Clients of 5.x that use gRPC through a proxy, in the clear; the proxy speaks with the broker."""

from __future__ import annotations

import time

from tests.cluster.clients.clients import Client, start_java
from tests.cluster.scenarios.scene import Scenario, Scene, single_5x
from tests.cluster.servers.artifacts import GRPC_5, PROXY_53
from tests.cluster.servers.cluster import Node
from tests.cluster.servers.proxy import grpc_text, proxied

TOPICS = {
    "GrpcNormal": "+message.type=NORMAL",
    "GrpcFifo": "+message.type=FIFO",
    "GrpcDelay": "+message.type=DELAY",
    "GrpcTransaction": "+message.type=TRANSACTION",
}

UNTRACED = ("os.version=6.0",)
"""Clients tell the proxy the release of their kernel."""
QUICK_CHECKS = {"transactionHeartbeatPeriodSecond": 2}
"""How often a proxy tells brokers the groups of producers, to which half messages are checked."""


def make_topics(scene: Scene) -> None:
    for topic, attributes in TOPICS.items():
        scene.cluster.make_topic(topic, queues=2, attributes=attributes)


def run(proxy: Node, **options: object) -> str:
    """Runs the gRPC client to its end."""
    return start(proxy, **options).finish(90.0)


def start(proxy: Node, **options: object) -> Client:
    """Starts the gRPC client, with a Java agent where `agent` names one."""
    properties = (*UNTRACED, *options.pop("properties", ()))  # type: ignore[misc]
    return start_java("Grpc", grpc_text(proxy), version=GRPC_5, properties=properties, **options)  # type: ignore[arg-type]


def send_kinds(scene: Scene) -> None:
    """A producer of each kind; a half message is left to the check."""
    make_topics(scene)
    with proxied(scene.cluster, settings=QUICK_CHECKS) as proxy:
        run(proxy, kind="normal", topic="GrpcNormal", count=1)  # the first one is slow
        time.sleep(1)
        with scene.capture():
            printed = run(proxy, kind="normal", topic="GrpcNormal", count=4)
            printed += run(proxy, kind="fifo", topic="GrpcFifo", count=3)
            printed += run(proxy, kind="delay", topic="GrpcDelay", count=2)
            printed += run(
                proxy, kind="transaction", topic="GrpcTransaction", count=3, linger_ms=12_000
            )
        tell(scene, printed)


def consume_kinds(scene: Scene) -> None:
    """A push consumer that refuses each message once, and a simple consumer."""
    make_topics(scene)
    with proxied(scene.cluster, version=PROXY_53) as proxy:
        run(proxy, kind="normal", topic="GrpcNormal", count=4)
        with scene.capture():
            push = start(proxy, kind="push", topic="GrpcNormal", group="pushers", refuse_first=True)
            push.wait_for("attempt 2", 60.0)
            printed = run(proxy, kind="normal", topic="GrpcNormal", count=2)
            printed += run(proxy, kind="simple", topic="GrpcNormal", group="simple", count=3)
            time.sleep(2)
            push.end_input()
            printed += push.finish()
        tell(scene, printed)


def not_allowed(scene: Scene) -> None:
    """A client whose signature the proxy cannot check, and one that signs nothing."""
    make_topics(scene)
    auth = "org.apache.rocketmq.auth.authentication.provider.DefaultAuthenticationProvider"
    users = "org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider"
    settings = {
        "authenticationEnabled": True,
        "authenticationProvider": auth,
        "authenticationMetadataProvider": users,
    }
    with proxied(scene.cluster, settings=settings) as proxy, scene.capture():
        signed = {"access": "nobody", "secret": "not-the-secret"}
        printed = run(proxy, topic="GrpcNormal", count=1, may_fail=True, **signed)
        printed += run(proxy, topic="GrpcNormal", count=1, may_fail=True)
        tell(scene, printed)


def too_many(scene: Scene) -> None:
    """More sends at once than the proxy has room for; then the proxy is killed."""
    make_topics(scene)
    settings = {"grpcProducerThreadPoolNums": 1, "grpcProducerThreadQueueCapacity": 2}
    with proxied(scene.cluster, settings=settings) as proxy:
        run(proxy, topic="GrpcNormal", count=1)
        with scene.capture():
            printed = run(proxy, kind="burst", topic="GrpcNormal", count=40, may_fail=True)
        tell(scene, printed)


def proxy_killed(scene: Scene) -> None:
    """The proxy is killed while a client sends."""
    make_topics(scene)
    with proxied(scene.cluster) as proxy:
        run(proxy, topic="GrpcNormal", count=1)
        with scene.capture():
            client = start(
                proxy, topic="GrpcNormal", count=12, pause_ms=300, may_fail=True, timeout_ms=2000
            )
            client.wait_for(" sent ", 30.0)
            time.sleep(1)
            proxy.kill()
            printed = client.finish(120.0)
        tell(scene, printed)


def tell(scene: Scene, printed: str) -> None:
    """Writes what the clients printed beside the capture."""
    lines = [line.split(" ", 2) for line in printed.splitlines() if line[:1].isdigit()]
    told = [{"at": int(at), "what": what, "rest": "".join(rest)} for at, what, *rest in lines]
    scene.write_json(told, "grpc")


GRPC: tuple[Scenario, ...] = (
    Scenario(
        "grpc-send-5x",
        single_5x,
        send_kinds,
        "Producers that use gRPC through a proxy: normal, FIFO, delayed, transactions",
        "each send is seen twice, by gRPC and by remoting, with the same message id",
        GRPC_5,
    ),
    Scenario(
        "grpc-consume-53",
        single_5x,
        consume_kinds,
        "A gRPC push consumer that fails each message once, and a simple consumer",
        "the proxy is one of 5.3.3; each fetch is seen twice, as ReceiveMessage and as POP_MESSAGE",
        GRPC_5,
    ),
    Scenario(
        "grpc-not-allowed-5x",
        single_5x,
        not_allowed,
        "A gRPC client with an unknown user, and one without a signature",
        "the proxy refuses without a request to the broker",
        GRPC_5,
        shows=("acl-signature",),
    ),
    Scenario(
        "grpc-too-many-5x",
        single_5x,
        too_many,
        "More concurrent sends than a single-threaded proxy can queue",
        "the proxy drops the excess without a response; calls end at their deadline",
        GRPC_5,
        shows=("call-given-up",),
    ),
    Scenario(
        "grpc-proxy-killed-5x",
        single_5x,
        proxy_killed,
        "A proxy is killed while a gRPC client sends",
        "no endpoint listens, so later calls never leave the client",
        GRPC_5,
        shows=("broker-gone",),
    ),
)
