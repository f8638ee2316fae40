"""What 5.x refuses, what operators change, and what an old server does not know.

Each scenario's text says what was provoked: which topic, group, client, codes and remarks.
"""

from __future__ import annotations

import contextlib
import time

from tests.cluster.clients.clients import run_mqadmin
from tests.cluster.servers import faults, probe
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_5
from tests.cluster.servers.cluster import CLUSTER_NAME, BrokerSpec, Cluster
from tests.cluster.servers.processes import wait_until

from .admin import fresh_4x, fresh_5x
from .failing.faulty import PROXY_HOST, SEEN_BY_CLIENTS, masters_5x
from .refused import TWO_BOTH
from .scene import EVERYTHING, NETWORK, Scenario, Scene, single_4x, single_5x

FOUR_DAYS = 4 * 24 * 3600 * 1000
UNLIMITED = 2**31 - 1
CONFIG = "updateBrokerConfig -b"
CONTROLLER_PORT = 19877


def lonely_5x() -> Cluster:
    """A master that writes only with a slave in sync, and has none."""
    settings = {
        "enableSlaveActingMaster": "true",
        "inSyncReplicas": 2,
        "totalReplicas": 2,
    }
    spec = BrokerSpec("broker-a", 0, "SYNC_MASTER", settings)
    return Cluster([spec], version=NEWEST_5, network=NETWORK)


def elected_5x() -> Cluster:
    """Two replicas of broker-a; a controller inside the NameServer elects their master."""
    address = f"{NETWORK}.1:{CONTROLLER_PORT}"
    settings = {
        "enableControllerMode": "true",
        "controllerAddr": address,
        "controllerHeartBeatTimeoutMills": 4000,
        "syncControllerMetadataPeriod": 2000,
        "haMaxTimeSlaveNotCatchup": 5000,
    }
    return Cluster(
        [
            BrokerSpec("broker-a", 0, "SLAVE", {**settings, "brokerId": -1}),
            BrokerSpec("broker-a", 1, "SLAVE", {**settings, "brokerId": -1}),
        ],
        version=NEWEST_5,
        network=NETWORK,
        namesrv_settings={
            "enableControllerInNamesrv": "true",
            "controllerDLegerGroup": "controllers",
            "controllerDLegerPeers": f"n0-{NETWORK}.1:{CONTROLLER_PORT}",
            "controllerDLegerSelfId": "n0",
            "mappedFileSize": 1024 * 1024,
            "scanNotActiveBrokerInterval": 1000,
            "scanInactiveMasterInterval": 1000,
        },
    )


def _admin(scene: Scene, command: str) -> None:
    """Runs mqadmin; the server may refuse."""
    with contextlib.suppress(RuntimeError):
        run_mqadmin(command.split(), scene.cluster.namesrv_text, scene.client)


def timer_refused(scene: Scene) -> None:
    """broker-a refuses timed messages to TimerTopic for three reasons, each from its own producer.

    127.0.0.1@too-late sends one that is due in four days, of three that are allowed: 13.
    127.0.0.1@crowded sends three for one second that takes one: the second and the third are
    answered 1, under flow control, each attempt. 127.0.0.1@disabled sends one while the timer is
    off: 1, not enabled, each attempt.
    """
    scene.cluster.make_topic("TimerTopic")
    timed = {"topic": "TimerTopic", "kind": "timer-late", "may_fail": True}
    with scene.capture():
        late = {"late_ms": FOUR_DAYS, "refused": "late"}
        scene.run("Send", instance="too-late", count=1, **late, **timed)
        with faults.configured(scene.broker, "timerCongestNumEachSlot", 0, UNLIMITED):
            scene.run("Send", instance="crowded", count=3, late_ms=60_000, pause_ms=4000, **timed)
        with faults.configured(scene.broker, "timerWheelEnable", "false", "true"):
            scene.run("Send", instance="disabled", count=1, late_ms=60_000, **timed)


def pop_full(scene: Scene) -> None:
    """A POP consumer of full_group waits for messages of FullTopic where nobody may wait.

    broker-a answers its polls 209, polling full, instead of keeping them.
    """
    scene.cluster.make_topic("FullTopic", queues=2)
    where = f"-b {scene.broker.text} -t FullTopic -g full_group"
    run_mqadmin(
        f"setConsumeMode {where} -m POP -q 0".split(), scene.cluster.namesrv_text, scene.client
    )
    with faults.configured(scene.broker, "maxPopPollingSize", 0, 100_000), scene.capture():
        scene.run(
            "PushConsume",
            topic="FullTopic",
            instance="consumer",
            group="full_group",
            pop=True,
            wait_ms=8000,
            expect=3,
        )


