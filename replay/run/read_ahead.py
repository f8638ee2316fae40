"""The next steps of a plan, read by a thread while others are sent.

Rules: a limited number is held, and they are read in small portions, so that a send never waits
long for the interpreter. A problem of the sources is raised when all steps before it were given
out. Nothing is given out before `learn` was called with it read: the addresses of its captures are
known by then.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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
    """What was read at one time."""

    steps: _Steps
    size: int
    """bytes of their bodies"""
    ended: bool
    """nothing follows"""
    problem: BaseException | None = None
    """of the sources, behind these steps"""


def _portion_of(batches: Iterator[_Steps], wanted: int, room: int) -> _Portion:
    """Read a number of steps, or bytes of them; never raises what the sources raise."""
    found: _Steps = []
    size = 0
    try:
        for batch in batches:
            found += batch
            size += _size_of(batch)
            if len(found) >= wanted or size >= room:
                return _Portion(found, size, ended=False)
    except Exception as problem:
        return _Portion(found, size, ended=True, problem=problem)
    return _Portion(found, size, ended=True)


def _size_of(steps: Iterable[PlannedSend | Skipped]) -> int:
    return sum(one.size for one in steps if isinstance(one, PlannedSend))


def _place_of(steps: Iterable[PlannedSend | Skipped]) -> str:
    """Return where the last of some steps comes from."""
    for one in reversed(list(steps)):
        origin = one.origin if isinstance(one, Skipped) else one.captured.seen.origin
        return f"at packet {origin.packet} of {origin.capture}"
    return "before the first"


class ReadAhead:
    """Reads a plan; of one loop."""

    def __init__(
        self,
        batches: Iterator[_Steps],
        depth: int,
        learn: Callable[[], None],
        budget: Budget | None = None,
    ) -> None:
        """Begin to read. `depth` is how many steps are held; `learn` may refuse to go on.

        `budget`: says whether bytes bounded what was held, and not the number of steps.
        """
        self._batches = batches
        self._depth = depth
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
        """Bytes of the bodies of the steps that are held."""
        return self._bodies.held

    async def fill(self) -> None:
        """Wait until as many steps are held as may be or the plan ends, though not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FILL_SECONDS):
                while self._reading is not None:
                    await self._change()

    async def next(self) -> PlannedSend | Skipped | None:
        """Return the next step; None at the end. Raises what the sources raise, and `learn`."""
        while not self._steps:
            if self._ended:
                if self._problem is not None:
                    raise self._problem
                return None
            await self._change()
        if not self._learned:
            self._learned = True
            self._learn()
        step = self._steps.popleft()
        self._bodies.held -= _size_of((step,))
        if len(self._steps) <= self._depth - self._portion:
            self._read()
        return step

    def end(self) -> None:
        """Read nothing further; `next` gives None from now on. What is being read may go on."""
        self._ended = True
        self._problem = None
        self._steps.clear()
        self._bodies.held = 0
        self._reading = None
        self._reader.shutdown(wait=False, cancel_futures=True)
        self._news.set()

    async def ended(self) -> None:
        """Wait until nothing is being read any more, after `end`."""
        await asyncio.to_thread(self._reader.shutdown)

    async def _change(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _read(self) -> None:
        if self._reading is None and not self._ended:
            room = self._bodies.room
            if not room:
                self._bodies.end(_place_of(self._steps))
                return
            self._reading = self._loop.run_in_executor(
                self._reader, _portion_of, self._batches, self._portion, room
            )
            self._reading.add_done_callback(self._was_read)

    def _was_read(self, reading: asyncio.Future[_Portion]) -> None:
        if reading is not self._reading or reading.cancelled():
            return  # ended meanwhile
        self._reading = None
        read = reading.result()
        self._steps += read.steps
        self._bodies.held += read.size
        self._learned = self._learned and not read.steps
        self._ended, self._problem = read.ended, read.problem
        if len(self._steps) < self._depth:
            self._read()
        self._news.set()
