"""When call-given-up speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.rules.attempts.call_given_up import RULE
from analytics.diagnosis.rules.network.packets_unacknowledged import (
    RULE as PACKETS_UNACKNOWLEDGED,
)
from dissectors.rows.conversation_facts import Stall, stall_fact
from dissectors.rows.conversation_record import CLIENT as CLIENT_END
from dissectors.rows.record import ExchangeRecord

from ...made_rows import START, connection, exchange, problems, sample
from ...show import SAMPLES, diagnosis_of

PROXY = "10.0.0.7:8081"


def test_a_proxy_that_drops_calls_is_named() -> None:
    rows = sample("grpc-too-many-5x.pcap")
    (one,) = problems(RULE, rows.exchanges, rows.connections, rows.findings)
    unanswered = [row for row in rows.exchanges if row.request_name == "SendMessage"]
    assert one.count == sum(row.status == "unanswered" for row in unanswered) == 16
    assert one.title == (
        "proxy 127.77.0.71:18081 did not respond to 16 sends before the client's deadline"
    )


@pytest.mark.parametrize("name", ["grpc-send-5x", "grpc-consume-53", "grpc-proxy-killed-5x"])
def test_answered_calls_and_long_polls_are_none(name: str) -> None:
    rows = sample(f"{name}.pcap")
    assert problems(RULE, rows.exchanges, rows.connections, rows.findings) == []


def given_up(at_ms: float, conversation: int) -> ExchangeRecord:
    row = exchange(at_ms, 0, None, conversation=conversation, topic="orders")
    row.request_code, row.request_name = None, "SendMessage"
    row.facts = ["stream_reset=CANCEL client"]
    row.server_address = PROXY
    return row


def test_calls_whose_packets_were_lost_follow_from_the_loss() -> None:
    stall = stall_fact(Stall(CLIENT_END, START + 1_200_000_000, START + 7_000_000_000, 5))
    rows = [given_up(at, 0) for at in (1000, 2000, 4000)]
    lossy = connection(0, 9000, 0, server_address=PROXY, facts=[stall])
    engine = Engine([PACKETS_UNACKNOWLEDGED, RULE])
    engine.add_exchanges(rows)
    engine.add_connections([lossy])
    cause, follows = engine.diagnosis().problems
    assert (cause.rule, follows.rule) == ("packets-unacknowledged", "call-given-up")
    assert (follows.incident, follows.consequence_of) == (cause.incident, cause.rule)


def test_calls_of_another_proxy_are_an_incident_of_their_own() -> None:
    stall = stall_fact(Stall(CLIENT_END, START + 1_200_000_000, START + 7_000_000_000, 5))
    engine = Engine([PACKETS_UNACKNOWLEDGED, RULE])
    engine.add_exchanges([given_up(1000, 0)])
    engine.add_connections([connection(0, 9000, 1, server_address="10.0.0.8:8081", facts=[stall])])
    assert [one.consequence_of for one in engine.diagnosis().problems] == [None, None]


@pytest.mark.parametrize(
    ("name", "follows"),
    [
        ("grpc-calls-lost-5x.pcap", RULE.id),
        ("grpc-responses-lost-5x.pcap", "packets-unacknowledged"),  # lost in the end
    ],
)
def test_of_lost_packets_the_network_is_the_cause(name: str, follows: str) -> None:
    found = diagnosis_of([str(SAMPLES / name)]).problems
    assert [(one.rule, one.consequence_of, one.incident) for one in found] == [
        ("packets-unacknowledged", None, 1),
        (RULE.id, "packets-unacknowledged", 1),
        ("ambiguous-outcome", follows, 1),
    ]
    assert "gRPC clients notice a dead connection only by its keepalive" in found[0].details
