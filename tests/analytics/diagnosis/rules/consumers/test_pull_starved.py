"""pull-starved: long polls one after another, while another queue has messages."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.consumers.pull_starved import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import START, exchange, problems, problems_of_sample, same_in_any_order, sample

PULL = int(RequestCode.PULL_MESSAGE)


def pull(at: int, queue: int, took: int, stored: int | None = None) -> ExchangeRecord:
    """Return a pull; times in seconds, `stored` when its first message was."""
    facts = ["offsets=0 1 0 9"]
    if stored is not None:
        facts.append(f"stored_ms={START // 1_000_000 + stored * 1000}")
    return exchange(
        at * 1000,
        PULL,
        19 if stored is None else 0,
        latency_ms=took * 1000,
        topic="T",
        group="cg",
        queue_id=queue,
        message_count=None if stored is None else 3,
        facts=facts,
    )


def serial() -> list[ExchangeRecord]:
    """Return pulls of three queues in turn: messages come into queue 1 at 5 s and 35 s."""
    turns = [pull(0, 0, 10), pull(10, 1, 10), pull(20, 2, 10), pull(30, 0, 10)]
    turns += [pull(40, 1, 0, stored=22), pull(41, 2, 10), pull(51, 0, 10)]
    return [*turns, pull(61, 1, 0, stored=45)]


def test_messages_wait_while_the_client_does() -> None:
    (one,) = problems(RULE, serial())
    assert one.title == (
        "consumer 10.0.0.9 of group cg pulls its queues one by one: while it waited for queues 0"
        " and 2, 6 messages of queue 1 of T waited up to 18 s for its next pull"
    )
    assert (one.count, one.subject.queue) == (2, 1)
    assert same_in_any_order(RULE, serial())


def test_a_client_that_pulls_its_queues_at_a_time_is_none() -> None:
    assert problems(RULE, [*serial(), pull(45, 3, 12)]) == []


def test_messages_that_came_just_now_are_none() -> None:
    rows = [pull(0, 0, 10), pull(10, 1, 10), pull(20, 2, 10)]
    assert problems(RULE, [*rows, pull(30, 1, 0, stored=29), pull(40, 1, 0, stored=39)]) == []


@pytest.mark.parametrize("name", ["pull-starved-5x.pcap", "pull-starved-4x.pcap"])
def test_a_pull_consumer_that_waits_at_empty_queues(name: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.subject == Subject(
        broker="broker-a",
        topic="StarvedTopic",
        group="starved_group",
        client="127.0.0.1@consumer@STREAM",
        queue=1,
    )
    assert " waited for queues 0 and 2, " in one.title
    assert same_in_any_order(RULE, sample(name).exchanges)


@pytest.mark.parametrize("name", ["pull-5x.pcap", "lite-pull-5x.pcap", "push-consumer-5x.pcap"])
def test_silent_where_nothing_waits(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
