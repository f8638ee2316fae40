"""When mapped-file-failed speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.mapped_file_failed import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

REMARK = "create mapped file failed, server is busy or broken."


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
    assert one.title == "broker-a refused 2 sends: it cannot make the next file of its commit log"
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, "UNKNOWN_ERROR")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "file-not-made-4x.pcap",
            9,
            "broker-a refused 9 sends: it cannot make the next file of its commit log",
        ),
        (
            "file-not-made-5x.pcap",
            9,
            "broker-a refused 9 sends: it cannot make the next file of its commit log",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == title
    assert one.subject == Subject(broker="broker-a", topic="FileTopic", group="sample_group")
    assert one.count == count
    assert same_in_any_order(RULE, sample(name).exchanges)
