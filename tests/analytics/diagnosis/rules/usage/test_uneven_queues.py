from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.usage.uneven_queues import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, exchange, problems, problems_of_sample, same_in_any_order

SEND = int(RequestCode.SEND_MESSAGE_V2)
ROUTE = exchange(
    0,
    int(RequestCode.GET_ROUTEINFO_BY_TOPIC),
    topic="orders",
    server_address=NAMESRV,
    facts=["route=6 4 4 0 broker-a"],
)


def send(at_ms: float, queue: int, **values: Any) -> ExchangeRecord:
    chosen = {"topic": "orders", "group": "shop", "queue_id": queue, "broker_name": "broker-a"}
    return exchange(at_ms, SEND, **{**chosen, **values})


ONE_QUEUE = [ROUTE, *(send(number, 1) for number in range(204))]


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_a_real_producer_with_a_selector(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"uneven-queues-{generation}.pcap.gz")
    assert one.title == (
        "all of 204 messages to SkewTopic went to queue 1 of the 4 queues of broker-a"
    )
    assert (one.count, one.confidence) == (204, Confidence.CERTAIN)


def test_all_messages_in_one_queue_of_four() -> None:
    (one,) = problems(RULE, ONE_QUEUE)
    assert one.title == (
        "all of 204 messages to orders went to queue 1 of the 4 queues of broker-a"
    )
    assert (one.count, one.confidence) == (204, Confidence.CERTAIN)
    assert (one.subject.broker, one.subject.topic, one.subject.queue) == ("broker-a", "orders", 1)


def test_a_hot_queue_among_others() -> None:
    rows = [send(number, number % 4 if number % 2 else 2) for number in range(400)]
    (one,) = problems(RULE, [ROUTE, *rows])
    assert one.title == (
        "200 of 400 messages to orders went to queue 2 of the 4 queues of broker-a; 1 queue got"
        " none"
    )


def test_sends_that_were_refused_are_in_no_queue() -> None:
    """Three attempts of each message meet some queues more often."""
    refused = [send(number, 1, response_code=1) for number in range(204)]
    assert problems(RULE, [ROUTE, *refused]) == []
    (one,) = problems(RULE, [*ONE_QUEUE, *refused])
    assert one.count == 204


def test_few_messages_say_nothing() -> None:
    assert problems(RULE, ONE_QUEUE[:190]) == []
    assert problems_of_sample(RULE, "send-ordered-5x.pcap") == []


def test_chance_is_no_skew() -> None:
    rows = [send(number, (number * number + number // 7) % 4) for number in range(400)]
    assert problems(RULE, [ROUTE, *rows]) == []


def test_without_a_route_less_is_sure() -> None:
    (one,) = problems(RULE, ONE_QUEUE[1:])
    assert one.confidence is Confidence.LIKELY


def test_topics_of_one_queue_are_no_skew() -> None:
    for topic in ("%RETRY%bills", "RMQ_SYS_TRACE_TOPIC"):
        assert problems(RULE, [send(number, 1, topic=topic) for number in range(300)]) == []


def test_both_hops_of_a_relay_are_one() -> None:
    inner = [send(number + 0.5, 1, server_address="10.0.0.3:8080") for number in range(204)]
    (one,) = problems(RULE, [*ONE_QUEUE, *inner])
    assert one.count == 204


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, ONE_QUEUE)
