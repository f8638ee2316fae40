from __future__ import annotations

import pytest

from analytics.diagnosis.rules.consumers.rebalance_storm import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    BROKER,
    CLIENT,
    exchange,
    oneway,
    problems,
    problems_of_sample,
    same_in_any_order,
)

CHANGED = int(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
MEMBERS = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)


def changes(number: int, every_ms: int, receivers: int = 3) -> list[ExchangeRecord]:
    return [
        oneway(
            at * every_ms + receiver,
            CHANGED,
            group="bills",
            client_address=BROKER,
            server_address=f"10.0.1.{receiver}:4000",
        )
        for at in range(number)
        for receiver in range(receivers)
    ]


def members(*clients: str) -> ExchangeRecord:
    facts = [f"members={len(clients)}", *(f"member={client}" for client in clients)]
    return exchange(0, MEMBERS, group="bills", client_address=CLIENT, facts=facts)


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_consumers_that_come_and_go(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"rebalance-storm-{generation}.pcap.gz")
    assert one.title.startswith("the members of storm_group changed 15 times in ")
    assert (one.count, one.subject.group) == (15, "storm_group")


def test_members_that_change_four_times_a_minute() -> None:
    (one,) = problems(RULE, [*changes(20, 15_000), members("10.0.0.7@1", "10.0.0.8@1")])
    assert one.title == (
        "the members of bills changed 20 times in 4 min 45 s, according to notices from"
        " 10.0.0.1:10911: each change causes a rebalance"
    )
    assert (one.count, one.subject.group) == (20, "bills")


def test_the_same_number_in_ten_minutes_is_no_storm() -> None:
    assert problems(RULE, changes(20, 30_000)) == []


def test_a_deployment_is_no_storm() -> None:
    clients = [f"10.0.0.{host}@{process}" for host in range(10) for process in (1, 2)]
    assert problems(RULE, [*changes(20, 5_000), members(*clients)]) == []


def test_a_consumer_that_comes_and_one_that_goes_are_normal() -> None:
    assert problems_of_sample(RULE, "push-rebalance-5x.pcap") == []
    assert problems_of_sample(RULE, "push-rebalance-4x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, [*changes(20, 15_000), members("10.0.0.7@1")])


def test_a_deployment_of_more_members_than_a_row_names_is_no_storm() -> None:
    listed = exchange(0, MEMBERS, group="bills", client_address=CLIENT, facts=["members=200"])
    assert problems(RULE, [*changes(150, 2_000), listed]) == []
    assert len(problems(RULE, changes(150, 2_000))) == 1
