"""Producers: every way to send, on both generations of the client."""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster

from .scene import NETWORK, Scenario, Scene, both, single_5x, single_53

BINARY = "rocketmq.serialize.type=ROCKETMQ"


def binary_5x() -> Cluster:
    """Servers that answer with ROCKETMQ headers."""
    return Cluster([BrokerSpec()], version=NEWEST_5, network=NETWORK, properties=[BINARY])


def send(topic: str, **options: object) -> Callable[[Scene], None]:
    """A scenario that only runs the program `Send` on a topic of its own."""

    def run(scene: Scene) -> None:
        scene.cluster.make_topic(topic)
        with scene.capture():
            scene.run("Send", topic=topic, instance="producer", **options)

    return run


def send_compressed(scene: Scene) -> None:
    scene.cluster.make_topic("CompressedTopic")
    with scene.capture():
        for kind in ("ZLIB", "LZ4", "ZSTD"):
            scene.run(
                "Send",
                topic="CompressedTopic",
                instance=f"producer-{kind.lower()}",
                count=2,
                body=6000,
                properties=[f"rocketmq.message.compressType={kind}"],
            )
        scene.run("PushConsume", topic="CompressedTopic", instance="consumer", count=6)


def send_unknown_topic(scene: Scene) -> None:
    with scene.capture():
        scene.run("Send", topic=f"Fresh{scene.name[-2:]}", instance="producer", count=3)


def transaction(scene: Scene) -> None:
    scene.cluster.make_topic("TransactionTopic")
    with scene.capture():
        scene.run(
            "TransactionSend", topic="TransactionTopic", instance="producer", group="tx_group"
        )


def request_reply(scene: Scene) -> None:
    scene.cluster.make_topic("RequestTopic", queues=1)
    with scene.capture():
        replies = scene.start(
            "RequestReply", role="replies", topic="RequestTopic", instance="replier"
        )
        replies.wait_for("started")
        scene.run("RequestReply", topic="RequestTopic", instance="asker", group="ask_group")
        replies.end_input()
        replies.finish()


def send_binary_cluster(scene: Scene) -> None:
    scene.cluster.make_topic("BinaryTopic")
    with scene.capture():
        scene.run("Send", topic="BinaryTopic", instance="producer", properties=[BINARY])
        scene.run(
            "PopCalls",
            topic="BinaryTopic",
            instance="popper",
            group="pop_group",
            broker=scene.broker.text,
            properties=[BINARY],
            # Its first pop is refused, see what the row says.
            expect=1,
        )


SEND: tuple[Scenario, ...] = (
    *both(
        "send-sync",
        send("SyncTopic", linger_ms=1200),
        "Eight synchronous sends, heartbeats, unregistration",
        "connections from SYN to FIN; route asked for before the first send",
    ),
    Scenario(
        "send-sync-53",
        single_53,
        send("SyncTopic", linger_ms=1200),
        "As send-sync-5x with client and server of 5.3.3",
        client="5.3.3",
    ),
    Scenario(
        "send-sync-4x-client-5x-server",
        single_5x,
        send("MixedTopic", linger_ms=1200),
        "A 4.x client on a 5.x server",
        "request and response have different versions",
        client=NEWEST_4,
    ),
    *both(
        "send-async",
        send("AsyncTopic", kind="async", count=20),
        "Twenty asynchronous sends at once",
        "many requests of one connection are pending at the same time; responses may be reordered",
    ),
    *both(
        "send-oneway",
        send("OnewayTopic", kind="oneway", linger_ms=300),
        "Eight oneway sends",
        "flag 2, no responses",
    ),
    *both(
        "send-batch",
        send("BatchTopic", kind="batch", count=12),
        "Three batches of four messages, code 320",
        "each message has its UNIQ_KEY inside the body, the outer one another",
    ),
    Scenario(
        "send-auto-batch-5x",
        single_5x,
        send("AutoBatchTopic", kind="async", count=20, auto_batch=True),
        "The accumulator of the 5.x client joins single sends to batches",
    ),
    *both(
        "send-ordered",
        send("OrderedTopic", kind="ordered", count=9),
        "Sends with a queue selector: three orders, each to its own queue",
    ),
    *both(
        "send-delay",
        send("DelayTopic", kind="delay", count=4),
        "Delay levels 1 to 4 (property DELAY)",
    ),
    Scenario(
        "send-timer-5x",
        single_5x,
        send("TimerTopic", kind="timer", count=8),
        "Timed messages (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS); two are "
        "recalled, code 370",
    ),
    *both(
        "send-compressed",
        send_compressed,
        "Bodies of 6 KB compressed with zlib, LZ4 and zstd, then consumed",
        "sysFlag says which compression; the pull response contains the compressed bodies",
    ),
    *both(
        "send-unknown-topic",
        send_unknown_topic,
        "Sends to a topic that does not exist: the broker creates it",
        "105 answered 17, then 105 for TBW102, then the send",
    ),
    *both(
        "transaction",
        transaction,
        "Half messages: committed, rolled back, and unknown with check-backs",
        "37 is oneway; 39 is a request of the broker",
    ),
    *both(
        "request-reply",
        request_reply,
        "Three requests with replies",
        "the reply goes by 325 to the broker, which pushes it by 326 to the requesting client",
    ),
    *both(
        "send-binary-header",
        send("SyncTopic", linger_ms=300, properties=[BINARY]),
        "Synchronous sends with ROCKETMQ headers",
        "requests are binary, the responses of a server with default settings are JSON",
    ),
    Scenario(
        "binary-header-cluster-5x",
        binary_5x,
        send_binary_cluster,
        "Clients, broker and NameServer all with ROCKETMQ headers; sends and POP calls",
        "codes above 65535 do not fit: 200050 travels as 3442 and gets response 3, not supported",
    ),
    *both(
        "send-trace",
        send("TraceTopic", trace=True, linger_ms=6000, count=4),
        "Sends with message trace on",
        "a second producer group of the client writes RMQ_SYS_TRACE_TOPIC",
    ),
    *both(
        "send-namespace",
        send("NsTopic", namespace="sample-ns", count=3),
        "A namespace in front of topic and group",
        "the topic sample-ns%NsTopic is unknown, so it is created",
    ),
    Scenario(
        "send-namespace-v2-5x",
        single_5x,
        send("NsTopic", namespace_v2="sample-ns", count=3),
        "A namespace as ext fields nsd and ns, names unchanged",
    ),
    *both(
        "send-vip",
        # A client whose first heartbeat comes as it ends may fail to send it.
        send("VipTopic", vip=True, count=3, linger_ms=1500),
        "Sends through the VIP channel, two ports below the broker's",
        "heartbeats stay on the main port",
    ),
    Scenario(
        "heartbeat-v2-5x",
        single_5x,
        send("SyncTopic", heartbeat_v2=True, heartbeat_ms=800, count=2, linger_ms=3500),
        "Heartbeats of version 2 every 0.8 s",
        "a full body with a fingerprint first, then short ones without subscriptions",
    ),
)
