from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.rules.consumers.queue_shared import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import BROKER, NAMESRV, exchange, problems, problems_of_sample, same_in_any_order

OF = {"group": "shop", "topic": "Orders", "queue_id": 1}
ONE, OTHER = "10.0.0.9:40000", "10.0.0.10:40000"
TWIN = "10.0.0.9:50000"
"""another client of the same host, which is all that is known of both"""


def pull(at_s: float, client_address: str, **values: Any) -> ExchangeRecord:
    code = int(RequestCode.PULL_MESSAGE)
    return exchange(at_s * 1000, code, 0, **{**OF, "client_address": client_address, **values})


def query(at_s: float, client_address: str) -> ExchangeRecord:
    code = int(RequestCode.QUERY_CONSUMER_OFFSET)
    return exchange(at_s * 1000, code, 0, **{**OF, "client_address": client_address})


def beat(model: str = "CLUSTERING", kind: str = "CONSUME_PASSIVELY") -> ExchangeRecord:
    facts = [f"consumer={kind} {model} shop"]
    return exchange(0, int(RequestCode.HEART_BEAT), 0, group="shop", facts=facts)


IN_TURN = [pull(at, ONE if at % 20 else OTHER) for at in range(10, 110, 10)]


def test_two_members_pull_in_turn() -> None:
    rows = [beat(), *IN_TURN]
    (one,) = problems(RULE, rows)
    assert one.title.startswith(
        "1 queue of Orders (10.0.0.1:10911:1) is pulled by two members of group shop at once,"
        " 10.0.0.10 and 10.0.0.9, for 70 s: "
    )
    assert (one.subject.group, one.subject.queue) == ("shop", 1)
    assert same_in_any_order(RULE, rows)


def test_queues_that_nobody_pulls_any_more_are_named() -> None:
    (one,) = problems(RULE, [beat(), pull(1, ONE, queue_id=2), *IN_TURN])
    assert "; no member pulled 10.0.0.1:10911:2 for up to 99 s" in one.title


@pytest.mark.parametrize(
    "rows",
    [
        IN_TURN,  # the model is not known
        [beat("BROADCASTING"), *IN_TURN],
        [beat(kind="CONSUME_ACTIVELY"), *IN_TURN],
        [beat(), *(pull(at, ONE) for at in range(0, 50, 5)),
         *(pull(at, OTHER) for at in range(50, 110, 5))],  # handed over
        [beat(), *IN_TURN, *(query(at - 1, ONE if at % 20 else OTHER)
                             for at in range(10, 110, 10))],  # taken anew each time
        [beat(), *IN_TURN[:4]],
        [beat(), *(pull(at, ONE) for at in range(20)),
         *(pull(at, OTHER) for at in range(5, 100))],  # the old owner learns of it late
        [beat(), *(pull(at, TWIN if at % 20 else ONE) for at in range(10, 110, 10))],
    ],
)  # fmt: skip
def test_nothing_is_concluded(rows: list[ExchangeRecord]) -> None:
    assert problems(RULE, rows) == []


def test_two_clusters_may_have_the_same_names() -> None:
    second = "10.1.0.1:10911"

    def route(address: str, *slaves: str, server: str = NAMESRV) -> ExchangeRecord:
        code = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
        brokers = [f"broker-a={one}" for one in (address, *slaves)]
        facts = ["route=6 4 4 0 broker-a", *(f"slave=1 {one}" for one in slaves)]
        return exchange(
            1, code, server_address=server, topic="Orders", brokers=brokers, facts=facts
        )

    rows = [
        pull(at, ONE if at % 20 else OTHER, server_address=BROKER if at % 20 else second)
        for at in range(10, 110, 10)
    ]
    assert problems(RULE, [beat(), route(BROKER), route(second), *rows]) == []
    title = "1 queue of Orders (broker-a:1) is pulled by two members"
    (one,) = problems(RULE, [beat(), route(BROKER, second), *rows])  # a slave of the same broker
    assert one.title.startswith(title)
    # Proxies name themselves in routes.
    proxies = [route(BROKER, server=BROKER), route(second, server=second)]
    (one,) = problems(RULE, [beat(), *proxies, *rows])
    assert one.title.startswith(title)


@pytest.mark.parametrize("name", ["scaling-4x.pcap", "push-consumer-5x.pcap"])
def test_healthy_groups(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
