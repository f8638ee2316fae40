"""Every mode and kind of send of our producer, stored by real brokers, read by a Java consumer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from dissectors.remoting.bodies.trace import decode_trace
from dissectors.remoting.versions import ordinal_of
from replay.async_producer import AsyncProducer
from replay.config import ProducerConfig
from replay.message import (
    Attempt,
    Message,
    MessageQueue,
    SendMode,
    SendResult,
    SendStatus,
    TransactionState,
)
from replay.producer import Producer
from tests.cluster.clients.clients import start_java
from tests.cluster.producer.producing import (
    cluster_of,
    is_the_same,
    is_where_it_was_stored,
    java_client_of,
    read_by_java,
    stored_in,
)
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_4_SERVER, NEWEST_5, RELEASES
from tests.cluster.servers.cluster import Cluster
from tests.cluster.servers.processes import wait_until

pytestmark = pytest.mark.cluster

COMPRESSIONS = {"zlib": 0x300, "lz4": 0x100, "zstd": 0x200}
LARGE = b"".join(b"%d and again %d\n" % (number, number * number) for number in range(800))
TRANSACTIONS = {"transactionTimeOut": 5000, "transactionCheckInterval": 1000}
"""ms, as in the shared cluster"""


@pytest.fixture(scope="module", params=[NEWEST_5, NEWEST_4_SERVER])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Two masters that ask soon what became of a transaction."""
    if request.param == NEWEST_5:
        yield request.getfixturevalue("rocketmq")
        return
    with cluster_of(request.param, "127.77.44", settings=TRANSACTIONS) as started:
        yield started


def _config(cluster: Cluster, **options: object) -> ProducerConfig:
    client = NEWEST_4 if RELEASES[cluster.version].generation == "v4" else "5.3.3"
    version = ordinal_of("V" + client.replace(".", "_"))
    assert version is not None
    config = ProducerConfig(
        group="our_group",
        namesrv=cluster.namesrv_text,
        client_version=version,
        send_timeout_ms=9000,
    )
    return replace(config, **options)  # type: ignore[arg-type]


class Sent(NamedTuple):
    """A message that was sent, and where it should be."""

    name: str
    message: Message
    result: SendResult
    in_place: bool = True
    """the result names the place where consumers find it"""


