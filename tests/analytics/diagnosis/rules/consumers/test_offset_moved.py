from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rules.consumers.offset_moved import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

PULL = int(RequestCode.PULL_MESSAGE)
MOVED = int(ResponseCode.PULL_OFFSET_MOVED)


@pytest.mark.parametrize(
    ("generation", "severity", "why"),
    [
        ("4x", ProblemSeverity.ERROR, "the offset is outside the queue"),
        (
            "5x",
            ProblemSeverity.WARNING,
            "its program asks for an offset that the queue does not have",
        ),
    ],
)
def test_a_pull_far_beyond_the_end(generation: str, severity: ProblemSeverity, why: str) -> None:
    """A heartbeat, which the one of 4.x does not have, says that it is a pull consumer."""
    (one,) = problems_of_sample(RULE, f"pull-{generation}.pcap")
    assert one.title == (
        "pull_group pulls PullTopic on broker-a at offset 1,000,000 where the queue ends at 2,"
        f" in 4 queues: {why}"
    )
    assert (one.count, one.severity) == (4, severity)


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_an_offset_that_is_of_another_queue(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"offset-moved-{generation}.pcap")
    assert one.title == (
        "moved_group pulls MovedTopic on broker-a at offset 500 where the queue ends at 2, in 2"
        " queues: the offset is outside the queue"
    )
    assert (one.count, one.subject.client) == (2, "127.0.0.1@consumer")


def test_a_reset_by_an_administrator_is_another_problem() -> None:
    assert problems_of_sample(RULE, "admin-5x.pcap") == []


def test_messages_that_were_deleted_before_they_were_consumed() -> None:
    row = exchange(
        0,
        PULL,
        MOVED,
        topic="orders",
        group="bills",
        queue_id=3,
        remark="OFFSET_TOO_SMALL",
        facts=["offsets=100 5000 5000 9000"],
    )
    (one,) = problems(RULE, [row])
    assert one.title == (
        "bills asks orders on 10.0.0.1:10911 for messages that were already deleted, in queue 3:"
        " 4,900 messages were never consumed"
    )
    assert one.subject.queue == 3


def test_pulls_just_beyond_the_end_are_normal() -> None:
    assert problems_of_sample(RULE, "push-consumer-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, sample("pull-5x.pcap").exchanges)
