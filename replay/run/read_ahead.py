"""The next steps of a plan, read by a thread while others are sent.

Rules: so many are held and no more, and they are read in small portions, so that a send never waits
long for the interpreter. A problem of the sources is raised when all steps before it were given
out. Nothing is given out before `learn` was called with it read: the addresses of its captures are
known by then.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple

from .plan import Skipped, Step

DEPTH: Final = 4096
"""steps that are held: seconds of work, as long as the longest look ahead takes"""
_AT_A_TIME: Final = 128
"""steps that are read at a time, at least"""
_FILL_SECONDS: Final = 2.0
"""where few of many commands are steps, the others are read while these are sent"""

_Steps = list[Step | Skipped]


class _Portion(NamedTuple):
    """What was read at one time."""

    steps: _Steps
    ended: bool
    """nothing follows"""
    problem: BaseException | None = None
    """of the sources, behind these steps"""


def _portion_of(batches: Iterator[_Steps], wanted: int) -> _Portion:
    """Read so many steps at least while there are some; never raises what the sources raise."""
    found: _Steps = []
    try:
        for batch in batches:
            found += batch
            if len(found) >= wanted:
                return _Portion(found, ended=False)
    except Exception as problem:
        return _Portion(found, ended=True, problem=problem)
    return _Portion(found, ended=True)


class ReadAhead:
    """Reads a plan; of one loop."""

    def __init__(self, batches: Iterator[_Steps], depth: int, learn: Callable[[], None]) -> None:
        """Begin to read. `depth` is how many steps are held; `learn` may refuse to go on."""
        self._batches = batches
        self._depth = depth
        self._portion = min(depth, _AT_A_TIME)
        self._learn = learn
        self._learned = True
        self._steps: deque[Step | Skipped] = deque()
        self._reading: asyncio.Future[_Portion] | None = None
        self._ended = False
        self._problem: BaseException | None = None
        self._news = asyncio.Event()
        self._reader = ThreadPoolExecutor(1, "replay-source")
        self._loop = asyncio.get_running_loop()
        self._read()

    async def fill(self) -> None:
        """Wait until as many steps are held as may be or the plan ends, though not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FILL_SECONDS):
                while self._reading is not None:
                    await self._change()

    async def next(self) -> Step | Skipped | None:
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
        if len(self._steps) <= self._depth - self._portion:
            self._read()
        return step

    def end(self) -> None:
        """Read nothing further; `next` gives None from now on. What is being read may go on."""
        self._ended = True
        self._problem = None
        self._steps.clear()
        self._reading = None
        self._reader.shutdown(wait=False, cancel_futures=True)
        self._news.set()

    async def _change(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _read(self) -> None:
        if self._reading is None and not self._ended:
            self._reading = self._loop.run_in_executor(
                self._reader, _portion_of, self._batches, self._portion
            )
            self._reading.add_done_callback(self._was_read)

    def _was_read(self, reading: asyncio.Future[_Portion]) -> None:
        if reading is not self._reading or reading.cancelled():
            return  # ended meanwhile
        self._reading = None
        read = reading.result()
        self._steps += read.steps
        self._learned = self._learned and not read.steps
        self._ended, self._problem = read.ended, read.problem
        if len(self._steps) < self._depth:
            self._read()
        self._news.set()
