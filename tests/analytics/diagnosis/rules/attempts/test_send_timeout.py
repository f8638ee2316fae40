"""send-timeout: what clients gave up, and what they did not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.attempts.send_timeout import RULE

from ...made_rows import connection, problems, problems_of_sample, same_in_any_order, sample
from .made_sends import given_up, send

SUBJECT = Subject(broker="broker-a", topic="FaultTopic", group="sample_group")


@pytest.mark.parametrize(
    ("name", "count", "confidence", "title"),
    [
        (
            "fault-freeze-5x.pcap",
            1,
            Confidence.LIKELY,
            "broker-a did not respond to 1 send to topic FaultTopic in time: the producer timed out"
            " after 1.5 s",
        ),
        (
            "fault-freeze-plain-5x.pcap",
            6,
            Confidence.CERTAIN,
            "broker-a did not respond to 6 sends to topic FaultTopic in time: the producer timed"
            " out after 505 ms to 516 ms",
        ),
    ],
)
def test_sends_to_a_frozen_broker(
    name: str, count: int, confidence: Confidence, title: str
) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert (one.title, one.count, one.confidence, one.subject) == (
        title,
        count,
        confidence,
        SUBJECT,
    )


@pytest.mark.parametrize(
    "name",
    ["fault-kill-5x.pcap", "one-direction-5x.pcap", "removed-5x.pcap", "send-oneway-5x.pcap"],
)
def test_silent_where_nobody_gave_up(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-freeze-plain-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def test_a_timeout_that_is_learnt_is_certain() -> None:
    made = [given_up(at * 1000, at, 3001, at) for at in (1, 5, 9)]
    (one,) = problems(RULE, [row for row, _ in made], [row for _, row in made])
    assert one.count == 3
    assert one.confidence is Confidence.LIKELY  # keys that say no time teach nothing


def test_a_client_that_stops_and_one_that_still_waits_are_silent() -> None:
    row, closed = given_up(1000, 1, 50, 1)
    assert problems(RULE, [row], [closed]) == []
    waiting = send(1000, 2, None, end="open")
    assert problems(RULE, [waiting], [connection(0, 9000, end="open", ended_by=None)]) == []


def test_a_client_gave_up_at_its_own_fin_not_at_the_one_of_a_broker_that_was_frozen() -> None:
    late = {"facts": ["closing_us=3000000"]}
    sends = [given_up(at * 1000, at, 4000, at)[0] for at in (1, 5, 9)]
    ended = [connection(at * 1000 - 1, 4001, at, **late) for at in (1, 5, 9)]
    (one,) = problems(RULE, sends, ended)
    assert one.title.endswith("the producer timed out after 1 s")
