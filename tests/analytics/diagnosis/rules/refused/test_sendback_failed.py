"""When sendback-failed speaks, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.sendback_failed import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

REMARK = "look message by offset failed, 12345"
NAMED = exchange(0, int(RequestCode.SEND_MESSAGE_V2), broker_name="broker-a")
"""A send that tells the broker's name."""


def refused(
    at_ms: float, request: RequestCode = RequestCode.CONSUMER_SEND_MSG_BACK, **values: Any
) -> ExchangeRecord:
    made = {"remark": REMARK, "topic": "Orders", "group": "shop", **values}
    return exchange(at_ms, int(request), int(ResponseCode.SYSTEM_ERROR), **made)


def test_names_what_was_refused() -> None:
    rows = [NAMED, refused(1), refused(9)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-a did not take 2 messages that group shop sent back: look message by offset failed"
    )
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="no master available along with 10.0.0.1")])


def test_messages_that_were_taken_back() -> None:
    assert not problems_of_sample(RULE, "push-retry-dlq-5x.pcap")


def test_access_control_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="AclException: No acl config for eve, org.x")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "return-failed-4x.pcap",
            2,
            "broker-a did not take 2 messages that group back_group sent back: look "
            "message by offset failed",
        ),
        (
            "return-failed-5x.pcap",
            2,
            "broker-a did not take 2 messages that group back_group sent back: look "
            "message by offset failed",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == title
    assert one.subject == Subject(broker="broker-a", topic="BackTopic", group="back_group")
    assert one.count == count
    assert same_in_any_order(RULE, sample(name).exchanges)
