"""broker-gone: killed brokers, and what is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from analytics.diagnosis.context import Context
from analytics.diagnosis.outages import ServerLosses
from analytics.diagnosis.problem import Confidence, ProblemSeverity, ProblemState, Subject
from analytics.diagnosis.rules.network.broker_gone import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    BROKER,
    NAMESRV,
    connection,
    exchange,
    problems,
    problems_of_sample,
    refused_connect,
    same_in_any_order,
    sample,
)

SEND = int(RequestCode.SEND_MESSAGE_V2)
PULL = int(RequestCode.PULL_MESSAGE)
ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
REGISTER = int(RequestCode.REGISTER_BROKER)
UNREGISTER = int(RequestCode.UNREGISTER_BROKER)
SECOND_PORT = BROKER.replace("10911", "10909")


@pytest.mark.parametrize(
    ("name_of_sample", "count", "title"),
    [
        (
            "fault-kill-5x.pcap",
            1,
            "broker-b (127.77.0.12:10921) was gone from 02:46:11 to 02:46:25 UTC (14.2 s): it"
            " closed 1 connection; 1 unanswered request",
        ),
        (
            "fault-kill-4x.pcap",
            2,
            "broker-b (127.77.0.12:10921) was gone from 02:48:25 to 02:48:35 UTC (9.79 s): it"
            " closed 1 connection; 1 failed connection attempt",
        ),
        (
            "outage-5x.pcap",
            260,
            "broker-a (127.77.0.11:10911) was gone from 04:05:05 to 04:05:18 UTC (13.8 s): it"
            " closed 1 connection; 259 failed connection attempts",
        ),
        (
            "fault-proxy-kill-5x.pcap",
            1,
            "broker-a (127.77.0.61:10911) was gone from 02:46:36 to 02:46:49 UTC (13.6 s): it"
            " closed 1 connection; 1 unanswered request",
        ),
        (
            "slave-read-5x.pcap",
            4,
            "broker-a (127.77.0.11:10911) was gone from 03:06:50 UTC to the end of the capture: it"
            " closed 2 connections; 2 unanswered requests, 2 failed connection attempts",
        ),
    ],
)
def test_killed_brokers(name_of_sample: str, count: int, title: str) -> None:
    (one,) = problems_of_sample(RULE, name_of_sample)
    assert (one.title, one.count, one.confidence) == (title, count, Confidence.CERTAIN)
    name, address = title.split(" ")[:2]
    several = address[1:-1] if name.startswith("broker-a") and "slave" in name_of_sample else None
    assert one.subject == Subject(broker=name, server=several)
    assert one.evidence


@pytest.mark.parametrize(
    "name",
    ["fault-reset-5x.pcap", "fault-freeze-5x.pcap", "registration-5x.pcap", "send-sync-5x.pcap"],
)
def test_silent_where_no_broker_was_gone(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-kill-beside-4x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def used() -> list[ExchangeRecord]:
    return [exchange(10, SEND, broker_name="broker-a", topic="T")]


def test_refused_connects_of_hosts_that_never_used_it_are_somebody_elses() -> None:
    strangers: list[ConversationRecord] = [
        refused_connect(2000 + i, i + 1, client_address=f"10.0.0.66:{5000 + i}") for i in range(5)
    ]
    assert problems(RULE, used(), [connection(0, 1000), *strangers]) == []


def test_refused_connects_of_a_client() -> None:
    refused = [refused_connect(2000 + i, i + 1) for i in range(3)]
    (one,) = problems(RULE, used(), [connection(0, 1000), *refused])
    assert one.title.startswith(f"broker-a ({BROKER}) was gone from ")
    assert one.count == 3
    assert "to the end of the capture" in one.title


def test_an_idle_connection_that_is_closed_says_nothing() -> None:
    idle = connection(0, 121_000, end="fin", ended_by="server", facts=["idle_ms=120010"])
    assert problems(RULE, used(), [idle, connection(130_000, 10, 1)]) == []


def test_a_registration_on_a_connection_that_was_there_before_proves_no_restart() -> None:
    waiting = exchange(50, SEND, None, end="reset", broker_name="broker-a")
    again = exchange(
        9000,
        REGISTER,
        client_address="10.0.0.1:33",
        server_address=NAMESRV,
        brokers=[f"broker-a={BROKER}"],
    )
    lost = connection(0, 100, end="reset", ended_by="server")
    rows = [*used(), waiting, again]
    assert problems(RULE, rows, [lost]) == []
    rows[-1].rtt_us = 40
    assert [one.count for one in problems(RULE, rows, [lost])] == [1]


def on_second_port(at_ms: float, number: int, **values: Any) -> ConversationRecord:
    return connection(at_ms, 100, number, server_address=SECOND_PORT, **values)


def test_both_ports_of_a_broker_are_one_server() -> None:
    """Once the port with more failures alone was told of, which nobody used when it was back."""
    refused = [refused_connect(2000 + i, i + 2, server_address=SECOND_PORT) for i in range(5)]
    lost = [on_second_port(0, 1), connection(0, 1500, ended_by="server")]
    back = connection(9000, 10, 9)
    (one,) = problems(RULE, [*used(), route()], [*lost, *refused, back])
    assert one.title.startswith(f"broker-a ({BROKER}) was gone from ")
    assert one.title.endswith("(7.5 s): it closed 1 connection; 5 failed connection attempts")
    assert one.subject == Subject(broker="broker-a")


def test_a_port_that_never_served_does_not_say_that_the_broker_is_gone() -> None:
    refused = [refused_connect(2000 + i, i + 2, server_address=SECOND_PORT) for i in range(5)]
    assert problems(RULE, [*used(), route()], [connection(0, 1500), *refused]) == []


@pytest.mark.parametrize(
    ("waiting", "back", "severity"),
    [
        (PULL, True, ProblemSeverity.INFO),
        (SEND, True, ProblemSeverity.WARNING),
        (PULL, False, ProblemSeverity.WARNING),
    ],
)
def test_a_broker_that_leaves_the_routes_is_shut_down(
    waiting: int, back: bool, severity: ProblemSeverity
) -> None:
    bye = exchange(1990, UNREGISTER, client_address="10.0.0.1:33", server_address=NAMESRV)
    bye.broker_name = "broker-a"
    request = exchange(1500, waiting, None, end="closed", broker_name="broker-a")
    rows = [connection(0, 2000, ended_by="server"), refused_connect(3000, 1)]
    if back:
        rows.append(connection(9000, 10, 9))
    (one,) = problems(RULE, [*used(), route(), request, bye], rows)
    assert one.title.startswith(f"broker-a ({BROKER}) was shut down from ")
    assert one.severity is severity
    assert any(said.startswith("it removed itself from the routes at ") for said in one.details)


def route() -> ExchangeRecord:
    return exchange(1, ROUTE, server_address=NAMESRV, brokers=[f"broker-a={BROKER}"], topic="T")


def test_a_proxy_that_is_killed_is_named_as_one() -> None:
    rows = sample("grpc-proxy-killed-5x.pcap")
    (one,) = problems(RULE, rows.exchanges, rows.connections, rows.findings)
    assert one.title == (
        "proxy 127.77.0.71:18081 was gone from 02:45:38 UTC to the end of the capture: it closed 1"
        " connection; 3 failed connection attempts"
    )
    assert one.subject == Subject(server="127.77.0.71:18081")
    assert "setEndpoints" in one.advice


@pytest.mark.parametrize("name", ["grpc-send-5x", "grpc-consume-53", "grpc-local-53"])
def test_clients_of_a_proxy_that_end_are_nothing(name: str) -> None:
    rows = sample(f"{name}.pcap")
    assert problems(RULE, rows.exchanges, rows.connections, rows.findings) == []


def test_a_broker_that_was_not_there_before_may_be_starting() -> None:
    """And one that is killed after it came is told apart from that."""
    rows = [
        exchange(4000, ROUTE, server_address=NAMESRV, topic="T", brokers=[f"broker-a={BROKER}"]),
        exchange(4100, SEND, conversation=3),
    ]
    starting = [refused_connect(at, at, server_address=BROKER) for at in (1000, 2000)]
    used = connection(4000, 4000, 3)
    (one,) = problems(RULE, rows, [*starting, used])
    assert one.title == (
        f"broker-a ({BROKER}) was not there from 11:06:41 to 11:06:44 UTC (3 s): 2 failed"
        " connection attempts"
    )
    assert (one.severity, one.leads_within) == (ProblemSeverity.WARNING, 0)
    assert one.details[0] == "nothing was seen of it before: it may have been starting"
    again = [refused_connect(at, at, server_address=BROKER) for at in (9000, 9500)]
    first, later = sorted(
        problems(RULE, rows, [*starting, used, *again]), key=lambda one: one.first_time
    )
    assert (first.title, first.details) == (one.title, one.details)
    assert " was gone from 11:06:49 UTC to the end of the capture" in later.title
    before = connection(0, 500, 2)
    (one,) = problems(RULE, rows, [before, *starting, used])
    assert " was gone from " in one.title
    assert one.severity is ProblemSeverity.ERROR


def test_in_a_capture_with_holes_it_may_have_been_there_earlier() -> None:
    rows = [
        exchange(4000, ROUTE, server_address=NAMESRV, topic="T", brokers=[f"broker-a={BROKER}"]),
        exchange(4100, SEND, conversation=3),
    ]
    starting = [refused_connect(at, at, server_address=BROKER) for at in (1000, 2000)]
    (one,) = problems(RULE, rows, [*starting, connection(4000, 4000, 3, gaps=1)])
    assert one.confidence is Confidence.LIKELY
    assert one.reason == "it may have been back earlier: the capture is incomplete"


NEW = "10.0.0.7:10911"


def seen_at(at_ms: float, address: str, *slaves: str) -> ExchangeRecord:
    """Return a route with the address of broker-a's master, and those of its slaves."""
    return exchange(
        at_ms, ROUTE, 0, server_address=NAMESRV, topic="T",
        brokers=[f"broker-a={one}" for one in (address, *slaves)],
        facts=[f"slave=1 {one}" for one in slaves],
    )  # fmt: skip


