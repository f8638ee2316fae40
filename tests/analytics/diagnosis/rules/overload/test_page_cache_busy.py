"""When page-cache-busy speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.page_cache_busy import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems
from ...refusal_checks import check_made, check_recorded, refusals

REMARK = (
    "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period in "
    "queue: 3ms, size of queue: 4"
)
refused = refusals(ResponseCode.SYSTEM_BUSY, REMARK, broker_name="broker-a")


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    check_made(RULE, rows, "broker-a refused 2 sends: a write to its page cache took too long")


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="[TIMEOUT_CLEAN_QUEUE]broker busy")])


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
    check_recorded(
        RULE,
        name,
        title,
        count,
        Subject(broker="broker-a", topic="CacheTopic", group="sample_group"),
    )
