"""connection-cut: connections are reset in the middle of an answer, and the broker lives."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.network.connection_cut import RULE
from dissectors.grpc.names import OK
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    connection,
    exchange,
    problems,
    problems_of_sample,
    same_in_any_order,
    sample,
)

PROXY = "10.0.0.8:8081"


@pytest.mark.parametrize("name", ["fault-reset-5x.pcap", "fault-reset-4x.pcap"])
def test_reset_connections(name: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        "broker-a (127.77.0.61:10911) closed 3 connections while requests were pending (3"
        " requests in total), then accepted new ones"
    )
    assert (one.count, one.subject) == (3, Subject(broker="broker-a"))


@pytest.mark.parametrize("name", ["fault-kill-5x.pcap", "fault-freeze-5x.pcap", "pull-5x.pcap"])
def test_silent_where_the_broker_was_gone_or_the_client_closed(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-reset-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def call(at_ms: float, name: str, answer: int | None, number: int) -> ExchangeRecord:
    return exchange(
        at_ms,
        0,
        answer,
        request_code=None,
        request_name=name,
        server_address=PROXY,
        conversation=number,
        end="reset" if answer is None else None,
    )


def test_the_connection_of_a_grpc_client_is_cut_and_the_proxy_lives() -> None:
    rows = [
        call(10, "SendMessage", OK, 1),
        call(100, "SendMessage", None, 1),
        call(300, "SendMessage", OK, 2),
    ]
    both = [
        connection(0, 120, 1, server_address=PROXY, end="reset", ended_by="server"),
        connection(200, 900, 2, server_address=PROXY),
    ]
    (one,) = problems(RULE, rows, both)
    assert one.title == (
        f"proxy {PROXY} closed 1 connection while requests were pending (1 request in"
        " total), then accepted new ones"
    )
    assert one.subject == Subject(server=PROXY)
    assert same_in_any_order(RULE, rows, both)


def test_a_telemetry_stream_waits_all_the_time() -> None:
    rows = [call(10, "SendMessage", OK, 1), call(20, "Telemetry", None, 1)]
    both = [
        connection(0, 120, 1, server_address=PROXY, end="fin", ended_by="server"),
        connection(200, 900, 2, server_address=PROXY),
    ]
    assert problems(RULE, rows, both) == []
