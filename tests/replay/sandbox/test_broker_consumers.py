"""A sandbox broker and consumers: offsets, groups, retries, delays, transactions."""

from __future__ import annotations

import asyncio
import json
import re
import struct
import time
from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from dissectors.remoting.messages.message import StoredMessage
from replay.sandbox import SandboxOptions, SandboxThread, TopicSpec, sandbox_thread
from replay.sandbox.handlers.schedule import Schedule
from replay.sandbox.handlers.transaction import HalfMessages
from replay.sandbox.room import Room
from replay.sandbox.state import BrokerState
from replay.sandbox.store.shelf import StoredRecord
from tests.patience import Stopwatch

from .requests import TOPIC, messages_of, read
from .talk import Reply, Talk, heartbeat, pull_fields, send_fields


def test_offsets_of_a_group(broker: Talk) -> None:
    fields = {"consumerGroup": "g", "topic": TOPIC, "queueId": "0"}
    assert broker.ask(14, fields).code == 22
    broker.ask(310, send_fields(TOPIC), b"x")
    assert broker.ask(14, fields).fields == {"offset": "0"}  # all of the queue is still there
    assert broker.ask(14, {**fields, "setZeroIfNotFound": "false"}).code == 22
    assert broker.ask(15, {**fields, "commitOffset": "1"}).code == 0
    assert broker.ask(14, fields).fields == {"offset": "1"}


def test_offsets_of_a_queue(broker: Talk) -> None:
    before = int(time.time() * 1000)
    times = []
    for _ in range(3):
        broker.ask(310, send_fields(TOPIC), b"x")
        times.append(int(time.time() * 1000))
        time.sleep(0.02)
    fields = {"topic": TOPIC, "queueId": "0"}
    assert broker.ask(30, fields).fields["offset"] == "3"
    assert broker.ask(31, fields).fields["offset"] == "0"
    assert before <= int(broker.ask(32, fields).fields["timestamp"]) <= times[0]
    search = {**fields, "timestamp": str(times[0] + 10)}
    assert broker.ask(29, search).fields["offset"] == "1"
    assert broker.ask(29, {**search, "boundaryType": "UPPER"}).fields["offset"] == "0"
    assert broker.ask(29, {**fields, "timestamp": "0"}).fields["offset"] == "0"


def test_members_of_a_group_are_told_of_each_other(box: SandboxThread, broker: Talk) -> None:
    assert broker.ask(38, {"consumerGroup": "g"}).code == 1
    broker.send(34, body=heartbeat("one", consumers={"g": TOPIC}))
    assert {broker.receive().code, broker.receive().code} == {40, 0}  # the notice comes to all
    with Talk(box.addresses["broker-a"]) as second:
        second.send(34, body=heartbeat("two", consumers={"g": TOPIC}))
        notice = broker.receive()
        assert (notice.code, notice.flag, notice.fields) == (40, 2, {"consumerGroup": "g"})
        ids = json.loads(broker.ask(38, {"consumerGroup": "g"}).body)["consumerIdList"]
        assert sorted(ids) == ["one", "two"]
    assert broker.receive().code == 40  # the second one's connection has ended
    ids = json.loads(broker.ask(38, {"consumerGroup": "g"}).body)["consumerIdList"]
    assert ids == ["one"]
    assert broker.ask(35, {"clientID": "one", "consumerGroup": "g"}).code == 0
    assert broker.ask(38, {"consumerGroup": "g"}).code == 1


def test_a_queue_is_locked_by_one_client(broker: Talk) -> None:
    queue = {"topic": TOPIC, "brokerName": "broker-a", "queueId": 0}

    def got(code: int, client: str) -> list[object]:
        body = {"consumerGroup": "g", "clientId": client, "mqSet": [queue]}
        reply = broker.ask(code, body=json.dumps(body).encode())
        return json.loads(reply.body)["lockOKMQSet"] if reply.body else []

    assert got(41, "one") == [queue]
    assert got(41, "one") == [queue]
    assert got(41, "two") == []
    got(42, "two")  # not the owner
    assert got(41, "two") == []
    got(42, "one")
    assert got(41, "two") == [queue]


def back_fields(message: StoredMessage, **more: str) -> dict[str, str]:
    return {
        "offset": str(message.physical_offset),
        "group": "g",
        "delayLevel": "1",
        "originTopic": TOPIC,
        **more,
    }