def test_a_broker_that_comes_back_at_another_address() -> None:
    refused = [refused_connect(2000 + i, i + 1) for i in range(3)]
    connections = [connection(0, 1000), *refused, refused_connect(22_000, 9)]
    rows = [*used(), seen_at(0, BROKER), seen_at(19_000, NEW), seen_at(30_000, NEW)]
    (one,) = problems(RULE, rows, connections)
    assert one.title.endswith(
        f" UTC (17 s), then came back at {NEW} (4 connection attempts failed)"
    ), one.title
    assert one.state is ProblemState.OVER
    assert one.advice.startswith("Find out why the broker moved")
    assert f"it came back at {NEW}, 17 s later" in one.details
    assert any(text.startswith("clients tried the old address until ") for text in one.details)
    assert same_in_any_order(RULE, rows, connections)


def test_a_slave_that_takes_over_is_no_return() -> None:
    refused = [refused_connect(2000 + i, i + 1) for i in range(3)]
    rows = [*used(), seen_at(0, BROKER, NEW), seen_at(19_000, NEW)]
    (one,) = problems(RULE, rows, [connection(0, 1000), *refused])
    assert "came back" not in one.title
    assert one.state is ProblemState.GOING_ON


class _Counting(list[tuple[int, int, str]]):
    """Connections that count how often all of them are looked at."""

    looks = 0

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        _Counting.looks += 1
        return super().__iter__()


def test_many_failed_connects_do_not_look_at_each_connection() -> None:
    losses = ServerLosses(BROKER)
    losses._alive = _Counting()
    for number in range(100):
        losses.add_connection(connection(10 * number, 5, 2 * number))
        losses.add_connection(refused_connect(10 * number + 7, 2 * number + 1))
    assert len(losses.outages(Context())) == 100
    assert _Counting.looks <= 10
