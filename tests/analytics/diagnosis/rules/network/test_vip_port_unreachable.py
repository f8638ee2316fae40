"""vip-port-unreachable: the port two below is closed, the broker lives."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.network import broker_gone
from analytics.diagnosis.rules.network.vip_port_unreachable import RULE

from ...made_rows import problems_of_sample, same_in_any_order, sample


@pytest.mark.parametrize(("name", "count"), [("vip-closed-5x.pcap", 3), ("vip-closed-4x.pcap", 2)])
def test_a_closed_port(name: str, count: int) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        "port 10909 of broker-a cannot be reached, while its port 10911 works: clients with"
        " vipChannelEnabled send there"
    )
    assert (one.count, one.subject) == (count, Subject(broker="broker-a"))
    assert problems_of_sample(broker_gone.RULE, name) == []


@pytest.mark.parametrize("name", ["slave-read-4x.pcap", "outage-5x.pcap", "send-vip-5x.pcap"])
def test_silent_where_the_broker_is_gone_or_the_port_works(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("vip-closed-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)
