"""foreign-protocol: HTTP, RDP and others on a broker's port."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.network.foreign_protocol import RULE

from ...made_rows import connection, problems, problems_of_sample, same_in_any_order, sample


@pytest.mark.parametrize("name", ["foreign-5x.pcap", "foreign-4x.pcap"])
def test_six_strangers(name: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        "6 connections to 127.77.0.11:10911 did not speak RocketMQ: an unknown protocol (2),"
        " HAProxy (1), HTTP (1) and 2 more, from 127.0.0.1 (6)"
    )
    assert (one.count, one.subject) == (6, Subject(server="127.77.0.11:10911"))
    assert one.details == [
        "lengths in the server's log (TooLongFrameException): 2147483651 (1), 50331671 (1)"
    ]


@pytest.mark.parametrize("name", ["tls-5x.pcap", "ha-replication-5x.pcap", "midstream-5x.pcap"])
def test_silent_where_tls_or_a_slave_is_spoken(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_a_web_server_is_none_of_ours() -> None:
    assert (
        problems(RULE, [], [connection(0, 9, protocol="HTTP", server_address="10.0.0.7:80")]) == []
    )


def test_a_frame_without_its_rest_may_be_one_of_rocketmq() -> None:
    """The Go client writes 8 bytes, and then the header: a capture may end in between."""

    def found(first: str, sent: int) -> int:
        row = connection(
            0, 9, protocol="unknown", commands=0, client_bytes=sent, facts=[f"first_bytes={first}"]
        )
        return len(problems(RULE, [], [connection(0, 9, 1), row]))

    head = "0000029000000059"
    assert found(head, 8) == 0
    assert found(head + "7b22636f6465223a", 8 + 0x58) == 0
    # whole, too short for its header, another serialization, too long, only the first word
    assert found(head + "0102030405060708", 8 + 0x59) == 1
    assert found("0000005800000059", 8) == 1
    assert found("0000029002000059", 8) == 1
    assert found("7fffffff00000059", 8) == 1
    assert found("00000290", 4) == 1


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("foreign-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)
