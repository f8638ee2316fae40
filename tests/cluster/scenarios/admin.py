"""mqadmin: the commands of an operator."""

from __future__ import annotations

from ..clients import run_mqadmin
from ..cluster import CLUSTER_NAME
from .scene import Scenario, Scene, both

TOPIC = "AdminTopic"
GROUP = "admin_group"


def commands(scene: Scene) -> tuple[str, ...]:
    """Command lines whose answers hold nothing of the machine."""
    broker = scene.broker.text
    return (
        f"updateTopic -b {broker} -t {TOPIC} -r 2 -w 2",
        f"updateSubGroup -b {broker} -g {GROUP}",
        f"topicRoute -t {TOPIC}",
        f"topicStatus -t {TOPIC}",
        "topicList",
        "topicClusterList -t " + TOPIC,
        "clusterList",
        f"brokerStatus -b {broker}",
        f"getBrokerConfig -b {broker}",
        "getNamesrvConfig",
        f"producerConnection -g {GROUP} -t {TOPIC}",
        f"consumerConnection -g {GROUP}",
        f"consumerProgress -g {GROUP}",
        f"consumerStatus -g {GROUP}",
        f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0",
        f"queryMsgByKey -t {TOPIC} -k key-1",
        f"queryMsgByOffset -t {TOPIC} -b broker-a -i 0 -o 0",
        f"printMsg -t {TOPIC}",
        f"updateOrderConf -m put -t {TOPIC} -v broker-a:2",
        f"updateTopicPerm -b {broker} -t {TOPIC} -p 4",
        "cleanExpiredCQ -b " + broker,
        f"deleteSubGroup -b {broker} -g {GROUP}",
        f"deleteTopic -c {CLUSTER_NAME} -t {TOPIC}",
    )


def admin(scene: Scene) -> None:
    scene.cluster.make_topic(TOPIC, queues=2)
    producer = {"topic": TOPIC, "group": GROUP, "instance": "producer"}
    consumer = scene.start(
        "PushConsume", topic=TOPIC, group=GROUP, instance="consumer", count=999, wait_ms=600000
    )
    consumer.wait_for("started")
    with scene.capture():
        sender = scene.start("Send", count=4, linger_ms=600000, **producer)
        sender.wait_for("SEND_OK")
        for command in commands(scene):
            run_mqadmin(command.split(), scene.cluster.namesrv_text, scene.client)
    consumer.stop()
    sender.stop()


ADMIN: tuple[Scenario, ...] = both(
    "admin",
    admin,
    "Twenty-three commands of mqadmin while a consumer runs",
    "commands that ask a client go through the broker (307, 220, 221 to the consumer)",
)
