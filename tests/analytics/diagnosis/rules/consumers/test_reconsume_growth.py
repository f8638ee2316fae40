from __future__ import annotations

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.consumers.reconsume_growth import RULE

from ...made_rows import problems, problems_of_sample, same_in_any_order
from .test_dead_letter import back

AGAIN = [back(10 * place, place, limit=16) for place in range(1, 5)]


def test_a_message_that_is_returned_again_and_again() -> None:
    (one,) = problems(RULE, AGAIN)
    assert one.title == (
        "bills failed to consume message K1 4 times; the broker keeps redelivering it"
    )
    assert (one.count, one.subject.message, one.subject.topic) == (1, "K1", "orders")


def test_two_returns_are_no_problem() -> None:
    assert problems(RULE, AGAIN[:2]) == []


def test_dead_letters_are_told_by_their_own_rule() -> None:
    assert problems_of_sample(RULE, "push-retry-dlq-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    others = [back(10 * place + 1, place, limit=16, unique_key="K2") for place in range(5, 9)]
    assert same_in_any_order(RULE, AGAIN + others)


def test_an_old_client_gives_each_delivery_another_id() -> None:
    rows = [back(10 * place, place, limit=None, unique_key=f"K{place}") for place in range(1, 17)]
    (one,) = problems(RULE, rows)
    assert one.title.startswith("bills returned 16 deliveries within ")
    assert one.confidence is Confidence.LIKELY
    assert problems(RULE, rows[:15]) == []
    newer = [back(10 * one, one, limit=16, unique_key=f"K{one}") for one in range(1, 17)]
    assert problems(RULE, newer) == []