def pop_late(scene: Scene) -> None:
    """A POP consumer of late_group acknowledges messages of LateTopic three seconds too late.

    They were popped for five seconds. They are delivered again, and acknowledged in time; an
    acknowledgement of an offset beyond the end gets response 208.
    """
    scene.cluster.make_topic("LateTopic", queues=1)
    scene.run("Send", topic="LateTopic", instance="filler", count=2)
    with scene.capture():
        scene.run(
            "PopCalls",
            topic="LateTopic",
            instance="popper",
            group="late_group",
            broker=scene.broker.text,
            late=True,
            invisible_ms=5000,
        )


def queue_moved(scene: Scene) -> None:
    """All four queues of StaticTopic, a static topic, move to broker-b while a producer sends.

    The producer, of 24 messages, has the old route: to sends for the queues that were broker-a's it
    answers 501, StaticTopic-N does not exit in request process of current broker, and the client
    does not try again.
    """
    where = f"-t StaticTopic -c {CLUSTER_NAME}"
    run_mqadmin(
        f"updateStaticTopic {where} -qn 4".split(), scene.cluster.namesrv_text, scene.client
    )
    time.sleep(2)
    with scene.capture():
        sender = scene.start(
            "Send",
            topic="StaticTopic",
            instance="producer",
            count=24,
            pause_ms=500,
            may_fail=True,
        )
        sender.wait_for("SEND_OK")
        run_mqadmin(
            "remappingStaticTopic -t StaticTopic -b broker-b".split(),  # noqa: SIM905
            scene.cluster.namesrv_text,
            scene.client,
        )
        sender.finish()


def replicas_missing(scene: Scene) -> None:
    """broker-a wants two replicas in sync and is alone: two sends to ReplicaTopic are refused.

    Each attempt gets response 1, in-sync replicas not enough.
    """
    scene.cluster.make_topic("ReplicaTopic", queues=2)
    with scene.capture():
        scene.run("Send", topic="ReplicaTopic", instance="producer", count=2, may_fail=True)


def config_dangerous(scene: Scene) -> None:
    """An operator changes settings of broker-a and of the NameServer, three of four dangerous ones.

    fileReservedTime is harmless. rocketmqHome and brokerConfigPath of the broker (25) and
    configStorePath of the NameServer (318) are what attackers set.
    """
    broker = scene.broker.text
    with scene.capture():
        _admin(scene, f"{CONFIG} {broker} -k fileReservedTime -v 2")
        _admin(scene, f"{CONFIG} {broker} -k rocketmqHome -v /opt/elsewhere")
        _admin(scene, f"{CONFIG} {broker} -k brokerConfigPath -v /opt/elsewhere/broker.conf")
        _admin(scene, "updateNamesrvConfig -k configStorePath -v /opt/elsewhere/namesrv.properties")


def request_unsupported(scene: Scene) -> None:
    """A client and an mqadmin of 5.x ask a broker of 4.9.7 for what only 5.x has.

    broker-a answers each of four requests 3, request type not supported: the notification (200054),
    the polling info (200055) and the pop (200050) of a POP consumer of old_group, and the list of
    users (3005).
    """
    scene.cluster.make_topic("OldTopic", queues=2)
    with scene.capture():
        scene.run(
            "PopCalls",
            topic="OldTopic",
            instance="popper",
            group="old_group",
            broker=scene.broker.text,
            expect=None,
        )
        _admin(scene, f"listUser -b {scene.broker.text}")


def stored_twice(scene: Scene) -> None:
    """broker-a hangs for 3 s while a producer sends to TwiceTopic with 500 ms an attempt.

    What timed out there is sent again to broker-b and stored by broker-a anyway when it goes
    on; 127.0.0.1@consumer of twice_group is given such messages twice.
    """
    broker = scene.cluster.broker("broker-a")
    with faults.Proxy((PROXY_HOST, broker.port), broker.address):
        scene.cluster.make_topic("TwiceTopic", queues=2)
        consumer = scene.start(
            "PushConsume",
            topic="TwiceTopic",
            instance="consumer",
            group="twice_group",
            count=999,
            wait_ms=600_000,
        )
        consumer.wait_for("started")
        time.sleep(2)
        with scene.capture(SEEN_BY_CLIENTS):
            sender = scene.start(
                "Send",
                topic="TwiceTopic",
                instance="producer",
                count=30,
                pause_ms=300,
                timeout_ms=3000,
                per_request_ms=500,
                may_fail=True,
            )
            sender.wait_for("SEND_OK")
            time.sleep(1.5)
            with faults.frozen(broker):
                time.sleep(3)
            sender.finish()
            time.sleep(3)
        consumer.kill()


