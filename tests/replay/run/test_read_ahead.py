"""Reading ahead: all steps in order, no more than may be held, problems where they belong."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator

import pytest

from dissectors.budget import Budget
from replay.captured.captured_send import CapturedSend, Origin, SkipReason
from replay.plan.planned_run import PORTION_BYTES, portions_of
from replay.plan.planner import PlannedSend, Planner, PlanOptions, Skipped
from replay.run.read_ahead import MOST_BYTES, ReadAhead

from ..replayed import captured, seen

Steps = list[PlannedSend | Skipped]


def _skipped(number: int) -> Skipped:
    origin = Origin("x.pcap", number, 0, "10.0.0.1:1", "10.0.0.2:2", 0, 0)
    return Skipped(origin, SkipReason.NOT_A_SEND)


class _Plan:
    """Batches of ten; says how many steps were read."""

    def __init__(self, batches: int, problem: BaseException | None = None) -> None:
        self.read = 0
        self._batches = batches
        self._problem = problem

    def __iter__(self) -> Iterator[Steps]:
        for _ in range(self._batches):
            first = self.read
            self.read += 10
            yield [_skipped(number) for number in range(first, first + 10)]
        if self._problem is not None:
            raise self._problem


def _packet(one: PlannedSend | Skipped) -> int:
    return one.origin.packet


@pytest.mark.parametrize("depth", [1, 50, 4096])
def test_all_steps_come_in_order(depth: int) -> None:
    async def run() -> list[int]:
        ahead = ReadAhead(iter(_Plan(100)), depth, lambda: None)
        found = []
        while (one := await ahead.next()) is not None:
            found.append(_packet(one))
        ahead.end()
        return found

    assert asyncio.run(run()) == list(range(1000))


def test_no_more_is_held_than_may_be() -> None:
    plan = _Plan(10_000)

    async def run() -> None:
        ahead = ReadAhead(iter(plan), 500, lambda: None)
        await ahead.fill()
        assert 500 <= plan.read <= 500 + 128 + 10
        for _ in range(1000):
            await ahead.next()
        await ahead.fill()
        assert plan.read <= 1500 + 128 + 10
        ahead.end()

    asyncio.run(run())


def test_a_problem_is_raised_behind_what_was_read_before() -> None:
    async def run() -> None:
        ahead = ReadAhead(iter(_Plan(3, OSError("gone"))), 4096, lambda: None)
        await ahead.fill()
        given = [await ahead.next() for _ in range(30)]
        assert None not in given
        with pytest.raises(OSError, match="gone"):
            await ahead.next()
        ahead.end()

    asyncio.run(run())


def test_addresses_are_learnt_before_a_step_is_given_out() -> None:
    plan = _Plan(100)
    learnt = []

    async def run() -> None:
        ahead = ReadAhead(iter(plan), 40, lambda: learnt.append(plan.read))
        while (one := await ahead.next()) is not None:
            assert learnt, "nothing was learnt"
            assert learnt[-1] > _packet(one)
        ahead.end()

    asyncio.run(run())


def test_who_refuses_what_was_learnt_gives_out_nothing() -> None:
    def refuse() -> None:
        raise PermissionError("a captured address")

    async def run() -> None:
        ahead = ReadAhead(iter(_Plan(2)), 4, refuse)
        with pytest.raises(PermissionError):
            await ahead.next()
        ahead.end()

    asyncio.run(run())


def test_the_end_ends_who_waits() -> None:
    async def run() -> PlannedSend | Skipped | None:
        never = asyncio.Event()

        def slow() -> Iterator[Steps]:
            asyncio.run_coroutine_threadsafe(asyncio.wait_for(never.wait(), 5), loop).result()
            yield [_skipped(1)]

        loop = asyncio.get_running_loop()
        ahead = ReadAhead(slow(), 4096, lambda: None)
        loop.call_later(0.05, ahead.end)
        found = await asyncio.wait_for(ahead.next(), 2)
        never.set()
        return found

    assert asyncio.run(run()) is None


def test_filling_takes_no_longer_than_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replay.run.read_ahead._FILL_SECONDS", 0.05)

    async def run() -> None:
        go_on = asyncio.Event()

        def slow() -> Iterator[Steps]:
            yield [_skipped(number) for number in range(200)]
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()

        loop = asyncio.get_running_loop()
        ahead = ReadAhead(slow(), 4096, lambda: None)
        await asyncio.wait_for(ahead.fill(), 2)
        assert await ahead.next() is not None
        go_on.set()
        ahead.end()

    asyncio.run(run())


def _compressed(number: int) -> CapturedSend:
    """A send of some hundred bytes whose body is 4 MiB."""
    body = zlib.compress(bytes(4 << 20))
    return captured(seen(number * 1_000_000, key=f"K{number}", body=body, sys_flag=1))


@pytest.mark.slow
def test_bodies_are_bounded_by_their_bytes() -> None:
    sends = [_compressed(number) for number in range(60)]
    held: list[int] = []
    budget = Budget()

    async def run() -> int:
        portions = portions_of(Planner(PlanOptions(), budget=Budget(1 << 30)).steps(sends))
        ahead = ReadAhead(portions, 4096, lambda: None, budget)
        await ahead.fill()
        count = 0
        while (one := await ahead.next()) is not None:
            assert isinstance(one, PlannedSend)
            count += 1
            held.append(ahead.held_bytes)
        (said,) = budget.said()
        assert said.startswith("no more than 64 MiB of bodies read ahead: ")
        assert "times reading waited, first at packet " in said
        ahead.end()
        return count

    assert asyncio.run(run()) == 60
    assert max(held) <= MOST_BYTES + PORTION_BYTES + (4 << 20)
