"""When broker-rejects-request speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.broker_rejects_request import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems
from ...refusal_checks import check_made, check_recorded, refusals

REMARK = "[REJECTREQUEST]system busy, start flow control for a while"
refused = refusals(ResponseCode.SYSTEM_BUSY, REMARK, broker_name="broker-a")


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    check_made(RULE, rows, "broker-a refused 2 sends at once: it takes none at the moment")


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="[OVERLOAD]system busy")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "busy-page-cache-4x.pcap",
            2,
            "broker-a refused 2 sends at once: it takes none at the moment",
        ),
        (
            "busy-page-cache-5x.pcap",
            6,
            "broker-a refused 6 sends at once: it takes none at the moment",
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
