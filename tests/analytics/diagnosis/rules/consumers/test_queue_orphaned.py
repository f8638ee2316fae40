from __future__ import annotations

import pytest

from analytics.diagnosis.registry import with_finders
from analytics.diagnosis.rules.consumers.queue_orphaned import RULE
from analytics.diagnosis.rules.consumers.queue_shared import RULE as FINDER
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order
from .test_queue_shared import ONE, OTHER, beat, pull

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
LIST = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)


def route(queues: int = 3) -> ExchangeRecord:
    return exchange(
        0,
        ROUTE,
        topic="Orders",
        brokers=["broker-a=10.0.0.1:10911"],
        facts=[f"route=6 {queues} {queues} 0 broker-a"],
    )


def named(client: str, endpoint: str) -> ExchangeRecord:
    return exchange(
        0,
        int(RequestCode.HEART_BEAT),
        client_address=endpoint,
        group="shop",
        facts=[f"client={client}", "consumer=CONSUME_PASSIVELY CLUSTERING shop"],
    )


def members(at_s: float, *names: str) -> ExchangeRecord:
    facts = [f"members={len(names)}", *(f"member={one}" for one in names)]
    return exchange(at_s * 1000, LIST, group="shop", facts=facts)


CUT = exchange(30_000, LIST, group="shop", facts=["members=3", "member=a", "member=b"])
KNOWN = [named("a", ONE), named("b", OTHER), members(1, "a", "b"), members(60, "a", "b")]
PULLS = [
    pull(at, endpoint, queue_id=queue)
    for at in range(2, 70, 15)
    for endpoint, queue in ((ONE, 0), (OTHER, 1))
]


def test_a_queue_that_no_member_pulls() -> None:
    rows = [route(), *KNOWN, *PULLS]
    (one,) = [found for found in problems(FINDER, rows) if found.rule == RULE.id]
    assert one.title == (
        "1 queue of Orders (broker-a:2) was not pulled by any member of group shop for 61 s:"
        " messages there wait, although the group has 2 members"
    )
    assert (one.subject.group, one.subject.topic, one.subject.queue) == ("shop", "Orders", 2)
    assert same_in_any_order(FINDER, rows)
    assert [rule.id for rule in with_finders([RULE])] == [RULE.id, FINDER.id]


@pytest.mark.parametrize(
    "rows",
    [
        [route(2), *KNOWN, *PULLS],  # all are pulled
        [*KNOWN, *PULLS],  # no route says that there are more
        [route(), *KNOWN, members(30, "a", "b", "c"), *PULLS],  # the members changed
        [route(), named("a", ONE), members(1, "a", "c"), *PULLS],  # one is not in the capture
        [route(), *KNOWN, *PULLS, pull(40, ONE, queue_id=2)],
        [route(), *KNOWN, CUT, *PULLS],  # a row does not name all members
        [route(), beat("BROADCASTING"), members(1, "a"), *PULLS],
    ],
)
def test_nothing_is_concluded(rows: list[ExchangeRecord]) -> None:
    assert [one for one in problems(FINDER, rows) if one.rule == RULE.id] == []


@pytest.mark.parametrize("name", ["scaling-4x.pcap", "push-rebalance-5x.pcap"])
def test_healthy_groups(name: str) -> None:
    assert problems_of_sample(FINDER, name) == []
