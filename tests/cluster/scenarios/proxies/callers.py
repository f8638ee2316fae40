"""More clients that use gRPC: inside TLS, in other languages, with a proxy that is the broker.

Rules: a proxy takes TLS and plain text on one port.
"""

from __future__ import annotations

import time

from tests.cluster.clients.clients import (
    GO_GRPC_SOURCES,
    run_mqadmin,
    start_go,
    start_python,
)
from tests.cluster.scenarios.encrypted import agent_option, captured_with_secrets
from tests.cluster.scenarios.refused import STRAINED_BOTH
from tests.cluster.scenarios.scene import EVERYTHING, Scenario, Scene, single_5x, single_53
from tests.cluster.servers import faults
from tests.cluster.servers.artifacts import GRPC_5, PROXY_5, PROXY_53
from tests.cluster.servers.cluster import Cluster
from tests.cluster.servers.proxy import grpc_text, proxied, with_broker

from . import grpc

SHADED = "org.apache.rocketmq.shaded.io.grpc.netty.shaded.io.netty.handler.ssl.noOpenSsl=true"
"""Netty's switch as the client's jar names it: Java's own TLS, which the agent reads"""
OWN_CERTIFICATE = {"tlsTestModeEnable": True}
"""The proxy makes its certificate at its start, as where nobody configures it."""


def local_53() -> Cluster:
    """As `single_53`, for a recording that takes the place of the broker."""
    return single_53()


def slow_local_53() -> Cluster:
    """As `local_53`: only one recording can take the place of a broker."""
    return single_53()


def inside_tls(scene: Scene) -> None:
    """A producer and a simple consumer over TLS, whose secrets an agent in both writes."""
    grpc.make_topics(scene)
    log = scene.folder / "keys.log"
    options = {"properties": [SHADED], "agent": agent_option(log), "tls": True}
    with proxied(scene.cluster, settings=OWN_CERTIFICATE) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)
        with captured_with_secrets(scene, log):
            printed = grpc.run(proxy, topic="GrpcNormal", count=4, **options)
            printed += grpc.run(
                proxy, kind="simple", topic="GrpcNormal", group="simple", count=2, **options
            )
        grpc.tell(scene, printed)


def go_client(scene: Scene) -> None:
    """The Go client over TLS, which writes its secrets by itself; a producer, a consumer."""
    grpc.make_topics(scene)
    log = scene.folder / "keys.log"
    with proxied(scene.cluster, version=PROXY_53, settings=OWN_CERTIFICATE) as proxy:
        grpc.run(proxy, topic="GrpcFifo", kind="fifo", count=1)
        with captured_with_secrets(scene, log):
            arguments = [grpc_text(proxy), "GrpcNormal", "4", str(log)]
            printed = start_go(arguments, GO_GRPC_SOURCES).finish(90.0)
        grpc.tell(scene, printed)


def python_client(scene: Scene) -> None:
    """The Python client in the clear; a producer, a consumer."""
    grpc.make_topics(scene)
    with proxied(scene.cluster, version=PROXY_5) as proxy:
        grpc.run(proxy, topic="GrpcFifo", kind="fifo", count=1)
        with scene.capture():
            printed = start_python([grpc_text(proxy), "GrpcNormal", "4"]).finish(90.0)
        grpc.tell(scene, printed)


def local_proxy(scene: Scene) -> None:
    """A proxy in local mode; a producer of normal and of delayed messages, simple consumers."""
    grpc.make_topics(scene)
    with with_broker(scene.cluster, version=PROXY_53) as proxy:
        grpc.run(proxy, topic="GrpcFifo", kind="fifo", count=1)
        with scene.capture():
            printed = grpc.run(proxy, topic="GrpcNormal", count=3)
            printed += grpc.run(proxy, kind="delay", topic="GrpcDelay", count=2)
            for topic in ("GrpcNormal", "GrpcDelay"):
                printed += grpc.run(proxy, kind="simple", topic=topic, group="simple", count=2)
        grpc.tell(scene, printed)


