"""broker-gone: killed brokers, and what is none."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, Subject
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
REGISTER = int(RequestCode.REGISTER_BROKER)


@pytest.mark.parametrize(
    ("name_of_sample", "count", "title"),
    [
        (
            "fault-kill-5x.pcap",
            1,
            "broker-b (127.77.0.12:10921) was gone from 02:46:11 to 02:46:25 UTC (14.2 s): 1"
            " connection ended by it, 1 request without answer",
        ),
        (
            "fault-kill-4x.pcap",
            2,
            "broker-b (127.77.0.12:10921) was gone from 02:48:25 to 02:48:35 UTC (9.8 s): 1"
            " connection ended by it, 1 connect failed",
        ),
        (
            "outage-5x.pcap",
            260,
            "broker-a (127.77.0.11:10911) was gone from 04:05:05 to 04:05:18 UTC (13.8 s): 1"
            " connection ended by it, 259 connects failed",
        ),
        (
            "fault-proxy-kill-5x.pcap",
            1,
            "broker-a (127.77.0.61:10911) was gone from 02:46:36 to 02:46:49 UTC (13.6 s): 1"
            " connection ended by it, 1 request without answer",
        ),
        (
            "slave-read-5x.pcap",
            4,
            "broker-a (127.77.0.11:10911) was gone from 03:06:50 UTC to the end of the capture: 1"
            " connection ended by it, 2 requests without answer, 1 connect failed",
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
        refused_connect(2000 + i, i + 1, client=f"10.0.0.66:{5000 + i}") for i in range(5)
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
        9000, REGISTER, requester="10.0.0.1:33", responder=NAMESRV, brokers=[f"broker-a={BROKER}"]
    )
    lost = connection(0, 100, end="reset", ended_by="server")
    rows = [*used(), waiting, again]
    assert problems(RULE, rows, [lost]) == []
    rows[-1].rtt_us = 40
    assert [one.count for one in problems(RULE, rows, [lost])] == [1]
