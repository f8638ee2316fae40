"""When sql92-unsupported speaks, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.sql92_unsupported import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

REMARK = "The broker does not support consumer to filter message by SQL92"
NAMED = exchange(0, int(RequestCode.SEND_MESSAGE_V2), broker_name="broker-a")
"""A send that tells the broker's name."""


def refused(
    at_ms: float, request: RequestCode = RequestCode.CHECK_CLIENT_CONFIG, **values: Any
) -> ExchangeRecord:
    made = {"remark": REMARK, "topic": "Orders", "group": "shop", **values}
    return exchange(at_ms, int(request), int(ResponseCode.SYSTEM_ERROR), **made)


def test_names_what_was_refused() -> None:
    rows = [NAMED, refused(1), refused(9)]
    (one,) = problems(RULE, rows)
    assert one.title == "broker-a does not filter by SQL92: it refused 2 requests of group shop"
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="no consumer for this group, g")])


def test_a_broker_that_filters() -> None:
    assert not problems_of_sample(RULE, "push-filter-sql-5x.pcap")


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "filter-sql-off-4x.pcap",
            1,
            "broker-a does not filter by SQL92: it refused 1 request",
        ),
        (
            "filter-sql-off-5x.pcap",
            1,
            "broker-a does not filter by SQL92: it refused 1 request",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == title
    assert one.subject == Subject(broker="broker-a")
    assert one.count == count
    assert same_in_any_order(RULE, sample(name).exchanges)
