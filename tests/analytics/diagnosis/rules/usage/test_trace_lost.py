from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.usage.trace_lost import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    NAMESRV,
    SAMPLES,
    exchange,
    problems,
    problems_of_sample,
    same_in_any_order,
)
from ...show import diagnosis_of

SEND = int(RequestCode.SEND_MESSAGE_V2)
ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
MISSING = int(ResponseCode.TOPIC_NOT_EXIST)
TOPIC = "RMQ_SYS_TRACE_TOPIC"


def asked(at_ms: float, answer: int = MISSING, topic: str = TOPIC) -> ExchangeRecord:
    return exchange(at_ms, ROUTE, answer, server_address=NAMESRV, topic=topic)


def sent(at_ms: float, answer: int | None = 0, **values: Any) -> ExchangeRecord:
    return exchange(at_ms, SEND, answer, **{"topic": TOPIC, **values})


def test_a_trace_topic_without_a_route() -> None:
    rows = [*(asked(at) for at in range(4)), sent(9, topic="Orders"), asked(10, topic="Orders")]
    (one,) = problems(RULE, rows)
    assert one.title == (
        f"message traces to {TOPIC} are lost: the topic has no route (4 route requests refused);"
        " messages are not affected"
    )
    assert one.details == ["clients: 10.0.0.9 (4)"]
    assert one.advice.startswith("Set traceTopicEnable=true")
    assert same_in_any_order(RULE, rows)


def test_the_first_trace_may_come_after_the_capture() -> None:
    (one,) = problems(RULE, [asked(0), asked(9)])
    assert one.confidence is Confidence.LIKELY
    (one,) = problems(RULE, [asked(0), asked(9), sent(5000, topic="Orders")])
    assert one.confidence is Confidence.CERTAIN


def test_traces_that_are_refused() -> None:
    (one,) = problems(RULE, [asked(0, 0), *(sent(at, MISSING) for at in range(1, 4))])
    assert one.title.startswith(f"message traces to {TOPIC} are lost: 3 traces refused;")


@pytest.mark.parametrize(
    "more",
    [
        [sent(9)],
        [sent(9, None)],
        [asked(9, 0)],
        [exchange(9, ROUTE, server_address=NAMESRV, topic="TBW102", facts=["route=7 8 8 0 b"])],
    ],
    ids=["stored", "no response", "a route", "the first trace will create the topic"],
)
def test_nothing_is_concluded(more: list[ExchangeRecord]) -> None:
    assert problems(RULE, [*(asked(at) for at in range(4)), *more]) == []


def test_a_topic_that_stays_missing_is_not_created() -> None:
    template = exchange(0, ROUTE, server_address=NAMESRV, topic="TBW102", facts=["route=7 8 8 0 b"])
    (one,) = problems(RULE, [template, *(asked(at * 30_000) for at in range(4))])
    assert "the topic has no route (4 route requests refused)" in one.title


def test_a_client_asks_twice_for_one_send() -> None:
    assert problems(RULE, [asked(0)]) == []
    assert len(problems(RULE, [asked(0), asked(1)])) == 1


@pytest.mark.parametrize("name", ["send-trace-4x.pcap", "send-trace-5x.pcap"])
def test_healthy_traces(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_an_account_without_the_right_to_the_trace_topic() -> None:
    (one,) = problems_of_sample(RULE, "trace-refused-5x.pcap.gz")
    assert one.title == (
        f"message traces to {TOPIC} are lost: 1 trace refused; messages are not affected"
    )
    assert one.advice.startswith("Give the account of these clients the right to send")
    cause, follows = diagnosis_of([str(SAMPLES / "trace-refused-5x.pcap.gz")]).problems
    assert (cause.rule, cause.impact) == ("acl-signature", {}), "a trace is no message of a user"
    assert (follows.rule, follows.consequence_of) == (RULE.id, cause.rule)
