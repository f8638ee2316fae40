"""send-retried: failures that a retry made good."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.attempts.send_retried import RULE

from ...made_rows import problems_of_sample, same_in_any_order, sample


@pytest.mark.parametrize(
    ("name", "count", "start", "broker"),
    [
        ("fault-disk-full-plain-5x.pcap", 16, "16 sends that failed on broker-a were", "broker-a"),
        ("fault-kill-5x.pcap", 1, "1 send that failed on broker-b was", "broker-b"),
        ("fault-reset-4x.pcap", 3, "3 sends that failed on broker-a were", "broker-a"),
    ],
)
def test_retries_that_were_stored(name: str, count: int, start: str, broker: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    other = "broker-a" if broker == "broker-b" else "broker-b"
    assert one.title == f"{start} retried and stored on {other}"
    assert one.count == count
    assert one.subject == Subject(broker=broker, topic="FaultTopic", group="sample_group")


@pytest.mark.parametrize("name", ["fault-unknown-topic-5x.pcap", "fault-slow-5x.pcap"])
def test_silent_where_no_retry_was_stored(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-disk-full-plain-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)
