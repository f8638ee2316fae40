"""connection-cut: connections are reset in the middle of an answer, and the broker lives."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.network.connection_cut import RULE

from ...made_rows import problems_of_sample, same_in_any_order, sample


@pytest.mark.parametrize("name", ["fault-reset-5x.pcap", "fault-reset-4x.pcap"])
def test_reset_connections(name: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        "broker-a (127.77.0.61:10911) ended connections 3 times while requests waited on them (3"
        " in all), and took new ones afterwards"
    )
    assert (one.count, one.subject) == (3, Subject(broker="broker-a"))


@pytest.mark.parametrize("name", ["fault-kill-5x.pcap", "fault-freeze-5x.pcap", "pull-5x.pcap"])
def test_silent_where_the_broker_was_gone_or_the_client_closed(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-reset-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)
