"""topic-deleted: topics that are deleted under their clients, and those that nobody uses."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, ProblemSeverity, Subject
from analytics.diagnosis.rules.routes import topic_deleted
from analytics.diagnosis.rules.routes.topic_deleted import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import NAMESRV, exchange, problems, same_in_any_order

SEND = int(RequestCode.SEND_MESSAGE_V2)
ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
MISSING = int(ResponseCode.TOPIC_NOT_EXIST)
DELETED = exchange(
    1000, int(RequestCode.DELETE_TOPIC_IN_BROKER), topic="T", client_address="10.0.0.7:1"
)
REFUSED = [
    exchange(1500, SEND, MISSING, topic="T", group="bills"),
    exchange(1600, SEND, MISSING, topic="T", group="bills"),
    exchange(9000, ROUTE, MISSING, topic="T", server_address=NAMESRV),
]


def test_a_topic_that_is_in_use() -> None:
    before = exchange(10, ROUTE, MISSING, topic="T", server_address=NAMESRV)
    other = exchange(1700, SEND, MISSING, topic="U")
    rows = [before, DELETED, *REFUSED, other]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "topic T was deleted at 11:06:41 UTC by 10.0.0.7 while clients used it: 3 requests refused"
        " since"
    )
    assert (one.severity, one.confidence) == (ProblemSeverity.ERROR, Confidence.CERTAIN)
    assert (one.subject, one.count) == (Subject(topic="T"), 3)
    assert one.evidence[0].what == "10.0.0.7 deletes T"
    assert "groups: bills (2)" in one.details
    assert same_in_any_order(RULE, rows)


def test_a_topic_that_nobody_uses_or_nobody_deleted() -> None:
    assert problems(RULE, [DELETED]) == []
    assert problems(RULE, REFUSED) == []
    failed = exchange(1000, int(RequestCode.DELETE_TOPIC_IN_BROKER), 1, topic="T")
    assert problems(RULE, [failed, *REFUSED]) == []


def test_refusals_beyond_the_limit_may_be_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_deleted, "MAX_REFUSED", 2)
    before = exchange(10, ROUTE, MISSING, topic="T", server_address=NAMESRV)
    (one,) = problems(RULE, [DELETED, *REFUSED, before])
    assert one.title.endswith("used it: at least 2 requests refused since")
