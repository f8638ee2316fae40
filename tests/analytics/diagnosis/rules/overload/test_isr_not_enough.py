"""When isr-not-enough speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.isr_not_enough import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems
from ...refusal_checks import check_made, check_recorded, refusals

REMARK = "in-sync replicas not enough"
refused = refusals(ResponseCode.SYSTEM_ERROR, REMARK, broker_name="broker-a")


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    check_made(RULE, rows, "broker-a refused 2 sends: too few replicas are in sync with it")


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="store putMessage return null")])


def test_says_that_tries_were_in_vain() -> None:
    rows = [refused(at) for at in (0, 9, 18)]
    for row in rows:
        row.unique_key = "A"
    (one,) = problems(RULE, rows)
    assert "1 message tried up to 3 times, always refused" in one.details


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "replicas-missing-5x.pcap",
            6,
            "broker-a refused 6 sends: too few replicas are in sync with it",
        ),
    ],
)
def test_recorded_on_a_real_cluster(name: str, count: int, title: str) -> None:
    check_recorded(
        RULE,
        name,
        title,
        count,
        Subject(broker="broker-a", topic="ReplicaTopic", group="sample_group"),
    )
