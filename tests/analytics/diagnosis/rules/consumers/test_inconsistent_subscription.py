from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.consumers.inconsistent_subscription import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    BROKER,
    NAMESRV,
    connection,
    exchange,
    problems,
    problems_of_sample,
    same_in_any_order,
    sample,
)

HEARTBEAT = int(RequestCode.HEART_BEAT)
PULL = int(RequestCode.PULL_MESSAGE)
NOT_EXIST = int(ResponseCode.SUBSCRIPTION_NOT_EXIST)
PARSE_FAILED = int(ResponseCode.SUBSCRIPTION_PARSE_FAILED)


def heartbeat(
    at_ms: float,
    client: str,
    *subscribed: str,
    kind: str = "CONSUME_PASSIVELY",
    server: str = BROKER,
) -> ExchangeRecord:
    facts = [
        f"client={client}",
        f"consumer={kind} CLUSTERING bills",
        "subscription=bills %RETRY%bills TAG *",
        *(f"subscription=bills {one}" for one in subscribed),
    ]
    ends = {"client_address": f"10.0.0.9:{len(client)}", "server_address": server}
    return exchange(at_ms, HEARTBEAT, facts=facts, **ends)


def route(address: str, server: str = NAMESRV) -> ExchangeRecord:
    code = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    brokers, facts = [f"broker-a={address}"], ["route=6 4 4 0 broker-a"]
    return exchange(1, code, server_address=server, topic="orders", brokers=brokers, facts=facts)


def refused(at_ms: float, code: int = NOT_EXIST) -> ExchangeRecord:
    return exchange(at_ms, PULL, code, group="bills", topic="orders", queue_id=0)


APART = [
    heartbeat(0, "a@1", "orders TAG A", "common TAG *"),
    heartbeat(10, "b@1", "orders TAG B || C", "common TAG *"),
    heartbeat(30_000, "a@1", "orders TAG A", "common TAG *"),
    heartbeat(30_010, "b@1", "orders TAG B || C", "common TAG *"),
    refused(20),
]


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_real_members_with_different_tags(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"subscription-tags-{generation}.pcap")
    assert one.title == (
        "members of tags_group subscribe differently: 127.0.0.1@first TagsTopic (tags TagA);"
        " 127.0.0.1@second TagsTopic (tags TagB)"
    )
    assert (one.count, one.confidence) == (2, Confidence.CERTAIN)


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_real_members_with_different_topics(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"subscription-topics-{generation}.pcap")
    assert one.title == (
        "members of split_group subscribe differently: 127.0.0.1@first FirstTopic (all);"
        " 127.0.0.1@second SecondTopic (all)"
    )


def test_groups_of_two_clusters_may_have_the_same_name() -> None:
    second = "10.1.0.1:10911"
    routes = [route(BROKER), route(second)]
    rows = [
        *routes,
        heartbeat(0, "a@1", "orders TAG A"),
        heartbeat(10, "b@1", "orders TAG B", server=second),
        heartbeat(30_000, "a@1", "orders TAG A"),
        heartbeat(30_010, "b@1", "orders TAG B", server=second),
    ]
    assert problems(RULE, rows) == []
    # A broker in common makes them members of one group.
    (one,) = problems(RULE, [*rows, heartbeat(15, "b@1", "orders TAG C")])
    assert "b@1 orders (tags B)" in one.title
    # A proxy answers route requests with its own address: both may be of one cluster.
    proxies = [route(BROKER, server=BROKER), route(second, server=second)]
    for others in ([], proxies):
        (one,) = problems(RULE, [*others, *rows[len(routes) :]])
        assert one.title.startswith("members of bills subscribe differently")


def test_members_with_different_tags() -> None:
    (one,) = problems(RULE, APART)
    assert one.title == (
        "members of bills subscribe differently: a@1 orders (tags A); b@1 orders (tags B || C)"
    )
    assert (one.count, one.subject.group, one.subject.topic) == (2, "bills", "orders")
    assert one.details[0].startswith("pulls of the group were refused once")


