"""capture-quality: holes, one direction, cut packets; whole captures with one-way requests."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.network.capture_quality import RULE

from ...made_rows import connection, problems, problems_of_sample, same_in_any_order, sample


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        ("removed-5x.pcap", 4, "bytes are missing in 4 connections"),
        ("one-direction-5x.pcap", 3, "one direction of 3 connections was not captured"),
        (
            "snaplen-5x.pcap",
            4,
            "bytes are missing in 4 connections; packets were cut or lost",
        ),
    ],
)
def test_captures_that_are_not_whole(name: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == f"the capture is incomplete: {title}"
    assert (one.count, one.severity, one.subject) == (count, ProblemSeverity.INFO, Subject())


@pytest.mark.parametrize(
    "name",
    [
        "send-sync-4x.pcap",  # a broker registers one-way
        "send-oneway-5x.pcap",
        "midstream-5x.pcap",
        "fault-kill-5x.pcap",
    ],
)
def test_silent_of_whole_captures(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_packets_captured_twice() -> None:
    twice = connection(0, 9, client_packets=50, server_packets=50, client_retransmissions=50)
    (one,) = problems(RULE, [], [twice])
    assert one.title == "the capture is incomplete: packets were captured twice"


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("removed-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)
