"""The unfinished sends of an asynchronous producer: some run, the others wait in a queue.

A send is queued until the next loop turn, and its timeout starts when it leaves the queue. Few
sends start per turn, and concurrency follows the brokers: each fast response raises the limit by
one, each slow one holds back new sends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeGuard, TypeVar

from .errors import (
    ClientError,
    ClosedError,
    NameServerError,
    SendFailed,
    TooManyRequestsError,
    TransportError,
)
from .wire.network import MS, Network
from .wire.operation import Runner, RunningOperation
from .wire.steps import Steps

T = TypeVar("T")

_TURN: Final = 256
"""sends started per loop turn: a few milliseconds"""
_CAREFUL: Final = 1 / 16
"""what a quick response adds to the sends that may run at once, after a slow one; before, they
double in a round trip"""
_MOST: Final = 65535
"""sends that may run at once, however quick the responses"""


class Flushed(NamedTuple):
    """Outcomes of the sends that a flush waited for."""

    sent: int
    """sends that succeeded"""
    failed: int
    """sends that failed or were cancelled; their futures say why"""
    unfinished: int
    """sends that had not ended in time"""


class SendFuture(asyncio.Future[T]):
    """The future of a send; cancelling it abandons the send.

    A done callback of an ordinary future would cost a loop turn per message.
    """

    operation: RunningOperation[T] | None = None
    """the send; None while it is queued"""
    queue: SendQueue | None = None
    """the queue that it counts in; None where nobody waits for it at the end"""
    make: Callable[[], Steps[T]] | None = None
    """returns the send while it is queued"""
    timeout_ms = 0
    """time of the send"""
    since = 0
    """when it was queued or started, ns of the monotonic clock"""
    failed = False
    """it has failed"""
    counts = True
    """a flush waits for it and counts it"""

    def settle(self, operation: RunningOperation[T]) -> None:
        """Set the result of the operation."""
        if operation.error is not None:
            self.fail(operation.error)
            return
        if self.queue is not None:
            self.queue.ended(self, None)
        if not self.done():
            self.set_result(operation.result)

    def fail(self, error: Exception) -> None:
        """Set the error of the send."""
        self.failed = True
        if self.queue is not None:
            self.queue.ended(self, error)
        if not self.done():
            self.set_exception(error)

    def cancel(self, msg: object = None) -> bool:
        """Abandon the send."""
        cancelled = super().cancel(msg)
        if cancelled:
            self.failed = True
            if self.queue is not None:
                self.queue.ended(self, None)
            if self.operation is not None:
                self.operation.cancel()
        return cancelled


class SendQueue:
    """The unfinished sends of one producer."""

    def __init__(self, runner: Runner, network: Network, least: int) -> None:
        """`least` sends may run at once, even with slow responses."""
        self._loop = asyncio.get_running_loop()
        self._runner = runner
        self._now = network.now
        self._growth = 1.0
        """what a quick response adds to `room`"""
        self._least = least
        self._room: float = least
        """sends that may run at once, as responses showed so far"""
        self._quickest = 0
        """latency of quick responses, ns; it follows slow ones slowly"""
        self._pending: set[SendFuture[Any]] = set()
        self._line: deque[SendFuture[Any]] = deque()
        self._running = 0
        self._armed = False
        """the next turn of the loop begins sends"""
        self._since = 0
        """since when nobody has answered while sends waited in line"""

    def add(self, make: Callable[[], Steps[T]], timeout_ms: int) -> SendFuture[T]:
        """Queue the send that `make` returns; the future has its result."""
        future: SendFuture[T] = SendFuture(loop=self._loop)
        future.queue = self
        future.make = make
        future.timeout_ms = timeout_ms
        future.since = self._now()
        self._pending.add(future)
        self._line.append(future)
        if not self._armed:
            self._arm()
        return future

    def track(self) -> SendFuture[None]:
        """Return a future that `flush` waits for; the caller sets its result."""
        future: SendFuture[None] = SendFuture(loop=self._loop)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def _arm(self) -> None:
        self._armed = True
        self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """Start some sends; leave the rest to later turns."""
        # Starting costs CPU time. A burst that started at once would keep the loop from reading the
        # route and the responses that it waits for, until they time out.
        self._armed = False
        line = self._line
        left = min(_TURN, int(self._room) - self._running)
        while line and left > 0:
            future = line.popleft()
            if not future.done():
                left -= 1
                self._begin(future)
        if not line:
            self._since = 0
            return
        if not self._since:
            self._since = self._now()
        if self._running < int(self._room) and not self._armed:
            self._arm()

    def _begin(self, future: SendFuture[T]) -> None:
        make, future.make = future.make, None
        assert make is not None
        self._running += 1
        future.since = self._now()
        try:
            steps = make()
        except Exception as error:  # the message is rejected before anything is sent
            future.fail(error)
        else:
            future.operation = self._runner.start(steps, future.settle)

    def ended(self, future: SendFuture[Any], error: Exception | None) -> None:
        """Handle the end of a send."""
        if future not in self._pending:
            return
        self._pending.discard(future)
        if future.make is not None:  # it was abandoned in the queue
            future.make = None
            return
        self._running -= 1
        if not self._line:
            return
        # A missing response changes nothing, so that one dead broker does not delay the others.
        if error is None or not _is_silence(error):
            self._since = now = self._now()
            self._adapt(now - future.since, future.timeout_ms * MS)
        elif self._since:
            self._give_up_line(error)
        if not self._armed and self._running < int(self._room):
            self._arm()

    def _adapt(self, latency: int, timeout: int) -> None:
        """Adjust the concurrency limit after a response that took `latency`."""
        quickest = self._quickest
        if latency <= max(timeout // 4, min(4 * quickest, timeout * 3 // 8)):
            self._room = min(self._room + self._growth, max(self._least, _MOST))
        else:
            self._room = max(min(self._room, self._running), self._least)
            self._growth = _CAREFUL
        if latency < quickest or not quickest:
            self._quickest = latency
        else:
            self._quickest += (latency - quickest) // 64

    def _give_up_line(self, error: ClientError) -> None:
        """Fail the sends that were queued for their whole timeout without any response."""
        now = self._now()
        line = self._line
        while line:
            first = line[0]
            if now < max(first.since, self._since) + first.timeout_ms * MS:
                return
            line.popleft()
            if not first.done():
                late = f"not started within {first.timeout_ms} ms: other sends got no response"
                first.fail(TooManyRequestsError(f"{late}; {error.reason}", error.hint))

    # -- the end --------------------------------------------------------------------------------

    async def flush(self, timeout: float | None) -> Flushed:
        """Wait until all sends added so far have ended, for `timeout` seconds at most."""
        waiting = [future for future in self._pending if future.counts]
        if not waiting:
            return Flushed(0, 0, 0)
        done, late = await asyncio.wait(waiting, timeout=timeout)
        failed = sum(future.failed for future in done)
        return Flushed(len(done) - failed, failed, len(late))

    def abandon(self) -> None:
        """Fail all unfinished sends."""
        line, self._line = self._line, deque()
        for waiting in line:
            if not waiting.done():
                waiting.fail(_closed("it was not sent"))
                waiting.exception()  # reported by `close`: asyncio need not warn, too
        for future in list(self._pending):
            if future.operation is not None:
                future.operation.fail(_closed("the broker may have stored it"))
            if not future.done():
                future.cancel()
            elif not future.cancelled():
                future.exception()


def _is_silence(error: Exception) -> TypeGuard[ClientError]:
    """Return whether an error means that a NameServer or broker did not respond."""
    cause = error.cause if isinstance(error, SendFailed) else error
    return isinstance(cause, (NameServerError, TransportError))


def _closed(what: str) -> ClosedError:
    return ClosedError(f"the producer was closed before the send ended: {what}")


def run_steps(runner: Runner, steps: Steps[T]) -> SendFuture[T]:
    """Start an operation on the running loop; return a future of its result."""
    future: SendFuture[T] = SendFuture(loop=asyncio.get_running_loop())
    future.operation = runner.start(steps, future.settle)
    return future
