"""late-response: an old client that keeps its connection, newer ones that were still waiting."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.attempts.late_response import RULE

from ...made_rows import problems, problems_of_sample, same_in_any_order, sample
from .made_sends import OTHER, send


def test_a_client_of_43() -> None:
    (one,) = problems_of_sample(RULE, "fault-freeze-43.pcap")
    assert one.title == (
        "broker-a responded to 1 send to topic FaultTopic after up to 4.21 s, when the producer had"
        " timed out: stored, but reported as failed"
    )
    assert (one.count, one.confidence) == (1, Confidence.LIKELY)


@pytest.mark.parametrize("name", ["ha-replication-5x.pcap", "fault-slow-5x.pcap"])
def test_silent_where_the_client_waited_longer(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-freeze-43.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def test_an_answer_that_came_after_the_next_attempt_is_late() -> None:
    rows = [
        send(0, 1, latency_ms=900),
        send(500, 1, server_address=OTHER, client_address="10.0.0.9:40001"),
    ]
    (one,) = problems(RULE, rows)
    assert one.details[-1] == "1 message had been retried by then"
