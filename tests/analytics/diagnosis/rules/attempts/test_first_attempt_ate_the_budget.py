"""first-attempt-ate-the-budget: one attempt that lasted as long as all may."""

from __future__ import annotations

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.attempts.first_attempt_ate_the_budget import RULE

from ...made_rows import problems, problems_of_sample, same_in_any_order
from .made_sends import OTHER, given_up, send


def test_one_attempt_of_three_seconds() -> None:
    row, closed = given_up(1000, 1, 3002, 1)
    (one,) = problems(RULE, [row], [closed])
    assert one.title == (
        "1 send of group shop was not retried: the first attempt used up the whole timeout (3 s)"
    )
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert same_in_any_order(RULE, [row], [closed])


def test_silent_where_it_was_tried_again() -> None:
    row, closed = given_up(1000, 1, 600, 1)
    again = send(1600, 1, server_address=OTHER, conversation=2)
    assert problems(RULE, [row, again], [closed]) == []
    assert problems_of_sample(RULE, "fault-freeze-plain-5x.pcap") == []
