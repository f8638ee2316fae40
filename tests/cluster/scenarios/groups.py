"""Consumer groups whose members get into each other's way, or do not keep up.

Each scenario's text says what was provoked: which group, which clients, which topic.
"""

from __future__ import annotations

import json
import time

from tests.cluster.clients.clients import run_mqadmin
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster

from .scene import NETWORK, Scenario, Scene, both

UPDATE_CONSUMER_OFFSET = 15
FAR_BEYOND = 500
LAGGING = {"threshold": 2, "batch": 1, "work_ms": 1000}
"""One message at a time, a second for each: two threads take two messages a second."""


def client_id_twice(scene: Scene) -> None:
    """Two processes consume TwinTopic in twin_group with one client id, 127.0.0.1@twin.

    Both take queues 0 and 1 of the four and nobody 2 and 3: of eight messages, two in each queue,
    four are consumed, by both processes, and four by nobody. The first process had all four queues
    before the second came, so its pulls of 2 and 3 are still answered, for nothing.
    """
    scene.cluster.make_topic("TwinTopic")
    options = {"topic": "TwinTopic", "group": "twin_group", "count": 99, "wait_ms": 600_000}
    with scene.capture():
        twins = [scene.start("PushConsume", instance="twin", **options) for _ in range(2)]
        for twin in twins:
            twin.wait_for("started")
        time.sleep(4)
        scene.run("Send", topic="TwinTopic", instance="producer", count=8)
        time.sleep(6)
    for twin in twins:
        twin.kill()


def subscription_topics(scene: Scene) -> None:
    """In split_group, 127.0.0.1@first subscribes FirstTopic and 127.0.0.1@second SecondTopic.

    Each heartbeat takes the other's subscription away, whose pulls broker-a then answers 24.
    """
    for topic in ("FirstTopic", "SecondTopic"):
        scene.cluster.make_topic(topic, queues=2)
    _together(
        scene,
        "split_group",
        {"first": {"topic": "FirstTopic"}, "second": {"topic": "SecondTopic"}},
        seconds=24.0,  # long enough for the second pull of each queue
    )


def subscription_tags(scene: Scene) -> None:
    """In tags_group, 127.0.0.1@first wants TagA of TagsTopic and 127.0.0.1@second TagB.

    The newest subscription holds for both. Of eight messages, four of each tag, four are given to
    a consumer; the four of the other tag come to nobody.
    """
    scene.cluster.make_topic("TagsTopic", queues=2)
    _together(
        scene,
        "tags_group",
        {
            "first": {"topic": "TagsTopic", "expression": "TagA"},
            "second": {"topic": "TagsTopic", "expression": "TagB"},
        },
        send="TagsTopic",
    )


def more_consumers_than_queues(scene: Scene) -> None:
    """Three members of spare_group for the two queues of SpareTopic; 127.0.0.1@third gets none.

    All eight messages are consumed by the other two.
    """
    scene.cluster.make_topic("SpareTopic", queues=2)
    options = {"topic": "SpareTopic"}
    members = {"first": options, "second": options, "third": options}
    _together(scene, "spare_group", members, send="SpareTopic", seconds=24.0)


def _together(
    scene: Scene,
    group: str,
    members: dict[str, dict[str, str]],
    *,
    send: str | None = None,
    seconds: float = 8.0,
) -> None:
    """Members of a group run for some heartbeats."""
    with scene.capture():
        running = [
            scene.start(
                "PushConsume",
                instance=instance,
                group=group,
                count=99,
                wait_ms=600_000,
                heartbeat_ms=2500,
                **options,
            )
            for instance, options in members.items()
        ]
        for one in running:
            one.wait_for("started")
        if send:
            scene.run("Send", topic=send, instance="producer", count=8, tags=2)
        time.sleep(seconds)
    for one in running:
        one.kill()


