"""When no-permission speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.refused.no_permission import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, exchange, problems, problems_of_sample, same_in_any_order, sample

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)


def route(*brokers: str, topic: str = "Orders", at_ms: float = 0) -> ExchangeRecord:
    facts = [f"route={one}" for one in brokers]
    return exchange(at_ms, ROUTE, 0, server_address=NAMESRV, topic=topic, facts=facts)


@pytest.mark.parametrize("name", ["fault-no-permission-4x.pcap", "fault-no-permission-5x.pcap"])
def test_a_refusal_with_the_route_that_shows_it(name: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        "broker-a refused 1 send of topic FaultTopic: it is read-only (permission 4 in its route)"
    )
    assert one.subject == Subject(broker="broker-a", topic="FaultTopic", group="sample_group")
    assert (one.count, one.severity) == (1, ProblemSeverity.ERROR)
    assert "a later route shows it open again" in one.details
    assert len(one.evidence) == 2
    assert same_in_any_order(RULE, sample(name).exchanges)


@pytest.mark.parametrize("name", ["fault-read-only-4x.pcap", "fault-read-only-5x.pcap"])
def test_routes_alone(name: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        "broker-a is read-only for topic FaultTopic (permission 4 in the route): producers skip it,"
        " consumers are not affected"
    )
    assert one.subject == Subject(broker="broker-a", topic="FaultTopic")
    assert (one.count, one.severity) == (2, ProblemSeverity.WARNING)
    assert same_in_any_order(RULE, sample(name).exchanges)


def test_write_only_and_closed() -> None:
    rows = [route("2 4 4 0 broker-a", "6 4 4 0 broker-b"), route("0 4 4 0 broker-c", topic="Bills")]
    closed, write = problems(RULE, rows)
    assert write.title == (
        "broker-a is write-only for topic Orders (permission 2 in the route): consumers get none of"
        " its messages"
    )
    assert closed.title == (
        "broker-c is closed for topic Bills (permission 0 in the route): neither producers nor"
        " consumers use it"
    )
    assert closed.severity is ProblemSeverity.ERROR
    assert closed.details[-1] == "no other broker of the topic accepts messages"


@pytest.mark.parametrize(
    ("remark", "said"),
    [
        ("the broker[10.0.0.1] pulling message is forbidden", "it may not be read"),
        ("subscription group no permission, g", "it does not let the group consume"),
        (
            "the consumer group[g] can not consume by broadcast way",
            "it does not let the group broadcast",
        ),
        ("the broker[10.0.0.1] sending transaction message is forbidden", "it accepts no trans"),
    ],
)
def test_other_things_that_are_forbidden(remark: str, said: str) -> None:
    code = int(ResponseCode.NO_PERMISSION)
    (one,) = problems(RULE, [exchange(0, int(RequestCode.PULL_MESSAGE), code, remark=remark)])
    assert said in one.title


def test_access_control_is_another_matter() -> None:
    code = int(ResponseCode.NO_PERMISSION)
    for remark in (
        "check signature failed.",
        "User:eve has no permission to access Topic:A from x",
    ):
        assert not problems(RULE, [exchange(0, 310, code, remark=remark)])


@pytest.mark.parametrize(
    ("brokers", "topic"),
    [
        (["6 4 4 0 broker-a"], "Orders"),
        (["7 8 8 0 broker-a"], "TBW102"),
        (["1 1 1 0 broker-a"], "rmq_sys_SYNC_BROKER_MEMBER_broker-a"),
        (["2 1 1 0 broker-a"], "%DLQ%g"),
        (["- - - 0 broker-a"], "Orders"),
        (["4 0 0 0 broker-a"], "Orders"),
    ],
)
def test_normal_routes(brokers: list[str], topic: str) -> None:
    assert not problems(RULE, [route(*brokers, topic=topic)])


def test_a_permission_that_an_administrator_took_away() -> None:
    (one,) = problems_of_sample(RULE, "admin-5x.pcap")
    assert one.title.startswith("broker-a is read-only for topic AdminTopic (permission 4 in the")
    assert one.severity is ProblemSeverity.WARNING
    assert "an administrator changed the topic before (UPDATE_AND_CREATE_TOPIC)" in one.details
