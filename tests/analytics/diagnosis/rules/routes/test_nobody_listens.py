"""nobody-listens: connects that never come about, and those that other rules tell of."""

from __future__ import annotations

from analytics.diagnosis.problem import Confidence, ProblemSeverity, Subject
from analytics.diagnosis.rules.routes.nobody_listens import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_record import ConversationRecord

from ...made_rows import (
    BROKER,
    NAMESRV,
    connection,
    exchange,
    problems,
    problems_of_sample,
    refused_connect,
)

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)


def in_vain(server: str, count: int = 5, every_ms: int = 600) -> list[ConversationRecord]:
    return [refused_connect(every_ms * one, one, server=server) for one in range(count)]


def test_a_namesrv_that_is_not_there() -> None:
    (one,) = problems(RULE, [], in_vain(NAMESRV))
    assert one.title == f"nobody listens at {NAMESRV}: 10.0.0.9 (5) connected in vain"
    assert (one.severity, one.confidence) == (ProblemSeverity.ERROR, Confidence.LIKELY)
    assert one.subject == Subject(server=NAMESRV)


def test_another_port_beside_a_namesrv() -> None:
    rows = [exchange(0, ROUTE, responder=NAMESRV, topic="T")]
    gone, there = (connection(0, ms, 9, server=NAMESRV) for ms in (10, 9000))
    assert problems(RULE, rows, [*in_vain("10.0.0.2:9999"), gone]) == []
    (one,) = problems(RULE, rows, [*in_vain("10.0.0.2:9999"), there])
    assert (one.severity, one.confidence) == (ProblemSeverity.WARNING, Confidence.POSSIBLE)
    assert one.details == [f"at the same host were seen: {NAMESRV} (namesrv)"]
    assert problems(RULE, [], in_vain("10.0.0.2:9999")) == []


def test_few_connects_or_one_that_works() -> None:
    assert problems(RULE, [], in_vain(NAMESRV, 4)) == []
    assert problems(RULE, [], in_vain(NAMESRV, 5, 10)) == []
    assert problems(RULE, [], [*in_vain(NAMESRV), connection(9000, 10, 9, server=NAMESRV)]) == []


def test_a_broker_of_a_route_is_told_of_by_others() -> None:
    route = exchange(0, ROUTE, responder=NAMESRV, topic="T", brokers=[f"broker-a={BROKER}"])
    assert problems(RULE, [route], in_vain(BROKER)) == []
    assert problems(RULE, [route], in_vain("10.0.0.1:10909")) == []


def test_a_namesrv_that_was_there_before() -> None:
    assert problems_of_sample(RULE, "namesrv-gone-5x.pcap") == []
