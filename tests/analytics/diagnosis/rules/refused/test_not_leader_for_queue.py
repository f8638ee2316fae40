"""When not-leader-for-queue speaks, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.not_leader_for_queue import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

REMARK = "Orders-3 does not exit in request process of current broker broker-a"
NAMED = exchange(0, int(RequestCode.SEND_MESSAGE_V2), broker_name="broker-a")
"""A send that tells the broker's name."""


def refused(
    at_ms: float, request: RequestCode = RequestCode.SEND_MESSAGE_V2, **values: Any
) -> ExchangeRecord:
    made = {"remark": REMARK, "topic": "Orders", "group": "shop", **values}
    return exchange(at_ms, int(request), int(ResponseCode.NOT_LEADER_FOR_QUEUE), **made)


def test_names_what_was_refused() -> None:
    rows = [NAMED, refused(1), refused(9)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-a refused 2 sends of topic Orders: the queue is at another broker now"
    )
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_other_answers() -> None:
    row = refused(0)
    row.response_code = int(ResponseCode.SYSTEM_ERROR)
    assert not problems(RULE, [row])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "queue-moved-5x.pcap",
            9,
            "broker-a refused 9 sends of topic StaticTopic: the queue is at another broker now",
        ),
    ],
)
def test_recorded_on_a_real_cluster(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == title
    assert one.subject == Subject(broker="broker-a", topic="StaticTopic", group="sample_group")
    assert one.count == count
    assert same_in_any_order(RULE, sample(name).exchanges)
