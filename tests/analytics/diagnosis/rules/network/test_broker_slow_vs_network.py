"""broker-slow-vs-network: lost segments, windows of zero, packets captured twice."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.network.broker_slow_vs_network import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_facts import Late, late_fact
from dissectors.rows.conversation_record import CLIENT
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    BROKER,
    connection,
    exchange,
    problems,
    problems_of_sample,
    same_in_any_order,
)


def used() -> list[ExchangeRecord]:
    return [exchange(10, int(RequestCode.SEND_MESSAGE_V2), broker_name="broker-a")]


def test_a_network_that_loses_packets() -> None:
    rows = [
        connection(0, 9000, number, client_packets=500, server_packets=500, **lost)
        for number, lost in enumerate(
            ({"client_retransmissions": 12}, {"server_retransmissions": 18}, {})
        )
    ]
    (one,) = problems(RULE, used(), rows)
    assert one.title == (
        f"the network between clients and broker-a ({BROKER}) loses packets: 30 of 3,000 segments"
        " (1.0%) were retransmitted"
    )
    assert (one.count, one.subject) == (30, Subject(broker="broker-a"))
    assert same_in_any_order(RULE, used(), rows)


def test_ends_that_do_not_read() -> None:
    (one,) = problems(RULE, used(), [connection(0, 9, server_zero_windows=5)])
    assert "does not read from its connections: its window was 0 in 5 packets" in one.title
    (one,) = problems(RULE, used(), [connection(0, 9, client_zero_windows=5)])
    assert one.title == (
        f"clients of broker-a ({BROKER}) do not read from their connections: their windows were 0"
        " in 5 packets, 10.0.0.9 (5)"
    )


def test_packets_that_were_captured_twice_are_not_the_networks() -> None:
    twice = connection(0, 9, client_packets=100, server_packets=100, client_retransmissions=90)
    assert problems(RULE, used(), [twice]) == []


@pytest.mark.parametrize("name", ["fault-slow-5x.pcap", "go-client-5x.pcap", "big-bodies-5x.pcap"])
def test_silent_of_a_good_network(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


@pytest.mark.parametrize("version", ["4x", "5x"])
def test_a_narrow_link_is_seen_by_late_acknowledgements(version: str) -> None:
    (one,) = problems_of_sample(RULE, f"network-narrow-{version}.pcap")
    assert one.title.startswith(
        "the network between clients and broker-a (127.77.0.11:10911) is slow: "
    )
    assert one.advice.startswith("Find the bottleneck")


def late(count: int, most_ms: int) -> list[str]:
    return [late_fact(Late(CLIENT, count, most_ms * 1_000_000))]


def test_segments_that_arrive_late_though_the_handshake_was_quick() -> None:
    rows = [connection(0, 9000, 0, facts=late(4, 300)), connection(0, 9000, 1)]
    (one,) = problems(RULE, used(), rows)
    assert one.title == (
        f"the network between clients and broker-a ({BROKER}) is slow: 4 segments took long to"
        " arrive, the slowest at least 300 ms; the round trip was 100 µs at first"
    )
    assert same_in_any_order(RULE, used(), rows)


def test_a_far_network_and_a_paused_host_are_no_narrow_link() -> None:
    far = connection(0, 9000, 0, facts=late(40, 300), rtt_us=200_000)
    assert problems(RULE, used(), [far]) == []
    paused = [connection(0, 9000, number, facts=late(2, 9000)) for number in range(5)]
    assert problems(RULE, used(), paused) == []
