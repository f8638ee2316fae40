"""When group-missing speaks, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.group_missing import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

REMARK = "subscription group [shop] does not exist, See https://rocketmq.apache.org"
NAMED = exchange(0, int(RequestCode.SEND_MESSAGE_V2), broker_name="broker-a")
"""A send that tells the broker's name."""


def refused(
    at_ms: float, request: RequestCode = RequestCode.PULL_MESSAGE, **values: Any
) -> ExchangeRecord:
    made = {"remark": REMARK, "topic": "Orders", "group": "shop", **values}
    return exchange(at_ms, int(request), int(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST), **made)


def test_names_what_was_refused() -> None:
    rows = [NAMED, refused(1), refused(9)]
    (one,) = problems(RULE, rows)
    assert one.title == "consumer group shop does not exist on broker-a: 2 pulls refused"
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_the_group_in_other_remarks() -> None:
    remarks = ("subscription group not exist, late See https", "Group late not exist!")
    for remark in remarks:
        back = refused(0, RequestCode.CONSUMER_SEND_MSG_BACK, remark=remark, group=None)
        (one,) = problems(RULE, [back])
        assert one.subject.group == "late"


def test_administrators_are_told_themselves() -> None:
    assert not problems(RULE, [refused(0, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG)])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "group-missing-4x.pcap",
            13,
            "consumer group nobodys_group does not exist on broker-a: 13 pulls refused",
        ),
        (
            "group-missing-5x.pcap",
            1,
            "consumer group nobodys_group does not exist on broker-a: 1 pull refused",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == title
    assert one.subject == Subject(broker="broker-a", topic="GroupTopic", group="nobodys_group")
    assert one.count == count
    assert same_in_any_order(RULE, sample(name).exchanges)