def test_a_message_sent_back_comes_again_and_ends_as_a_dead_letter(broker: Talk) -> None:
    broker.ask(310, send_fields(TOPIC, UNIQ_KEY="U"), b"hard to swallow")
    message = read(broker, TOPIC)[0]
    assert broker.ask(36, back_fields(message)).code == 0
    again = read(broker, "%RETRY%g")[0]
    assert (again.body, again.reconsume_times) == (message.body, 1)
    assert again.properties["RETRY_TOPIC"] == TOPIC
    assert again.properties["ORIGIN_MESSAGE_ID"] == message.offset_msg_id
    assert broker.ask(36, back_fields(again, maxReconsumeTimes="1")).code == 0
    dead = read(broker, "%DLQ%g")[0]
    assert (dead.body, dead.reconsume_times) == (message.body, 2)
    assert dead.properties["DLQ_ORIGIN_TOPIC"] == TOPIC
    assert dead.properties["DLQ_ORIGIN_MESSAGE_ID"] == message.offset_msg_id


@pytest.mark.parametrize(("release", "dead"), [("4.9.8", [1, 2]), ("5.3.3", [2])])
def test_a_send_to_the_retry_topic_may_be_the_last_one(release: str, dead: list[int]) -> None:
    """SendMessageProcessor compares the number of tries with their limit by >= in 4.x, > in 5.x."""
    with (
        sandbox_thread(SandboxOptions(server_version=release)) as box,
        Talk(box.addresses["broker-a"]) as broker,
    ):
        broker.send(34, body=heartbeat("one", consumers={"g": TOPIC}))
        assert {broker.receive().code, broker.receive().code} == {40, 0}
        for times in range(3):
            fields = send_fields("%RETRY%g") | {"j": str(times), "l": "1"}
            assert broker.ask(310, fields, b"x").code == 0
        assert [one.reconsume_times for one in read(broker, "%DLQ%g")] == dead


def test_a_delayed_message_comes_when_it_is_due(broker: Talk) -> None:
    watch = Stopwatch()
    broker.ask(310, send_fields(TOPIC, DELAY="3"), b"late")
    message = read(broker, TOPIC)[0]
    assert watch.seconds > 0.25
    assert watch.own < 1.5
    assert message.body == b"late"
    assert "DELAY" not in message.properties


def test_a_timer_message_comes_when_it_is_due_or_is_recalled(broker: Talk) -> None:
    due = int(time.time() * 1000) + 400
    sent = broker.ask(310, send_fields(TOPIC, TIMER_DELIVER_MS=str(due), UNIQ_KEY="A"), b"timer")
    gone = broker.ask(310, send_fields(TOPIC, TIMER_DELAY_MS="30000", UNIQ_KEY="B"), b"recalled")
    handle = {"topic": TOPIC, "recallHandle": gone.fields["recallHandle"]}
    assert broker.ask(370, handle).fields == {"msgId": "B"}
    assert broker.ask(370, handle).code == 604
    assert sent.code == 0
    messages = read(broker, TOPIC)
    assert [message.body for message in messages] == [b"timer"]
    assert messages[0].store_timestamp >= due
    far = broker.ask(310, send_fields(TOPIC, TIMER_DELAY_SEC=str(4 * 86400)), b"x")
    assert far.code == 13


def half(broker: Talk, key: str, **properties: str) -> tuple[Reply, dict[str, str]]:
    """Send a half message; the answer, and the fields of its end."""
    fields = send_fields(TOPIC, TRAN_MSG="true", PGROUP="producers", UNIQ_KEY=key, **properties)
    sent = broker.ask(310, {**fields, "f": "4"}, key.encode())
    offset = struct.unpack(">q", bytes.fromhex(sent.fields["msgId"])[-8:])[0]
    end = {
        "producerGroup": "producers",
        "commitLogOffset": str(offset),
        "tranStateTableOffset": sent.fields["queueOffset"],
        "msgId": key,
    }
    return sent, end


