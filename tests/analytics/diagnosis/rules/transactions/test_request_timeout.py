"""request-timeout: requests for a reply that get none before their TTL is over."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.transactions.request_timeout import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

SEND = int(RequestCode.SEND_MESSAGE_V2)
REPLY = int(RequestCode.SEND_REPLY_MESSAGE_V2)
PUSH = int(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)


def part(at_ms: float, code: int, number: int = 1, answer: int | None = 0) -> ExchangeRecord:
    facts = [f"correlation=c{number}", "ttl_ms=2000"]
    topic = "Ask" if code == SEND else "DefaultCluster_REPLY_TOPIC"
    return exchange(at_ms, code, answer, topic=topic, group="askers", facts=facts)


END = exchange(60_000, int(RequestCode.HEART_BEAT), 0)


def test_a_reply_that_is_late_and_one_that_never_comes() -> None:
    rows = [part(0, SEND), part(5000, REPLY), part(5010, PUSH), part(7000, SEND, 2), END]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "2 requests to Ask got no reply within their TTL (2 s): 1 reply was up to 3.01 s late, 1"
        " never"
    )
    assert same_in_any_order(RULE, rows)


def test_a_reply_that_never_comes_asks_for_the_consumer() -> None:
    (one,) = problems(RULE, [part(0, SEND), END])
    assert one.title == ("1 request to Ask got no reply within its TTL (2 s): no reply came at all")
    assert one.advice.startswith("Check that a consumer of the topic is running")


def test_what_is_none() -> None:
    assert problems(RULE, [part(0, SEND), part(1500, PUSH), END]) == []
    assert problems(RULE, [part(0, SEND), part(1500, REPLY), END]) == [], "pushed elsewhere"
    assert problems(RULE, [part(59_000, SEND), END]) == [], "it still waits"
    assert problems(RULE, [part(0, SEND, answer=14), END]) == [], "it was not stored"


def test_a_replier_that_takes_longer_than_the_ttl() -> None:
    (one,) = problems_of_sample(RULE, "request-timeout-5x.pcap")
    assert one.title.startswith("2 requests to AskTopic got no reply within their TTL (1.5 s): 2")
    assert same_in_any_order(RULE, sample("request-timeout-5x.pcap").exchanges)


@pytest.mark.parametrize("name", ["request-reply-5x.pcap", "request-reply-4x.pcap"])
def test_silent_where_replies_come(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_a_refused_reply_is_none() -> None:
    (one,) = problems(RULE, [part(0, SEND), part(500, REPLY, answer=1), END])
    assert one.title.endswith("no reply came at all")
    unanswered = part(500, REPLY, answer=None)
    assert problems(RULE, [part(0, SEND), unanswered, END]) == [], "it may have been accepted"
