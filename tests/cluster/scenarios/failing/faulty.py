"""Faults seen by a producer with the fault strategy on; the strategy's own state is kept beside."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from tests.cluster.clients.clients import Client
from tests.cluster.scenarios.scene import EVERYTHING, NETWORK, Scenario, Scene
from tests.cluster.servers import faults
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster

PROXY_HOST = f"{NETWORK}.61"
"""What broker-a advertises, so that a proxy of ours stands in front of it."""
SEEN_BY_CLIENTS = f"{EVERYTHING} and not host {NETWORK}.11"
"""The hop behind the proxy would show everything twice."""
KEPT_OPEN = "com.rocketmq.remoting.client.closeSocketIfTimeout=false"
"""A client's switch: a connection stays open when a request on it times out."""


def masters_5x() -> Cluster:
    """Two masters; what comes to broker-a may be delayed or cut on its way."""
    return Cluster(
        [BrokerSpec("broker-a", advertised=PROXY_HOST), BrokerSpec("broker-b")],
        version=NEWEST_5,
        network=NETWORK,
    )


def faulty(
    fault: Callable[[Scene, faults.Proxy], None], *, kept_as: str = "faults", **options: object
) -> Callable[[Scene], None]:
    """Sends all the time while `fault` runs; the sample is the capture and the states read."""

    def run(scene: Scene) -> None:
        broker = scene.cluster.broker("broker-a")
        with faults.Proxy((PROXY_HOST, broker.port), broker.address) as proxy:
            scene.cluster.make_topic("FaultTopic", queues=2)
            with scene.capture(SEEN_BY_CLIENTS):
                settings: dict[str, object] = {
                    "timeout_ms": 1500,
                    "pause_ms": 120,
                    "poll_ms": 3000,
                    "fault_strategy": True,
                    **options,
                }
                sender = scene.start(
                    "FaultSend", topic="FaultTopic", instance="producer", **settings
                )
                sender.wait_for('"kind":"send"')
                time.sleep(1.5)
                fault(scene, proxy)
                time.sleep(1.0)
                sender.end_input()
                scene.write_json(states(sender), kept_as)

    run.__doc__ = fault.__doc__
    return run


def states(sender: Client) -> object:
    """The lines that `FaultSend` printed, unchanged states left out."""
    kept: list[dict[str, object]] = []
    last: object = None
    for line in sender.finish().splitlines():
        if not line.startswith('{"kind"'):
            continue
        row = json.loads(line)
        if row["kind"] == "state" and row["items"] == last:
            continue
        last = row.get("items", last)
        kept.append(row)
    return kept


def killed(scene: Scene, proxy: faults.Proxy, name: str = "broker-a") -> None:
    broker = scene.cluster.broker(name)
    faults.kill(broker)
    time.sleep(6)
    faults.restart(scene.cluster, broker)
    time.sleep(5)


def killed_b(scene: Scene, proxy: faults.Proxy) -> None:
    # No proxy in front of broker-b: connecting to it is refused by the kernel itself.
    killed(scene, proxy, "broker-b")


def frozen(scene: Scene, proxy: faults.Proxy) -> None:
    with faults.frozen(scene.cluster.broker("broker-a")):
        time.sleep(5)
    time.sleep(4)


def slow(scene: Scene, proxy: faults.Proxy) -> None:
    for delay in (0.07, 0.3, 0.7):
        proxy.delay = delay
        time.sleep(3)
    proxy.delay = 0.0
    time.sleep(3)


def read_only(scene: Scene, proxy: faults.Proxy) -> None:
    with faults.read_only(scene.cluster.broker("broker-a")):
        time.sleep(5)
    time.sleep(4)


def disk_full(scene: Scene, proxy: faults.Proxy) -> None:
    with faults.disk_full(scene.cluster.broker("broker-a")):
        time.sleep(4)
    time.sleep(3)


