"""Permits: never more than the limit, in order, and none lost whoever gives up."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.config import ProducerConfig
from replay.errors import ClosedError
from replay.wire import steps
from replay.wire.request import plain_request
from replay.wire.steps import Acquire, Await, Invoke, Join, Permits

MS = 1_000_000
CONFIG = ProducerConfig(group="g", namesrv="127.0.0.1:9876")


def test_the_example_of_an_operation_runs() -> None:
    ran = doctest.testmod(steps)
    assert ran.attempted > 10
    assert ran.failed == 0


def test_steps_print_themselves() -> None:
    permits = Permits(3)
    assert repr(Acquire(permits, 2, 5 * MS)) == (
        "Acquire(2 of Permits(3 of 3 free), deadline 5 ms)"
    )
    join = Join(("route", "T"), lambda: iter(()), 7 * MS, ClosedError)  # type: ignore[arg-type, return-value]
    assert repr(join) == "Join(('route', 'T'), deadline 7 ms)"
    awaited = Await(permits.wait, lambda: None, 9 * MS, ClosedError)  # type: ignore[arg-type]
    assert repr(awaited) == "Await(Permits.wait, deadline 9 ms)"
    permits.take(3)
    permits.wait(1, lambda: None)
    assert repr(permits) == "Permits(0 of 3 free, 1 waiting)"


def test_a_request_prints_its_code_and_address_and_no_field() -> None:
    request = plain_request(CONFIG, 34, {"Signature": "secret"}, b"12", oneway=True)
    invoke = Invoke("10.0.0.1:10911\x1b[2J", request, 3000 * MS)
    shown = repr(invoke)
    assert shown.startswith("Invoke(HEART_BEAT to 10.0.0.1:10911")
    assert shown.endswith("body 2 bytes, oneway, deadline 3000 ms)")
    assert "secret" not in shown
    assert shown.isprintable()


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


@pytest.mark.slow
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
