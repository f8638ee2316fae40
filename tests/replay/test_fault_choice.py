"""Choices that hold for any reports: what may be chosen, and for how long."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.fault import GENERATIONS, AttemptEvent, FaultSettings, FaultStrategy
from tests.replay.queues import table_of

every_generation = pytest.mark.parametrize("generation", GENERATIONS)
BROKERS = ("a", "b", "c")
reports = st.lists(
    st.tuples(
        st.sampled_from(BROKERS),
        st.sampled_from(AttemptEvent),
        st.integers(0, 20_000),
        st.integers(0, 500),
    ),
    max_size=12,
)


@every_generation
@given(
    reports=reports,
    last=st.sampled_from([None, *BROKERS]),
    enabled=st.booleans(),
    start=st.integers(0, 50),
)
def test_select_keeps_to_what_is_allowed(
    generation: str,
    reports: list[tuple[str, AttemptEvent, int, int]],
    last: str | None,
    enabled: bool,
    start: int,
) -> None:
    """What `allowed` says of a choice is what `select` does, and choosing changes no item."""
    strategy = FaultStrategy(FaultSettings(generation, enabled), Random(7))
    now = 0
    for broker, event, latency, later in reports:
        now += later
        strategy.report(broker, event, latency, now)
    items = [(item.name, item.start_timestamp) for item in strategy.items()]
    allowed, why = strategy.allowed(BROKERS, last, now)
    choice = strategy.select(table_of(*BROKERS, start=start), last, last is not None, now)
    assert choice.queue.broker_name in allowed
    assert choice.why == why
    assert [(item.name, item.start_timestamp) for item in strategy.items()] == items
    assert enabled or not items


@every_generation
@given(reports=reports)
def test_a_broker_comes_back_when_its_time_is_over(
    generation: str, reports: list[tuple[str, AttemptEvent, int, int]]
) -> None:
    strategy = FaultStrategy(FaultSettings(generation))
    now = 0
    for broker, event, latency, later in reports:
        now += later
        before = strategy.isolated_until(broker)
        strategy.report(broker, event, latency, now)
        after = strategy.isolated_until(broker)
        assert after <= max(before, now + max(strategy.settings.not_available))
        assert generation != "5.1" or after >= before
    for broker in BROKERS:
        until = strategy.isolated_until(broker)
        assert strategy.is_available(broker, until)
        assert until == 0 or not strategy.is_available(broker, until - 1)


@given(start=st.integers(0, 100), count=st.integers(1, 30))
def test_while_all_is_well_queues_take_turns(start: int, count: int) -> None:
    for generation in GENERATIONS:
        for enabled in (False, True):
            strategy = FaultStrategy(FaultSettings(generation, enabled))
            table = table_of("a", "b", start=start)
            chosen = [strategy.select(table).queue for _ in range(count)]
            every = table.queues
            assert chosen == [every[(start + 1 + n) % len(every)] for n in range(count)]
