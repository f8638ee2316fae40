"""queues-reduced: fewer queues than before, by routes and by pulls that are refused."""

from __future__ import annotations

from msgspec.structs import replace

from analytics.diagnosis.problem import Confidence, ProblemSeverity, Subject
from analytics.diagnosis.rules.refused.refused_otherwise import RULE as OTHERWISE
from analytics.diagnosis.rules.routes.queues_reduced import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import BROKER, NAMESRV, exchange, problems, same_in_any_order

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
PULL = int(RequestCode.PULL_MESSAGE)
ERROR = int(ResponseCode.SYSTEM_ERROR)


def route(at_ms: float, queues: int, topic: str = "T", perm: int = 6) -> ExchangeRecord:
    facts = [f"route={perm} {queues} {queues} 0 broker-a"]
    brokers = [f"broker-a={BROKER}"]
    return exchange(at_ms, ROUTE, server_address=NAMESRV, topic=topic, facts=facts, brokers=brokers)


def refused(at_ms: float, queue: int, has: int = 2) -> ExchangeRecord:
    """As a broker of 4.6.1 answers."""
    remark = (
        f"queueId[{queue}] is illegal, topic:[T] topicConfig.readQueueNums:[{has}]"
        " consumer:[/10.0.0.9:40000]"
    )
    return exchange(at_ms, PULL, ERROR, remark=remark, topic="T", group="cg", queue_id=queue)


def test_eight_queues_become_two() -> None:
    rows = [route(0, 8), route(10, 8), refused(500, 3), refused(600, 7), route(30_000, 2)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-a now has 2 queues of topic T instead of 8: messages left in queues 2 to 7 are"
        " not delivered"
    )
    assert (one.severity, one.confidence) == (ProblemSeverity.WARNING, Confidence.CERTAIN)
    assert (one.subject, one.count) == (Subject(broker="broker-a", topic="T"), 2)
    assert one.details == [
        "2 pulls of cg refused",
        "routes say 8 until 11:06:40 and 2 from 11:07:10 UTC on",
        "the capture does not show whether messages are left there",
    ]
    assert same_in_any_order(RULE, rows)
    assert problems(OTHERWISE, rows) == []


def test_pulls_that_are_refused_without_routes_of_before() -> None:
    (one,) = problems(RULE, [route(0, 2), refused(500, 3), refused(600, 7)])
    assert one.title == (
        "consumers pull queues 3 to 7 of topic T that broker-a does not have: it has 2 queues"
    )
    assert one.confidence is Confidence.LIKELY
    (one,) = problems(RULE, [refused(500, 3)])
    assert one.title.startswith("consumers pull queue 3 of topic T that ")


def test_more_queues_or_the_same_are_well() -> None:
    assert problems(RULE, [route(0, 2), route(10, 8), route(20, 8)]) == []
    assert problems(RULE, [route(0, 8), route(10, 8)]) == []
    assert problems(RULE, [route(0, 8, "%RETRY%cg"), route(10, 1, "%RETRY%cg")]) == []


def test_namesrvs_that_differ_are_told_of_elsewhere() -> None:
    assert problems(RULE, [route(0, 8), route(10, 2), route(20, 8), route(30, 2)]) == []

    other = [replace(route(at, 2), server_address="10.0.0.8:9876") for at in (20, 30)]
    assert problems(RULE, [route(0, 8), route(10, 8), *other]) == []


def test_one_queue_less() -> None:
    (one,) = problems(RULE, [route(0, 4), route(10, 3)])
    assert one.title.endswith(": messages left in queue 3 are not delivered")
