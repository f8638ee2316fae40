"""ambiguous-outcome: messages of which nobody knows how often they are stored."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.attempts.ambiguous_outcome import RULE

from ...made_rows import problems_of_sample, same_in_any_order, sample


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "fault-freeze-plain-5x.pcap",
            6,
            "up to 6 messages to topic FaultTopic may be stored twice: one attempt got no response,"
            " another one was stored",
        ),
        (
            "fault-freeze-5x.pcap",
            1,
            "1 message to topic FaultTopic failed for the producer and may have been stored anyway",
        ),
        (
            "fault-kill-5x.pcap",
            1,
            "1 message to topic FaultTopic may be stored twice: one attempt got no response,"
            " another one was stored",
        ),
    ],
)
def test_messages_without_answer(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert (one.title, one.count) == (title, count)


@pytest.mark.parametrize(
    "name", ["fault-disk-full-5x.pcap", "one-direction-5x.pcap", "cut-short-5x.pcap"]
)
def test_silent_where_brokers_answered_or_the_capture_is_not_whole(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-freeze-plain-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)
