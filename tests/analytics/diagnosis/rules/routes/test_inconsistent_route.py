"""When inconsistent-route speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.routes.inconsistent_route import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order
from ...refusal_checks import check_recorded

ONE, OTHER = "10.0.0.2:9876", "10.0.0.3:9876"
A = ("6 4 4 0 broker-a", "broker-a=10.0.0.1:10911")
B = ("6 4 4 0 broker-b", "broker-b=10.0.0.4:10911")


def route(second: float, server: str, *brokers: tuple[str, str]) -> ExchangeRecord:
    return exchange(
        second * 1000,
        int(RequestCode.GET_ROUTEINFO_BY_TOPIC),
        0 if brokers else int(ResponseCode.TOPIC_NOT_EXIST),
        server_address=server,
        topic="Orders",
        facts=[f"route={numbers}" for numbers, _ in brokers],
        brokers=[address for _, address in brokers],
    )


def test_a_broker_that_one_of_them_does_not_know() -> None:
    rows = [
        route(0, ONE, A, B),
        route(1, OTHER, A),
        route(30, ONE, A, B),
        route(31, OTHER, A),
    ]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "NameServers 10.0.0.2:9876 and 10.0.0.3:9876 return different routes for topic Orders: they"
        " differ about broker-b"
    )
    assert one.subject == Subject(topic="Orders")
    assert one.confidence is Confidence.CERTAIN
    assert one.details == [
        "only at 10.0.0.2:9876: broker-b (10.0.0.4:10911), broker-b (permission 6, 4 read queues, 4"
        " write queues)",
        "only at 10.0.0.3:9876: nothing",
    ]
    assert one.count == 4
    assert same_in_any_order(RULE, rows)


def test_two_single_answers_are_less_sure() -> None:
    (one,) = problems(RULE, [route(0, ONE, A), route(3, OTHER, B)])
    assert one.confidence is Confidence.LIKELY
    (one,) = problems(RULE, [route(0, ONE, A), route(3, OTHER)])
    assert one.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "rows",
    [
        [route(0, ONE, A), route(1, OTHER, A)],
        [route(0, ONE), route(3, OTHER, A)],  # it was made between
        [route(0, ONE, A, B), route(5, OTHER, A), route(6, ONE, A)],  # a broker went
        [route(0, ONE, A, B), route(5, ONE, A, B), route(3, OTHER, A, B), route(8, OTHER, A)],
        [route(0, ONE, A), route(60, OTHER, B)],
        [route(0, ONE, A), route(1, "10.0.0.1:10911", A)],  # a proxy
    ],
    ids=["same", "made", "gone", "going", "long after", "proxy"],
)
def test_normal_differences(rows: list[ExchangeRecord]) -> None:
    assert not problems(RULE, rows)


@pytest.mark.parametrize("name", ["registration-4x.pcap", "namesrv-gone-4x.pcap"])
def test_two_name_servers_that_agree(name: str) -> None:
    assert not problems_of_sample(RULE, name)


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "routes-differ-4x.pcap",
            2,
            "NameServers 127.77.0.1:9876 and 127.77.0.2:9977 return different routes for "
            "topic RouteTopic: they differ about broker-a",
        ),
        (
            "routes-differ-5x.pcap",
            2,
            "NameServers 127.77.0.1:9876 and 127.77.0.2:9977 return different routes for "
            "topic RouteTopic: they differ about broker-a",
        ),
    ],
)
def test_recorded_on_a_real_cluster(name: str, count: int, title: str) -> None:
    check_recorded(RULE, name, title, count, Subject(topic="RouteTopic"))


def test_all_topics_that_two_servers_differ_about_are_one_problem() -> None:
    rows = [route(0, ONE, A), route(1, OTHER, B)]
    more = [route(0, ONE, A), route(1, OTHER, B)]
    for row in more:
        row.topic = "Bills"
    (one,) = problems(RULE, [*rows, *more])
    assert one.title == (
        "NameServers 10.0.0.2:9876 and 10.0.0.3:9876 return different routes for topics Bills and"
        " Orders: they differ about broker-a and broker-b"
    )
    assert one.subject == Subject()


def test_live_masters_of_one_name_are_of_two_clusters() -> None:
    moved = ("6 4 4 0 broker-a", "broker-a=10.0.0.4:10911")
    rows = [route(0, ONE, A), route(3, OTHER, moved)]
    beats = [
        exchange(at, int(RequestCode.HEART_BEAT), server_address=address, facts=["client=a@1"])
        for at, address in enumerate(("10.0.0.1:10911", "10.0.0.4:10911"))
    ]
    assert len(problems(RULE, [*rows, beats[0]])) == 1
    assert problems(RULE, [*rows, *beats]) == []
    shared = [route(0, ONE, A, B), route(3, OTHER, moved, B)]
    assert len(problems(RULE, [*shared, *beats])) == 1
