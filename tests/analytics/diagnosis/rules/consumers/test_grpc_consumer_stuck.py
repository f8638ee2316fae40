"""grpc-consumer-stuck: settings, and then nothing."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence
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


def moved(at_ms: float, name: str = "ReceiveMessage", key: str = "K1") -> ExchangeRecord:
    row = call(at_ms, name)
    row.unique_key, row.message_count = key, 1
    return row


BEATS = [call(10_000 * number, "Heartbeat") for number in range(1, 9)]
ASKS = [call(20_000 * number, "ReceiveMessage") for number in range(1, 5)]
HOLDING = [settings(), moved(1000), *BEATS, *ASKS]


def test_a_push_consumer_that_finishes_no_message() -> None:
    (one,) = problems_of_sample(RULE, "grpc-fifo-blocked-5x.pcap.gz")
    assert one.title == (
        "push consumer HOST_NAME_NOT_FOUND@441@0@uauvrudgk of group patient_pushers has held"
        " 1 message since 09:23:38 UTC (101 s) without acknowledging it, although it still asks"
        " for messages"
    )
    assert one.confidence is Confidence.LIKELY
    assert one.details[-1] == "the group is FIFO: the messages behind it in its queue wait"
    (one,) = problems(RULE, HOLDING)
    assert "has held 1 message since " in one.title
    assert (one.details, one.confidence) == (["received last: K1"], Confidence.POSSIBLE)
    assert same_in_any_order(RULE, HOLDING)


@pytest.mark.parametrize(
    "name", ["AckMessage", "ChangeInvisibleDuration", "ForwardMessageToDeadLetterQueue"]
)
def test_messages_that_were_finished_or_are_new(name: str) -> None:
    assert problems(RULE, [*HOLDING, moved(70_000, name)]) == []
    assert problems(RULE, [row for row in HOLDING if row.unique_key is None]) == []
    late = [settings(), moved(500), moved(900, name), moved(30_000, key="K2"), *BEATS, *ASKS]
    assert problems(RULE, late) == [], "it is idle most of the time"
    (one,) = problems(RULE, [*HOLDING, moved(900, key="K2"), moved(9000, name, key="K2")])
    assert "has held 1 message since " in one.title
    assert one.first_time - HOLDING[0].request_time > 8_000_000_000  # type: ignore[operator]


def test_a_simple_consumer_may_hold_messages() -> None:
    rows = [call(1, "Heartbeat", client_type="SIMPLE_CONSUMER"), *HOLDING[1:]]
    assert problems(RULE, rows) == []


def test_many_responses_are_bounded() -> None:
    rows = [moved(1000 + number, key=f"K{number}") for number in range(40)]
    (one,) = problems(RULE, [*HOLDING, *rows])
    assert "has held 41 messages since " in one.title
    assert one.details == ["received last: K35, K36, K37, K38, K39"]
    assert same_in_any_order(RULE, [*HOLDING, *rows])


@pytest.mark.parametrize("name", ["grpc-consume-53.pcap", "grpc-python-5x.pcap"])
def test_silent_of_consumers_that_run(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
