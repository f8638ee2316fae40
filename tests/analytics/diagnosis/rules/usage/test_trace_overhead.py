from __future__ import annotations

from typing import Any

from analytics.diagnosis.rules.usage.trace_overhead import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order

SEND = int(RequestCode.SEND_MESSAGE_V2)


def send(
    at_ms: float, topic: str = "orders", size: int = 300, answer: int = 0, **values: Any
) -> ExchangeRecord:
    return exchange(at_ms, SEND, answer, topic=topic, group="shop", request_bytes=size, **values)


OWN = [send(number) for number in range(40)]
TRACES = [send(100 + number, "RMQ_SYS_TRACE_TOPIC", 1500) for number in range(4)]


def test_traces_that_are_as_large_as_the_messages() -> None:
    (one,) = problems(RULE, OWN + TRACES)
    assert one.title == (
        "message traces to RMQ_SYS_TRACE_TOPIC are 33% of the bytes and 9% of the requests that"
        " producers send"
    )
    assert (one.count, one.subject.topic) == (4, "RMQ_SYS_TRACE_TOPIC")


def test_a_trace_beside_large_messages_is_nothing() -> None:
    large = [send(number, size=5000) for number in range(40)]
    assert problems(RULE, large + TRACES) == []


def test_few_sends_say_nothing() -> None:
    assert problems_of_sample(RULE, "send-trace-5x.pcap") == []
    assert problems(RULE, TRACES * 10) == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, OWN + TRACES)


def test_refused_traces_are_no_load() -> None:
    refused = [send(100 + n, "RMQ_SYS_TRACE_TOPIC", 1500, answer=17) for n in range(4)]
    assert problems(RULE, OWN + refused) == []
