"""When broker-before-start-time speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.broker_before_start_time import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

REMARK = "broker unable to service, until 2026-11-22 10:00:00,000"


def refused(at_ms: float, remark: str = REMARK) -> ExchangeRecord:
    return exchange(
        at_ms,
        int(RequestCode.SEND_MESSAGE_V2),
        int(ResponseCode.SYSTEM_ERROR),
        remark=remark,
        topic="Orders",
        group="shop",
        broker_name="broker-a",
    )


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-a refused 2 sends: it is set to take none before 2026-11-22 10:00:00,000 "
        "(the broker's local time)"
    )
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, "UNKNOWN_ERROR")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "not-yet-open-4x.pcap",
            6,
            "broker-a refused 6 sends: it is set to take none before 2026-11-22 "
            "09:34:07,000 (the broker's local time)",
        ),
        (
            "not-yet-open-5x.pcap",
            6,
            "broker-a refused 6 sends: it is set to take none before 2026-11-22 "
            "09:20:06,000 (the broker's local time)",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == title
    assert one.subject == Subject(broker="broker-a", topic="OpenTopic", group="sample_group")
    assert one.count == count
    assert same_in_any_order(RULE, sample(name).exchanges)
