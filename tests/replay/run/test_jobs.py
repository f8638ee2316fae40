"""Steps that wait for each other are sent by one process."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import cast

from replay.plan.planner import PlannedSend
from replay.run.jobs import LaneShares


def step(number: int, *lanes: object) -> PlannedSend:
    return cast(PlannedSend, SimpleNamespace(number=number, lanes=lanes))


def test_all_steps_of_joined_lanes_go_to_one_process() -> None:
    rng = random.Random(7)
    steps = []
    for number in range(4000):
        talk = rng.randrange(40)
        keys = [("key", talk // 4, rng.randrange(5))]  # four connections share their keys
        steps.append(step(number, ("talk", talk), *keys))
    shares = LaneShares(3)
    for one in steps:
        shares.add(one)
    shares.deal()
    jobs: dict[object, set[int]] = {}
    for one in steps:
        for lane in one.lanes:
            jobs.setdefault(lane, set()).add(shares.job_of(one))
    assert all(len(found) == 1 for found in jobs.values())
    assert sum(shares.sends) == len(steps)
    assert min(shares.sends) > len(steps) / 3 / 2
    assert shares.largest < 0.6


def test_steps_without_lanes_are_dealt_out_in_turn() -> None:
    shares = LaneShares(2)
    steps = [step(number) for number in range(10)]
    for one in steps:
        shares.add(one)
    shares.deal()
    assert [shares.job_of(one) for one in steps] == [0, 1] * 5
    assert shares.largest == 0.5


def test_one_long_order_is_one_process() -> None:
    shares = LaneShares(4)
    for number in range(100):
        shares.add(step(number, ("talk", 1)))
    shares.deal()
    assert shares.largest == 1.0
    assert sorted(shares.sends) == [0, 0, 0, 100]


def test_nothing_to_share() -> None:
    shares = LaneShares(2)
    shares.deal()
    assert shares.largest == 0.0
