"""When page-cache-busy speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.page_cache_busy import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

REMARK = (
    "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period in "
    "queue: 3ms, size of queue: 4"
)


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
    assert one.title == "broker-a refused 2 sends: a write to its page cache took too long"
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, "[TIMEOUT_CLEAN_QUEUE]broker busy")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "busy-page-cache-4x.pcap",
            5,
            "broker-a refused 5 sends: a write to its page cache took too long",
        ),
        (
            "busy-page-cache-5x.pcap",
            5,
            "broker-a refused 5 sends: a write to its page cache took too long",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == title
    assert one.subject == Subject(broker="broker-a", topic="CacheTopic", group="sample_group")
    assert one.count == count
    assert same_in_any_order(RULE, sample(name).exchanges)
