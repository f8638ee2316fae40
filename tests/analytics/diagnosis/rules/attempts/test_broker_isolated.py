"""broker-isolated: what a producer with the strategy avoids."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rules.attempts import isolated_broker_still_used
from analytics.diagnosis.rules.attempts.broker_isolated import RULE

from ...made_rows import problems_of_sample


@pytest.mark.parametrize(
    ("name", "broker", "often"),
    [
        ("fault-slow-5x.pcap", "broker-a", "twice, for up to 2 s"),
        ("fault-kill-5x.pcap", "broker-b", "once, for up to 10 s"),
        ("fault-kill-4x.pcap", "broker-b", "once, for up to 10 min"),
    ],
)
def test_an_isolated_broker(name: str, broker: str, often: str) -> None:
    (one,) = problems_of_sample(isolated_broker_still_used.RULE, name)
    assert (one.rule, one.severity) == (RULE.id, ProblemSeverity.INFO)
    assert one.title == (
        f"producer group sample_group (127.0.0.1@producer) isolated {broker} {often}, and sent"
        " elsewhere; sendLatencyFaultEnable is probably on"
    )


def test_it_takes_nothing_itself() -> None:
    assert problems_of_sample(RULE, "fault-slow-5x.pcap") == []