class Kinds:
    """Sends one message or a few of each kind."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self.sent: list[Sent] = []
        self._number = 0

    def message(self, name: str, body: bytes | None = None) -> Message:
        """A message with something of everything."""
        self._number += 1
        text = f"{name} {self._number} ä消息".encode()
        return Message(
            self.topic,
            text if body is None else body + text,
            "TagA",
            f"key-{self._number} {name}",
            {"number": str(self._number), "üser": 'quo"te\\ 消'},
            self._number,
        )

    def add(self, name: str, message: Message, result: SendResult, in_place: bool = True) -> None:
        """Keep what was sent."""
        self.sent.append(Sent(name, message, result, in_place))

    def blocking(self) -> None:
        """Sync, chosen queue, ordered, V1, binary header, VIP, compression."""
        variants: dict[str, dict[str, object]] = {
            "v2": {},
            "v1": {"smart_msg": False},
            "binary": {"serialize_type": "ROCKETMQ"},
            "binary-v1": {"serialize_type": "ROCKETMQ", "smart_msg": False},
            "vip": {"vip_channel": True},
            "zlib": {"compress_type": "zlib"},
            "lz4": {"compress_type": "lz4"},
            "zstd": {"compress_type": "zstd"},
        }
        for name, options in variants.items():
            body = LARGE if name in ("zlib", "lz4", "zstd") else None
            with Producer(_config(self.cluster, **options)) as producer:
                for mode in (SendMode.SYNC, SendMode.ASYNC):
                    message = self.message(name, body)
                    self.add(name, message, producer.send(message, mode=mode))
                message = self.message(f"{name}-oneway", body)
                self.add(
                    f"{name}-oneway", message, producer.send(message, mode=SendMode.ONEWAY), False
                )
                producer.poll(0.1)

    async def asynchronous(self) -> None:
        """Async, batches, chosen queues, ordered, delayed."""
        async with AsyncProducer(_config(self.cluster)) as producer:
            many = [self.message("async") for _ in range(50)]
            results = await asyncio.gather(*[producer.send(message) for message in many])
            for message, result in zip(many, results, strict=True):
                self.add("async", message, result)
            queue = MessageQueue(self.topic, "broker-b", 3)
            message = self.message("chosen")
            result = await producer.send(message, queue=queue)
            assert result.queue == queue
            self.add("chosen", message, result)
            ordered = [self.message("ordered") for _ in range(5)]
            for message in ordered:
                result = await producer.send(message, mode=SendMode.SYNC, order_key="order-7")
                self.add("ordered", message, result)
            assert len({one.result.queue for one in self.sent if one.name == "ordered"}) == 1
            for mode in (SendMode.SYNC, SendMode.ASYNC):
                batch = [self.message("batch") for _ in range(4)]
                result = await producer.send_batch(batch, mode=mode)
                assert result.unique_key.split(",") == [message.unique_key for message in batch]
                for place, message in enumerate(batch):
                    self.add("batch", message, _at(result, place))
            message = self.message("delay").with_delay_level(1)
            self.add("delay", message, await producer.send(message), False)
            if RELEASES[self.cluster.version].generation != "v4":
                due = time.time_ns() // 1_000_000 + 2500
                message = self.message("timer").with_delivery_at(due)
                result = await producer.send(message)
                assert result.recall_handle
                self.add("timer", message, result, False)


def _at(result: SendResult, place: int) -> SendResult:
    assert result.queue_offset is not None
    from msgspec.structs import replace as changed

    return changed(result, queue_offset=result.queue_offset + place)


def test_all_modes_and_kinds_are_stored_and_consumed(cluster: Cluster) -> None:
    topic = "AllKinds"
    cluster.make_topic(topic)
    kinds = Kinds(cluster, topic)
    kinds.blocking()
    asyncio.run(kinds.asynchronous())
    sent = {one.message.unique_key: one for one in kinds.sent}
    assert len(sent) == len(kinds.sent)
    read = read_by_java(cluster, topic, len(sent))
    assert len(read) == len(sent)
    assert {one.msg_id for one in read} == set(sent)
    for one in read:
        ours = sent[one.msg_id]
        assert ours.result.status is SendStatus.SEND_OK
        assert is_the_same(ours.message, one), (ours, one)
        assert not ours.in_place or is_where_it_was_stored(ours.result, one), (ours, one)
        compressed = {"zlib": 0x300, "lz4": 0x100, "zstd": 0x200}.get(
            ours.name.partition("-")[0], 0
        )
        assert one.sys_flag & 0x700 == compressed  # the client takes bit 0 away with the rest
        if ours.name == "delay":
            assert one.store_timestamp - one.born_timestamp >= 900
        if ours.name == "timer":
            due = int(ours.message.properties["TIMER_DELIVER_MS"])
            assert one.store_timestamp >= due - 1100


def test_transactions_are_committed_rolled_back_and_asked_for(cluster: Cluster) -> None:
    topic = "Transactions"
    cluster.make_topic(topic)
    asked: list[str] = []
    is_4x = RELEASES[cluster.version].generation == "v4"

    def listener(message: Message) -> TransactionState:
        asked.append(message.unique_key or "")
        commit = message.properties.get("verdict") == "commit"
        return TransactionState.COMMIT if commit else TransactionState.ROLLBACK

    async def send() -> dict[str, Message]:
        config = _config(cluster, group="tx_group", check_listener=listener)
        states = {"COMMIT": 2, "ROLLBACK": 2, "UNKNOWN": 4}
        kept: dict[str, Message] = {}
        async with AsyncProducer(config) as producer:
            for name, number in states.items():
                for place in range(number):
                    verdict = "commit" if place % 2 else "rollback"
                    properties = {"state": name, "verdict": verdict}
                    message = Message(topic, f"{name} {place}".encode(), "TagA", "k", properties)
                    result = await producer.send_in_transaction(
                        message,
                        lambda _, name=name: TransactionState[name],  # type: ignore[misc]
                    )
                    said = None if is_4x else message.unique_key  # a 4.x broker says none
                    assert result.transaction_id == said
                    assert result.transaction_state is TransactionState[name]
                    assert message.unique_key is not None
                    if name == "COMMIT" or (name == "UNKNOWN" and verdict == "commit"):
                        kept[message.unique_key] = message
            for _ in range(600):  # the broker asks within seconds, and a consumer must then see it
                if len(set(asked)) == states["UNKNOWN"]:
                    break
                await asyncio.sleep(0.1)
            await asyncio.sleep(0.5)
        return kept

    kept = asyncio.run(send())
    assert len(set(asked)) == 4
    read = read_by_java(cluster, topic, len(kept))
    assert {one.msg_id for one in read} == set(kept)
    assert all(is_the_same(kept[one.msg_id], one) for one in read)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_java_consumer_replies_to_our_request(cluster: Cluster, blocking: bool) -> None:
    topic = "Requests"
    cluster.make_topic(topic)
    version = java_client_of(cluster.version)
    java = start_java(
        "RequestReply",
        cluster.namesrv_text,
        version=version,
        topic=topic,
        role="replies",
    )
    try:
        java.wait_for("started")
        message = Message(topic, b"question", keys="key-of-question")
        config = _config(cluster, group="ask_group")
        if blocking:
            with Producer(config) as producer:
                reply = producer.request(message, timeout_ms=60_000)
        else:

            async def ask() -> Message:
                async with AsyncProducer(config) as producer:
                    return await producer.request(message, timeout_ms=60_000)

            reply = asyncio.run(ask())
        assert reply.body == b"answer to key-of-question"
        assert reply.properties["CORRELATION_ID"]
    finally:
        java.stop()


def test_a_namespace_is_where_a_java_consumer_looks(cluster: Cluster) -> None:
    with Producer(_config(cluster, namespace="our-ns")) as producer:
        message = Message("InNamespace", b"within")
        result = producer.send(message)
        assert result.status is SendStatus.SEND_OK
    (read,) = read_by_java(cluster, "InNamespace", 1, namespace="our-ns")
    assert read.body == b"within"
    assert read.properties["INSTANCE_ID"] == "our-ns"


def test_an_unknown_topic_is_made_by_the_send(cluster: Cluster) -> None:
    topic = f"Fresh{time.time_ns()}"
    with Producer(_config(cluster)) as producer:
        results = [producer.send(Message(topic, b"first")) for _ in range(4)]
    assert {result.status for result in results} == {SendStatus.SEND_OK}
    assert len(read_by_java(cluster, topic, 4)) == 4


def test_traces_tell_the_trace_topic(cluster: Cluster) -> None:
    topic = "Traced"
    cluster.make_topic(topic)
    attempts: list[Attempt] = []
    with Producer(
        _config(cluster, trace=True, on_attempt=lambda _, attempt: attempts.append(attempt))
    ) as producer:
        messages = [Message(topic, b"traced", keys=f"k{number}") for number in range(12)]
        for message in messages:
            producer.send(message)
    # At least two, because ten are told at once; on a busy machine some are told earlier. The
    # broker counts a message a moment after it has answered.
    trace_topic = "RMQ_SYS_TRACE_TOPIC"
    wait_until("traces are counted", lambda: stored_in(cluster, trace_topic, 8) >= 2, 20)
    sent = {message.unique_key for message in messages}
    read = [  # a second try finds the traces of the first one, too
        one
        for one in read_by_java(cluster, trace_topic, stored_in(cluster, trace_topic, 8))
        if sent & {record["msgId"] for record in decode_trace(one.body).records}
    ]
    told = [record for one in read for record in decode_trace(one.body).records]
    assert all(record["kind"] == "Pub" for record in told)
    assert sorted(record["msgId"] for record in told) == sorted(m.unique_key for m in messages)
    assert {record["topic"] for record in told} == {topic}
    keys = {key for one in read for key in one.properties["KEYS"].split()}
    assert keys == {key for m in messages for key in (m.unique_key or "", m.keys or "")}
