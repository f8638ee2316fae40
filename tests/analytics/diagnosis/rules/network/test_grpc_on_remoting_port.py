"""grpc-on-remoting-port: HTTP/2 at a NameServer or broker, plain and in TLS."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.network.grpc_on_remoting_port import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_record import ConversationRecord

from ...made_rows import (
    BROKER,
    NAMESRV,
    connection,
    exchange,
    problems,
    problems_of_sample,
    same_in_any_order,
    sample,
)


def test_recorded_at_a_namesrv_and_a_broker() -> None:
    first, second = problems_of_sample(RULE, "grpc-wrong-port-5x.pcap")
    assert first.title == (
        "gRPC clients connect to 127.77.0.1:9876, a NameServer, which does not speak gRPC: 3"
        " connections from 127.0.0.1 (3)"
    )
    assert first.details == ["protocols: HTTP/2 in TLS (ALPN) (2), HTTP/2 (1)"]
    assert second.subject.broker == "broker-a"
    rows = sample("grpc-wrong-port-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def preface(server: str) -> ConversationRecord:
    return connection(0, 5, protocol="HTTP/2", server_address=server, server_bytes=0, commands=0)


def test_only_at_ports_of_remoting() -> None:
    assert problems(RULE, [], [preface("10.0.0.5:443")]) == []
    assert problems(RULE, [], [preface("10.0.0.5:8081")]) == []
    (one,) = problems(RULE, [], [preface("10.0.0.5:9876")])
    assert one.confidence == "likely"
    route = exchange(0, int(RequestCode.GET_ROUTEINFO_BY_TOPIC), server_address=NAMESRV, topic="T")
    (one,) = problems(RULE, [route], [preface(NAMESRV)])
    assert one.confidence == "certain"
    answered = connection(0, 5, protocol="HTTP/2", server_address=BROKER)
    assert problems(RULE, [], [answered]) == []


@pytest.mark.parametrize("name", ["tls-5x.pcap", "grpc-tls-keys-5x.pcapng", "grpc-send-5x.pcap"])
def test_silent_of_tls_and_of_proxies(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
