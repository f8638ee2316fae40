"""more-consumers-than-queues: lists of members against the queues of the route."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.rules.consumers.more_consumers_than_queues import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import BROKER, NAMESRV, exchange, problems, problems_of_sample, same_in_any_order

HEARTBEAT = int(RequestCode.HEART_BEAT)
MEMBERS = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
PULL = int(RequestCode.PULL_MESSAGE)
POP = int(RequestCode.POP_MESSAGE)
ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
CLIENTS = ("10.0.0.6@1", "10.0.0.7@1", "10.0.0.8@1")


def endpoint(client: str) -> str:
    return f"{client.partition('@')[0]}:40000"


def heartbeat(
    client: str, kind: str = "CONSUME_PASSIVELY CLUSTERING", topic: str = "Orders"
) -> ExchangeRecord:
    facts = [f"client={client}", f"consumer={kind} bills", f"subscription=bills {topic} TAG *"]
    return exchange(0, HEARTBEAT, client_address=endpoint(client), facts=facts)


def members(at_s: float, *clients: str, **values: Any) -> ExchangeRecord:
    facts = [f"members={len(clients)}", *(f"member={client}" for client in clients)]
    made = {"client_address": endpoint(clients[0]), "group": "bills", "facts": facts, **values}
    return exchange(at_s * 1000, MEMBERS, **made)


def route(*queues: int, topic: str = "Orders") -> ExchangeRecord:
    facts = [
        f"route=6 {number} 4 0 broker-{name}" for number, name in zip(queues, "ab", strict=False)
    ]
    return exchange(1, ROUTE, server_address=NAMESRV, topic=topic, facts=facts)


def pull(client: str, queue: int, code: int = PULL, at_s: float = 170) -> ExchangeRecord:
    return exchange(
        at_s * 1000,
        code,
        client_address=endpoint(client),
        topic="Orders",
        group="bills",
        queue_id=queue,
    )


HEARTBEATS = [heartbeat(client) for client in CLIENTS]
LASTING = [members(at, *CLIENTS) for at in (0, 20, 180)]
PULLS = [pull(CLIENTS[0], 0), pull(CLIENTS[1], 1), pull(CLIENTS[2], 1, at_s=5)]


def test_three_consumers_for_two_queues() -> None:
    (one,) = problems(RULE, [*HEARTBEATS, route(1, 1), *LASTING, *PULLS])
    assert one.title == (
        "group bills has 3 consumers for the 2 queues of topic Orders: 1 consumer gets no"
        " messages from it"
    )
    assert (one.severity, one.confidence, one.count) == ("info", "certain", 3)
    assert (one.subject.group, one.subject.topic) == ("bills", "Orders")
    assert one.evidence[0].what == f"{BROKER} says that group bills has 3 consumers"
    assert one.details == [
        "queues of Orders: 2 (1 at broker-a, 1 at broker-b)",
        "consumers that are alive and do not pull Orders: 10.0.0.8@1",
    ]


def test_an_extra_consumer_for_a_short_time_may_be_one_that_left() -> None:
    (one,) = problems(RULE, [*HEARTBEATS, route(2), *LASTING[:2]])
    assert (one.confidence, one.count, len(one.details)) == ("likely", 2, 1)
    # ... as long as there were fewer, it does not count
    (one,) = problems(RULE, [*HEARTBEATS, route(2), members(170, *CLIENTS[:2]), *LASTING])
    assert one.confidence == "likely"


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([*HEARTBEATS, route(3), *LASTING], id="a queue for each"),
        pytest.param([*HEARTBEATS, *LASTING], id="no route"),
        pytest.param([*HEARTBEATS, route(1, 1), *LASTING, members(200, *CLIENTS[:2])], id="left"),
        pytest.param([route(1, 1), *LASTING], id="no heartbeat"),
        pytest.param(
            [heartbeat(CLIENTS[0], "CONSUME_PASSIVELY BROADCASTING"), route(1), *LASTING],
            id="broadcast",
        ),
        pytest.param(
            [heartbeat(CLIENTS[0], "CONSUME_ACTIVELY CLUSTERING"), route(1), *LASTING], id="pull"
        ),
        pytest.param([*HEARTBEATS, route(1), *LASTING, pull(CLIENTS[0], -1, POP)], id="POP"),
        pytest.param(
            [
                heartbeat(CLIENTS[0], topic="%RETRY%bills"),
                route(1, topic="%RETRY%bills"),
                *LASTING,
            ],
            id="a topic of RocketMQ's own",
        ),
        pytest.param([*HEARTBEATS, route(1), members(0, "x", facts=["members=²"])], id="odd"),
    ],
)
def test_not_said(rows: list[ExchangeRecord]) -> None:
    assert problems(RULE, rows) == []


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_three_members_for_two_queues(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"more-consumers-than-queues-{generation}.pcap")
    assert one.title == (
        "group spare_group has 3 consumers for the 2 queues of topic SpareTopic: 1 consumer gets"
        " no messages from it"
    )
    assert one.confidence == "likely"
    assert one.details[-1] == "consumers that are alive and do not pull SpareTopic: 127.0.0.1@third"


def test_healthy_groups() -> None:
    assert problems_of_sample(RULE, "push-rebalance-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = [*HEARTBEATS, route(1, 1), *LASTING, members(30, *CLIENTS[:2]), *PULLS]
    assert same_in_any_order(RULE, rows)
