"""packets-unacknowledged: packets that are lost in one direction or both, and what is none."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity, ProblemState, Subject
from analytics.diagnosis.rules.network.broker_hung import RULE as BROKER_HUNG
from analytics.diagnosis.rules.network.packets_unacknowledged import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_facts import Stall, stall_fact
from dissectors.rows.conversation_record import CLIENT, SERVER
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    BROKER,
    START,
    connection,
    exchange,
    problems,
    problems_of_sample,
    same_in_any_order,
)

SEND = int(RequestCode.SEND_MESSAGE_V2)


def used() -> list[ExchangeRecord]:
    return [exchange(10, SEND, broker_name="broker-a")]


def stalled(sender: str, first_ms: int, last_ms: int, repeats: int = 5) -> str:
    begin, end = START + first_ms * 1_000_000, START + last_ms * 1_000_000
    return stall_fact(Stall(sender, begin, end, repeats))


def test_what_a_client_sends_is_lost() -> None:
    rows = [
        connection(0, 9000, 0, facts=[stalled(CLIENT, 1000, 5000)]),
        connection(0, 9000, 1, facts=[stalled(CLIENT, 1500, 3000, 4)]),
        connection(0, 9000, 2),
    ]
    (one,) = problems(RULE, used(), rows)
    assert one.title.startswith(
        f"broker-a ({BROKER}) did not acknowledge data from clients, on 2 connections, from "
    )
    assert one.title.endswith(" UTC (4 s), and once more: one segment was retransmitted 5 times")
    assert (one.severity, one.count) == (ProblemSeverity.ERROR, 2)
    assert (one.state, one.subject) == (ProblemState.OVER, Subject(broker="broker-a"))
    assert same_in_any_order(RULE, used(), rows)


def test_what_the_broker_sends_is_lost() -> None:
    facts = [stalled(CLIENT, 1200, 4000), stalled(SERVER, 1000, 4000)]
    (one,) = problems(RULE, used(), [connection(0, 9000, facts=facts)])
    assert one.title.startswith(f"clients did not acknowledge data from broker-a ({BROKER}), on ")


def test_what_is_short_is_a_warning_and_what_goes_on_is_not_over() -> None:
    rows = [connection(0, 2000, facts=[stalled(CLIENT, 1000, 2000)])]
    (one,) = problems(RULE, used(), rows)
    assert (one.severity, one.state) == (ProblemSeverity.WARNING, ProblemState.GOING_ON)


@pytest.mark.parametrize(
    "fact",
    [
        *("stall=", "stall=client 1 2", "stall=client -1 2 3", "stall=client 1 2 x", "stal=1"),
        "stall=client 1 2 3",  # not of the time of the connection
        "stall=client 1 999999999999999999 5",
        stalled("nobody", 1000, 5000),
        stalled(CLIENT, 5000, 1000),
        stalled(CLIENT, 5000, 10_000),
    ],
)
def test_a_fact_that_cannot_be_of_the_connection_says_nothing(fact: str) -> None:
    assert problems(RULE, used(), [connection(0, 9000, facts=[fact])]) == []


def test_a_request_that_did_not_arrive_is_no_sign_of_a_broker_that_hangs() -> None:
    waits = [exchange(1000, SEND, latency_ms=5000, broker_name="broker-a")]
    plain, lost = connection(0, 9000), connection(0, 9000, facts=[stalled(CLIENT, 1200, 5000)])
    assert [one.rule for one in problems(BROKER_HUNG, [*used(), *waits], [plain])] == [
        "broker-hung"
    ]
    assert problems(BROKER_HUNG, [*used(), *waits], [lost]) == []


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("lost-to-broker-5x.pcap", "broker-a (127.77.0.11:10911) did not acknowledge data"),
        ("lost-to-broker-4x.pcap", "broker-a (127.77.0.11:10911) did not acknowledge data"),
        (
            "lost-from-broker-5x.pcap",
            "clients did not acknowledge data from broker-a (127.77.0.11:10911)",
        ),
        (
            "lost-from-broker-4x.pcap",
            "clients did not acknowledge data from broker-a (127.77.0.11:10911)",
        ),
    ],
)
def test_recorded(name: str, who: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title.startswith(who)
    assert one.last_time - one.first_time > 3_000_000_000
    assert problems_of_sample(BROKER_HUNG, name) == []


@pytest.mark.parametrize(
    "name", ["fault-freeze-5x.pcap", "fault-freeze-43.pcap", "network-narrow-5x.pcap"]
)
def test_silent_of_brokers_that_hang_and_of_narrow_networks(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def stalled_full(first_ms: int, last_ms: int) -> str:
    begin, end = START + first_ms * 1_000_000, START + last_ms * 1_000_000
    return stall_fact(Stall(CLIENT, begin, end, 4, 1460))


def test_full_segments_only_are_a_path_mtu() -> None:
    short = [exchange(at, SEND, request_bytes=540, broker_name="broker-a") for at in range(5)]
    rows = [
        connection(0, 9000, 0, facts=[stalled_full(1000, 3000)]),
        connection(0, 9000, 1, facts=[stalled_full(4000, 6000)]),
    ]
    (one,) = problems(RULE, short, rows)
    assert one.title.startswith("full segments (1,460 bytes) from clients do not reach broker-a")
    assert one.advice.startswith("Compare the MTU")
    assert one.confidence == "certain"
    assert same_in_any_order(RULE, short, rows)
    (single,) = problems(RULE, short, rows[:1])
    assert single.confidence == "likely"


def test_a_longer_request_that_arrives_is_no_path_mtu() -> None:
    sizes = (540, 540, 540, 9000)
    sent = [
        exchange(at, SEND, request_bytes=size, broker_name="broker-a")
        for at, size in enumerate(sizes)
    ]
    rows = [connection(0, 9000, 0, facts=[stalled_full(1000, 3000)])]
    (one,) = problems(RULE, sent, rows)
    assert "did not acknowledge" in one.title


def test_a_host_that_answers_others_meanwhile_did_not_stall() -> None:
    rows = [connection(0, 9000, facts=[stalled(CLIENT, 1000, 5000)])]
    (one,) = problems(RULE, [*used(), exchange(2000, SEND, conversation=7)], rows)
    assert "its host did not stall" in one.details[-1]
    assert "pauses or migrations of virtual machines" not in one.advice
    (other,) = problems(RULE, used(), rows)
    assert "pauses or migrations of virtual" in other.advice
