"""queue-truncated: queues that end earlier than before, at one broker."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.consumers.consumer_lag import RULE as CONSUMER_LAG
from analytics.diagnosis.rules.consumers.queue_truncated import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order

PULL = int(RequestCode.PULL_MESSAGE)


def pull(at_ms: float, following: int, end: int, **values: Any) -> ExchangeRecord:
    made = {"topic": "orders", "group": "bills", "queue_id": 0, "broker_name": "broker-a"}
    facts = [f"offsets={following} {following} 0 {end}"]
    return exchange(at_ms, PULL, **{**made, "facts": facts, **values})


BEFORE = [pull(1000 * second, second, second) for second in range(1, 20)]
AFTER = [pull(1000 * second, 0, max(0, second - 32)) for second in range(30, 40)]


def found(rows: list[ExchangeRecord]) -> list[str]:
    return [one.title for one in problems(CONSUMER_LAG, rows) if one.rule == RULE.id]


def test_a_queue_that_ends_earlier_than_before() -> None:
    rows = [*BEFORE, *AFTER]
    (one,) = (one for one in problems(CONSUMER_LAG, rows) if one.rule == RULE.id)
    assert one.title.startswith("broker-a lost stored messages: queue 0 of orders ended at offset")
    assert one.title.endswith(" UTC: 19 messages are gone")
    assert (one.count, one.confidence) == (19, Confidence.CERTAIN)
    assert (one.subject.broker, one.subject.topic, one.subject.queue) == ("broker-a", "orders", 0)
    assert same_in_any_order(CONSUMER_LAG, rows)


def test_several_queues_are_one_problem() -> None:
    rows = [*BEFORE, *AFTER, pull(5500, 7, 7, queue_id=1), pull(35_500, 0, 2, queue_id=1)]
    (title,) = found(rows)
    assert "2 queues of orders ended together at offset 26 " in title
    assert title.endswith(": 24 messages are gone")


def test_one_answer_alone_is_likely() -> None:
    rows = [*BEFORE, AFTER[0]]
    (one,) = (one for one in problems(CONSUMER_LAG, rows) if one.rule == RULE.id)
    assert one.confidence is Confidence.LIKELY


def test_what_is_none() -> None:
    assert found(BEFORE) == []
    slave = [
        pull(1000 * second, 1, second - 15, server_address="10.0.0.4:1") for second in range(20, 30)
    ]
    assert found([*BEFORE, *slave]) == [], "a slave that is behind"
    other = [pull(1000 * second, 1, 3, broker_name="broker-b") for second in range(20, 30)]
    assert found([*BEFORE, *other]) == [], "a proxy in front of two brokers"
    skewed = [pull(1000 * second, 1, 3, capture="other.pcap") for second in range(20, 30)]
    assert found([*BEFORE, *skewed]) == [], "a capture of a host whose clock may be another"
    refused = [pull(20_000, 0, 0, facts=["offsets=19 - - -"])]
    assert found([*BEFORE, *refused]) == [], "an answer that does not say where the queue ends"


def test_recorded() -> None:
    every = problems_of_sample(CONSUMER_LAG, "store-lost-5x.pcap")
    (title,) = [one.title for one in every if one.rule == RULE.id]
    assert title.startswith("broker-a lost stored messages: 2 queues of EmptiedTopic ended")


@pytest.mark.parametrize("name", ["fault-kill-5x.pcap", "consumer-lag-5x.pcap", "pull-5x.pcap"])
def test_silent_of_brokers_that_keep_their_messages(name: str) -> None:
    assert not [one for one in problems_of_sample(CONSUMER_LAG, name) if one.rule == RULE.id]
