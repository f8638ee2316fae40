"""The real Java clients of both generations against the sandbox: producer, consumers, mqadmin."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

import pytest

from replay.sandbox import (
    EventKind,
    SandboxEvent,
    SandboxOptions,
    SandboxThread,
    TopicSpec,
    sandbox_thread,
)
from tests.cluster.clients.clients import QUICK_REBALANCE, run_java, run_mqadmin, start_java
from tests.cluster.fixtures import require_jars
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_5
from tests.cluster.servers.processes import wait_until

pytestmark = pytest.mark.cluster

TOPIC = "SampleTopic"
_TOPIC_OPTION = {NEWEST_4: "", NEWEST_5: f"-t {TOPIC}"}
SERVERS = {NEWEST_4: "4.9.7", NEWEST_5: "5.3.3"}


class Box:
    """A sandbox of the generation of the clients that are tried on it."""

    def __init__(self, running: SandboxThread, version: str, events: list[SandboxEvent]):
        self.running = running
        self.version = version
        self.events = events

    @property
    def namesrv(self) -> str:
        return self.running.namesrv

    def java(self, program: str, **more: object) -> list[str]:
        """What one of our Java programs printed, without its log."""
        printed = run_java(program, self.namesrv, version=self.version, **more)
        return [line for line in printed.splitlines() if not _LOG.match(line)]

    def mqadmin(self, command: str) -> str:
        return run_mqadmin(command.split(), self.namesrv, self.version)

    def count(self, topic: str) -> int:
        """Messages of a topic on all brokers."""
        return self.running.call(
            lambda box: sum(
                broker.state.store.queue(topic, queue_id).max_offset
                for broker in box.brokers.values()
                for queue_id in range(16)
            )
        )

    def consumed(self, group: str, topic: str) -> int:
        """How far a group is in a topic, all queues together."""
        return self.running.call(
            lambda box: sum(
                broker.state.offsets.get(group, topic, queue_id) or 0
                for broker in box.brokers.values()
                for queue_id in range(16)
            )
        )


_LOG = re.compile(
    r"\d\d:\d\d:\d\d\.\d{3} |\s+at |[\w.]+(?:Exception|Error)\b|See https://|Caused by|\s+\.\.\. "
    r"|For more information"
)


@pytest.fixture(params=[NEWEST_4, NEWEST_5])
def box(request: pytest.FixtureRequest) -> Iterator[Box]:
    version: str = request.param
    require_jars([version])
    events: list[SandboxEvent] = []
    options = SandboxOptions(
        brokers=2,
        topics=[TopicSpec(TOPIC)],
        server_version=SERVERS[version],
        delay_levels="500ms 500ms 500ms 500ms 500ms 500ms 500ms",
        transaction_timeout_ms=500,
        transaction_interval_ms=500,
        on_event=events.append,
    )
    with sandbox_thread(options) as running:
        yield Box(running, version, events)
    slips = [event.detail for event in events if event.kind is EventKind.INTERNAL]
    assert slips == []


@pytest.mark.parametrize("kind", ["sync", "async", "oneway", "ordered", "delay"])
def test_a_java_producer_sends(box: Box, kind: str) -> None:
    printed = box.java("Send", kind=kind, count=6, topic="Made", linger_ms=300)
    assert len(printed) == 6
    assert {line.split()[0] for line in printed} == {"sent" if kind == "oneway" else "SEND_OK"}
    wait_until("all are stored", lambda: box.count("Made") == 6, 10.0)


def test_a_java_producer_sends_batches(box: Box) -> None:
    assert set(box.java("Send", kind="batch", count=6)) == {"SEND_OK"}
    assert box.count(TOPIC) > 6


def test_a_java_consumer_reads_what_was_sent(box: Box) -> None:
    box.java("Send", count=8)
    lines = [json.loads(line) for line in box.java("PrintMessages", count=8) if line[0] == "{"]
    assert len(lines) == 8
    for number, message in enumerate(sorted(lines, key=lambda line: line["properties"]["KEYS"])):
        assert message["properties"]["KEYS"] == f"key-{number}"
        assert message["msgId"] == message["properties"]["UNIQ_KEY"]
        assert base64.b64decode(message["body"]).decode() == f"message {number} ä消息"
    assert len({message["offsetMsgId"] for message in lines}) == 8


def test_a_push_consumer_consumes_and_commits(box: Box) -> None:
    # A message counts when its listener has returned; a client that ends at once does not wait for
    # that.
    consumer = start_java(
        *("PushConsume", box.namesrv),
        version=box.version,
        count=20,
        group="push",
        linger_ms=2000,
    )
    try:
        consumer.wait_for("started")
        box.java("Send", count=20)
        consumer.wait_for("complete", 40)
        consumer.finish()
    finally:
        consumer.stop()
    assert box.consumed("push", TOPIC) == 20


def test_failed_messages_come_again_and_end_as_dead_letters(box: Box) -> None:
    consumer = start_java(
        "PushConsume",
        box.namesrv,
        version=box.version,
        group="fails",
        fail=99,
        max_reconsume=1,
        count=8,
        linger_ms=3000,
        wait_ms=40000,
        poll_ms=2000,
        properties=(QUICK_REBALANCE,),
    )
    try:
        consumer.wait_for("started")
        box.java("Send", count=4)
        wait_until("all are dead", lambda: box.count("%DLQ%fails") == 4, 40.0)
        assert box.count("%RETRY%fails") == 4
        consumer.wait_for("complete", 40)
    finally:
        consumer.stop()


def test_two_consumers_share_the_queues(box: Box) -> None:
    consumers = [
        start_java(
            "PushConsume",
            box.namesrv,
            version=box.version,
            group="pair",
            instance=f"i{number}",
            until_end=True,
        )
        for number in (1, 2)
    ]
    try:
        for consumer in consumers:
            consumer.wait_for("started")
        box.java("Send", count=40, warm_ms=4000)
        wait_until("all are consumed", lambda: box.consumed("pair", TOPIC) == 40, 60.0)
        counts = [consumer.output.count(f"{TOPIC} ") for consumer in consumers]
        assert sum(counts) >= 40
        assert all(counts)
    finally:
        for consumer in consumers:
            consumer.stop()


def test_an_orderly_consumer_locks_its_queues(box: Box) -> None:
    consumer = start_java(
        "PushConsume",
        box.namesrv,
        version=box.version,
        group="orderly",
        orderly=True,
        count=9,
    )
    try:
        consumer.wait_for("started")
        box.java("Send", kind="ordered", count=9)
        consumer.wait_for("complete", 60)
    finally:
        consumer.stop()
    lines = [line.split() for line in consumer.output.splitlines() if line.startswith(TOPIC)]
    by_queue: dict[str, list[int]] = {}
    for _, queue_id, offset, _ in lines:
        by_queue.setdefault(queue_id, []).append(int(offset))
    assert len(lines) == 9
    codes = box.running.call(
        lambda sandbox: {code for b in sandbox.brokers.values() for code in b.state.requests}
    )
    assert 41 in codes


def test_only_the_tags_that_were_asked_for(box: Box) -> None:
    consumer = start_java(
        "PushConsume",
        box.namesrv,
        version=box.version,
        group="tags",
        expression="TagB || TagC",
        count=6,
        linger_ms=500,
    )
    try:
        consumer.wait_for("started")
        box.java("Send", count=9, tags=3)
        consumer.wait_for("complete", 40)
        consumer.finish()
    finally:
        consumer.stop()
    consumed = [line for line in consumer.output.splitlines() if line.startswith(f"{TOPIC} ")]
    assert len(consumed) == 6


@pytest.mark.parametrize("kind", ["lite", "pull"])
def test_pull_consumers(box: Box, kind: str) -> None:
    box.java("Send", count=8)
    printed = box.java("PullConsume", kind=kind, count=8)
    if kind == "lite":
        assert len([line for line in printed if re.fullmatch(r"\d \d+", line)]) == 8
    else:
        assert sum(int(line.split()[2]) for line in printed if " FOUND " in line) > 0
        assert {"NO_NEW_MSG", "OFFSET_ILLEGAL"} <= set(printed)


def test_transactions_with_check_back(box: Box) -> None:
    printed = box.java("TransactionSend")
    assert printed[:4] == ["COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW", "UNKNOW"]
    assert "check key-2 1" in printed
    assert "check key-3 2" in printed
    wait_until("two are committed", lambda: box.count(TOPIC) == 2, 10.0)


def test_request_and_reply(box: Box) -> None:
    replier = start_java("RequestReply", box.namesrv, version=box.version, role="replies")
    try:
        replier.wait_for("started")
        printed = box.java("RequestReply", role="asks", count=2, ttl_ms=20000)
        assert printed == ["reply answer to key-0", "reply answer to key-1"]
    finally:
        replier.stop()


# -- mqadmin --------------------------------------------------------------------------------------


def test_mqadmin_makes_and_shows_topics(box: Box) -> None:
    made = box.mqadmin("updateTopic -t Made -c SandboxCluster -r 3 -w 3")
    assert made.count("success") == 2
    assert "Made" in box.mqadmin("topicList").split()
    route = box.mqadmin("topicRoute -t Made")
    assert re.findall(r'"writeQueueNums":\s*(\d+)', route) == ["3", "3"]
    cluster = box.mqadmin("clusterList")
    assert all(address in cluster for address in box.running.addresses.values())
    box.java("Send", topic="Made", count=6)
    status = box.mqadmin("topicStatus -t Made")
    rows = [line.split() for line in status.splitlines() if line.startswith("broker-")]
    assert len(rows) == 6
    assert sum(int(row[3]) for row in rows) == 6
    box.mqadmin("deleteTopic -t Made -c SandboxCluster")
    assert "Made" not in box.mqadmin("topicList").split()


def test_mqadmin_shows_brokers_and_progress(box: Box) -> None:
    box.java("Send", count=8)
    # Without a pause, its last offset may be set only after its shutdown has stored the others.
    box.java("PushConsume", count=8, group="progress", wait_ms=40000, linger_ms=1000)
    wait_until("offsets are stored", lambda: box.consumed("progress", TOPIC) == 8, 20.0)
    status = box.mqadmin(f"brokerStatus -b {box.running.addresses['broker-a']}")
    assert re.search(r"brokerVersionDesc\s*: V\d_\d_\d", status)
    progress = box.mqadmin("consumerProgress -g progress")
    rows = [line.split() for line in progress.splitlines() if line.startswith(TOPIC)]
    assert len(rows) == 8
    assert "Consume Diff Total: 0" in progress or "Diff Total: 0" in progress


def test_mqadmin_finds_messages(box: Box) -> None:
    printed = box.java("Send", count=3)
    offset_id = printed[1].split()[1]
    by_id = box.mqadmin(f"queryMsgById -i {offset_id} {_TOPIC_OPTION[box.version]}")
    assert re.search(r"Keys:\s+\[key-1\]", by_id)
    assert "Reconsume Times:" in by_id
    by_key = box.mqadmin(f"queryMsgByKey -t {TOPIC} -k key-1")
    unique = re.search(r"UNIQ_KEY=(\w+)", by_id)
    assert unique is not None
    assert unique[1] in by_key
    by_unique = box.mqadmin(f"queryMsgByUniqueKey -t {TOPIC} -i {unique[1]}")
    assert re.search(r"Keys:\s+\[key-1\]", by_unique)
    printed_messages = box.mqadmin(f"printMsg -t {TOPIC} -d true")
    assert all(f"message {number}" in printed_messages for number in range(3))


def test_mqadmin_shows_progress_of_all_groups_queues_and_settings(box: Box) -> None:
    box.java("Send", count=8)
    box.java("PushConsume", count=8, group="everything", wait_ms=40000, linger_ms=1000)
    wait_until("offsets are stored", lambda: box.consumed("everything", TOPIC) == 8, 20.0)
    broker = box.running.addresses["broker-a"]
    stats = box.mqadmin(f"brokerConsumeStats -b {broker}")
    rows = [line.split() for line in stats.splitlines() if line.startswith(TOPIC)]
    assert {row[1] for row in rows} == {"everything"}
    assert len(rows) == 4
    assert "Diff Total: 0" in stats
    queue = box.mqadmin(f"queryCq -b {broker} -t {TOPIC} -q 0 -i 0 -c 5")
    assert "max: 1, min: 0" in queue
    assert "physicOffset=" in queue
    changed = box.mqadmin(f"updateNamesrvConfig -n {box.namesrv} -k orderMessageEnable -v true")
    assert "success" in changed
    shown = box.mqadmin(f"getNamesrvConfig -n {box.namesrv}")
    assert re.search(r"orderMessageEnable\s*=\s*true", shown)


# -- what only 5.x has -----------------------------------------------------------------------------


@pytest.fixture
def five() -> Iterator[Box]:
    require_jars([NEWEST_5])
    options = SandboxOptions(topics=[TopicSpec(TOPIC)])
    with sandbox_thread(options) as running:
        yield Box(running, NEWEST_5, [])


def test_mqadmin_shows_replication(five: Box) -> None:
    status = five.mqadmin(f"haStatus -b {five.running.addresses['broker-a']}")
    assert "#MasterAddr\t" in status or "MasterCommitLogMaxOffset" in status, status


def test_timer_messages_and_their_recall(five: Box) -> None:
    printed = five.java("Send", kind="timer", count=6, topic="Timed")
    recalled = [line for line in printed if line.startswith("recalled")]
    assert recalled
    wait_until("the others are delivered", lambda: five.count("Timed") == 6 - len(recalled), 15.0)


def test_pop_call_by_call(five: Box) -> None:
    five.java("Send", count=12)
    broker = five.running.addresses["broker-a"]
    printed = five.java("PopCalls", group="popper", broker=broker)
    assert printed[0] == "notified 0"
    assert "acknowledged OK" in printed
    assert "changed OK" in printed
    assert "many OK" in printed
    assert printed[-1] == "none 0"


def test_a_push_consumer_that_pops(five: Box) -> None:
    five.java("Send", count=6)
    where = f"-b {five.running.addresses['broker-a']} -t {TOPIC} -g poppers"
    five.mqadmin(f"setConsumeMode {where} -m POP -q 0")
    five.java("PushConsume", group="poppers", pop=True, count=6, linger_ms=1000, wait_ms=40000)
    wait_until("all is acknowledged", lambda: five.consumed("poppers", TOPIC) == 6, 10.0)


@pytest.mark.parametrize("serialize", ["JSON", "ROCKETMQ"])
def test_headers_in_either_form(serialize: str) -> None:
    require_jars([NEWEST_5])
    properties = [f"rocketmq.serialize.type={serialize}"]
    with sandbox_thread(SandboxOptions(serialize_type=serialize)) as running:
        printed = run_java("Send", running.namesrv, count=3, topic="Made", properties=properties)
        assert printed.count("SEND_OK") == 3
