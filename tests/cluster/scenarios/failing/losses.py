"""Packets that get lost on the way, and messages that a broker loses.

Each scenario's text says what was provoked: which packets, which broker, for how long.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable

from tests.cluster.clients.clients import Client
from tests.cluster.scenarios.scene import NETWORK, Scenario, Scene, both, on_both
from tests.cluster.servers import faults
from tests.cluster.servers.cluster import BrokerSpec, Cluster

from .faulty import states
from .outages import KNOWN

LOST_SECONDS = 5.0
STORED = ("commitlog", "consumequeue", "index", "checkpoint", "timerwheel")
"""what a broker has stored below its root folder; its topics are beside that"""


def pair(version: str) -> Cluster:
    """Two masters."""
    specs = [BrokerSpec(name) for name in ("broker-a", "broker-b")]
    return Cluster(specs, version=version, network=NETWORK)


def lost_to_broker(scene: Scene) -> None:
    """For five seconds every packet of 127.0.0.1@producer to broker-a is lost; broker-a is well.

    Sends that wait for broker-a time out; those to broker-b go on.
    """
    _while_lost(scene, lambda host, port: f"ip daddr {host} tcp dport {port}")


def lost_from_broker(scene: Scene) -> None:
    """For five seconds every packet of broker-a to its clients is lost; broker-a is well.

    It stores what is sent to it; the producer takes it for a failure.
    """
    _while_lost(scene, lambda host, port: f"ip saddr {host} tcp sport {port}")


def full_segments_lost(scene: Scene) -> None:
    """Packets of more than 1400 bytes to broker-a are lost, shorter ones arrive.

    127.0.0.1@large sends two messages of 4 kB, which time out; those of 127.0.0.1@small are
    stored meanwhile.
    """
    scene.cluster.make_topic("SegmentTopic", queues=2)
    with faults.small_path_mtu(scene.broker), scene.capture():
        small = scene.start("Send", topic="SegmentTopic", instance="small", count=24, pause_ms=500)
        small.wait_for("SEND_OK")
        scene.run(
            "Send",
            topic="SegmentTopic",
            instance="large",
            count=2,
            body=4000,
            pause_ms=500,
            timeout_ms=3000,
            retries=0,
            may_fail=True,
        )
        small.finish()


def _sender(scene: Scene, topic: str, pause_ms: int) -> Client:
    """Starts a producer that sends until its input ends; returns when it has sent once."""
    sender = scene.start(
        "FaultSend",
        topic=topic,
        instance="producer",
        timeout_ms=1500,
        pause_ms=pause_ms,
        poll_ms=3000,
    )
    sender.wait_for('"kind":"send"')
    return sender


def _while_lost(scene: Scene, which: Callable[[str, int], str]) -> None:
    scene.cluster.make_topic("LossTopic", queues=2)
    broker = scene.broker
    with scene.capture():
        sender = _sender(scene, "LossTopic", 250)
        time.sleep(2.0)
        with faults.lost(which(broker.host, broker.port)):
            time.sleep(LOST_SECONDS)
        time.sleep(8.0)
        sender.end_input()
        scene.write_json(states(sender), KNOWN)


def store_lost(scene: Scene) -> None:
    """broker-a is killed and comes back with its topics but without its messages.

    emptied_group had consumed what was stored; sends to EmptiedTopic go on.
    """
    scene.cluster.make_topic("EmptiedTopic", queues=2)
    broker = scene.broker
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="EmptiedTopic",
            group="emptied_group",
            instance="consumer",
            until_end=True,
        )
        consumer.wait_for("started")
        sender = _sender(scene, "EmptiedTopic", 900)
        time.sleep(6.0)
        faults.kill(broker)
        for name in STORED:
            stored = broker.folder / "store" / name
            if stored.is_dir():
                shutil.rmtree(stored)
            else:
                stored.unlink(missing_ok=True)
        faults.restart(scene.cluster, broker)
        time.sleep(15.0)
        sender.end_input()
        scene.write_json(states(sender), KNOWN)
        consumer.end_input()
        consumer.finish()


def broker_moved(scene: Scene) -> None:
    """broker-a is killed and comes back six seconds later with its store, at another address.

    It is at 127.77.0.13 from then on, as a pod that was started again. 127.0.0.1@producer uses
    the old address until its next route.
    """
    cluster, broker = scene.cluster, scene.broker
    cluster.make_topic("MovedTopic", queues=2)
    moved = cluster.spare_broker(BrokerSpec(broker.spec.name))
    try:
        with scene.capture():
            sender = _sender(scene, "MovedTopic", 250)
            time.sleep(3.0)
            faults.kill(broker)
            shutil.copytree(broker.folder / "store", moved.folder / "store")
            time.sleep(6.0)
            faults.restart(cluster, moved)
            time.sleep(12.0)
            sender.end_input()
            scene.write_json(states(sender), KNOWN)
    finally:
        moved.kill()
        faults.restart(cluster, broker)


LOSSES: tuple[Scenario, ...] = (
    *both(
        "lost-to-broker",
        lost_to_broker,
        "Packets to one of two brokers are lost for five seconds",
        "one segment is retransmitted with growing delays and never acknowledged",
        clusters=on_both(pair),
        shows=("packets-unacknowledged",),
    ),
    *both(
        "lost-from-broker",
        lost_from_broker,
        "Packets from one of two brokers are lost for five seconds",
        "both ends send again: the broker's responses do not arrive, nor do its acknowledgements",
        clusters=on_both(pair),
        shows=("packets-unacknowledged",),
    ),
    *both(
        "full-segments-lost",
        full_segments_lost,
        "Full segments to a broker are lost, as with a smaller path MTU",
        "segments of 1448 bytes are retransmitted in vain; shorter ones are acknowledged",
        shows=("packets-unacknowledged",),
        packed=True,
    ),
    *both(
        "broker-moved",
        broker_moved,
        "A broker is killed and comes back under its name at another address",
        "clients try the old address until their next route",
        clusters=on_both(pair),
        shows=("broker-gone",),
        packed=True,
    ),
    Scenario(
        "store-lost-5x",
        on_both(pair)[0],
        store_lost,
        "A broker is killed and restarted with an empty store",
        "queues restart at offset 0, and the consumer requests offsets beyond the end",
        shows=("queue-truncated",),
    ),
)
