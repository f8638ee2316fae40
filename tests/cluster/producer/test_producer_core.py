"""The producer's core against a real cluster: what it says is stored is stored, once.

The queues' own counters are the oracle: what a send says to be stored at an offset lies there.
"""

from __future__ import annotations

import asyncio
import collections
import threading
from uuid import uuid4

import pytest

from replay import AsyncProducer, Message, Producer, ProducerConfig, SendMode, SendResult
from replay.errors import RouteError, SendFailed
from replay.message import AttemptOutcome, SendStatus
from tests.cluster.servers import faults, probe
from tests.cluster.servers.cluster import Cluster

pytestmark = pytest.mark.cluster

GET_MAX_OFFSET = 30
SYNC, ASYNC, ONEWAY = SendMode.SYNC, SendMode.ASYNC, SendMode.ONEWAY


def config_of(cluster: Cluster, **settings: object) -> ProducerConfig:
    values: dict[str, object] = {"group": "core_group", "namesrv": cluster.namesrv_text, **settings}
    return ProducerConfig(**values)  # type: ignore[arg-type]


def stored_in(cluster: Cluster, topic: str, queues: int = 4) -> int:
    """Messages in all queues of a topic, by the brokers' own count."""
    total = 0
    for broker in cluster.brokers:
        for queue in range(queues):
            fields = {"topic": topic, "queueId": str(queue)}
            header, _ = probe.ask(broker.address, GET_MAX_OFFSET, fields)
            ext = header["extFields"]
            assert isinstance(ext, dict)
            total += int(ext["offset"])
    return total


def wait_stored(cluster: Cluster, topic: str, count: int) -> int:
    """The count of a topic once it is what it should be, or after a while."""
    with Producer(config_of(cluster)) as clock:
        for _ in range(600):
            found = stored_in(cluster, topic)
            if found >= count:
                break
            clock.poll(0.1)
    return found


def placed(results: list[SendResult]) -> None:
    """Every offset of every queue was given once."""
    places = collections.Counter((one.queue, one.queue_offset) for one in results)
    assert places.most_common(1)[0][1] == 1


def test_blocking_sends_are_stored(rocketmq: Cluster) -> None:
    rocketmq.make_topic("CoreBlocking")
    with Producer(config_of(rocketmq)) as producer:
        results = [producer.send(Message("CoreBlocking", b"%d" % n)) for n in range(40)]
        results += [producer.send(Message("CoreBlocking", b"x"), mode=ASYNC) for _ in range(8)]
        left = [producer.send(Message("CoreBlocking", b"x"), mode=ONEWAY) for _ in range(16)]
        assert len(producer.queues_of("CoreBlocking")) == 8
    assert {one.status for one in results} == {SendStatus.SEND_OK}
    assert len({one.queue for one in results}) == 8
    placed(results)
    assert all(one.attempts[0].outcome == AttemptOutcome.ONEWAY for one in left)
    assert wait_stored(rocketmq, "CoreBlocking", 64) == 64


def test_asynchronous_sends_are_stored(rocketmq: Cluster) -> None:
    rocketmq.make_topic("CoreAsync")

    async def run() -> list[SendResult]:
        async with AsyncProducer(config_of(rocketmq, send_timeout_ms=60_000)) as producer:
            first = await producer.send(Message("CoreAsync", b"the route is known from now on"))
            results = await asyncio.gather(
                *[producer.send(Message("CoreAsync", b"%d" % n)) for n in range(1999)]
            )
            await asyncio.gather(
                *[producer.send(Message("CoreAsync", b"x"), mode=ONEWAY) for _ in range(100)]
            )
            return [first, *results]

    results = asyncio.run(run())
    placed(results)
    assert len({one.unique_key for one in results}) == 2000
    assert wait_stored(rocketmq, "CoreAsync", 2100) == 2100


@pytest.mark.parametrize("serialize_type", ["JSON", "ROCKETMQ"])
def test_binary_headers_and_v1_sends(rocketmq: Cluster, serialize_type: str) -> None:
    for smart in (True, False):
        # A second try must not find the messages of the first.
        topic = f"Core{serialize_type}{smart}{uuid4().hex[:6]}"
        rocketmq.make_topic(topic)
        config = config_of(rocketmq, serialize_type=serialize_type, smart_msg=smart)
        with Producer(config) as producer:
            results = [producer.send(Message(topic, b"x" * 5000)) for _ in range(8)]
            producer.send_batch([Message(topic, b"%d" % n) for n in range(4)])
        placed(results)
        assert wait_stored(rocketmq, topic, 12) == 12


