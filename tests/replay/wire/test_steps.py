"""Permits: never more than the limit, in order, and none lost whoever gives up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replay.steps import Permits


def test_who_waits_is_served_in_order() -> None:
    permits = Permits(2)
    assert permits.take()
    assert permits.take()
    assert not permits.take()
    served: list[str] = []
    permits.wait(2, lambda: served.append("two"))
    permits.wait(1, lambda: served.append("one"))
    permits.give()
    assert served == [], "the first one wants two"
    permits.give()
    assert served == ["two"]
    assert not permits.take()
    permits.give()
    assert served == ["two", "one"]


def test_who_gives_up_lets_the_next_one_have_them() -> None:
    permits = Permits(3)
    assert permits.take(2)
    served: list[str] = []
    forget = permits.wait(2, lambda: served.append("two"))
    permits.wait(1, lambda: served.append("one"))
    forget()
    assert served == ["one"]
    permits.give(3)
    assert permits.free == 3


def test_many_that_give_back_at_once_do_not_nest() -> None:
    permits = Permits(1)
    assert permits.take()
    served = 0

    def ready() -> None:
        nonlocal served
        served += 1
        permits.give()

    for _ in range(100_000):
        permits.wait(1, ready)
    permits.give()
    assert served == 100_000
    assert permits.free == 1


@given(st.lists(st.tuples(st.sampled_from(["take", "give", "wait", "forget"]), st.integers(1, 3))))
def test_permits_are_neither_made_nor_lost(moves: list[tuple[str, int]]) -> None:
    permits = Permits(4)
    held: list[int] = []
    waiting: list[object] = []
    for move, count in moves:
        if move == "take" and permits.take(count):
            held.append(count)
        elif move == "give" and held:
            permits.give(held.pop())
        elif move == "wait":
            waiting.append(permits.wait(count, lambda c=count: held.append(c)))
        elif move == "forget" and waiting:
            forget = waiting.pop()
            assert callable(forget)
            forget()
        assert permits.free + sum(held) == 4
        assert permits.free >= 0