def leader_lost(scene: Scene) -> None:
    """The elected master of broker-a is killed while a producer sends to LeaderTopic.

    The controller elects the other replica within a second; until the producer asks for the route
    again, which it does every two, its sends fail. Five seconds later the new master is killed too:
    nobody is left, and the route of the topic goes.
    """
    first, second = scene.cluster.brokers
    wait_until("a master", lambda: bool(scene.master()), 60.0)
    master, other = (first, second) if scene.master() == first.registered_as else (second, first)
    probe.make_topic(master.address, "LeaderTopic", queues=2)
    time.sleep(10)  # the other replica has to have everything, else it may not be elected
    with scene.capture():
        sender = scene.start(
            "Send",
            topic="LeaderTopic",
            instance="producer",
            count=50,
            pause_ms=500,
            timeout_ms=1500,
            poll_ms=2000,
            retries=0,
            may_fail=True,
        )
        sender.wait_for("SEND_OK")
        time.sleep(1.5)
        faults.kill(master)
        wait_until("another master", lambda: scene.master() == other.registered_as, 30.0)
        time.sleep(5)
        faults.kill(other)
        sender.finish(200.0)


def master_switched(scene: Scene) -> None:
    """A replica of broker-a joins a master with an empty log, then takes its place.

    Six messages follow the joining, two more the switch; what was the master comes back as a
    replica of the new one.
    """
    cluster = scene.cluster
    wait_until("a master", lambda: bool(scene.master()), 60.0)
    first, second = cluster.brokers
    master, other = (first, second) if scene.master() == first.registered_as else (second, first)
    faults.kill(other)
    probe.make_topic(master.address, "SwitchTopic", queues=2)
    time.sleep(8)  # until the controller has taken the one that is gone out of the set in sync
    with scene.capture(f"{EVERYTHING} and not port {CONTROLLER_PORT}"):
        faults.restart(cluster, other)
        time.sleep(6)
        scene.run("Send", topic="SwitchTopic", instance="before", count=6)
        time.sleep(6)  # the replica is in sync again, else it may not be elected
        faults.kill(master)
        wait_until("another master", lambda: scene.master() == other.registered_as, 30.0)
        scene.run("Send", topic="SwitchTopic", instance="after", count=2)
        faults.restart(cluster, master)
        time.sleep(6)


NEWER: tuple[Scenario, ...] = (
    Scenario(
        "timer-refused-5x",
        single_5x,
        timer_refused,
        "Timed messages that are due too late, too many for one second, or with the timer off",
        "13 for the first; 1 for the others, which is tried again",
        shows=("timer-illegal",),
    ),
    Scenario(
        "pop-full-5x",
        single_5x,
        pop_full,
        "A POP consumer on a broker with no room for long polls",
        "polls get response 209 at once and are sent again",
        shows=("pop-polling-full",),
    ),
    Scenario(
        "pop-late-5x",
        single_5x,
        pop_late,
        "Two messages are acknowledged after their invisible time",
        "the late acknowledgement gets response 0, yet the messages are popped again",
        shows=("pop-ack-late",),
    ),
    Scenario(
        "queue-moved-5x",
        TWO_BOTH[0],
        queue_moved,
        "The queues of a static topic move to another broker while a producer sends",
        "the broker that had them answers 501 until the client has the new route",
        packed=True,
        shows=("not-leader-for-queue",),
    ),
    Scenario(
        "replicas-missing-5x",
        lonely_5x,
        replicas_missing,
        "Two sends to a master that requires an in-sync slave",
        "each attempt gets response 1, in-sync replicas not enough",
        shows=("isr-not-enough",),
    ),
    Scenario(
        "config-dangerous-5x",
        fresh_5x,
        config_dangerous,
        "An operator changes four settings, three of which are dangerous",
        "the dangerous ones are refused",
        shows=("dangerous-config-update",),
    ),
    Scenario(
        "config-dangerous-4x",
        fresh_4x,
        config_dangerous,
        "An operator changes four settings, three of which are dangerous",
        "the broker takes all of them",
        client=NEWEST_4,
        shows=("dangerous-config-update",),
    ),
    Scenario(
        "request-unsupported-5x-client-4x-server",
        single_4x,
        request_unsupported,
        "A 5.x client and mqadmin send requests that a 4.x broker does not know",
        "response 3, request type not supported",
        client=NEWEST_5,
        shows=("version-mismatch",),
    ),
    Scenario(
        "master-switched-5x",
        elected_5x,
        master_switched,
        "A replica joins an empty master, takes its place, and is joined by it in turn",
        "the HA ports carry epochs: a transfer of no bytes at offset -1 from the empty master",
    ),
    Scenario(
        "leader-lost-5x",
        elected_5x,
        leader_lost,
        "The elected master of two replicas is killed, then its successor",
        "the controller elects; the route names another address under id 0, at last none",
        shows=("no-master",),
    ),
    Scenario(
        "stored-twice-5x",
        masters_5x,
        stored_twice,
        "A broker hangs for 3 s: sends that timed out are stored by both brokers",
        "the consumer receives the same UNIQ_KEY twice, at two offsets",
        shows=("send-timeout", "ambiguous-outcome"),
    ),
)
