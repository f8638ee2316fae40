"""Sends that a broker refuses because of its load, its settings or what the client asks for.

Each scenario's text says what was provoked: broker, topic, group, codes and remarks.
"""

from __future__ import annotations

import time

from tests.cluster.clients.clients import Client, run_mqadmin
from tests.cluster.servers import faults, probe
from tests.cluster.servers.cluster import BrokerSpec, Cluster

from .scene import NETWORK, Scenario, Scene, both, on_both

SEND_MESSAGE = 10
LARGEST_BODY = 16384
STRAINED = {
    "sendMessageThreadPoolNums": 1,
    "sendThreadPoolQueueCapacity": 8,
    "maxMessageSize": LARGEST_BODY,
    "mappedFileSizeCommitLog": 128 * 1024,
}
STRICT = {"autoCreateTopicEnable": "false", "autoCreateSubscriptionGroup": "false"}
UNCOMPRESSED = 10_000_000


def strained(version: str) -> Cluster:
    """A broker with one thread for sends, room for eight that wait, small messages and files."""
    return Cluster([BrokerSpec(settings=STRAINED)], version=version, network=NETWORK)


def strict(version: str) -> Cluster:
    """A broker that makes neither topics nor groups for those who ask."""
    return Cluster([BrokerSpec(settings=STRICT)], version=version, network=NETWORK)


def masters(version: str) -> Cluster:
    """Two masters."""
    specs = [BrokerSpec("broker-a"), BrokerSpec("broker-b")]
    return Cluster(specs, version=version, network=NETWORK)


STRAINED_BOTH = on_both(strained)
STRICT_BOTH = on_both(strict)
TWO_BOTH = on_both(masters)


def busy_send_queue(scene: Scene) -> None:
    """Five threads of one producer send three messages each to a broker that takes 150 ms for one.

    What waits longer than 200 ms in the queue of broker-a gets response 2, [TIMEOUT_CLEAN_QUEUE].
    The client of 5.x sends it again, twice at most; that of 4.x does not (busy-not-retried).
    """
    scene.cluster.make_topic("BusyTopic")
    with (
        faults.slow_sends(scene.broker, 150),
        faults.configured(scene.broker, "waitTimeMillsInSendQueue", 200, 5000),
        scene.capture(),
    ):
        scene.run(
            "Send",
            topic="BusyTopic",
            instance="producer",
            group="busy_group",
            threads=5,
            count=3,
            may_fail=True,
        )


def busy_page_cache(scene: Scene) -> None:
    """Six asynchronous sends wait at broker-a when its page cache becomes busy; two more follow.

    One is sent before, synchronously. The five that wait get response 2, [PCBUSY_CLEAN_QUEUE]; the
    one that has its thread already 2 (4.x: 1), [PC_SYNCHRONIZED]; the two of the second producer,
    each time, 2, [REJECTREQUEST]. A third producer sends two messages when it is over.
    """
    scene.cluster.make_topic("CacheTopic")
    options = {"topic": "CacheTopic", "count": 2, "api_ms": 20_000}
    with scene.capture():
        waiting = start_async(scene, "CacheTopic", sync_first=1, count=6)
        with faults.slow_sends(scene.broker, 5000):
            waiting.wait_for("asked")
            time.sleep(1.5)  # the client sends them in another thread
            with faults.page_cache_busy(scene.broker):
                waiting.finish()
                scene.run("Send", instance="rejected", may_fail=True, **options)
        scene.run("Send", instance="afterwards", **options)


def busy_overload(scene: Scene) -> None:
    """Fourteen asynchronous sends come at once to broker-a: one is served, eight may wait.

    The five others get response 2, [OVERLOAD].
    """
    scene.cluster.make_topic("OverloadTopic")
    with faults.slow_sends(scene.broker, 300), scene.capture():
        scene.run("Send", topic="OverloadTopic", instance="producer", kind="async", count=14)


def message_too_large(scene: Scene) -> None:
    """Three messages that broker-a refuses with 13: two bodies of 20 kB where 16384 bytes are the
    limit, one property of 33,000 characters. A topic of 130 characters it refuses with 29 (4.x: 1).
    """
    scene.cluster.make_topic("LargeTopic")
    options = {"topic": "LargeTopic", "compress_over": UNCOMPRESSED, "may_fail": True}
    with scene.capture():
        scene.run("Send", instance="large-body", count=2, body=20_000, **options)
        scene.run("Send", instance="large-property", count=1, property=33_000, **options)
        # No client of RocketMQ sends such a topic, so this request is our own.
        send_by_hand(scene, "T" * 130)


def send_by_hand(scene: Scene, topic: str, queue: int = 0) -> dict[str, object]:
    """One send request as no client makes it; returns the header of the answer."""
    fields = {
        "producerGroup": "hand_group",
        "topic": topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": str(queue),
        "sysFlag": "0",
        "bornTimestamp": str(int(time.time() * 1000)),
        "flag": "0",
        "properties": "",
        "reconsumeTimes": "0",
        "unitMode": "false",
    }
    body = scene.name.encode()  # no two samples have the same message
    header, _ = probe.ask(scene.broker.address, SEND_MESSAGE, fields, body, source="127.0.0.1")
    return header


