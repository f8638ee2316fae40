"""refused-otherwise: what no other rule takes is told all the same."""

from __future__ import annotations

from analytics.diagnosis.problem import Confidence, ProblemSeverity, Subject
from analytics.diagnosis.rules.refused.refused_otherwise import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, same_in_any_order

SEND = int(RequestCode.SEND_MESSAGE_V2)
FIELD = "Request doesn't have field bname"


def refused(at_ms: float, code: int, remark: str, request: int = SEND) -> ExchangeRecord:
    return exchange(
        at_ms, request, code, remark=remark, group="bills", topic="T", broker_name="broker-a"
    )


def test_a_client_that_is_too_old_for_a_proxy() -> None:
    rows = [refused(at, int(ResponseCode.VERSION_NOT_SUPPORTED), FIELD) for at in range(3)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "proxy 10.0.0.1:10911 refused 3 sends of group bills with VERSION_NOT_SUPPORTED (15):"
        " Request doesn't have field bname"
    )
    assert (one.severity, one.confidence) == (ProblemSeverity.ERROR, Confidence.CERTAIN)
    assert one.advice.startswith("Use a 5.x client")
    assert one.subject == Subject(broker="broker-a", topic="T", group="bills")
    assert same_in_any_order(RULE, rows)


def test_a_reason_that_nobody_knows() -> None:
    (one,) = problems(RULE, [refused(0, 1, "store is tired: 4711")])
    assert one.confidence is Confidence.LIKELY
    assert one.title.endswith("with SYSTEM_ERROR (1): store is tired: 4711")


def test_what_other_rules_take_is_theirs() -> None:
    busy = "[TIMEOUT_CLEAN_QUEUE]broker busy, period in queue: 206ms, size of queue: 24"
    assert problems(RULE, [refused(0, int(ResponseCode.SYSTEM_BUSY), busy)]) == []


def test_answers_that_refuse_nothing() -> None:
    pull = int(RequestCode.PULL_MESSAGE)
    rows = [
        refused(0, int(ResponseCode.PULL_NOT_FOUND), "", pull),
        refused(1, int(ResponseCode.FLUSH_DISK_TIMEOUT), ""),
        refused(2, int(ResponseCode.SUBSCRIPTION_NOT_LATEST), "", pull),
    ]
    assert problems(RULE, rows) == []
