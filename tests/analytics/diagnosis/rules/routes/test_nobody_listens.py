"""nobody-listens: connects that never come about, and those that other rules tell of."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Confidence, ProblemSeverity, Subject
from analytics.diagnosis.rules.routes.nobody_listens import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_record import NO_RESPONSE, ConversationRecord

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


def in_vain(
    server: str, count: int = 5, every_ms: int = 600, **values: Any
) -> list[ConversationRecord]:
    return [
        refused_connect(every_ms * one, one, server_address=server, **values)
        for one in range(count)
    ]


def test_a_namesrv_that_is_not_there() -> None:
    (one,) = problems(RULE, [], in_vain(NAMESRV))
    assert one.title == f"nothing listens at {NAMESRV}: 10.0.0.9 (5) tried to connect"
    assert (one.severity, one.confidence) == (ProblemSeverity.ERROR, Confidence.LIKELY)
    assert one.subject == Subject(server=NAMESRV)


def test_another_port_beside_a_namesrv() -> None:
    rows = [exchange(0, ROUTE, server_address=NAMESRV, topic="T")]
    gone, there = (connection(0, ms, 9, server_address=NAMESRV) for ms in (10, 9000))
    assert problems(RULE, rows, [*in_vain("10.0.0.2:9999"), gone]) == []
    (one,) = problems(RULE, rows, [*in_vain("10.0.0.2:9999"), there])
    assert (one.severity, one.confidence) == (ProblemSeverity.WARNING, Confidence.POSSIBLE)
    assert one.details == [f"at the same host were seen: {NAMESRV} (namesrv)"]
    assert problems(RULE, [], in_vain("10.0.0.2:9999")) == []


def test_few_connects_or_one_that_works() -> None:
    silent = {"end": NO_RESPONSE, "ended_by": None}
    assert problems(RULE, [], in_vain(NAMESRV, 4, **silent)) == []
    assert problems(RULE, [], in_vain(NAMESRV, 5, 10, **silent)) == []
    assert len(problems(RULE, [], in_vain(NAMESRV, 5, **silent))) == 1
    assert problems(RULE, [], in_vain(NAMESRV, 2)) == []
    assert (
        problems(RULE, [], [*in_vain(NAMESRV), connection(9000, 10, 9, server_address=NAMESRV)])
        == []
    )


def test_few_connects_that_were_refused() -> None:
    (one,) = problems(RULE, [], in_vain(NAMESRV, 3, 10))
    assert (one.count, one.confidence) == (3, Confidence.LIKELY)
    rows = [exchange(0, ROUTE, server_address=NAMESRV, topic="T")]
    there = connection(0, 9000, 9, server_address=NAMESRV)
    (one,) = problems(RULE, rows, [*in_vain("10.0.0.2:9999", 3, 10), there])
    assert (one.count, one.confidence) == (3, Confidence.POSSIBLE)
    stranger = in_vain("10.0.0.2:9999", 3, 10, client_address="10.0.0.7:1")
    assert problems(RULE, rows, [*stranger, there]) == []


def test_an_address_in_a_list_with_a_namesrv() -> None:
    rows = [exchange(0, ROUTE, server_address=NAMESRV, topic="T")]
    dead = in_vain("10.0.0.3:9877", 4, 2000)
    used = [connection(2000 * one + 30, 10, 9 + one, server_address=NAMESRV) for one in range(3)]
    (one,) = problems(RULE, rows, [*dead, *used])
    assert one.title == (
        "nothing listens at 10.0.0.3:9877: 10.0.0.9 (4) tried to connect and used NameServer"
        f" {NAMESRV} instead"
    )
    assert (one.severity, one.confidence) == (ProblemSeverity.WARNING, Confidence.POSSIBLE)
    assert problems(RULE, rows, [*dead, *used[:2]]) == []
    assert problems(RULE, [], [*dead, *used]) == []


def test_a_broker_of_a_route_is_told_of_by_others() -> None:
    route = exchange(0, ROUTE, server_address=NAMESRV, topic="T", brokers=[f"broker-a={BROKER}"])
    assert problems(RULE, [route], in_vain(BROKER)) == []
    assert problems(RULE, [route], in_vain("10.0.0.1:10909")) == []


def test_a_namesrv_that_was_there_before() -> None:
    assert problems_of_sample(RULE, "namesrv-gone-5x.pcap") == []


@pytest.mark.parametrize(
    ("port", "what"),
    [(9876, "namesrvAddr"), (10911, "listenPort"), (10909, "VIP"), (8081, "setEndpoints")],
)
def test_the_advice_is_about_what_should_listen_there(port: int, what: str) -> None:
    (one,) = problems(RULE, [], in_vain(f"10.0.0.7:{port}"))
    assert what in one.advice
    assert ("namesrvAddr" in one.advice) == (port == 9876)