def slow_proxy(scene: Scene) -> None:
    """A proxy in local mode hangs for 600 ms, three times, while a producer sends."""
    grpc.make_topics(scene)
    with with_broker(scene.cluster, version=PROXY_53) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=4)
        with scene.capture():
            client = grpc.start(proxy, topic="GrpcNormal", count=30, pause_ms=200)
            client.wait_for(" sent ", 30.0)
            time.sleep(2)
            for _ in range(3):
                with faults.frozen(proxy):
                    time.sleep(0.6)
                time.sleep(0.8)
            printed = client.finish(90.0)
        grpc.tell(scene, printed)


def dead_letters(scene: Scene) -> None:
    """A push consumer of FIFO messages refuses each one twice, and that is the last time."""
    grpc.make_topics(scene)
    group = ["-g", "refusers", "-o", "true", "-r", "1"]
    run_mqadmin(["updateSubGroup", "-b", scene.broker.text, *group], scene.cluster.namesrv_text)
    with proxied(scene.cluster, version=PROXY_5) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)
        with scene.capture():
            options = {"kind": "push", "topic": "GrpcFifo", "group": "refusers"}
            push = grpc.start(proxy, **options, refuse_all=True)
            push.wait_for("ready", 30.0)
            printed = grpc.run(proxy, kind="fifo", topic="GrpcFifo", count=2)
            push.wait_for("attempt 2", 60.0)
            time.sleep(4)
            push.end_input()
            printed += push.finish()
        grpc.tell(scene, printed)


def fifo_blocked(scene: Scene) -> None:
    """A push consumer of FIFO messages refuses the first ones, and retries them itself."""
    grpc.make_topics(scene)
    group = ["-g", "patient_pushers", "-o", "true"]
    run_mqadmin(["updateSubGroup", "-b", scene.broker.text, *group], scene.cluster.namesrv_text)
    with proxied(scene.cluster, version=PROXY_5) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)
        with scene.capture():
            options = {"kind": "push", "topic": "GrpcFifo", "group": "patient_pushers"}
            push = grpc.start(proxy, **options, refuse_all=True)
            push.wait_for("ready", 30.0)
            printed = grpc.run(proxy, kind="fifo", topic="GrpcFifo", count=6, pause_ms=1000)
            time.sleep(75)
            push.end_input()
            printed += push.finish()
        grpc.tell(scene, printed)


def fifo_unordered(scene: Scene) -> None:
    """Two push consumers of a group that is not FIFO get messages with message groups."""
    grpc.make_topics(scene)
    with proxied(scene.cluster, version=PROXY_5) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)
        with scene.capture():
            options = {"kind": "push", "topic": "GrpcFifo", "group": "hasty_pushers"}
            members = [grpc.start(proxy, **options, work_ms=300) for _ in range(2)]
            for member in members:
                member.wait_for("ready", 30.0)
            printed = grpc.run(proxy, kind="fifo", topic="GrpcFifo", count=8)
            time.sleep(4)
            for member in members:
                member.end_input()
                printed += member.finish()
        grpc.tell(scene, printed)


def refused_behind(scene: Scene) -> None:
    """The disk of the broker behind the proxy is full: sends fail after three attempts."""
    grpc.make_topics(scene)
    with proxied(scene.cluster, version=PROXY_53) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)
        with scene.capture():
            printed = grpc.run(proxy, topic="GrpcNormal", count=2)
            with faults.disk_full(scene.broker):
                printed += grpc.run(proxy, topic="GrpcNormal", count=2, may_fail=True)
        grpc.tell(scene, printed)


def hung_consumer(scene: Scene) -> None:
    """The process of a gRPC push consumer is stopped for 32 s; two messages wait meanwhile."""
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)  # the first one is slow
        only_calls = f"{EVERYTHING} and host {proxy.host} and port {proxy.port + 1}"
        with scene.capture(only_calls):
            push = grpc.start(proxy, kind="push", topic="GrpcNormal", group="still_pushers")
            push.wait_for("ready", 60.0)
            time.sleep(17.0)
            with push.frozen():
                time.sleep(16.0)
                grpc.run(proxy, topic="GrpcNormal", count=2)
                time.sleep(14.0)
            time.sleep(14.0)
            push.end_input()
            push.finish()


