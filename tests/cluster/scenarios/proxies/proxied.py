"""Clients that speak with a proxy of 5.x, which speaks with the broker: each send is seen twice."""

from __future__ import annotations

import time

from tests.cluster.clients.clients import run_java
from tests.cluster.scenarios.scene import Scenario, Scene, single_5x
from tests.cluster.servers import faults
from tests.cluster.servers.artifacts import NEWEST_5
from tests.cluster.servers.cluster import Node
from tests.cluster.servers.proxy import proxied


def _send(scene: Scene, proxy: Node, **options: object) -> None:
    """Sends through the proxy."""
    run_java(
        "Send",
        proxy.text,
        version=scene.client,
        topic="ProxiedTopic",
        instance="producer",
        timeout_ms=20_000,
        **options,
    )


def through_a_proxy(scene: Scene) -> None:
    """Sends of several kinds, and some that the broker refuses."""
    scene.cluster.make_topic("ProxiedTopic", queues=2)
    with proxied(scene.cluster) as proxy:
        _send(scene, proxy, count=1)  # the first one is slow
        time.sleep(1)
        with scene.capture():
            _send(scene, proxy, count=6)
            _send(scene, proxy, count=4, kind="oneway", linger_ms=500)
            with faults.disk_full(scene.broker):
                _send(scene, proxy, count=2, may_fail=True, retries=1)


PROXIED: tuple[Scenario, ...] = (
    Scenario(
        "proxy-remoting-5x",
        single_5x,
        through_a_proxy,
        "Sends through the remoting port of a proxy in cluster mode, at last to a full disk",
        "each send is seen from the client to the proxy and from there to the broker, with the same"
        " ids in both responses; routes name the proxy's address for the broker",
        NEWEST_5,
    ),
)
