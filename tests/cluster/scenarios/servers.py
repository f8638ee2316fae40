"""Servers among themselves: registration, two NameServers, replication, the acting master."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.cluster.servers import faults
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_4_SERVER, NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster

from .scene import NETWORK, Scenario, Scene, both, on_both

REPLICATED = {"slaveReadEnable": "true", "inSyncReplicas": 2, "totalReplicas": 2}
"""5.x counts the master itself as a replica in sync: it waits for a slave only from two on."""


def pair(version: str) -> Callable[[], Cluster]:
    """Two NameServers; a master with a slave that replicates synchronously; another master."""

    def make() -> Cluster:
        return Cluster(
            [
                BrokerSpec("broker-a", 0, "SYNC_MASTER", REPLICATED),
                BrokerSpec("broker-a", 1, "SLAVE", REPLICATED),
                BrokerSpec("broker-b", 0),
            ],
            version=version,
            namesrvs=2,
            network=NETWORK,
        )

    return make


pair_5x = pair(NEWEST_5)
pair_4x = pair(NEWEST_4_SERVER)


def acting_5x() -> Cluster:
    """A group whose slave acts as master while there is none."""
    # Without slaveReadEnable a slave answers every pull with 2, [REJECTREQUEST]system busy.
    settings = {"enableSlaveActingMaster": "true", "slaveReadEnable": "true"}
    new_way = {**settings, "compatibleWithOldNameSrv": "false"}
    return Cluster(
        [
            BrokerSpec("broker-a", 0, "ASYNC_MASTER", new_way),
            BrokerSpec("broker-a", 1, "SLAVE", settings),
        ],
        version=NEWEST_5,
        network=NETWORK,
        namesrv_settings={"supportActingMaster": "true"},
    )


def slave_fetch_seconds(scene: Scene) -> float:
    """Time in which a slave surely fetches topics, offsets and groups: every 60 s, in 4.x 10 s."""
    return 66.0 if scene.name.endswith("-5x") else 14.0


def replication(scene: Scene) -> None:
    scene.cluster.make_topic("ReplicaTopic", queues=2)
    slave = scene.cluster.broker("broker-a", 1)
    slave.stop()
    with scene.capture():
        # Without its slave a synchronous master answers 12 (4.x: 11), with it 0.
        scene.run("Send", topic="ReplicaTopic", instance="alone", count=4)
        faults.restart(scene.cluster, slave)
        began = time.monotonic()
        time.sleep(7)
        scene.run("Send", topic="ReplicaTopic", instance="together", count=6)
        time.sleep(max(0.0, began + slave_fetch_seconds(scene) - time.monotonic()))


def registration(scene: Scene) -> None:
    broker = scene.cluster.broker("broker-b")
    broker.stop()
    with scene.capture():
        faults.restart(scene.cluster, broker)
        scene.run("Send", topic="FreshTopic", instance="producer", count=2)
        time.sleep(11)
        broker.stop()
        time.sleep(1)
    faults.restart(scene.cluster, broker)


def slave_reads(scene: Scene) -> None:
    scene.cluster.make_topic("SlaveReadTopic", queues=2)
    scene.run("Send", topic="SlaveReadTopic", instance="filler", count=6)
    # Until its next fetch the slave does not know the topic and answers pulls with 17.
    time.sleep(slave_fetch_seconds(scene))
    master = scene.cluster.broker("broker-a")
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="SlaveReadTopic",
            group="slave_group",
            instance="consumer",
            count=6,
            linger_ms=9000,
            poll_ms=1500,
        )
        consumer.wait_for("complete")
        faults.kill(master)
        time.sleep(1)
        # A group that starts now reads from the beginning, on broker-a from the slave.
        scene.run(
            "PushConsume",
            topic="SlaveReadTopic",
            group="late_group",
            instance="late-consumer",
            count=6,
            wait_ms=45000,
        )
        consumer.finish()
    faults.restart(scene.cluster, master)


def acting_master(scene: Scene) -> None:
    scene.cluster.make_topic("ActingTopic", queues=2)
    scene.run("Send", topic="ActingTopic", instance="filler", count=4)
    time.sleep(slave_fetch_seconds(scene))
    master = scene.cluster.broker("broker-a")
    with scene.capture():
        time.sleep(2)
        master.stop()
        scene.run(
            "PushConsume", topic="ActingTopic", group="acting_group", instance="consumer", count=4
        )
        time.sleep(3)
        faults.restart(scene.cluster, master)
        time.sleep(2)


def namesrv_gone(scene: Scene) -> None:
    scene.cluster.make_topic("TwoTopic")
    first = scene.cluster.namesrvs[0]
    with scene.capture():
        sender = scene.start(
            "Send", topic="TwoTopic", instance="producer", count=40, pause_ms=250, poll_ms=1500
        )
        sender.wait_for("SEND_OK")
        time.sleep(3)
        faults.kill(first)
        sender.finish()
    first.start()
    for broker in scene.cluster.brokers:
        scene.cluster.wait_listed(broker)


def hasty(version: str) -> Cluster:
    """A master that answers when a message is on its disk, and does not wait for that at all."""
    settings = {"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": 0}
    return Cluster([BrokerSpec(settings=settings)], version=version, network=NETWORK)


def flush_late(scene: Scene) -> None:
    """Six sends to FlushTopic on broker-a, which flushes before it answers but gives up at once.

    Those that it gives up on get response 10, FLUSH_DISK_TIMEOUT: they are stored anyway.
    """
    scene.cluster.make_topic("FlushTopic", queues=2)
    with scene.capture():
        scene.run("Send", topic="FlushTopic", instance="producer", count=6)


def _both(
    name: str, run: Callable[[Scene], None], what: str, odd: str
) -> tuple[Scenario, Scenario]:
    return (
        Scenario(f"{name}-5x", pair_5x, run, what, odd),
        Scenario(f"{name}-4x", pair_4x, run, what, odd, client=NEWEST_4),
    )


SERVERS: tuple[Scenario, ...] = (
    *_both(
        "ha-replication",
        replication,
        "A slave joins a synchronous master; sends before and after; the slave fetches "
        "topics and offsets",
        "the HA port (listen + 1) carries no frames; sends without a slave get response 12 "
        "(4.x: 11), yet stored",
    ),
    *_both(
        "registration",
        registration,
        "A broker starts, registers with two NameServers, creates a topic, and shuts down",
        "the same 103 goes to both NameServers; 104 at the end",
    ),
    *_both(
        "slave-read",
        slave_reads,
        "The master is killed: a consumer goes on at the slave, another group begins there",
        "the route has no brokerId 0 for broker-a; pulls move to the slave's address",
    ),
    *_both(
        "namesrv-gone",
        namesrv_gone,
        "One of two NameServers is killed while a producer sends",
        "the client uses the other one, or its old route",
    ),
    Scenario(
        "acting-master-5x",
        acting_5x,
        acting_master,
        "A slave acts as master while the master is gone",
        "light heartbeats every second: 904 by the master, which was told that its NameServer is "
        "new, and oneway 322 by the slave, which was not; the route shows the slave's address "
        "under id 0, without write permission",
    ),
    *both(
        "flush-late",
        flush_late,
        "Sends to a broker that flushes each message and does not wait for it",
        "response 10: stored, possibly not on disk yet",
        clusters=on_both(hasty),
        shows=("stored-not-durable",),
    ),
)
