"""grpc-consumer-stuck: settings, and then nothing."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.consumers.grpc_consumer_stuck import RULE
from dissectors.grpc.names import OK
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...made_rows import connection, exchange, problems, problems_of_sample, same_in_any_order


def call(at_ms: float, name: str, **values: str) -> ExchangeRecord:
    facts = [f"{key}={value}" for key, value in {"client": "c1", **values}.items()]
    row = exchange(at_ms, 0, OK, group="push_cg", topic="T", facts=facts)
    row.request_code, row.request_name = None, name
    return row


def settings(kind: str = "PUSH_CONSUMER") -> ExchangeRecord:
    return call(10, "Telemetry", client_type=kind)


def open_for(lasted_ms: float) -> list[ConversationRecord]:
    return [connection(0, lasted_ms, protocol="gRPC")]


def test_a_push_consumer_that_asks_for_nothing() -> None:
    (one,) = problems(RULE, [settings()], open_for(20_000))
    assert one.title.startswith("push consumer c1 of group push_cg registered its settings at ")
    assert one.title.endswith(" since (20 s): it is stuck at startup")
    assert same_in_any_order(RULE, [settings()], open_for(20_000))


def test_settings_without_a_response() -> None:
    row = settings()
    row.status, row.response_code, row.response_name = "unanswered", None, None
    row.response_packet = row.response_time = row.latency_us = None
    (one,) = problems(RULE, [row], open_for(3000))
    assert one.title.endswith(" UTC and got no settings from the proxy (2.99 s): it cannot start")
    assert same_in_any_order(RULE, [row], open_for(3000))


def test_one_that_asks_leaves_or_was_not_seen_for_long() -> None:
    for name in ("Heartbeat", "QueryAssignment", "ReceiveMessage", "NotifyClientTermination"):
        assert problems(RULE, [settings(), call(500, name)], open_for(60_000)) == []
    assert problems(RULE, [settings()], open_for(9_000)) == []
    assert problems(RULE, [settings()]) == [], "nobody knows how long its connection was open"
    assert problems(RULE, [settings("PRODUCER")], open_for(60_000)) == []


@pytest.mark.parametrize("name", ["grpc-consume-53.pcap", "grpc-python-5x.pcap"])
def test_silent_of_consumers_that_run(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
