"""What a proxy tells clients of gRPC that it cannot serve, and what they see of a broker that goes.

Rules: topics and groups are made by nobody but the scenario, as in production.
"""

from __future__ import annotations

import time

from tests.cluster.clients.clients import run_mqadmin
from tests.cluster.scenarios.failing.faulty import PROXY_HOST
from tests.cluster.scenarios.scene import EVERYTHING, NETWORK, Scenario, Scene, single_5x
from tests.cluster.servers import faults, probe
from tests.cluster.servers.artifacts import GRPC_5, NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster, Node
from tests.cluster.servers.proxy import proxied

from . import grpc

LARGEST = 16_384
"""bytes of a message that the broker of `strict_5x` takes"""
RELAY_PORT = 17981
FOUR_DAYS_MS = 4 * 86_400_000


def strict_5x() -> Cluster:
    """A broker that makes no topics or groups, and takes small messages only."""
    settings = {
        "autoCreateTopicEnable": "false",
        "autoCreateSubscriptionGroup": "false",
        "maxMessageSize": LARGEST,
    }
    return Cluster([BrokerSpec(settings=settings)], version=NEWEST_5, network=NETWORK)


def _calls(proxy: Node) -> str:
    """A filter for what clients and the gRPC port of a proxy send each other."""
    return f"{EVERYTHING} and host {proxy.host} and port {proxy.port + 1}"


def not_served(scene: Scene) -> None:
    """Five clients ask for what is not there or not allowed, each one by one.

    A producer sends to a topic that nobody made, another a body of 20 kB where 16384 bytes are the
    limit, a third one a message that is due in four days. A push consumer is of a group that nobody
    made; another one subscribes by SQL92, which the broker has off.
    """
    grpc.make_topics(scene)
    group = ["updateSubGroup", "-b", scene.broker.text, "-g", "known_group"]
    run_mqadmin(group, scene.cluster.namesrv_text)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)  # the first one is slow
        with scene.capture():
            options = {"count": 1, "attempts": 1, "may_fail": True}
            printed = grpc.run(proxy, topic="NobodysTopic", **options)
            printed += grpc.run(proxy, topic="GrpcNormal", size=20_000, **options)
            printed += grpc.run(
                proxy, kind="delay", topic="GrpcDelay", delay_ms=FOUR_DAYS_MS, **options
            )
            for more in (
                {"group": "nobodys_group"},
                {"group": "known_group", "sql": "colour = 'green'"},
            ):
                push = grpc.start(proxy, kind="push", topic="GrpcNormal", may_fail=True, **more)
                time.sleep(7.0)
                push.end_input()
                printed += push.finish(expect=None)
        grpc.tell(scene, printed)


def delivered_late(scene: Scene) -> None:
    """broker-a is shut down for 10 s while three delayed messages of GrpcDelay become due."""
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)  # the first one is slow
        with scene.capture(_calls(proxy)):
            push = grpc.start(proxy, kind="push", topic="GrpcDelay", group="late_pushers")
            push.wait_for("ready", 60.0)
            grpc.run(proxy, kind="delay", topic="GrpcDelay", delay_ms=5000, count=3)
            scene.broker.stop()
            time.sleep(10.0)
            faults.restart(scene.cluster, scene.broker)
            push.wait_for("consumed", 60.0)
            time.sleep(5.0)
            push.kill()


def cut(scene: Scene) -> None:
    """Something between a gRPC producer and the proxy resets the connection during two sends."""
    grpc.make_topics(scene)
    named = {"useEndpointPortFromRequest": True}
    with (
        proxied(scene.cluster, settings=named) as proxy,
        faults.Proxy((PROXY_HOST, RELAY_PORT), (proxy.host, proxy.port + 1)) as between,
    ):
        grpc.run(proxy, topic="GrpcNormal", count=1)  # the first one is slow
        through = Node("between", PROXY_HOST, RELAY_PORT - 1, proxy.folder, [])
        with scene.capture(f"host {PROXY_HOST} and not host {probe.SOURCE}"):
            client = grpc.start(
                through, topic="GrpcNormal", count=10, pause_ms=400, may_fail=True, timeout_ms=3000
            )
            client.wait_for(" sent ", 30.0)
            for _ in range(2):
                time.sleep(0.9)
                between.reset_after(20)
            client.finish(90.0)


