"""Outages that a producer cannot get around, and what else on its host looks like it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

from tests.cluster.scenarios.scene import NETWORK, Scenario, Scene, both, on_both, single_5x
from tests.cluster.servers import faults, probe
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_5, OLD_4, OLD_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster, Node
from tests.cluster.servers.processes import wait_until

from .faulty import faulty, masters_5x, states

PROBE_SECONDS = 0.4
LOG_PORT = 40911
"""The first peer's for the replication of its log; the others have the next ones."""
KNOWN = "producer"
"""What the producer knew is kept apart from the runs that all rules of the strategy are held to."""


def dledger(version: str) -> Cluster:
    """Three peers that replicate one log with DLedger and elect its leader among themselves."""
    peers = [f"n{i}-{NETWORK}.{11 + i}:{LOG_PORT + i}" for i in range(3)]
    specs = [
        BrokerSpec(
            "broker-a",
            i,
            settings={
                "brokerId": -1,
                "enableDLegerCommitLog": "true",
                "dLegerGroup": "broker-a",
                "dLegerPeers": ";".join(peers),
                "dLegerSelfId": f"n{i}",
            },
        )
        for i in range(3)
    ]
    return Cluster(specs, version=version, network=NETWORK)


@contextlib.contextmanager
def probed(node: Node) -> Iterator[None]:
    """Another program on the client's host connects to a server's port and says nothing."""
    ended = threading.Event()

    def connect() -> None:
        while not ended.wait(PROBE_SECONDS):
            with contextlib.suppress(OSError):
                socket.create_connection(node.address, 1.0).close()

    prober = threading.Thread(target=connect, name="probe", daemon=True)
    prober.start()
    try:
        yield
    finally:
        ended.set()
        prober.join()


def only_broker_killed(scene: Scene) -> None:
    """The only broker is killed while a producer goes on sending, then comes back."""
    scene.cluster.make_topic("OutageTopic", queues=2)
    broker = scene.broker
    with scene.capture():
        sender = scene.start(
            "FaultSend",
            topic="OutageTopic",
            instance="producer",
            timeout_ms=1500,
            pause_ms=150,
            poll_ms=3000,
            fault_strategy=True,
        )
        sender.wait_for('"kind":"send"')
        time.sleep(1.5)
        with probed(broker):
            time.sleep(1.0)
            faults.kill(broker)
            time.sleep(4.0)
        faults.restart(scene.cluster, broker)
        time.sleep(2.0)
        sender.end_input()
        scene.write_json(states(sender), KNOWN)


def peer_lost(scene: Scene) -> None:
    """The leader of a DLedger group of three is killed while a producer sends to LedgerTopic.

    The two that are left elect another leader after some seconds. Until then nobody takes the
    producer's messages: first its connects are refused, then the route names no master.
    """
    cluster = scene.cluster
    wait_until("a leader", lambda: bool(scene.master()), 60.0)
    leader = next(one for one in cluster.brokers if one.registered_as == scene.master())
    probe.make_topic(leader.address, "LedgerTopic", queues=2)
    time.sleep(3)
    with scene.capture():
        sender = scene.start(
            "FaultSend",
            topic="LedgerTopic",
            instance="producer",
            timeout_ms=3000,
            pause_ms=500,
            poll_ms=2000,
        )
        sender.wait_for('"kind":"send"')
        time.sleep(2)
        faults.kill(leader)
        wait_until("another leader", lambda: scene.master() not in ("", leader.registered_as), 60.0)
        time.sleep(3)
        sender.end_input()
        scene.write_json(states(sender), KNOWN)
    faults.restart(cluster, leader)


def killed_beside(scene: Scene, proxy: faults.Proxy) -> None:
    """A broker is killed; another program of the same host goes on connecting to it."""
    broker = scene.cluster.broker("broker-b")
    with probed(broker):
        time.sleep(1)
        faults.kill(broker)
        time.sleep(6)
    faults.restart(scene.cluster, broker)
    time.sleep(4)


def frozen_beyond_timeout(scene: Scene, proxy: faults.Proxy) -> None:
    """A broker hangs for longer than the timeout, not so long that anybody hangs up."""
    with faults.frozen(scene.cluster.broker("broker-a")):
        time.sleep(4.4)
    time.sleep(4)


def full_for_a_moment(scene: Scene, proxy: faults.Proxy) -> None:
    """The disk of broker-a is full for nine seconds, then two minutes pass.

    The producer of 5.1.4, with the fault strategy on and without the detector, never sends to
    broker-a again after its first response 14: a broker that refused counts as unreachable, and
    only the detector, or a send, could change that. Other releases wait ten seconds.
    """
    with faults.disk_full(scene.cluster.broker("broker-a")):
        time.sleep(9)
    time.sleep(115)


OUTAGES: tuple[Scenario, ...] = (
    Scenario(
        "outage-5x",
        single_5x,
        only_broker_killed,
        "The only broker is killed and comes back; another program connects to its port meanwhile",
        "no send is seen while it is gone, only refused connects: of the client, which goes on"
        " afterwards, and of a program that never asks for anything",
        NEWEST_5,
    ),
    *both(
        "peer-lost",
        peer_lost,
        "The leader of a DLedger group of three is killed; the other two elect another one",
        "the peers' own requests on ports of their own; refused connects and a route without a"
        " master until another address has id 0",
        clusters=on_both(dledger),
    ),
    Scenario(
        "fault-kill-beside-4x",
        masters_5x,
        faulty(killed_beside, kept_as=KNOWN),
        "As fault-kill-4x while another program of the host connects to the broker's port",
        "most refused connects are not the producer's",
        NEWEST_4,
    ),
    Scenario(
        "fault-freeze-43",
        masters_5x,
        faulty(frozen_beyond_timeout, kept_as=KNOWN, timeout_ms=3000, warm=True),
        "A broker hangs for longer than the timeout of a client of 4.3.2",
        "the client keeps the connection: the response to the send that timed out comes late on it;"
        " no request names its broker",
        OLD_4,
    ),
    Scenario(
        "broker-forgotten-51",
        masters_5x,
        faulty(full_for_a_moment, kept_as=KNOWN, pause_ms=1500, poll_ms=30_000),
        "A broker's disk is full for nine seconds; two minutes of sends follow",
        "the producer never uses the broker again after one refusal",
        OLD_5,
        shows=("permanent-avoidance",),
    ),
)
