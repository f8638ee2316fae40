"""The room of a run: what is free, what reading earns, where it ended."""

from __future__ import annotations

from dissectors.budget import EACH, FREE_BYTES, MOST_TIMES, Budget


def test_room_is_what_is_free_and_what_was_read_earns() -> None:
    budget = Budget()
    assert budget.room == FREE_BYTES
    budget.earn(100)
    assert budget.room == FREE_BYTES + MOST_TIMES * 100 + EACH
    budget.spend(budget.room - 1)
    assert budget.room == 1
    budget.spend(1000)
    assert budget.room == 0


def test_what_is_said_is_the_whole() -> None:
    budget = Budget(5000)
    budget.earn(1_000_000)
    assert (budget.room, budget.checks.room) == (5000, 5000)
    budget.spend(4000)
    assert (budget.room, budget.made, budget.checks.room) == (1000, 4000, 5000)


def test_looking_has_a_room_of_its_own_that_is_bounded_alike() -> None:
    budget = Budget()
    budget.checks.spend(FREE_BYTES)
    assert (budget.room, budget.checks.room) == (FREE_BYTES, 0)
    budget.earn(1)
    assert budget.checks.room == MOST_TIMES + EACH
    assert budget.made == 0


def test_the_first_place_is_kept_and_all_are_counted() -> None:
    budget = Budget(0)
    for packet in range(3):
        budget.end(f"packet {packet}")
    assert (budget.ended, budget.first) == (3, "packet 0")


def test_a_bound_says_how_much_more_there_was_and_first_where() -> None:
    budget = Budget()
    limit = ("queues of a route", 65_536, "left out")
    bound = budget.bound(*limit)
    bound.held = 65_000
    assert (bound.room, budget.said()) == (536, [])
    budget.bound(*limit).end("of topic A", 1000)
    bound.end("of topic B")
    budget.bound("bytes of bodies in flight", 64 << 20, "sends waited").end("at packet 7")
    budget.bound("brokers of a route", 1000, "left out")
    assert budget.said() == [
        "no more than 65,536 queues of a route: 1,001 left out, first of topic A",
        "no more than 64 MiB of bodies in flight: 1 sends waited, first at packet 7",
    ]
