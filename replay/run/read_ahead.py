"""Read the next steps of a plan in a thread while others are sent.

Rules: a limited number of steps is held and read in small portions. A source error is raised after
all earlier steps are returned. `learn` is called before a step is returned.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple

from dissectors.budget import Budget

from ..plan.planner import PlannedSend, Skipped

DEPTH: Final = 4096
"""steps that are held: seconds of work, as long as the longest look ahead takes"""
MOST_BYTES: Final = 64 * 1024 * 1024
"""bytes of their bodies, decompressed, and of those in flight: a portion or a step more at most"""
READ_AHEAD: Final = ("bytes of bodies read ahead", MOST_BYTES, "times reading waited")
IN_FLIGHT: Final = ("bytes of bodies in flight", MOST_BYTES, "sends waited")
_AT_A_TIME: Final = 128
"""steps that are read at a time, at least"""
_FILL_SECONDS: Final = 2.0
"""where few of many commands are steps, the others are read while these are sent"""

_Steps = list[PlannedSend | Skipped]


class _Portion(NamedTuple):
    """Steps that were read in one go."""

    steps: _Steps
    size: int
    """bytes of their bodies"""
    ended: bool
    """nothing follows"""
    problem: BaseException | None = None
    """of the sources, behind these steps"""


def _portion_of(batches: Iterator[_Steps], wanted: int, room: int) -> _Portion:
    """Read steps up to a number or size; return source errors instead of raising."""
    steps: _Steps = []
    size = 0
    try:
        for batch in batches:
            steps += batch
            size += _size_of(batch)
            if len(steps) >= wanted or size >= room:
                return _Portion(steps, size, ended=False)
    except Exception as problem:
        return _Portion(steps, size, ended=True, problem=problem)
    return _Portion(steps, size, ended=True)


def _size_of(steps: Iterable[PlannedSend | Skipped]) -> int:
    return sum(step.size for step in steps if isinstance(step, PlannedSend))


def _place_of(steps: Sequence[PlannedSend | Skipped]) -> str:
    """Return the origin of the last step."""
    if not steps:
        return "before the first"
    origin = steps[-1].origin
    return f"at packet {origin.packet} of {origin.capture}"


class ReadAhead:
    """Reads the steps of one plan for one event loop."""

    def __init__(
        self,
        batches: Iterator[_Steps],
        depth: int,
        learn: Callable[[], None],
        budget: Budget | None = None,
    ) -> None:
        """Start reading. `depth` is the number of steps to hold; `learn` may raise to stop the run.

        `budget`: records whether bytes, not the number of steps, were the limit.
        """
        self._batches = batches
        self._depth = depth
        # small, so that a send never waits long for the interpreter lock
        self._portion = min(depth, _AT_A_TIME)
        self._bodies = (Budget() if budget is None else budget).bound(*READ_AHEAD)
        self._bodies.held = 0
        self._learn = learn
        self._learned = True
        self._steps: deque[PlannedSend | Skipped] = deque()
        self._reading: asyncio.Future[_Portion] | None = None
        self._ended = False
        self._problem: BaseException | None = None
        self._news = asyncio.Event()
        self._reader = ThreadPoolExecutor(1, "replay-source")
        self._loop = asyncio.get_running_loop()
        self._read()

    @property
    def held_bytes(self) -> int:
        """Body bytes of the held steps."""
        return self._bodies.held

    async def fill(self) -> None:
        """Wait, for a limited time, until the buffer is full or the plan ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FILL_SECONDS):
                while self._reading is not None:
                    await self._change()

    async def next(self) -> PlannedSend | Skipped | None:
        """Return the next step, or None at the end. Raises errors of the sources and of `learn`."""
        while not self._steps:
            if self._ended:
                if self._problem is not None:
                    raise self._problem
                return None
            await self._change()
        if not self._learned:
            self._learned = True
            # before the step leaves: nothing may be sent to an address of its capture
            self._learn()
        step = self._steps.popleft()
        self._bodies.held -= _size_of((step,))
        if len(self._steps) <= self._depth - self._portion:
            self._read()
        return step

    def end(self) -> None:
        """Stop reading; `next` returns None from now on. A read in progress may continue."""
        self._ended = True
        self._problem = None
        self._steps.clear()
        self._bodies.held = 0
        # a read that is still running finds this, and its steps are dropped
        self._reading = None
        self._reader.shutdown(wait=False, cancel_futures=True)
        self._news.set()

    async def ended(self) -> None:
        """Wait until the reading has stopped, after `end`."""
        await asyncio.to_thread(self._reader.shutdown)

    async def _change(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _read(self) -> None:
        if self._reading is None and not self._ended:
            room = self._bodies.room
            if not room:
                # `next` reads on when it has taken bodies out
                self._bodies.end(_place_of(self._steps))
                return
            self._reading = self._loop.run_in_executor(
                self._reader, _portion_of, self._batches, self._portion, room
            )
            self._reading.add_done_callback(self._was_read)

    def _was_read(self, reading: asyncio.Future[_Portion]) -> None:
        if reading is not self._reading or reading.cancelled():
            return  # ended in the meantime
        self._reading = None
        read = reading.result()
        self._steps += read.steps
        self._bodies.held += read.size
        self._learned = self._learned and not read.steps
        self._ended, self._problem = read.ended, read.problem
        if len(self._steps) < self._depth:
            self._read()
        self._news.set()
