"""Ticks of time: a set of numbers, also over the borders of what is kept together."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis.rules.consumers.client_hung import CHUNK, MANY_CHUNKS, Ticks

FEW = st.lists(st.integers(0, 5 * CHUNK), max_size=40)


@given(FEW, FEW, st.integers(0, 5 * CHUNK), st.integers(0, 99))
def test_ticks_are_a_set(ours: list[int], others: list[int], tick: int, seed: int) -> None:
    ticks, more = Ticks(), Ticks()
    random.Random(seed).shuffle(ours)
    ticks.add(ours)
    more.add(others)
    ticks.merge(more)
    every = {*ours, *others}
    assert list(ticks) == sorted(every)
    assert (tick in ticks) == (tick in every)
    assert ticks.last_before(tick) == max((one for one in every if one < tick), default=None)


def test_the_earlier_half_is_forgotten_where_there_are_many() -> None:
    ticks = Ticks()
    ticks.add(CHUNK * number for number in range(MANY_CHUNKS))
    ticks.forget()
    assert 0 in ticks
    ticks.add([CHUNK * MANY_CHUNKS])
    ticks.forget()
    assert 0 not in ticks
    assert CHUNK * MANY_CHUNKS in ticks
