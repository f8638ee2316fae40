"""Routes to queues: the cases of topicRouteData2TopicPublishInfo, and what is not a route."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.bodies.registry import encode_body
from replay.cluster import route
from replay.cluster.route import MOST_BROKERS, MOST_QUEUES, NO_BROKER, PublishTable, decode_route
from replay.message import MessageQueue

from ..script import ROUTE, route_body

BROKERS = {"broker-b": "10.0.0.2:10911", "broker-a": "10.0.0.1:10911"}


def body_of(**members: object) -> bytes:
    base: dict[str, object] = {
        "brokerDatas": [
            {"brokerName": name, "brokerAddrs": {"0": address, "1": "10.0.0.9:10911"}}
            for name, address in BROKERS.items()
        ],
        "queueDatas": [
            {"brokerName": name, "perm": 6, "readQueueNums": 8, "writeQueueNums": 2}
            for name in BROKERS
        ],
    }
    return encode_body(ROUTE, True, {**base, **members})


def queues_of(body: bytes, most: int | None = None) -> list[tuple[str, int]]:
    route = decode_route("T", body, most)
    assert route is not None
    return [(queue.broker_name, queue.queue_id) for queue in route.queues]


def test_queues_are_sorted_by_broker_and_numbered() -> None:
    found = queues_of(body_of())
    assert found == [("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1)]


def test_integer_keys_without_quotes_are_read_as_fastjson_writes_them() -> None:
    text = body_of().replace(b'"0":', b"0:").replace(b'"1":', b"1:")
    assert b"{0:" in text
    assert queues_of(text) == queues_of(body_of())


@pytest.mark.parametrize(("perm", "count"), [(6, 2), (2, 2), (4, 0), (0, 0), (3, 2), (14, 2)])
def test_only_what_can_be_written_to(perm: int, count: int) -> None:
    rows = [{"brokerName": "broker-a", "perm": perm, "writeQueueNums": 2, "readQueueNums": 2}]
    assert len(queues_of(body_of(queueDatas=rows))) == count


def test_no_master_no_queue() -> None:
    datas = [{"brokerName": "broker-a", "brokerAddrs": {"1": "10.0.0.1:10911"}}]
    assert queues_of(body_of(brokerDatas=datas)) == []


def test_a_made_topic_has_no_more_queues_than_wanted() -> None:
    rows = [{"brokerName": "broker-a", "perm": 7, "readQueueNums": 8, "writeQueueNums": 8}]
    assert len(queues_of(body_of(queueDatas=rows), most=4)) == 4
    rows[0]["readQueueNums"] = 3
    assert len(queues_of(body_of(queueDatas=rows), most=4)) == 3


def test_an_ordered_topic_has_the_queues_of_its_list() -> None:
    found = queues_of(body_of(orderTopicConf="broker-b:2;broker-a:1"))
    assert found == [("broker-b", 0), ("broker-b", 1), ("broker-a", 0)]


def test_a_static_topic_has_logical_queues_and_their_brokers() -> None:
    def info(name: str, epoch: int, ids: dict[str, int]) -> dict[str, object]:
        return {
            "bname": name,
            "currIdMap": ids,
            "epoch": epoch,
            "scope": "__global__",
            "topic": "T",
            "totalQueues": 4,
        }

    mapping = {
        "broker-a": info("broker-a", 5, {"0": 0, "1": 1}),
        "broker-b": info("broker-b", 6, {"1": 0, "2": 1}),
    }
    route = decode_route("T", body_of(topicQueueMappingByBroker=mapping))
    assert route is not None
    table = PublishTable(route)
    assert [queue.queue_id for queue in route.queues] == [0, 1, 2, 3]
    assert {queue.broker_name for queue in route.queues} == {"__syslo__global__"}
    brokers = [table.broker_of(queue) for queue in route.queues]
    assert brokers == ["broker-a", "broker-b", "broker-b", NO_BROKER]


def test_addresses_that_are_none_are_left_out() -> None:
    for address in ("nowhere", "host:0", "host:99999", "", "host:-1", "host:1x", 7):
        datas = [{"brokerName": "broker-a", "brokerAddrs": {"0": address}}]
        body = json.dumps({"brokerDatas": datas, "queueDatas": []}).encode()
        route = decode_route("T", body)
        assert route is not None
        assert route.addresses == {"broker-a": {}}


@pytest.mark.slow
def test_a_nameserver_that_exaggerates_is_not_believed() -> None:
    rows = [{"brokerName": "broker-a", "perm": 6, "writeQueueNums": 2**31 - 1}]
    assert len(queues_of(body_of(queueDatas=rows))) == MOST_QUEUES
    assert len(queues_of(body_of(orderTopicConf="broker-a:2147483647"))) == MOST_QUEUES


@pytest.mark.slow
def test_many_rows_make_no_more_queues_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(
        route, "MessageQueue", lambda *parts: made.append(parts) or MessageQueue(*parts)
    )
    rows = [
        {"brokerName": "broker-a", "perm": 6, "writeQueueNums": MOST_QUEUES} for _ in range(500)
    ]
    found = decode_route("T", body_of(queueDatas=rows))
    assert found is not None
    assert len(found.queues) == len(made) == MOST_QUEUES
    assert found.left_out == 499 * MOST_QUEUES
    mapping = {
        f"b{number}": {"scope": f"s{number}", "totalQueues": MOST_QUEUES, "currIdMap": {}}
        for number in range(100)
    }
    made.clear()
    found = decode_route("T", body_of(topicQueueMappingByBroker=mapping))
    assert found is not None
    assert len(made) == MOST_QUEUES
    assert found.left_out == 99 * MOST_QUEUES


def test_brokers_beyond_the_bound_are_left_out_and_counted() -> None:
    datas = [
        {"brokerName": f"b{n}", "brokerAddrs": {"0": "10.0.0.1:10911"}}
        for n in range(MOST_BROKERS + 7)
    ]
    route = decode_route("T", body_of(brokerDatas=datas, queueDatas=[]))
    assert route is not None
    assert (len(route.addresses), route.brokers_left_out) == (MOST_BROKERS, 7)


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"nothing", b"\xff\xfe", b'"x"'])
def test_what_is_no_route(body: bytes) -> None:
    route = decode_route("T", body)
    assert route is None or route.queues == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        *("brokerDatas", "brokerAddrs", "brokerName", "queueDatas", "perm", "0"),
                        *("writeQueueNums", "orderTopicConf", "topicQueueMappingByBroker"),
                        "currIdMap",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_answer_of_a_nameserver_raises(value: object) -> None:
    route = decode_route("T", json.dumps(value).encode())
    assert route is None or all(isinstance(one, MessageQueue) for one in route.queues)


def test_equal_routes_are_equal() -> None:
    one, other = decode_route("T", body_of()), decode_route("T", body_of())
    assert one == other
    assert one != decode_route("T", route_body(BROKERS, queues=3))
    assert decode_route("T", body_of()) is not None


def test_the_table_says_how_many_queues_a_broker_has() -> None:
    route = decode_route("T", body_of())
    assert route is not None
    table = PublishTable(route)
    assert table.write_queue_nums("broker-a") == 2
    assert table.write_queue_nums("broker-z") == -1
