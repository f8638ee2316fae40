"""isolated-broker-still-used: clients with the strategy off, on, and too little to tell."""

from __future__ import annotations

import pytest

from analytics.diagnosis import producers
from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.attempts.isolated_broker_still_used import RULE, STILL_USED

from ...made_rows import problems_of_sample, same_in_any_order, sample


@pytest.mark.parametrize(
    ("name", "count", "of"),
    [
        ("fault-freeze-plain-5x.pcap", 25, 50),
        ("fault-disk-full-plain-5x.pcap", 31, 63),
        ("fault-reset-5x.pcap", 24, 48),
    ],
)
def test_clients_without_the_strategy(name: str, count: int, of: int) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.rule == STILL_USED
    assert one.title == (
        f"the fault strategy of producer group sample_group (127.0.0.1@producer) is off: {count} of"
        f" {of} sends went to broker-a after it had failed or been slow;"
        " sendLatencyFaultEnable=true would have avoided it"
    )
    assert one.count == count
    assert one.evidence
    assert one.subject == Subject("broker-a", group="sample_group", client="127.0.0.1@producer")


@pytest.mark.parametrize(
    "name",
    [
        "fault-freeze-5x.pcap",  # on
        "fault-slow-5x.pcap",  # on
        "ha-replication-5x.pcap",  # a single send
        "fault-unknown-topic-5x.pcap",  # what was refused is not a fault of the broker
        "send-sync-5x.pcap",
    ],
)
def test_silent_where_it_is_on_or_nothing_tells(name: str) -> None:
    assert [one.rule for one in problems_of_sample(RULE, name) if one.rule == STILL_USED] == []


def test_silent_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "find_spec", lambda _: None)
    assert problems_of_sample(RULE, "fault-freeze-plain-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-freeze-plain-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)