def throttled(scene: Scene) -> None:
    """Fourteen sends at once to a broker with one thread for sends and room for eight that wait."""
    grpc.make_topics(scene)
    with proxied(scene.cluster, version=PROXY_5) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)
        with faults.slow_sends(scene.broker, 300), scene.capture():
            options = {"kind": "burst", "topic": "GrpcNormal", "count": 14, "may_fail": True}
            printed = grpc.run(proxy, **options)
        grpc.tell(scene, printed)


CALLERS: tuple[Scenario, ...] = (
    Scenario(
        "grpc-tls-keys-5x",
        single_5x,
        inside_tls,
        "A producer and a simple consumer that use gRPC over TLS, with the secrets in the file",
        "the certificate is one that the proxy made; calls are decoded as in the clear",
        GRPC_5,
    ),
    Scenario(
        "grpc-go-keys-53",
        single_53,
        go_client,
        "The Go client 5.1.3 over TLS, with the secrets in the file: a producer, a simple consumer",
        "its end of HTTP/2 and of TLS is Go's own; the proxy and the broker are of 5.3.3",
        GRPC_5,
    ),
    Scenario(
        "grpc-python-5x",
        single_5x,
        python_client,
        "The Python client 5.1.2: a producer and a simple consumer",
        "its end of HTTP/2 is the one that gRPC's C, C++, Ruby and PHP have, too",
        GRPC_5,
    ),
    Scenario(
        "grpc-local-53",
        local_53,
        local_proxy,
        "A proxy of 5.3.3 in local mode: it is the broker, too; normal and delayed messages",
        "no remoting behind the calls: proxy and broker are one process",
        GRPC_5,
    ),
    Scenario(
        "grpc-fifo-blocked-5x",
        single_5x,
        fifo_blocked,
        "A push consumer of a FIFO group refuses the first messages again and again",
        "it retries them itself, and gets none of those behind them",
        GRPC_5,
        packed=True,
        shows=("grpc-consumer-stuck",),
    ),
    Scenario(
        "grpc-fifo-unordered-5x",
        single_5x,
        fifo_unordered,
        "Two push consumers of a group that is not FIFO consume messages with message groups",
        "messages of one message group are with both consumers at a time",
        GRPC_5,
        shows=("group-not-fifo",),
        packed=True,
    ),
    Scenario(
        "grpc-dead-letters-5x",
        single_5x,
        dead_letters,
        "A FIFO push consumer fails each message until it becomes a dead letter",
        "it retries locally, then calls ForwardMessageToDeadLetterQueue",
        GRPC_5,
        shows=("dead-letter",),
    ),
    Scenario(
        "grpc-disk-full-53",
        single_53,
        refused_behind,
        "The disk of the broker behind a proxy is full",
        "each attempt is seen twice: the broker refuses the proxy, the proxy the client",
        GRPC_5,
        shows=("disk-full",),
    ),
    Scenario(
        "grpc-slow-53",
        slow_local_53,
        slow_proxy,
        "A proxy of 5.3.3 in local mode hangs for 600 ms, three times, under sends",
        "as in a garbage collection: calls wait and get responses, none is retried",
        GRPC_5,
        shows=("call-slow",),
    ),
    Scenario(
        "grpc-client-hung-5x",
        single_5x,
        hung_consumer,
        "A gRPC push consumer hangs for 32 s, as in a long garbage collection",
        "neither Heartbeat nor QueryAssignment is sent; its host acknowledges responses meanwhile",
        GRPC_5,
        shows=("client-hung",),
        packed=True,
    ),
    Scenario(
        "grpc-throttled-5x",
        STRAINED_BOTH[0],
        throttled,
        "Fourteen sends at once through a proxy to a broker that serves one and lets eight wait",
        "the broker answers 2, [OVERLOAD], the proxy 42900, TOO_MANY_REQUESTS",
        GRPC_5,
        shows=("thread-pool-overload",),
    ),
)
