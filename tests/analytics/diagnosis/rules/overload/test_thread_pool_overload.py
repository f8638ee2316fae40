"""When thread-pool-overload speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.thread_pool_overload import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

REMARK = "[OVERLOAD]system busy, start flow control for a while"


def refused(at_ms: float, remark: str = REMARK) -> ExchangeRecord:
    return exchange(
        at_ms,
        int(RequestCode.SEND_MESSAGE_V2),
        int(ResponseCode.SYSTEM_BUSY),
        remark=remark,
        topic="Orders",
        group="shop",
        broker_name="broker-a",
    )


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    (one,) = problems(RULE, rows)
    assert one.title == "broker-a refused 2 sends: the queue of its threads was full"
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, "[REJECTREQUEST]system busy")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "busy-overload-4x.pcap",
            5,
            "broker-a refused 5 sends: the queue of its threads was full",
        ),
        (
            "busy-overload-5x.pcap",
            5,
            "broker-a refused 5 sends: the queue of its threads was full",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == title
    assert one.subject == Subject(broker="broker-a", topic="OverloadTopic", group="sample_group")
    assert one.count == count
    assert same_in_any_order(RULE, sample(name).exchanges)
