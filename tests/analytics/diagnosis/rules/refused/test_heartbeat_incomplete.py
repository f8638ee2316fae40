"""heartbeat-incomplete: short heartbeats at a broker that does not know the subscriptions."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import ProblemState
from analytics.diagnosis.rules.refused import heartbeat_incomplete
from analytics.diagnosis.rules.refused.heartbeat_incomplete import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

PULL, BEAT = int(RequestCode.PULL_MESSAGE), int(RequestCode.HEART_BEAT)
REFUSED = int(ResponseCode.SUBSCRIPTION_NOT_EXIST)
SHORT = ["client=c", "consumer=CONSUME_PASSIVELY CLUSTERING g"]
WHOLE = [*SHORT, "subscription=g T TAG *"]
RECORDED = "heartbeat-v2-restart-5x.pcap.gz"


def beat(at_ms: float, facts: list[str], **values: Any) -> ExchangeRecord:
    return exchange(at_ms, BEAT, group="g", facts=facts, **values)


def pull(at_ms: float, code: int = REFUSED) -> ExchangeRecord:
    return exchange(at_ms, PULL, code, group="g", topic="T")


def test_a_broker_of_5_5_that_restarted() -> None:
    (one,) = problems_of_sample(RULE, RECORDED)
    assert one.title == (
        "broker-a does not know the subscriptions of brief_group: heartbeats of version 2 of"
        " 127.0.0.1@consumer omit them, and it refused 42 pulls of BriefTopic from 23:49:15 to"
        " 23:49:36 UTC (21.1 s)"
    )
    assert one.state == ProblemState.OVER
    assert same_in_any_order(RULE, sample(RECORDED).exchanges)


def test_a_whole_heartbeat_before_says_it_all() -> None:
    rows = [beat(0, WHOLE), beat(900, SHORT), pull(1000), pull(2000)]
    assert problems(RULE, rows) == []
    assert problems_of_sample(RULE, "heartbeat-v2-5x.pcap") == []


def test_pulls_that_are_served_or_on_their_way_are_fine() -> None:
    assert problems(RULE, [beat(0, SHORT), pull(900, 0), pull(1800, 0)]) == []
    assert problems(RULE, [pull(-50), pull(-20), beat(0, SHORT), pull(5)]) == []


def test_it_goes_on_where_no_whole_heartbeat_follows() -> None:
    rows = [beat(0, SHORT), pull(900), pull(1800), pull(2700)]
    (one,) = problems(RULE, rows)
    assert (one.count, one.subject.group, one.subject.client) == (3, "g", "c")
    (ended,) = problems(RULE, [*rows, beat(2000, WHOLE)])
    assert (ended.count, ended.state) == (2, ProblemState.OVER)


def test_heartbeats_before_it_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat_incomplete, "MAX_PLACES", 10)
    monkeypatch.setattr(heartbeat_incomplete, "MAX_PULLS", 10)
    others = [beat(at, WHOLE, client_address="10.0.0.8:40000") for at in range(20)]
    (one,) = problems(RULE, [*others, beat(100, SHORT), pull(900), pull(1800), pull(2700)])
    assert one.count == 3