def test_a_member_that_subscribes_more_than_the_others() -> None:
    rows = [
        heartbeat(at, client, *subscribed)
        for at in (0, 30_000)
        for client, subscribed in (("a@1", ["x TAG *"]), ("b@1", ["x TAG *", "y TAG *"]))
    ]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "members of bills subscribe differently: a@1 only the common topics; b@1 y (all)"
    )


def test_one_that_subscribes_a_topic_after_the_other_is_no_conflict() -> None:
    rows = [
        heartbeat(0, "a@1", "orders TAG *"),
        heartbeat(10, "b@1", "orders TAG *", "more TAG *"),
        heartbeat(20, "a@1", "orders TAG *", "more TAG *"),
        heartbeat(30, "b@1", "orders TAG *", "more TAG *"),
    ]
    assert problems(RULE, rows) == []


def test_the_order_of_tags_makes_no_difference() -> None:
    rows = [
        heartbeat(at, client, f"orders TAG {tags}")
        for at in (0, 30_000)
        for client, tags in (("a@1", "A || B"), ("b@1", "B||A"))
    ]
    assert problems(RULE, rows) == []


def test_members_one_after_the_other_may_differ() -> None:
    rows = [
        heartbeat(0, "a@1", "orders TAG *"),
        heartbeat(30_000, "a@1", "orders TAG *"),
        heartbeat(31_000, "b@1", "bills TAG *"),
        heartbeat(61_000, "b@1", "bills TAG *"),
    ]
    assert problems(RULE, rows) == []


def test_pull_consumers_say_what_they_want_with_each_pull() -> None:
    rows = [
        heartbeat(at, client, f"{client[0]} TAG *", kind="CONSUME_ACTIVELY")
        for at in (0, 30_000)
        for client in ("a@1", "b@1")
    ]
    assert problems(RULE, rows) == []


def test_refusals_that_a_heartbeat_would_have_ended() -> None:
    assert problems(RULE, [refused(at) for at in range(0, 30_000, 1000)]) == []
    (one,) = problems(RULE, [refused(at) for at in range(0, 60_000, 1000)])
    assert one.title == (
        "the broker refuses pulls from 10.0.0.9 for 59 s: it knows no such subscription of bills to"
        " orders (60 times)"
    )
    assert one.confidence is Confidence.LIKELY


def test_an_expression_that_the_broker_cannot_read() -> None:
    (one,) = problems(RULE, [refused(0, PARSE_FAILED)])
    assert one.title == (
        "the broker cannot parse the filter expression of 10.0.0.9 of bills for orders: pulls"
        " were refused once"
    )


def test_refusals_after_a_start_are_normal() -> None:
    for name in ("push-rebalance-4x.pcap", "admin-5x.pcap", "slave-read-4x.pcap"):
        assert any(
            row.response_code == ResponseCode.SUBSCRIPTION_NOT_LATEST
            for row in sample(name).exchanges
        )
        assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, APART)


SHORT = [heartbeat(0, "a@1", "orders TAG *"), heartbeat(2000, "bb@1", "bills TAG *")]
"""A heartbeat each: the next one comes after 30 s."""


def test_a_client_lives_as_long_as_its_connection_between_heartbeats() -> None:
    stays = connection(0, 3000, client_address=SHORT[0].client_address)
    (one,) = problems(RULE, SHORT, [stays])
    assert one.title == (
        "members of bills subscribe differently: a@1 orders (all); bb@1 bills (all)"
    )
    assert problems(RULE, SHORT) == []
    assert (
        problems(RULE, SHORT, [connection(0, 1000, client_address=SHORT[0].client_address)]) == []
    )
    stop = exchange(1000, int(RequestCode.UNREGISTER_CLIENT), facts=["client=a@1"])
    assert problems(RULE, [*SHORT, stop], [stays]) == []


def test_settings_of_grpc_clients_that_differ() -> None:
    (one,) = problems_of_sample(RULE, "grpc-subscriptions-5x.pcap.gz")
    assert one.title.startswith("members of split_push subscribe differently: ")
    assert "GrpcNormal (tags TagA); " in one.title
    assert one.title.endswith("GrpcNormal (tags TagB)")
