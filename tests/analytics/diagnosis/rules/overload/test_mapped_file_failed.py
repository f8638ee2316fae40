"""When mapped-file-failed speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.mapped_file_failed import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems
from ...refusal_checks import check_made, check_recorded, refusals

REMARK = "create mapped file failed, server is busy or broken."
refused = refusals(ResponseCode.SYSTEM_ERROR, REMARK, broker_name="broker-a")


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    check_made(
        RULE, rows, "broker-a refused 2 sends: it cannot make the next file of its commit log"
    )


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="UNKNOWN_ERROR")])


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
    check_recorded(
        RULE,
        name,
        title,
        count,
        Subject(broker="broker-a", topic="FileTopic", group="sample_group"),
    )
