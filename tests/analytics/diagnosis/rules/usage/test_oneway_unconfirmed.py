from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rules.usage.oneway_unconfirmed import RULE

from ...made_rows import problems_of_sample, same_in_any_order, sample


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_one_way_sends_are_counted(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"send-oneway-{generation}.pcap")
    assert one.title == (
        "8 messages were sent oneway to OnewayTopic by sample_group: it is unknown whether the"
        " broker stored them"
    )
    assert (one.count, one.severity) == (8, ProblemSeverity.INFO)


def test_both_hops_of_a_relay_are_one_message() -> None:
    (one,) = problems_of_sample(RULE, "proxy-remoting-5x.pcap")
    assert (one.count, one.subject.client) == (4, "127.0.0.1@producer")


def test_other_one_way_requests_are_normal() -> None:
    assert problems_of_sample(RULE, "push-consumer-5x.pcap") == []
    assert problems_of_sample(RULE, "transaction-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, sample("proxy-remoting-5x.pcap").exchanges)
