from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.rules.consumers.offsets_lost import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, oneway, problems, problems_of_sample, same_in_any_order

OF = {"group": "shop", "topic": "Orders"}


def commit(at_ms: float, offset: int, queue: int = 0, **values: Any) -> ExchangeRecord:
    code = int(RequestCode.UPDATE_CONSUMER_OFFSET)
    return oneway(at_ms, code, **{**OF, "queue_id": queue, "queue_offset": offset, **values})


def query(at_ms: float, offset: int, queue: int = 0, **values: Any) -> ExchangeRecord:
    code = int(RequestCode.QUERY_CONSUMER_OFFSET)
    return exchange(at_ms, code, 0, **{**OF, "queue_id": queue, "queue_offset": offset, **values})


def reset(at_ms: float, **values: Any) -> ExchangeRecord:
    code = int(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)
    return exchange(at_ms, code, 0, **{**OF, **values})


ROWS = [
    query(0, 0), query(0, 5, 1), commit(10, 12), commit(10, 6, 1), commit(20, 20),
    query(9000, 0), query(9000, 6, 1),
]  # fmt: skip


def test_a_response_below_the_last_commit() -> None:
    (one,) = problems(RULE, ROWS)
    assert one.title == (
        "10.0.0.1:10911 lost offsets of group shop in 1 queue of Orders: offset 20 became 0; up to"
        " 20 messages redelivered"
    )
    assert one.details == ["queue 0 of Orders: offset 20 → 0"]
    assert (one.subject.group, one.subject.queue) == ("shop", 0)
    assert same_in_any_order(RULE, ROWS)


@pytest.mark.parametrize(
    "rows",
    [
        [commit(0, 20), reset(10), query(2000, 0)],
        [commit(0, 20), reset(10, group=None, topic=None), query(2000, 0)],
        [commit(0, 20), commit(10, 3), query(2000, 3)],  # the consumer itself went back
        [commit(0, 20), commit(1990, 3), query(2000, 3)],
        [commit(0, 20), query(500, 0)],  # not stored yet: the queue changes hands
        [commit(0, 20), query(2000, 0, group="other")],
        [commit(0, 20), query(2000, 0, server_address="10.0.0.2:10911")],
        [query(0, 30), query(2000, 0)],
    ],
)
def test_nothing_is_concluded(rows: list[ExchangeRecord]) -> None:
    assert problems(RULE, rows) == []


def test_a_reset_of_another_group_explains_nothing() -> None:
    assert len(problems(RULE, [commit(0, 20), reset(10, group="other"), query(2000, 0)])) == 1


@pytest.mark.parametrize("name", ["push-consumer-5x.pcap", "scaling-4x.pcap"])
def test_healthy_groups(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