def file_not_made(scene: Scene) -> None:
    """The file system of broker-a takes no new files when its commit log needs one.

    Three sends of one producer get response 1, create mapped file failed, each attempt of them.
    """
    scene.cluster.make_topic("FileTopic")
    filler = {"topic": "FileTopic", "compress_over": UNCOMPRESSED, "pause_ms": 0}
    # The first message makes the first file and, ahead of need, the second one.
    scene.run("Send", instance="filler", count=1, **filler)
    time.sleep(1)
    with faults.no_new_files(scene.broker):
        many = {"count": 60, "body": 8000, "retries": 0, "may_fail": True, "timeout_ms": 8000}
        printed = scene.run("Send", instance="filler", **filler, **many)
        assert "failed " in printed, printed
        with scene.capture():
            scene.run(
                "Send",
                topic="FileTopic",
                instance="producer",
                count=3,
                may_fail=True,
                timeout_ms=20_000,
            )


def topic_deleted(scene: Scene) -> None:
    """OrphanTopic is deleted while a producer and a consumer of orphan_group have its route.

    Sends and pulls get response 17, topic not exist, from broker-a, which cannot create it.
    """
    scene.cluster.make_topic("OrphanTopic", queues=2)
    where = f"-b {scene.broker.text} -g orphan_group"
    run_mqadmin(f"updateSubGroup {where}".split(), scene.cluster.namesrv_text, scene.client)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="OrphanTopic",
            instance="consumer",
            group="orphan_group",
            count=999,
            wait_ms=600_000,
        )
        consumer.wait_for("started")
        sender = scene.start(
            "Send",
            topic="OrphanTopic",
            instance="producer",
            count=16,
            pause_ms=700,
            may_fail=True,
        )
        sender.wait_for("SEND_OK")
        run_mqadmin(
            ["deleteTopic", "-c", "SampleCluster", "-t", "OrphanTopic"],
            scene.cluster.namesrv_text,
            scene.client,
        )
        sender.finish()
    consumer.kill()


def group_missing(scene: Scene) -> None:
    """A push consumer and a pull consumer of nobodys_group want GroupTopic, without success.

    broker-a of 5.x takes the heartbeat of the first one and forgets it, so that 38 gets response 1,
    no consumer for this group, and no pull follows; in 4.x its twelve pulls get response 26. The
    pull of the second one gets response 26.
    """
    scene.cluster.make_topic("GroupTopic", queues=2)
    options = {"topic": "GroupTopic", "group": "nobodys_group"}
    with scene.capture():
        scene.run("PushConsume", instance="push", wait_ms=6_000, expect=3, **options)
        scene.run("PullConsume", instance="pull", kind="pull", expect=None, **options)


def no_route(scene: Scene) -> None:
    """A producer sends twice to NobodysTopic, which nobody has and nobody may make.

    The NameServer answers 17 for the topic and for TBW102; nothing goes to the broker.
    """
    with scene.capture():
        scene.run("Send", topic="NobodysTopic", instance="producer", count=2, may_fail=True)


def filter_sql_off(scene: Scene) -> None:
    """A consumer of sql_group subscribes SqlTopic by SQL92: broker-a answers 46 with 1."""
    scene.cluster.make_topic("SqlTopic")
    with (
        faults.configured(scene.broker, "enablePropertyFilter", "false", "true"),
        scene.capture(),
    ):
        scene.run(
            "PushConsume",
            topic="SqlTopic",
            instance="consumer",
            group="sql_group",
            sql="number > 3",
            wait_ms=3000,
            expect=None,
        )


def not_yet_open(scene: Scene) -> None:
    """Two sends to OpenTopic on broker-a, which takes sends only from an hour later on.

    Each attempt gets response 1, broker unable to service.
    """
    scene.cluster.make_topic("OpenTopic")
    opening = int(time.time() + 3600) * 1000
    with (
        faults.configured(scene.broker, "startAcceptSendRequestTimeStamp", opening, 0),
        scene.capture(),
    ):
        scene.run("Send", topic="OpenTopic", instance="producer", count=2, may_fail=True)


def queue_illegal(scene: Scene) -> None:
    """UnevenTopic has eight queues on broker-a and two on broker-b; broker-a is killed after ten
    synchronous sends, then sixteen asynchronous ones follow.

    Those for broker-a find nobody there. The client sends them to broker-b with the queue of
    broker-a, so broker-b refuses those of queue 2 and above: 29 (4.x: 1), queueId is illegal.
    """
    first, second = scene.cluster.brokers
    probe.make_topic(first.address, "UnevenTopic", queues=8)
    probe.make_topic(second.address, "UnevenTopic", queues=2)
    scene.cluster.make_topic("WarmTopic")
    time.sleep(1)
    with scene.capture():
        sender = start_async(scene, "UnevenTopic", sync_first=10, count=16)
        faults.kill(first)
        sender.finish()
    faults.restart(scene.cluster, first)


