"""Consumers: push, orderly, broadcast, pull, lite pull and POP, on both client generations."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.cluster.clients.clients import QUICK_REBALANCE, run_mqadmin

from .scene import Scenario, Scene, both, single_5x, single_53


def consume(topic: str, count: int = 8, **options: object) -> Callable[[Scene], None]:
    """A scenario that fills a topic of its own, then consumes it with `PushConsume`."""

    def run(scene: Scene) -> None:
        scene.cluster.make_topic(topic)
        scene.run("Send", topic=topic, instance="filler", count=8, tags=2, pause_ms=0)
        with scene.capture():
            scene.run(
                "PushConsume",
                topic=topic,
                instance="consumer",
                group=f"{scene.name.replace('-', '_')}_group",
                count=count,
                **options,
            )

    return run


def push(scene: Scene) -> None:
    scene.cluster.make_topic("PushTopic")
    scene.run("Send", topic="PushTopic", instance="filler", count=6)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="PushTopic",
            instance="consumer",
            group="push_group",
            count=10,
            linger_ms=23000,
        )
        consumer.wait_for("started")
        time.sleep(2)
        scene.run("Send", topic="PushTopic", instance="producer", count=4)
        consumer.finish()


def rebalance(scene: Scene) -> None:
    scene.cluster.make_topic("RebalanceTopic")
    with scene.capture():
        options = {"topic": "RebalanceTopic", "group": "rebalance_group", "count": 99}
        first = scene.start("PushConsume", instance="consumer-1", wait_ms=9000, **options)
        first.wait_for("started")
        time.sleep(1)
        second = scene.start("PushConsume", instance="consumer-2", wait_ms=3500, **options)
        second.finish(expect=3)
        first.finish(expect=3)


def orderly(scene: Scene) -> None:
    scene.cluster.make_topic("OrderlyTopic")
    scene.run("Send", topic="OrderlyTopic", kind="ordered", instance="filler", count=9)
    with scene.capture():
        scene.run(
            "PushConsume",
            topic="OrderlyTopic",
            instance="consumer",
            group="orderly_group",
            orderly=True,
            count=12,
            fail=1,
            linger_ms=1000,
        )


def orderly_dead(scene: Scene) -> None:
    """Each of four messages fails twice, and its consumer sends it to %RETRY% itself."""
    scene.cluster.make_topic("OrderlyDead")
    scene.run("Send", topic="OrderlyDead", kind="ordered", instance="filler", count=4)
    with scene.capture():
        scene.run(
            "PushConsume",
            topic="OrderlyDead",
            instance="consumer",
            group="orderly_dead",
            orderly=True,
            count=8,
            fail=9,
            max_reconsume=1,
            linger_ms=2500,
        )


def pull(kind: str) -> Callable[[Scene], None]:
    """A scenario with one of the two pull consumers."""

    def run(scene: Scene) -> None:
        topic = f"{kind.capitalize()}Topic"
        scene.cluster.make_topic(topic)
        scene.run("Send", topic=topic, instance="filler", count=8)
        with scene.capture():
            scene.run("PullConsume", kind=kind, topic=topic, instance="puller", group="pull_group")

    return run


def pop_calls(scene: Scene) -> None:
    scene.cluster.make_topic("PopTopic")
    scene.run("Send", topic="PopTopic", instance="filler", count=12)
    with scene.capture():
        scene.run(
            "PopCalls",
            topic="PopTopic",
            instance="popper",
            group="pop_group",
            broker=scene.broker.text,
        )


def pop_push(scene: Scene) -> None:
    scene.cluster.make_topic("PopPushTopic")
    scene.run("Send", topic="PopPushTopic", instance="filler", count=6)
    with scene.capture():
        where = f"-b {scene.broker.text} -t PopPushTopic -g pop_push_group"
        run_mqadmin(
            f"setConsumeMode {where} -m POP -q 0".split(),
            scene.cluster.namesrv_text,
            scene.client,
        )
        scene.run(
            "PushConsume",
            topic="PopPushTopic",
            instance="consumer",
            group="pop_push_group",
            pop=True,
            count=6,
            linger_ms=2000,
            wait_ms=40000,
        )


PUSH_WHAT = (
    "A push consumer: routes, heartbeat, rebalance, offsets, pulls, long polls, new "
    "messages, shutdown"
)
PUSH_ODD = "idle pulls get response 19 after 15 s; offsets go oneway by 15"

CONSUME: tuple[Scenario, ...] = (
    *both("push-consumer", push, PUSH_WHAT, PUSH_ODD),
    Scenario(
        "push-consumer-53",
        single_53,
        push,
        "As push-consumer-5x with client and server of 5.3.3",
        client="5.3.3",
    ),
    *both(
        "push-retry-dlq",
        consume(
            "RetryTopic",
            count=24,
            fail=9,
            max_reconsume=2,
            linger_ms=1500,
            poll_ms=2000,
            properties=[QUICK_REBALANCE],
        ),
        "Every message fails: returned (36), redelivered from %RETRY%, finally moved to %DLQ%",
        "the response to the last 36 is success too; the broker made the DLQ",
    ),
    *both(
        "push-orderly",
        orderly,
        "An orderly consumer that fails each message once",
        "41 locks the queues; a failed message is retried locally, not returned",
    ),
    *both(
        "orderly-dead-letters",
        orderly_dead,
        "An orderly consumer whose messages fail more often than it allows",
        "it sends each to %RETRY% itself, at the limit; the broker stores it in %DLQ%",
        shows=("dead-letter",),
        packed=True,
    ),
    *both(
        "push-broadcast",
        consume("BroadcastTopic", broadcast=True, linger_ms=6500),
        "A broadcast consumer",
        "offsets stay in a file of the client: no 14, no 15",
    ),
    *both(
        "push-filter-tag",
        consume("FilterTopic", count=4, expression="TagA || TagC", linger_ms=500),
        "Subscription by tags: half of the messages",
        "the broker filters by hash codes of tags",
    ),
    *both(
        "push-filter-sql",
        consume("FilterTopic", count=4, sql="number > 3", linger_ms=500),
        "Subscription by SQL92",
        "46 before the first heartbeat",
    ),
    *both(
        "push-rebalance",
        rebalance,
        "A second consumer of the group comes and goes",
        "40 from the broker to the members, then 38 and new pulls; pulls of the "
        "older subscription get response 25",
    ),
    *both(
        "lite-pull",
        pull("lite"),
        "A lite pull consumer",
        "code 361 instead of 11",
    ),
    *both(
        "pull",
        pull("pull"),
        "The old pull consumer, queue by queue, also beyond the end",
        "19 just beyond the end, 21 far beyond",
    ),
    Scenario(
        "pop-calls-5x",
        single_5x,
        pop_calls,
        "The calls of POP one by one: pop, ack, batch ack, change of the invisible time, "
        "notification",
        "codes above 200000; the receipt POP_CK is a property of the message",
    ),
    Scenario(
        "pop-push-5x",
        single_5x,
        pop_push,
        "A push consumer in POP mode with assignment by the broker",
        "401 sets the mode, 400 asks for the assignment",
    ),
)
