from __future__ import annotations

from analytics.diagnosis.rules.consumers.group_not_fifo import RULE
from dissectors.grpc.names import OK
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order


def call(at_ms: float, name: str, *facts: str) -> ExchangeRecord:
    row = exchange(at_ms, 0, OK, group="push_cg", topic="T", unique_key="K", facts=list(facts))
    row.request_code, row.request_name = None, name
    return row


def settings(at_ms: float, fifo: str) -> ExchangeRecord:
    kind = "client_type=PUSH_CONSUMER"
    return call(at_ms, "Telemetry", kind, "fifo=false", kind, f"fifo={fifo}")


RECEIVED = call(20, "ReceiveMessage", "message_group=order-1")


def test_two_consumers_of_a_group_that_is_not_fifo() -> None:
    (one,) = problems_of_sample(RULE, "grpc-fifo-unordered-5x.pcap.gz")
    assert one.title == (
        "group hasty_pushers receives FIFO messages of topic GrpcFifo in any order: its settings on"
        " the broker are not FIFO"
    )
    assert (one.count, one.subject.group, one.subject.topic) == (4, "hasty_pushers", "GrpcFifo")
    assert problems_of_sample(RULE, "grpc-fifo-blocked-5x.pcap.gz") == []


def test_both_are_needed() -> None:
    rows = [settings(10, "false"), RECEIVED]
    (one,) = problems(RULE, rows)
    assert (one.count, len(one.evidence)) == (1, 2)
    assert same_in_any_order(RULE, [*rows, call(30, "ReceiveMessage", "message_group=order-2")])
    assert problems(RULE, rows[:1]) == []
    assert problems(RULE, rows[1:]) == []
    assert problems(RULE, [rows[0], call(20, "ReceiveMessage")]) == []


def test_settings_of_the_proxy_decide() -> None:
    assert problems(RULE, [settings(10, "true"), RECEIVED]) == []
    assert problems(RULE, [settings(10, "false"), settings(11, "true"), RECEIVED]) == []
    request = call(10, "Telemetry", "client_type=PUSH_CONSUMER", "fifo=false")
    assert problems(RULE, [request, RECEIVED]) == [], "the proxy sent no settings"
