"""topic-on-some-brokers: the route of a new topic names fewer brokers than that of TBW102."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.routes.topic_on_some_brokers import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, exchange, problems, problems_of_sample, same_in_any_order, sample

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)


def route(at_ms: float, topic: str, *brokers: str, perm: int = 7) -> ExchangeRecord:
    code = ResponseCode.SUCCESS if brokers else ResponseCode.TOPIC_NOT_EXIST
    facts = [f"route={perm} 4 4 0 {name}" for name in brokers]
    return exchange(
        at_ms, ROUTE, int(code), topic=topic, group=None, server_address=NAMESRV, facts=facts
    )


def made(*after: str) -> list[ExchangeRecord]:
    defaults = route(1, "TBW102", "broker-a", "broker-b")
    return [route(0, "New"), defaults, route(5000, "New", *after)]


def test_a_topic_on_one_of_two() -> None:
    (one,) = problems(RULE, made("broker-a"))
    assert one.title == (
        "topic New was created on broker-a only: broker-b gets none of its messages"
    )
    assert same_in_any_order(RULE, made("broker-a"))


def test_what_is_none() -> None:
    assert problems(RULE, made("broker-a", "broker-b")) == []
    later = route(60_000, "New", "broker-a", "broker-b")
    assert problems(RULE, [*made("broker-a"), later]) == [], "it came to be on both"
    assert problems(RULE, made("broker-a")[1:]) == [], "it was there before"
    assert problems(RULE, made()[:2]) == [], "it was never created"
    read_only = [route(0, "New"), route(1, "TBW102", "broker-a", "broker-b", perm=4)]
    assert problems(RULE, [*read_only, route(5000, "New", "broker-a")]) == []


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("topic-on-one-broker-5x.pcap", "broker-a", "broker-b"),
        ("topic-on-one-broker-4x.pcap", "broker-b", "broker-a"),
    ],
)
def test_the_first_send_makes_it_on_one(name: str, has: str, lacks: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title.endswith(f" was created on {has} only: {lacks} gets none of its messages")
    assert same_in_any_order(RULE, sample(name).exchanges)


@pytest.mark.parametrize("name", ["send-unknown-topic-5x.pcap", "scaling-5x.pcap"])
def test_silent_where_all_brokers_have_it(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
