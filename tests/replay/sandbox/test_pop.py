"""POP consumers seen from a socket."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.records import decode_messages
from replay.sandbox import SandboxOptions, SandboxThread, TopicSpec, sandbox_thread
from replay.sandbox.pop import PopQueue
from replay.sandbox.store.memory import NewMessage, StoreFull
from replay.sandbox.store.shelf import StoredRecord
from tests.patience import wait_for

from .talk import Reply, Talk, heartbeat, send_fields, within

TOPIC = "Orders"


@pytest.fixture
def box() -> Iterator[SandboxThread]:
    with sandbox_thread(SandboxOptions(topics=[TopicSpec(TOPIC, 2)])) as running:
        yield running


@pytest.fixture
def broker(box: SandboxThread) -> Iterator[Talk]:
    with Talk(box.addresses["broker-a"]) as talk:
        yield talk


def pop_fields(**more: object) -> dict[str, str]:
    fields = {
        "consumerGroup": "g",
        "topic": TOPIC,
        "queueId": -1,
        "maxMsgNums": 32,
        "invisibleTime": 60_000,
        "pollTime": 0,
        "bornTime": int(time.time() * 1000),
        "initMode": 0,
        "expType": "TAG",
        "exp": "*",
        **more,
    }
    return {name: str(value) for name, value in fields.items()}


def pop(broker: Talk, **more: object) -> tuple[Reply, tuple[StoredMessage, ...]]:
    reply = broker.ask(200050, pop_fields(**more))
    return reply, decode_messages(reply.body).messages


def receipt(reply: Reply, message: StoredMessage, topic: str = TOPIC) -> dict[str, str]:
    """Fields of an acknowledgement, as the client derives them."""
    kind = "1" if topic != TOPIC else "0"
    start = next(
        entry.split()[2]
        for entry in reply.fields["startOffsetInfo"].split(";")
        if entry.split()[:2] == [kind, str(message.queue_id)]
    )
    parts = (
        start,
        reply.fields["popTime"],
        reply.fields["invisibleTime"],
        reply.fields["reviveQid"],
        kind,
        "broker-a",
        message.queue_id,
        message.queue_offset,
    )
    return {
        "consumerGroup": "g",
        "topic": topic,
        "queueId": str(message.queue_id),
        "offset": str(message.queue_offset),
        "extraInfo": " ".join(map(str, parts)),
    }


def send(broker: Talk, *bodies: bytes, queue_id: int = 0, **properties: str) -> None:
    for body in bodies:
        assert broker.ask(310, send_fields(TOPIC, queue_id, **properties), body).code == 0


def test_a_message_is_handed_out_once(broker: Talk) -> None:
    send(broker, b"a", b"b", b"c")
    send(broker, b"d", queue_id=1)
    reply, messages = pop(broker)
    assert sorted(message.body for message in messages) == [b"a", b"b", b"c", b"d"]
    assert sorted(reply.fields["msgOffsetInfo"].split(";")) == ["0 0 0,1,2", "0 1 0"]
    assert sorted(reply.fields["startOffsetInfo"].split(";")) == ["0 0 0", "0 1 0"]
    assert pop(broker)[0].code == 210
    for message in messages:
        assert broker.ask(200051, receipt(reply, message)).code == 0
    offset = {"consumerGroup": "g", "topic": TOPIC, "queueId": "0"}
    assert broker.ask(14, offset).fields == {"offset": "3"}


@pytest.mark.slow
def test_what_is_not_acknowledged_comes_again_in_the_retry_topic(broker: Talk) -> None:
    send(broker, b"kept", b"lost")
    reply, (kept, lost) = pop(broker, invisibleTime=1500)
    assert broker.ask(200051, receipt(reply, kept)).code == 0
    with within(30):
        again, messages = pop(broker, pollTime=60_000)
    assert [message.body for message in messages] == [b"lost"]
    assert messages[0].topic == f"%RETRY%g_{TOPIC}"
    assert messages[0].reconsume_times == lost.reconsume_times + 1
    assert again.fields["startOffsetInfo"] == "1 0 0"
    assert broker.ask(200051, receipt(again, messages[0], f"%RETRY%g_{TOPIC}")).code == 0
    time.sleep(0.4)
    assert pop(broker)[0].code == 210


@pytest.mark.slow
@pytest.mark.parametrize("error", [StoreFull(), ValueError("the properties are too long")])
def test_what_finds_no_place_in_the_retry_topic_is_popped_again_alone(
    box: SandboxThread, broker: Talk, error: Exception
) -> None:
    send(broker, b"late", b"held")
    pop(broker, maxMsgNums=1, invisibleTime=100)
    pop(broker, maxMsgNums=1)

    def refuse(message: NewMessage) -> StoredRecord:
        raise error

    box.call(lambda one: setattr(one.brokers["broker-a"].state, "put", refuse))
    bodies: list[bytes] = []

    def popped() -> bool:
        bodies.extend(message.body for message in pop(broker)[1])
        return bool(bodies)

    wait_for("the message is popped again", popped)
    assert bodies == [b"late"]  # the other one is still invisible
    assert box.call(lambda one: one.brokers["broker-a"].pop.queues.in_flight) == 2


def test_another_invisible_time(broker: Talk) -> None:
    send(broker, b"slow")
    reply, (message,) = pop(broker, invisibleTime=1500)
    changed = broker.ask(200053, {**receipt(reply, message), "invisibleTime": "60000"})
    assert (changed.code, changed.fields["invisibleTime"]) == (0, "60000")
    time.sleep(1.7)
    assert pop(broker)[0].code == 210
    assert broker.ask(200053, {**receipt(reply, message), "invisibleTime": "10"}).code == 0
    assert pop(broker, pollTime=20_000)[1][0].body == b"slow"


def test_a_pop_waits_for_its_message(box: SandboxThread, broker: Talk) -> None:
    broker.send(200050, pop_fields(pollTime=60_000, exp="TagB"))
    with Talk(box.addresses["broker-a"]) as producer, within(30):
        wait_for(
            "the pop waits",
            lambda: producer.ask(200055, pop_fields()).fields == {"pollingNum": "1"},
        )
        send(producer, b"other", TAGS="TagA")
        send(producer, b"mine", queue_id=1, TAGS="TagB")
        assert decode_messages(broker.receive().body).messages[0].body == b"mine"


@pytest.mark.slow
def test_many_are_acknowledged_at_once(broker: Talk) -> None:
    send(broker, b"0", b"1", b"2", b"3")
    pop(broker, invisibleTime=1500)
    bits = base64.b64encode(bytes([0b1011])).decode()
    ack = {"c": "g", "t": TOPIC, "r": "0", "so": 0, "q": 0, "rq": 0, "pt": 0, "it": 0, "b": bits}
    body = json.dumps({"brokerName": "broker-a", "acks": [ack]}).encode()
    assert broker.ask(200151, {}, body).code == 0
    assert [message.body for message in pop(broker, pollTime=20_000)[1]] == [b"2"]


@pytest.mark.slow
def test_an_ordered_group_goes_no_further_without_its_message(broker: Talk) -> None:
    send(broker, b"first", b"second", b"third")
    reply, messages = pop(broker, order="true", maxMsgNums=1, invisibleTime=1500)
    assert [message.body for message in messages] == [b"first"]
    assert reply.fields["reviveQid"] == "999"
    assert pop(broker, order="true", maxMsgNums=1)[0].code == 210
    time.sleep(1.7)
    reply, messages = pop(broker, order="true", maxMsgNums=1, queueId=0)
    assert [message.body for message in messages] == [b"first"]
    assert broker.ask(200051, receipt(reply, messages[0])).code == 0
    assert pop(broker, order="true", maxMsgNums=1)[1][0].body == b"second"


def test_notification_and_peek(box: SandboxThread, broker: Talk) -> None:
    assert broker.ask(200054, pop_fields(pollTime=0)).fields["hasMsg"] == "false"
    broker.send(200054, pop_fields(pollTime=5000))
    with Talk(box.addresses["broker-a"]) as producer, within(3):
        send(producer, b"x")
        assert broker.receive().fields["hasMsg"] == "true"
    for _ in range(2):
        peeked = broker.ask(200052, pop_fields())
        assert [m.body for m in decode_messages(peeked.body).messages] == [b"x"]
    assert pop(broker)[1][0].body == b"x"


def test_receipts_that_make_no_sense(broker: Talk) -> None:
    send(broker, b"x")
    reply, (message,) = pop(broker)
    good = receipt(reply, message)
    assert broker.ask(200051, {**good, "extraInfo": "x"}).code == 13
    assert broker.ask(200051, {**good, "offset": "7"}).code == 208
    assert broker.ask(200051, {**good, "topic": "Nothing"}).code == 17
    assert broker.ask(200051, {**good, "queueId": "9"}).code == 13
    assert broker.ask(200050, pop_fields(maxMsgNums=33)).code == 29
    assert broker.ask(200050, pop_fields(bornTime=1)).code == 210


def test_a_broker_of_4x_knows_no_pop() -> None:
    options = SandboxOptions(server_version="4.9.8", topics=[TopicSpec(TOPIC)])
    with sandbox_thread(options) as box, Talk(box.addresses["broker-a"]) as broker:
        assert broker.ask(200050, pop_fields()).code == 3


def test_queues_are_assigned_by_the_broker() -> None:
    options = SandboxOptions(brokers=2, topics=[TopicSpec(TOPIC, 2)])
    with sandbox_thread(options) as box, Talk(box.addresses["broker-a"]) as broker:

        def mine(client_id: str) -> list[tuple[str, int, str]]:
            body = {"topic": TOPIC, "consumerGroup": "g", "clientId": client_id}
            found = json.loads(broker.ask(400, {}, json.dumps(body).encode()).body)
            return [
                (item["messageQueue"]["brokerName"], item["messageQueue"]["queueId"], item["mode"])
                for item in found["messageQueueAssignments"]
            ]

        broker.send(34, body=heartbeat("one", consumers={"g": TOPIC}))
        broker.receive(), broker.receive()
        assert mine("stranger") == []
        assert mine("one") == [
            (name, number, "PULL") for name in ("broker-a", "broker-b") for number in (0, 1)
        ]
        mode = {"topic": TOPIC, "consumerGroup": "g", "mode": "POP", "popShareQueueNum": 0}
        assert broker.ask(401, {}, json.dumps(mode).encode()).code == 0
        assert mine("one") == [("broker-a", -1, "POP"), ("broker-b", -1, "POP")]


@given(st.lists(st.tuples(st.sampled_from("hhha"), st.integers(0, 9)), max_size=200))
def test_the_lowest_offset_in_flight_is_known(changes: list[tuple[str, int]]) -> None:
    queue = PopQueue(10)
    for change, offset in changes:
        if change == "h":
            queue.hold(offset, 1)
        else:
            queue.in_flight.pop(offset, None)
        assert queue.committed() == min(queue.in_flight, default=10)


def test_acknowledging_one_by_one_takes_linear_time() -> None:
    def seconds(count: int) -> float:
        queue = PopQueue(count)
        begin = process_time()
        for offset in range(count):
            queue.hold(offset, 1)
        for offset in range(count):
            del queue.in_flight[offset]
            assert queue.committed() == offset + 1
        return process_time() - begin

    assert seconds(16_000) < 12 * max(seconds(4_000), 0.01)
