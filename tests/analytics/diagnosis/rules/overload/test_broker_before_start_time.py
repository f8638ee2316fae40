"""When broker-before-start-time speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.broker_before_start_time import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems
from ...refusal_checks import check_made, check_recorded, refusals

REMARK = "broker unable to service, until 2026-11-22 10:00:00,000"
refused = refusals(ResponseCode.SYSTEM_ERROR, REMARK, broker_name="broker-a")


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    check_made(
        RULE,
        rows,
        "broker-a refused 2 sends: it accepts none before 2026-11-22 10:00:00,000 "
        "(the broker's local time)",
    )


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="UNKNOWN_ERROR")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "not-yet-open-4x.pcap",
            6,
            "broker-a refused 6 sends: it accepts none before 2026-11-22 "
            "09:34:07,000 (the broker's local time)",
        ),
        (
            "not-yet-open-5x.pcap",
            6,
            "broker-a refused 6 sends: it accepts none before 2026-11-22 "
            "09:20:06,000 (the broker's local time)",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    check_recorded(
        RULE,
        name,
        title,
        count,
        Subject(broker="broker-a", topic="OpenTopic", group="sample_group"),
    )