def async_refused(scene: Scene) -> None:
    """After four synchronous sends eight asynchronous ones while the disk of broker-a is full.

    Those that come to broker-a get response 14 and are not retried; broker-b takes the others.
    """
    scene.cluster.make_topic("RefusedTopic", queues=2)
    with scene.capture():
        sender = start_async(scene, "RefusedTopic", sync_first=4, count=8, pause_ms=100)
        with faults.disk_full(scene.cluster.broker("broker-a")):
            sender.finish()


def start_async(scene: Scene, topic: str, **options: object) -> Client:
    """Starts a producer and waits until it has sent its synchronous messages."""
    sender = scene.start(
        "Send",
        topic=topic,
        instance="producer",
        kind="async",
        ready_ms=3000,
        timeout_ms=30_000,
        api_ms=20_000,
        **options,
    )
    sender.wait_for("ready")
    return sender


REFUSED: tuple[Scenario, ...] = (
    *both(
        "busy-send-queue",
        busy_send_queue,
        "Five threads send three messages each to a broker that takes 150 ms for one",
        "what waits longer than 200 ms gets response 2, [TIMEOUT_CLEAN_QUEUE]",
        clusters=STRAINED_BOTH,
        shows=("send-queue-timeout",),
    ),
    *both(
        "busy-page-cache",
        busy_page_cache,
        "The page cache is busy: six asynchronous sends that wait, two synchronous ones, two when "
        "it is over",
        "2 with [PCBUSY_CLEAN_QUEUE] from the queue, 2 (4.x: 1) with [PC_SYNCHRONIZED] from the "
        "store, 2 with [REJECTREQUEST] at the door",
        clusters=STRAINED_BOTH,
        shows=("page-cache-busy", "page-cache-synchronized", "broker-rejects-request"),
    ),
    *both(
        "busy-overload",
        busy_overload,
        "Fourteen asynchronous sends at once where one is served and eight may wait",
        "five get response 2, [OVERLOAD]",
        clusters=STRAINED_BOTH,
        shows=("thread-pool-overload",),
    ),
    *both(
        "message-too-large",
        message_too_large,
        "Two bodies of 20 kB where 16384 bytes are the limit, a property of 33,000 characters, a "
        "topic of 130",
        "13 names the limit of the body, not which of the lengths was too large; the topic is "
        "answered 29 (4.x: 1)",
        clusters=STRAINED_BOTH,
        shows=("oversize-message",),
    ),
    *both(
        "file-not-made",
        file_not_made,
        "Three sends while the commit log cannot have another file",
        "each attempt gets response 1, create mapped file failed",
        clusters=STRAINED_BOTH,
        shows=("mapped-file-failed",),
    ),
    *both(
        "topic-deleted",
        topic_deleted,
        "A topic is deleted while a producer and a consumer use it; automatic creation is off",
        "sends and pulls get response 17 from the broker: the clients have the old route",
        clusters=STRICT_BOTH,
        shows=("topic-missing-on-broker",),
    ),
    *both(
        "group-missing",
        group_missing,
        "A push and a pull consumer of a group that does not exist and cannot be created",
        "pulls get response 26; in 5.x the push consumer never pulls, as 38 gets response 1",
        clusters=STRICT_BOTH,
        shows=("group-missing",),
    ),
    *both(
        "no-route",
        no_route,
        "Two sends to a topic that does not exist, without automatic creation",
        "105 gets response 17, for TBW102 too; no send follows",
        clusters=STRICT_BOTH,
        shows=("no-route",),
    ),
    *both(
        "filter-sql-off",
        filter_sql_off,
        "A subscription by SQL92 where the broker has property filters off",
        "46 gets response 1; the client does not start",
        shows=("sql92-unsupported",),
    ),
    *both(
        "not-yet-open",
        not_yet_open,
        "Two sends to a broker that accepts sends only after an hour",
        "each attempt gets response 1, broker unable to service, until …",
        shows=("broker-before-start-time",),
    ),
    *both(
        "queue-illegal",
        queue_illegal,
        "A broker with eight queues is killed, then sixteen asynchronous sends follow; the other "
        "one has two queues",
        "the client retries with the old queue: 29 (4.x: 1), queueId is illegal",
        clusters=TWO_BOTH,
        shows=("async-retry-stale-queue",),
    ),
    *both(
        "async-refused",
        async_refused,
        "Eight asynchronous sends while one of two disks is full",
        "response 14 goes to the callback at once: nothing is retried",
        clusters=TWO_BOTH,
        shows=("async-not-retried", "disk-full"),
    ),
)
