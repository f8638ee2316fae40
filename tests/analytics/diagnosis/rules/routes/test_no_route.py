"""When no-route speaks, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.context import Context
from analytics.diagnosis.problem import Confidence, ProblemState, Subject, clock
from analytics.diagnosis.rules.routes.no_route import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, exchange, problems, problems_of_sample, same_in_any_order, sample

SEND = int(RequestCode.SEND_MESSAGE_V2)
MISSING = int(ResponseCode.TOPIC_NOT_EXIST)


def route(at_ms: float, topic: str, answer: int = MISSING, **values: Any) -> ExchangeRecord:
    code = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    return exchange(at_ms, code, answer, **{"server_address": NAMESRV, "topic": topic, **values})


@pytest.mark.parametrize("name", ["no-route-4x.pcap", "no-route-5x.pcap"])
def test_neither_the_topic_nor_the_pattern_of_new_ones(name: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        "topic NobodysTopic has no route, and neither has TBW102, the template for new topics: 2"
        " requests from 127.0.0.1 refused, nothing was sent"
    )
    assert one.subject == Subject(topic="NobodysTopic")
    assert one.count == 2
    assert one.confidence is Confidence.CERTAIN
    assert same_in_any_order(RULE, sample(name).exchanges)


def test_a_route_that_was_lost() -> None:
    (one,) = problems_of_sample(RULE, "outage-5x.pcap")
    assert one.title == (
        "topic OutageTopic had no route from 04:05:06 to 04:05:19 UTC: none of its brokers was"
        " registered (5 requests from 127.0.0.1 refused)"
    )
    assert one.subject == Subject(topic="OutageTopic")
    assert one.count == 5
    assert same_in_any_order(RULE, sample("outage-5x.pcap").exchanges)


def test_a_consumer_that_asks_again_and_again() -> None:
    (one,) = problems(RULE, [route(at, "Orders") for at in (0, 20, 30_000)])
    assert one.title == "topic Orders has no route: 3 requests from 10.0.0.9 refused"
    assert one.confidence is Confidence.CERTAIN
    assert one.details[-1] == (
        "no route of any topic was seen: perhaps no broker is registered there at all"
    )


def test_it_is_less_sure_at_the_beginning() -> None:
    rows = [route(0, "Orders"), route(20, "Orders"), route(30, "Bills", 0)]
    (one,) = problems(RULE, rows)
    assert one.confidence is Confidence.LIKELY
    assert one.details[-1] == (
        "the server works: it returned routes for other topics, or for this one at another time"
    )


@pytest.mark.parametrize(
    "rows",
    [
        [route(0, "Orders"), route(5, "TBW102", 0), route(30_000, "Orders")],
        [route(0, "Orders")],
        [route(0, "Orders"), route(20, "Orders"), exchange(30, SEND, topic="Orders")],
        [route(0, "Orders"), route(20, "Orders"), route(30_000, "Orders", 0)],
        [route(0, "%RETRY%g"), route(30_000, "%RETRY%g")],
        [route(0, "TBW102"), route(30_000, "TBW102")],
        [route(0, "RMQ_SYS_TRACE_TOPIC"), route(30_000, "RMQ_SYS_TRACE_TOPIC")],
    ],
    ids=["default", "once", "sent to", "made later", "retry", "TBW102", "trace"],
)
def test_normal_answers_without_a_route(rows: list[ExchangeRecord]) -> None:
    assert not problems(RULE, rows)


@pytest.mark.parametrize(
    "name",
    [
        "send-unknown-topic-4x.pcap",
        "send-unknown-topic-5x.pcap",
        "fault-unknown-topic-5x.pcap",
        "registration-4x.pcap",
        "push-consumer-4x.pcap",
    ],
)
def test_samples_without_this_problem(name: str) -> None:
    assert not problems_of_sample(RULE, name)


def test_a_missing_answer_for_the_default_topic_proves_nothing() -> None:
    asked = exchange(
        5,
        int(RequestCode.GET_ROUTEINFO_BY_TOPIC),
        None,
        server_address=NAMESRV,
        topic="TBW102",
    )
    assert not problems(RULE, [route(0, "Orders"), asked, route(20, "Orders")])


@pytest.mark.parametrize("name", ["routes-differ-4x.pcap", "routes-differ-5x.pcap"])
def test_a_route_that_only_the_other_server_has(name: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.count == 3
    assert one.details[-1] == "127.77.0.1:9876 has a route of it: the NameServers differ"


def test_a_namesrv_that_began_anew_knows_no_topic_until_brokers_register() -> None:
    rows = [
        route(0, "T", int(ResponseCode.SUCCESS)),
        route(40_000, "T"),
        route(40_010, "TBW102"),
        route(60_000, "T", int(ResponseCode.SUCCESS)),
    ]
    (one,) = problems(RULE, rows)
    assert one.title.startswith("topic T had no route from ")
    assert "nothing was sent" not in one.title


def test_it_ends_when_a_broker_of_the_topic_registers() -> None:
    def register(at_ms: float, name: str) -> ExchangeRecord:
        code = int(RequestCode.REGISTER_BROKER)
        brokers = [f"{name}=10.0.0.1:10911"]
        return exchange(at_ms, code, 0, server_address=NAMESRV, brokers=brokers)

    had = route(0, "Orders", 0, brokers=["broker-a=10.0.0.1:10911"])
    lost = [had, route(10_000, "Orders"), register(17_000, "broker-b"), route(90_000, "T", 0)]
    (one,) = problems(RULE, lost)
    assert "until at least" in one.title  # another broker registered, and the capture goes on
    rows = [*lost, register(20_000, "broker-a")]
    (one,) = problems(RULE, rows)
    begin, end = clock(rows[1].request_time or 0), clock(rows[-1].request_time or 0)
    assert one.title.startswith(f"topic Orders had no route from {begin} to {end} UTC")
    assert one.state is ProblemState.OVER
    assert same_in_any_order(RULE, rows)


def test_a_route_that_is_missing_while_the_capture_goes_on() -> None:
    context = Context()
    fold = RULE.new_fold("*")
    for row in (route(0, "Orders", 0), *(route(at, "Orders") for at in (5000, 9000))):
        context.add_exchange(row)
        context.add_span([row])
        fold.add_exchange(row)
    (ended,) = fold.cases(context)
    assert " had no route from " in ended.title
    assert " UTC to the end of the capture: none of its brokers was registered" in ended.title
    context.now = context.last_time or 1
    (now,) = fold.cases(context)
    assert now.title.startswith("topic Orders has no route since ")
    assert ": none of its brokers is registered (2 requests" in now.title
    assert now.advice is not None
    assert now.advice.startswith("Start the brokers of the topic")
