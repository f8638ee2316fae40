"""Clients that speak with a proxy: one of 5.x, where each send is seen twice, or our own."""

from __future__ import annotations

import os
import time

from replay.proxy.recording import Recording, Tap
from replay.sandbox import injection_of_text
from tests.cluster.clients.clients import run_java
from tests.cluster.scenarios.scene import Scenario, Scene, single_5x
from tests.cluster.servers import faults
from tests.cluster.servers.artifacts import NEWEST_5
from tests.cluster.servers.cluster import Node
from tests.cluster.servers.proxy import proxied
from tests.replay.proxy.proxied import proxied as fronted


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


def injected_faults(scene: Scene) -> None:
    """Sends through our own proxy, which refuses some, answers late, and loses a response."""
    scene.cluster.make_topic("InjectedTopic", queues=2)
    path = scene.folder / f"{scene.name}.pcapng"
    scene.made.append(path)
    recording = Recording([Tap(path.name, os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))])
    wanted = ("busy times=2", "silent stored=true times=1", "latency=400ms times=4")
    injections = [injection_of_text(f"{one} topic=InjectedTopic") for one in wanted]
    with fronted(scene.cluster.namesrv_text, wire=recording, injections=injections) as proxy:
        run_java(
            "Send",
            proxy.namesrv,
            version=scene.client,
            topic="InjectedTopic",
            instance="producer",
            count=8,
            may_fail=True,
            timeout_ms=1500,
        )
    recording.finish()


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
    Scenario(
        "fault-injected-5x",
        single_5x,
        injected_faults,
        "Sends through `rmqtool proxy`, which injects faults: recorded by the proxy itself",
        "packets of requests have a comment that names the injected fault",
        NEWEST_5,
        shows=("fault-injected",),
    ),
)