def test_a_broker_that_is_killed_costs_no_message(rocketmq: Cluster) -> None:
    rocketmq.make_topic("CoreKilled")
    victim = rocketmq.broker("broker-b")
    results: list[SendResult] = []
    with Producer(config_of(rocketmq, send_timeout_ms=5000)) as producer:
        results += [producer.send(Message("CoreKilled", b"before")) for _ in range(20)]
        faults.kill(victim)
        try:
            results += [producer.send(Message("CoreKilled", b"while")) for _ in range(60)]
        finally:
            faults.restart(rocketmq, victim)
        producer.poll(0.1)
    retried = [one for one in results if len(one.attempts) > 1]
    assert retried
    for one in retried:
        assert one.queue.broker_name == "broker-a"
        assert one.attempts[0].queue.broker_name == "broker-b"
        assert one.attempts[0].error
    placed(results)
    found = wait_stored(rocketmq, "CoreKilled", 80)
    # What the killed broker had taken without having answered may be there twice.
    lost_answers = sum(one.attempts[0].outcome == AttemptOutcome.LOST for one in retried)
    assert 80 <= found <= 80 + lost_answers


def test_a_frozen_broker_is_left_when_the_time_of_one_attempt_is_limited(
    rocketmq: Cluster,
) -> None:
    rocketmq.make_topic("CoreFrozen")
    config = config_of(rocketmq, send_timeout_ms=4000, send_max_timeout_per_request_ms=700)
    with Producer(config) as producer:
        for _ in range(8):
            producer.send(Message("CoreFrozen", b"before"))
        with faults.frozen(rocketmq.broker("broker-a")):
            results = [producer.send(Message("CoreFrozen", b"while")) for _ in range(10)]
    # On a busy machine a broker answers once more between the signal and its standing still; ten
    # messages come round to its queues again.
    late = [one.attempts[0].outcome == AttemptOutcome.TIMEOUT for one in results]
    assert any(late)
    assert {one.queue.broker_name for one in results[late.index(True) :]} == {"broker-b"}


def test_what_a_broker_refuses_is_said(rocketmq: Cluster) -> None:
    rocketmq.make_topic("CoreFull")
    with (
        Producer(config_of(rocketmq)) as producer,
        faults.disk_full(rocketmq.broker("broker-a")),
        faults.disk_full(rocketmq.broker("broker-b")),
    ):
        with pytest.raises(SendFailed) as failed:
            producer.send(Message("CoreFull", b"x"))
        assert failed.value.code == 14
        assert [one.code for one in failed.value.attempts] == [14, 14, 14]
        assert "disk" in failed.value.hint
        with pytest.raises(SendFailed) as failed:
            producer.send(Message("CoreFull", b"x"), mode=ASYNC)
        assert [one.code for one in failed.value.attempts] == [14]


def test_a_topic_that_is_not_made_by_itself(rocketmq: Cluster) -> None:
    config = config_of(rocketmq, create_topic_key="NoSuchTopicToCopy")
    with Producer(config) as producer, pytest.raises(RouteError, match="CoreNowhere"):
        producer.send(Message("CoreNowhere", b"x"))


def test_a_broker_that_stops_in_order_says_so_and_costs_no_message(rocketmq: Cluster) -> None:
    rocketmq.make_topic("CoreStopped")
    victim = rocketmq.broker("broker-b")
    results: list[SendResult] = []
    with Producer(config_of(rocketmq, send_timeout_ms=5000)) as producer:
        results += [producer.send(Message("CoreStopped", b"before")) for _ in range(16)]
        stopping = threading.Thread(target=victim.stop)
        stopping.start()
        try:
            while stopping.is_alive():
                results.append(producer.send(Message("CoreStopped", b"while")))
                producer.poll(0.002)
        finally:
            stopping.join()
            faults.restart(rocketmq, victim)
    placed(results)
    codes = {attempt.code for one in results for attempt in one.attempts}
    outcomes = {attempt.outcome for one in results for attempt in one.attempts}
    assert codes <= {0, 1500, 14, None}
    # A 5.x broker answers GO_AWAY until its port is closed, then it refuses or ends connections.
    assert 1500 in codes or outcomes & {AttemptOutcome.CONNECT, AttemptOutcome.LOST}
    assert wait_stored(rocketmq, "CoreStopped", len(results)) >= len(results)
