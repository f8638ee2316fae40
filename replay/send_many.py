"""Send many messages through an asynchronous producer: concurrently, at a rate, until stopped.

Rules: one worker per message in flight, no task per message; each takes the next message when its
last one has ended, so a slow broker slows down reading. After `stop` no message is taken, and those
in flight end normally. Messages keep their due times, so late ones catch up with the rate.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from stat import S_ISREG
from time import monotonic
from typing import Final, Generic, Protocol, TypeVar

from dissectors.open_files import require_files
from dissectors.times import SECOND

from .async_producer import AsyncProducer
from .config import ProducerConfig
from .errors import ClientError
from .plan.pace import Rate

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")

_CHUNK: Final = 1 << 16
_MOST_BUFFERED: Final = 1 << 20
"""bytes of lines that are read ahead"""


class Feed(Protocol[T_co]):
    """Where messages come from."""

    async def next(self) -> T_co | None:
        """Return the next item, or None at the end."""

    def close(self) -> None:
        """Close the feed: a pending `next` returns None."""


class IteratorFeed(Generic[T]):
    """A feed of the items of an iterator."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items

    async def next(self) -> T | None:
        """Return the next item, or None at the end."""
        return next(self._items, None)

    def close(self) -> None:
        """Close the feed."""
        self._items = iter(())


class LineFeed(Generic[T]):
    """A feed of decoded lines of a file, pipe, or terminal, without blocking the loop."""

    def __init__(self, number: int, decode: Callable[[bytes], T | None], longest: int) -> None:
        """Read an open file descriptor; `decode` returns None for a line to skip.

        Longer lines are truncated to `longest` bytes, which bounds a source without line ends.
        """
        self._number = number
        self._decode = decode
        self._longest = longest
        self._lines: deque[bytes] = deque()
        self._held = 0
        self._parts: list[bytes] = []
        self._part_bytes = 0
        self._ended = False
        self._watched = False
        self._arrived = asyncio.Event()
        self._regular = S_ISREG(os.fstat(number).st_mode)
        """read without waiting"""

    async def next(self) -> T | None:
        """Return the next item, or None at the end."""
        while True:
            while self._lines:
                line = self._lines.popleft()
                self._held -= len(line)
                item = self._decode(line)
                if item is not None:
                    return item
            if self._ended:
                return None
            await self._wait()

    def close(self) -> None:
        """Close the feed."""
        self._unwatch()
        self._lines.clear()
        self._ended = True
        self._arrived.set()

    async def _wait(self) -> None:
        if self._regular:
            self._read()
            return
        if not self._watched:
            try:
                asyncio.get_running_loop().add_reader(self._number, self._read)
            except PermissionError:  # a device such as /dev/null, which is always ready
                self._regular = True
                return
            self._watched = True
        self._arrived.clear()
        await self._arrived.wait()

    def _read(self) -> None:
        try:
            data = os.read(self._number, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._unwatch()
            self._ended = True
            if self._parts:
                self._keep(b"".join(self._parts))
        else:
            self._cut(data)
            # `_wait` watches again when these are taken
            if self._held > _MOST_BUFFERED:
                self._unwatch()
        self._arrived.set()

    def _cut(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._parts.append(first)
        self._part_bytes += len(first)
        for part in others:
            self._keep(b"".join(self._parts))
            self._parts, self._part_bytes = [part], len(part)
        if self._part_bytes > self._longest:
            self._keep(b"".join(self._parts))
            self._parts, self._part_bytes = [], 0

    def _keep(self, line: bytes) -> None:
        self._lines.append(line)
        self._held += len(line)

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            asyncio.get_running_loop().remove_reader(self._number)


class BatchFeed(Generic[T]):
    """Groups the items of a feed into batches."""

    def __init__(self, feed: Feed[T], most: int, together: Callable[[T, T], bool]) -> None:
        self._feed = feed
        self._most = most
        self._together = together
        self._next: T | None = None
        self._lock = asyncio.Lock()

    async def next(self) -> Sequence[T] | None:
        """Return the next batch, or None at the end."""
        if self._most == 1:
            item = await self._feed.next()
            return None if item is None else (item,)
        # one worker at a time: a batch takes several items, and may leave one to the next
        async with self._lock:
            batch: list[T] = []
            while len(batch) < self._most:
                item, self._next = self._next, None
                if item is None:
                    item = await self._feed.next()
                if item is None:
                    break
                if batch and not self._together(batch[0], item):
                    self._next = item
                    break
                batch.append(item)
            return batch or None

    def close(self) -> None:
        """Close the underlying feed."""
        self._feed.close()


class ManySends(Protocol[T, R]):
    """What `send_many` sends, and how."""

    in_flight: int
    """sends at once"""
    rate: Rate | None
    """messages per second; None: as fast as possible"""

    def feed(self) -> Feed[T]:
        """Return the feed; called once, when the loop runs."""

    def send(self, producer: AsyncProducer, item: T) -> Awaitable[R]:
        """Send an item."""

    def weight(self, item: T) -> int:
        """Return the number of messages of an item."""

    def ended(self, item: T, result: R | None, error: ClientError | None) -> None:
        """Handle the result of an item."""


def send_many(
    config: ProducerConfig,
    sends: ManySends[T, R],
    stoppable: Callable[[Callable[[], None]], AbstractContextManager[None]],
) -> float:
    """Send until the feed ends and nothing is in flight; return the duration in seconds.

    `stoppable` receives the stop function, which a signal handler may call; it is entered while
    messages are taken. Raises errors of the producer's start.
    """
    require_files()
    return asyncio.run(_send_many(config, sends, stoppable))


async def _send_many(
    config: ProducerConfig,
    sends: ManySends[T, R],
    stoppable: Callable[[Callable[[], None]], AbstractContextManager[None]],
) -> float:
    least = max(config.in_flight_least, sends.in_flight)  # the workers bound concurrency
    async with AsyncProducer(replace(config, in_flight_least=least)) as producer:
        run = _Run(producer, sends)
        begin = monotonic()
        with stoppable(run.stop):
            await run.send()
        return monotonic() - begin


class _Run(Generic[T, R]):
    """One run."""

    def __init__(self, producer: AsyncProducer, sends: ManySends[T, R]) -> None:
        self._producer = producer
        self._sends = sends
        self._feed = sends.feed()
        self._taken = 0
        self._stopped = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()

    def stop(self) -> None:
        """Take no further messages; may be called by a signal handler."""
        self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._stopped.set()
        self._feed.close()

    async def send(self) -> None:
        """Send until the feed ends or `stop` is called, and nothing is in flight."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._sends.in_flight):
                    group.create_task(self._work())
        except BaseExceptionGroup as errors:
            raise _first_of(errors) from None

    async def _work(self) -> None:
        stopped, sends, producer = self._stopped, self._sends, self._producer
        while not stopped.is_set():
            item = await self._feed.next()
            if item is None:
                return
            if sends.rate is not None and not await self._is_due(item, sends.rate):
                return
            try:
                result = await sends.send(producer, item)
            except ClientError as error:
                sends.ended(item, None, error)
            else:
                sends.ended(item, result, None)

    async def _is_due(self, item: T, rate: Rate) -> bool:
        """Wait for the due time of a message; return False if the run was stopped."""
        due = self._start + rate.due(self._taken) / SECOND
        # before the wait: other workers take the times after this one
        self._taken += self._sends.weight(item)
        wait = due - self._loop.time()
        if wait <= 0:
            return True
        try:
            await asyncio.wait_for(self._stopped.wait(), wait)
        except TimeoutError:
            return True
        return False


def _first_of(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that ended a run; the others are its consequences."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
