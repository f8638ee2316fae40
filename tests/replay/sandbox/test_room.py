"""What peers said is kept in bounded memory, all kinds together."""

from __future__ import annotations

import json

from replay.sandbox import Sandbox, SandboxOptions, TopicSpec, sandbox_thread
from replay.sandbox.room import BoundedTable, Room
from tests.patience import wait_for

from .talk import Talk, frame, heartbeat, pull_fields

TOPIC = "Orders"


def test_a_table_takes_and_gives_back() -> None:
    room = Room(100)
    table = BoundedTable[str, str](room, lambda key, value: len(key) + len(value))
    assert table.put("a", "x" * 50)
    assert table.put("a", "x" * 90)
    assert not table.put("b", "x" * 50)
    assert (dict(table), room.used) == ({"a": "x" * 90}, 91)
    assert table.put("a", "")
    assert table.put("b", "x" * 50)
    assert table.drop("b") == "x" * 50
    assert table.drop("b") is None
    table.empty()
    assert room.used == 0


def used(sandbox: Sandbox) -> int:
    return sandbox.brokers["broker-a"].state.room.used


def test_all_is_given_back_when_clients_leave() -> None:
    with sandbox_thread(SandboxOptions(topics=[TopicSpec(TOPIC)])) as box:
        with Talk(box.addresses["broker-a"]) as broker:
            broker.ask(9999)
            broker.ask(34, body=heartbeat("c", producers=("p",), consumers={"g": TOPIC}))
            before = box.call(used)
        with Talk(box.addresses["broker-a"]) as broker:
            body = heartbeat("c", producers=("p", "q"), consumers={"g": TOPIC})
            for _ in range(3):
                broker.send(34, body=body, flag=2)
            broker.send(11, pull_fields(TOPIC, hold_ms=30_000))
            locks = {
                "consumerGroup": "g",
                "clientId": "c",
                "mqSet": [{"topic": TOPIC, "queueId": 0}],
            }
            for code in (41, 42):
                broker.send(code, body=json.dumps(locks).encode(), flag=2)
            broker.ask(9999)
            assert box.call(used) > before
        with Talk(box.addresses["broker-a"]) as broker:
            broker.ask(9999)
            # the group, its retry topic, and nothing of the clients
            left = box.call(used)
        assert left < before


def test_groups_subscriptions_and_values_share_a_bounded_room() -> None:
    options = SandboxOptions(topics=[TopicSpec(TOPIC)], store_limit=1 << 20)
    long = "T" * 60_000
    with (
        sandbox_thread(options) as box,
        Talk(box.addresses["broker-a"]) as broker,
        Talk(box.namesrv) as namesrv,
    ):
        for number in range(400):
            subscription = {"topic": TOPIC, "subString": long, "subVersion": 1}
            group = {"groupName": f"g{number}", "subscriptionDataSet": [subscription]}
            body = json.dumps({"clientID": "c", "consumerDataSet": [group]}).encode()
            broker.socket.sendall(frame(34, body=body, flag=2))
            value = {"namespace": "n", "key": str(number), "value": long}
            namesrv.socket.sendall(frame(100, value, flag=2))
        refused = namesrv.ask(100, {"namespace": "n", "key": "x", "value": long})
        assert (refused.code, "too many" in refused.remark) == (1, True)
        limit = 16 << 20
        wait_for("it is full", lambda: limit - 200_000 < box.call(used) <= limit)
        with Talk(box.addresses["broker-a"]) as another:
            named = json.dumps({"groupName": "g" * 300}).encode()
            assert another.ask(200, body=named).code == 1
            assert another.ask(30, {"topic": TOPIC, "queueId": "0"}).code == 0
        assert namesrv.ask(105, {"topic": TOPIC}).code == 0
