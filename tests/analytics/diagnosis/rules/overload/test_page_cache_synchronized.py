"""When page-cache-synchronized speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.page_cache_synchronized import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems
from ...refusal_checks import check_made, check_recorded, refusals

REMARK = "[PC_SYNCHRONIZED]broker busy, start flow control for a while"
refused = refusals(ResponseCode.SYSTEM_ERROR, REMARK, broker_name="broker-a")


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    check_made(
        RULE, rows, "broker-a refused 2 sends: another write held its commit log for too long"
    )


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="[PCBUSY_CLEAN_QUEUE]broker busy")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "busy-page-cache-4x.pcap",
            1,
            "broker-a refused 1 send: another write held its commit log for too long",
        ),
        (
            "busy-page-cache-5x.pcap",
            1,
            "broker-a refused 1 send: another write held its commit log for too long",
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
