from __future__ import annotations

import pytest

from analytics.diagnosis.rules.transactions.check_back_loop import RULE

from ...made_rows import problems, problems_of_sample, same_in_any_order
from .half_rows import check, end, half

LOOP = [
    half(0),
    *(check(6000 * number) for number in range(1, 5)),
    *(end(6000 * number + 5, "unknown") for number in range(1, 5)),
]


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_three_messages_that_nobody_decides(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"transaction-undecided-{generation}.pcap")
    assert one.title == (
        "the broker checked back 4 times each for 3 half messages of undecided_group to"
        " UndecidedTopic: the response was always unknown"
    )
    assert (one.count, one.subject.client) == (12, "127.0.0.1@producer")


def test_a_producer_that_never_knows() -> None:
    (one,) = problems(RULE, LOOP)
    assert one.title == (
        "the broker checked back 4 times for half message K1 of shop to orders: the response was"
        " always unknown"
    )
    assert (one.count, one.subject.group, one.subject.message) == (4, "shop", "K1")


def test_nobody_answers() -> None:
    (one,) = problems(RULE, [check(1000 * number) for number in range(3)])
    assert one.title == "the broker checked back 3 times for half message K1: no producer responded"


def test_a_decision_ends_it() -> None:
    assert problems(RULE, [*LOOP, end(30_000, "rollback")]) == []


def test_two_checks_are_normal() -> None:
    assert problems(RULE, LOOP[:3]) == []
    assert problems_of_sample(RULE, "transaction-4x.pcap") == []


def test_both_hops_of_a_relay_are_one_check() -> None:
    inner = [check(6000 * number + 1, client_address="10.0.0.3:8080") for number in range(1, 3)]
    assert problems(RULE, [*LOOP[:3], *inner]) == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, LOOP)


def test_checks_that_rotate_over_producers_are_counted_together() -> None:
    producers = [f"10.0.0.{9 + number % 4}:40000" for number in range(8)]
    rows = [half(0), *(check(6000 + 30_000 * n, server_address=p) for n, p in enumerate(producers))]
    (one,) = problems(RULE, rows)
    assert one.title.startswith("the broker checked back 8 times for half message K1")
    assert one.details[0].startswith("producers: 10.0.0.10, 10.0.0.11")
    assert same_in_any_order(RULE, rows)