def rebalance_storm(scene: Scene) -> None:
    """Seven consumers join storm_group and leave it, each after a second; one stays all the time.

    The one that stays is 127.0.0.1@steady; the others are 127.0.0.1@restless-0 to -6.
    """
    scene.cluster.make_topic("StormTopic", queues=2)
    options = {"topic": "StormTopic", "group": "storm_group"}
    with scene.capture():
        steady = scene.start("PushConsume", instance="steady", count=99, wait_ms=600_000, **options)
        steady.wait_for("started")
        time.sleep(1)
        scene.run("ComeAndGo", instance="restless", count=7, stay_ms=1000, pause_ms=300, **options)
        time.sleep(1)
    steady.kill()


def orderly_lock_lost(scene: Scene) -> None:
    """127.0.0.1@killed holds the locks of both queues of LockTopic for lock_group and is killed.

    127.0.0.1@heir asks for them without success until they expire, a minute after they were last
    renewed; of the six messages that were sent meanwhile none is consumed before.
    """
    scene.cluster.make_topic("LockTopic", queues=2)
    options = {"topic": "LockTopic", "group": "lock_group", "orderly": True}
    with scene.capture():
        killed = scene.start("PushConsume", instance="killed", count=99, wait_ms=600_000, **options)
        killed.wait_for("started")
        time.sleep(6)
        killed.kill()
        heir = scene.start("PushConsume", instance="heir", count=6, wait_ms=150_000, **options)
        heir.wait_for("started")
        scene.run("Send", topic="LockTopic", instance="producer", count=6)
        heir.finish(200.0)


def offset_moved(scene: Scene) -> None:
    """moved_group has 500 as its offset in both queues of MovedTopic, which hold four messages.

    So it is when a topic was deleted and made anew, or offsets were copied. broker-a answers the
    first pull of each queue 21 with the offset to go on with; the four messages are consumed by
    nobody, as the group goes on at the end.
    """
    scene.cluster.make_topic("MovedTopic", queues=2)
    scene.run("Send", topic="MovedTopic", instance="filler", count=4)
    where = f"-b {scene.broker.text} -g moved_group"
    run_mqadmin(f"updateSubGroup {where}".split(), scene.cluster.namesrv_text, scene.client)
    for queue in range(2):
        fields = {
            "consumerGroup": "moved_group",
            "topic": "MovedTopic",
            "queueId": str(queue),
            "commitOffset": str(FAR_BEYOND),
        }
        header, _ = probe.ask(scene.broker.address, UPDATE_CONSUMER_OFFSET, fields)
        assert header["code"] == 0, json.dumps(header)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="MovedTopic",
            instance="consumer",
            group="moved_group",
            count=99,
            wait_ms=600_000,
        )
        consumer.wait_for("started")
        time.sleep(14)  # the client drops such a queue and takes it again ten seconds later
    consumer.kill()


def consumer_lag(scene: Scene) -> None:
    """A producer sends about eight messages a second to LagTopic for a quarter of a minute.

    127.0.0.1@slow of lag_group takes two a second: it is ever further behind, in one queue.
    """
    scene.cluster.make_topic("LagTopic", queues=1)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="LagTopic",
            instance="slow",
            group="lag_group",
            count=999,
            wait_ms=600_000,
            **LAGGING,
        )
        consumer.wait_for("started")
        scene.run("Send", topic="LagTopic", instance="producer", count=110, pause_ms=115)
        time.sleep(3)
    consumer.kill()


def offset_reset(scene: Scene) -> None:
    """reset_group is behind in ResetTopic when mqadmin resets its offset to the present.

    A producer sends 40 messages to the one queue, of which 127.0.0.1@slow takes two a second. Two
    seconds later mqadmin runs `resetOffsetByTime -s now`: the consumer goes on at the end, and
    about 30 messages are consumed by nobody. Three more, sent 15 s later, are consumed.
    """
    scene.cluster.make_topic("ResetTopic", queues=1)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="ResetTopic",
            instance="slow",
            group="reset_group",
            count=999,
            wait_ms=600_000,
            **LAGGING,
        )
        consumer.wait_for("started")
        scene.run("Send", topic="ResetTopic", instance="producer", count=40, pause_ms=20)
        time.sleep(2)
        reset = "resetOffsetByTime -g reset_group -t ResetTopic -s now"
        run_mqadmin(reset.split(), scene.cluster.namesrv_text, scene.client)
        time.sleep(15)  # a consumer of 4.x pauses for 10 s
        scene.run("Send", topic="ResetTopic", instance="producer", count=3, pause_ms=20)
        time.sleep(3)
    consumer.kill()