def falls_behind(scene: Scene) -> None:
    """A gRPC push consumer takes two messages a second where eight arrive, for 24 s."""
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)  # the first one is slow
        with scene.capture(_calls(proxy)):
            push = grpc.start(
                proxy, kind="push", topic="GrpcNormal", group="slow_pushers", work_ms=1000
            )
            push.wait_for("ready", 60.0)
            # not by the proxy: so only what the consumer does is captured
            scene.run(
                "Send",
                version=NEWEST_5,
                topic="GrpcNormal",
                instance="producer",
                count=110,
                pause_ms=150,
            )
            time.sleep(3.0)
            push.kill()


def fails_again(scene: Scene) -> None:
    """The listener of a gRPC push consumer refuses each of six messages for 45 s."""
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)  # the first one is slow
        with scene.capture(_calls(proxy)):
            push = grpc.start(
                proxy, kind="push", topic="GrpcNormal", group="refusing_pushers", refuse_all=True
            )
            push.wait_for("ready", 60.0)
            grpc.run(proxy, topic="GrpcNormal", count=6)
            time.sleep(45.0)
            push.kill()


def blocked(scene: Scene) -> None:
    """The listener of a gRPC push consumer never returns; its cache of two messages is full.

    It sends heartbeats for another 55 s and receives nothing more; four messages wait.
    """
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)  # the first one is slow
        with scene.capture(_calls(proxy)):
            options = {"group": "blocked_pushers", "work_ms": 600_000, "cache": 2}
            push = grpc.start(proxy, kind="push", topic="GrpcNormal", **options)
            push.wait_for("ready", 60.0)
            grpc.run(proxy, topic="GrpcNormal", count=6)
            time.sleep(55.0)
            push.kill()


PROXY_REFUSALS: tuple[Scenario, ...] = (
    Scenario(
        "grpc-refused-5x",
        strict_5x,
        not_served,
        "gRPC clients ask a proxy for what is missing or not allowed",
        "topic, group, size, delivery time, and filter expression are refused",
        GRPC_5,
        shows=("no-route", "oversize-message", "timer-illegal", "group-missing"),
        packed=True,
    ),
    Scenario(
        "grpc-timer-late-5x",
        single_5x,
        delivered_late,
        "The broker behind a proxy is shut down while delayed messages become due",
        "they are delivered when it is back, with the time asked for",
        GRPC_5,
        shows=("delivered-late", "proxy-cannot-reach-broker"),
        packed=True,
    ),
    Scenario(
        "grpc-cut-5x",
        single_5x,
        cut,
        "Connections of a gRPC producer are reset during sends",
        "the client sends again on a new connection",
        GRPC_5,
        shows=("connection-cut",),
        packed=True,
    ),
    Scenario(
        "grpc-lag-5x",
        single_5x,
        falls_behind,
        "A gRPC push consumer is slower than its producer",
        "it receives messages faster than it acknowledges them",
        GRPC_5,
        shows=("consumer-lag",),
        packed=True,
    ),
    Scenario(
        "grpc-blocked-5x",
        single_5x,
        blocked,
        "The listener of a gRPC push consumer never returns",
        "Heartbeat and QueryAssignment go on without ReceiveMessage",
        GRPC_5,
        shows=("grpc-consumer-stuck",),
        packed=True,
    ),
    Scenario(
        "grpc-redelivered-5x",
        single_5x,
        fails_again,
        "The listener of a gRPC push consumer fails each time",
        "ChangeInvisibleDuration returns each message; the delivery attempt grows",
        GRPC_5,
        shows=("reconsume-growth",),
        packed=True,
    ),
)
