"""mqadmin: the commands of an operator."""

from __future__ import annotations

from tests.cluster.clients.clients import run_mqadmin
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_4_SERVER, NEWEST_5
from tests.cluster.servers.cluster import CLUSTER_NAME, BrokerSpec, Cluster
from tests.cluster.servers.processes import wait_until

from .scene import NETWORK, Scenario, Scene

TOPIC = "AdminTopic"
GROUP = "admin_group"
GET_CONSUME_STATS = 208


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
        "PushConsume",
        topic=TOPIC,
        group=GROUP,
        instance="consumer",
        heartbeat_ms=30000,
        count=999,
        wait_ms=600000,
    )
    consumer.wait_for("started")
    with scene.capture():
        sender = scene.start("Send", count=4, linger_ms=600000, **producer)
        sender.wait_for("SEND_OK")
        # `consumerProgress` fails before the first offset, which takes a consumer ten seconds.
        wait_until("the group has an offset", lambda: _has_offset(scene), 30.0)
        for command in commands(scene):
            run_mqadmin(command.split(), scene.cluster.namesrv_text, scene.client)
    consumer.stop()
    sender.stop()


def _has_offset(scene: Scene) -> bool:
    _, body = probe.ask(scene.broker.address, GET_CONSUME_STATS, {"consumerGroup": GROUP})
    return b'"offsetTable":{}' not in body


def fresh_5x() -> Cluster:
    """As `single_5x`, with few topics: lists of all of them are in many answers here."""
    return Cluster([BrokerSpec()], version=NEWEST_5, network=NETWORK)


def fresh_4x() -> Cluster:
    """As `single_4x`, with few topics."""
    return Cluster([BrokerSpec()], version=NEWEST_4_SERVER, network=NETWORK)


WHAT = "Twenty-three commands of mqadmin while a consumer runs"
ODD = "commands that ask a client go through the broker (307 to the consumer)"

ADMIN: tuple[Scenario, ...] = (
    Scenario("admin-5x", fresh_5x, admin, WHAT, ODD),
    Scenario("admin-4x", fresh_4x, admin, WHAT, ODD, client=NEWEST_4),
)
