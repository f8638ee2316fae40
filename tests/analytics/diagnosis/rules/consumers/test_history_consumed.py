"""history-consumed: new groups whose offset is answered as 0."""

from __future__ import annotations

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.consumers.history_consumed import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, START, exchange, problems, same_in_any_order

PULL, BEAT = int(RequestCode.PULL_MESSAGE), int(RequestCode.HEART_BEAT)
QUERY, COMMIT = int(RequestCode.QUERY_CONSUMER_OFFSET), int(RequestCode.UPDATE_CONSUMER_OFFSET)
ROUTE, MISSING = int(RequestCode.GET_ROUTEINFO_BY_TOPIC), int(ResponseCode.TOPIC_NOT_EXIST)
START_MS = START // 1_000_000


def beat(where: str = "CONSUME_FROM_LAST_OFFSET") -> ExchangeRecord:
    facts = ["client=c", "consumer=CONSUME_PASSIVELY CLUSTERING cg", f"consume_from={where} cg"]
    return exchange(0, BEAT, facts=facts)


def about(at_ms: float, code: int, offset: int, facts: tuple[str, ...] = ()) -> ExchangeRecord:
    return exchange(
        at_ms,
        code,
        topic="T",
        group="cg",
        queue_id=1,
        queue_offset=offset,
        broker_name="broker-a",
        facts=list(facts),
    )


def pull(offset: int, end: int, stored_ms: int) -> ExchangeRecord:
    facts = (f"offsets={offset} {offset + 32} 0 {end}", f"stored_ms={START_MS + stored_ms}")
    return about(30, PULL, offset, facts)


HISTORY = [beat(), about(20, QUERY, 0), pull(0, 90, -60_000)]


def test_a_new_group_gets_the_history() -> None:
    (one,) = problems(RULE, HISTORY)
    assert one.title == (
        "new group cg consumes the history of T, 90 messages in 1 queue, although it asks for"
        " CONSUME_FROM_LAST_OFFSET: the broker returned offset 0"
    )
    assert one.confidence == Confidence.LIKELY
    new = exchange(1, ROUTE, MISSING, server_address=NAMESRV, topic="%RETRY%cg")
    (one,) = problems(RULE, [*HISTORY, new])
    assert one.confidence == Confidence.CERTAIN
    assert same_in_any_order(RULE, [*HISTORY, new])


def test_what_is_none() -> None:
    assert problems(RULE, [beat("CONSUME_FROM_FIRST_OFFSET"), *HISTORY[1:]]) == []
    assert problems(RULE, [*HISTORY, about(5, COMMIT, 0)]) == [], "it had committed"
    (few,) = problems(RULE, [*HISTORY[:2], pull(0, 20, -60_000)])
    assert few.severity == "info", "a few messages"
    assert problems(RULE, [*HISTORY[:2], pull(0, 90, 10)]) == [], "stored since it started"
    assert problems(RULE, [beat(), about(20, QUERY, 40), pull(40, 90, -60_000)]) == []
    assert problems(RULE, HISTORY[1:]) == [], "nobody knows what the group asks for"