def no_permission(scene: Scene, proxy: faults.Proxy) -> None:
    with faults.no_permission(scene.cluster.broker("broker-a"), "FaultTopic", queues=2):
        time.sleep(4)
    time.sleep(3)


def cut(scene: Scene, proxy: faults.Proxy) -> None:
    for size in (2, 60, 150):
        proxy.reset_after(size)
        time.sleep(2.5)


def unknown_topic(scene: Scene) -> None:
    brokers = scene.cluster.brokers
    with (
        faults.Proxy((PROXY_HOST, brokers[0].port), brokers[0].address),
        faults.no_auto_create(brokers[0]),
        faults.no_auto_create(brokers[1]),
        scene.capture(SEEN_BY_CLIENTS),
    ):
        scene.run("Send", topic="NobodysTopic", instance="producer", count=2, may_fail=True)


FAULTS: tuple[
    tuple[str, Callable[[Scene, faults.Proxy], None], str, str, dict[str, object]], ...
] = (
    (
        "fault-kill",
        killed_b,
        "A broker is killed and restarted",
        "RST to the open connection, then refused connects; attempts move to the other broker",
        {},
    ),
    (
        "fault-proxy-kill",
        killed,
        "A broker behind a TCP proxy is killed and restarted",
        "connects succeed and are reset at once, as behind a load balancer",
        {},
    ),
    (
        "fault-freeze",
        frozen,
        "A broker hangs for 5 s with its connections open",
        "no response within the timeout, so the client closes; late responses reach closed ports",
        {"warm": True},
    ),
    (
        "fault-slow",
        slow,
        "Responses of one broker are delayed by 70, 300, and 700 ms",
        "the strategy avoids the broker for a time that grows with the latency",
        {"timeout_ms": 3000},
    ),
    (
        "fault-read-only",
        read_only,
        "A broker loses its write permission",
        "a client with the old route may continue until it refreshes the route",
        {},
    ),
    (
        "fault-disk-full",
        disk_full,
        "A broker's disk is full",
        "response 14 with the ratios in the remark; retried at the other broker",
        {},
    ),
    (
        "fault-no-permission",
        no_permission,
        "A broker without write permission refuses sends to an ordered topic",
        "response 16 while the client has the old route",
        {},
    ),
    (
        "fault-reset",
        cut,
        "Connections are reset in the middle of a response; the fault strategy is off",
        "after 2 bytes, inside the length; after 60 and 150, inside the header",
        {"fault_strategy": False},
    ),
)


def _rows() -> tuple[Scenario, ...]:
    rows = []
    for generation, client in (("5x", NEWEST_5), ("4x", NEWEST_4)):
        for name, fault, what, odd, options in FAULTS:
            rows.append(
                Scenario(
                    f"{name}-{generation}", masters_5x, faulty(fault, **options), what, odd, client
                )
            )
    return tuple(rows)


FAULTY: tuple[Scenario, ...] = (
    *_rows(),
    Scenario(
        "fault-freeze-detector-5x",
        masters_5x,
        faulty(frozen, detector=True, per_request_ms=600),
        "As fault-freeze-5x with the detector on and a timeout for each attempt",
        "30 to the frozen broker is the detector's; it becomes reachable again by an answer",
    ),
    Scenario(
        "fault-disk-full-plain-5x",
        masters_5x,
        faulty(disk_full, fault_strategy=False),
        "As fault-disk-full-5x with the fault strategy off",
        "every send to the full broker is refused, then retried on the other one",
    ),
    Scenario(
        "fault-freeze-plain-5x",
        masters_5x,
        faulty(frozen, fault_strategy=False, per_request_ms=500),
        "As fault-freeze-5x with the fault strategy off and 500 ms for each attempt",
        "the attempt that timed out may be stored later: then the message is there twice",
    ),
    Scenario(
        "fault-unknown-topic-5x",
        masters_5x,
        unknown_topic,
        "Automatic topic creation is off",
        "the route of TBW102 lets the client try: each send is refused with 17 three times",
    ),
)