def uneven_queues(scene: Scene) -> None:
    """A producer with a selector sends 204 messages, all to queue 1 of the four of SkewTopic."""
    scene.cluster.make_topic("SkewTopic")
    with scene.capture():
        scene.run(
            "Send",
            topic="SkewTopic",
            instance="producer",
            kind="one-queue",
            queue=1,
            count=204,
            pause_ms=0,
        )


def cold_5x() -> Cluster:
    """A broker for which all that is stored is cold, and which slows down who reads it."""
    settings = {
        "coldDataFlowControlEnable": "true",
        "accessMessageInMemoryHotRatio": 0,
        "cgColdReadThreshold": 1,
    }
    return Cluster([BrokerSpec(settings=settings)], version=NEWEST_5, network=NETWORK)


def cold_read(scene: Scene) -> None:
    """127.0.0.1@consumer of cold_group reads eight cold messages of ColdTopic one by one.

    After the first one broker-a answers its pulls 2, reading cold data, until five seconds are
    over; then the next one is free.
    """
    scene.cluster.make_topic("ColdTopic", queues=1)
    scene.run("Send", topic="ColdTopic", instance="filler", count=8)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="ColdTopic",
            instance="consumer",
            group="cold_group",
            count=99,
            wait_ms=600_000,
            batch=1,
        )
        consumer.wait_for("started")
        time.sleep(16)
    consumer.kill()


GROUPS: tuple[Scenario, ...] = (
    *both(
        "client-id-twice",
        client_id_twice,
        "Two processes of one group with the same client id; eight messages",
        "38 lists the id twice; both consume queues 0 and 1; queues 2 and 3 are unassigned",
        shows=("duplicate-client-id",),
    ),
    *both(
        "subscription-topics",
        subscription_topics,
        "Two members of a group subscribe to different topics",
        "pulls of the member whose subscription was replaced get response 24",
        shows=("inconsistent-subscription",),
    ),
    *both(
        "subscription-tags",
        subscription_tags,
        "Two members of a group subscribe to different tags of a topic",
        "each heartbeat changes the subscription of the group",
        shows=("inconsistent-subscription",),
    ),
    *both(
        "rebalance-storm",
        rebalance_storm,
        "Seven consumers join a group and leave it within 15 s",
        "repeated 40 and 38",
        shows=("rebalance-storm",),
        packed=True,
    ),
    *both(
        "more-consumers-than-queues",
        more_consumers_than_queues,
        "Three members of a group consume a topic of two queues",
        "38 lists three; two of them pull a queue each",
        shows=("more-consumers-than-queues",),
    ),
    *both(
        "orderly-lock-lost",
        orderly_lock_lost,
        "An orderly consumer is killed; its locks outlive it by a minute",
        "responses to 41 of the other consumer contain no queue until the locks expire",
        shows=("orderly-lock-lost",),
    ),
    *both(
        "offset-moved",
        offset_moved,
        "A group with committed offset 500 consumes two queues with two messages each",
        "the first pulls get response 21; the four messages are never consumed",
        shows=("offset-moved",),
    ),
    *both(
        "consumer-lag",
        consumer_lag,
        "A producer of eight messages a second, a consumer of two",
        "pull responses fall further and further behind the end of the queue",
        shows=("consumer-lag",),
    ),
    *both(
        "offset-reset",
        offset_reset,
        "An administrator resets a group that is behind to the present",
        "222 from mqadmin; a 4.x broker tells the consumer by 220, a 5.x broker redirects its pull;"
        " about 30 messages are consumed by nobody",
        shows=("offset-reset",),
        packed=True,
    ),
    *both(
        "uneven-queues",
        uneven_queues,
        "204 messages, all to one of four queues",
        shows=("uneven-queues",),
        packed=True,
    ),
    Scenario(
        "cold-read-5x",
        cold_5x,
        cold_read,
        "A consumer reads messages that the broker treats as cold data",
        "pulls get response 2, reading cold data, and are sent again later",
        shows=("cold-read-throttled",),
    ),
)
