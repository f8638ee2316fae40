"""When thread-pool-overload speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.thread_pool_overload import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems
from ...refusal_checks import check_made, check_recorded, refusals

REMARK = "[OVERLOAD]system busy, start flow control for a while"
refused = refusals(ResponseCode.SYSTEM_BUSY, REMARK, broker_name="broker-a")


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    check_made(RULE, rows, "broker-a refused 2 sends: the queue of its threads was full")


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="[REJECTREQUEST]system busy")])


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
    check_recorded(
        RULE,
        name,
        title,
        count,
        Subject(broker="broker-a", topic="OverloadTopic", group="sample_group"),
    )