def test_half_messages_are_committed_or_rolled_back(broker: Talk) -> None:
    _, commit = half(broker, "C")
    _, rollback = half(broker, "R")
    assert broker.ask(11, pull_fields(TOPIC)).code == 19
    assert broker.ask(37, {**rollback, "commitOrRollback": "12"}).code == 0
    assert broker.ask(37, {**commit, "producerGroup": "x", "commitOrRollback": "8"}).code == 1
    assert broker.ask(37, {**commit, "commitOrRollback": "8"}).code == 0
    assert broker.ask(37, {**commit, "commitOrRollback": "8"}).code == 1  # settled already
    messages = read(broker, TOPIC)
    assert [message.body for message in messages] == [b"C"]
    assert messages[0].transaction == "commit"
    assert messages[0].prepared_transaction_offset == int(commit["commitLogOffset"])


def test_a_later_half_message_that_is_due_earlier_is_checked_on_time(broker: Talk) -> None:
    """A check is due in 30 s; a half message that comes now is due after its own immunity."""
    broker.ask(34, body=heartbeat("one", producers=("producers",)))
    half(broker, "FIRST", CHECK_IMMUNITY_TIME_IN_SECONDS="30")
    half(broker, "SECOND", CHECK_IMMUNITY_TIME_IN_SECONDS="0")
    broker.socket.settimeout(5)
    assert broker.receive().fields["msgId"] == "SECOND"


def test_a_check_does_not_look_at_half_messages_that_are_not_due() -> None:
    now_ms, looked = 0, Counter[int]()

    def at(offset: int) -> StoredRecord:
        looked[offset] += 1
        return StoredRecord(b"", "", 0, offset, offset, offset, "")

    async def run() -> None:
        nonlocal now_ms
        state = SimpleNamespace(
            room=Room(),
            store=SimpleNamespace(on_forget=[], at=at),
            options=SandboxOptions(),
            clients=SimpleNamespace(producers={}),
            now_ms=lambda: now_ms,
        )
        halves = HalfMessages(cast(BrokerState, state), cast(Schedule, None))
        for offset in range(count):
            halves._wait_for(StoredRecord(b"", "", 0, offset, offset, offset, ""), {})
        for interval in (state.options.transaction_timeout_ms, 30_000):
            now_ms += interval
            for _ in range(count):
                halves._check_due()
                now_ms += 1
            now_ms -= count
        halves.close()

    count = 500
    asyncio.run(run())
    assert looked == dict.fromkeys(range(count), 2)


def test_a_producer_is_asked_for_the_outcome(broker: Talk) -> None:
    broker.ask(34, body=heartbeat("one", producers=("producers",)))
    _, end = half(broker, "H")
    check = broker.receive()
    assert (check.code, check.flag) == (39, 2)
    assert check.fields["commitLogOffset"] == end["commitLogOffset"]
    assert check.fields["msgId"] == "H"
    asked = messages_of(check)[0]
    assert (asked.topic, asked.body, asked.properties["PGROUP"]) == (TOPIC, b"H", "producers")
    again = broker.receive()
    assert messages_of(again)[0].properties["TRANSACTION_CHECK_TIMES"] == "2"
    settled = {**end, "commitOrRollback": "8", "fromTransactionCheck": "true"}
    assert broker.ask(37, settled).code in (0, 39)  # a third check may have crossed it
    assert read(broker, TOPIC)[0].body == b"H"


@pytest.mark.parametrize(
    ("release", "members"), [("4.9.7", ["one"]), ("5.3.3", ["one"]), ("5.5.0", None)]
)
def test_a_heartbeat_with_names_in_another_case(release: str, members: list[str] | None) -> None:
    """Brokers up to 5.3 find them (fastjson 1), later ones ignore them (fastjson2)."""
    written = heartbeat("one", producers=("p",), consumers={"g": TOPIC}).decode()
    body = re.sub(r'"([a-z])(\w+)":', lambda name: f'"{name[1].upper()}{name[2]}":', written)
    assert '"ClientID"' in body
    options = SandboxOptions(topics=[TopicSpec(TOPIC, 2)], server_version=release)
    with sandbox_thread(options) as box, Talk(box.addresses["broker-a"]) as broker:
        broker.send(34, body=body.encode())
        replies = {broker.receive().code for _ in ("notice", "answer")[members is None :]}
        assert replies == ({0} if members is None else {0, 40})
        answer = broker.ask(38, {"consumerGroup": "g"})
        found = json.loads(answer.body)["consumerIdList"] if answer.code == 0 else None
        assert found == members
