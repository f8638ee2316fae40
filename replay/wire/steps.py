"""What an operation asks of its driver: the values that its generator yields.

An operation (a send, a route query) is a generator: it yields steps, is resumed with what a step
gives, and has the error of a step thrown into it. It knows neither sockets nor the clock's source.
RocketMQ: ResponseFuture is `Invoke`; SemaphoreReleaseOnlyOnce is `Permits`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Protocol, TypeVar

import msgspec

from dissectors.remoting.command import RemotingCommand

from .errors import ClientError

T = TypeVar("T")


class Resumable(Protocol):
    """What waits for the end of a step."""

    done: bool
    """nobody is interested any more"""

    def resume(self, value: object) -> None:
        """The step has ended well."""

    def fail(self, error: Exception) -> None:
        """The step has failed."""


class Request(Protocol):
    """What is asked of a peer, before it has a number."""

    @property
    def code(self) -> int:
        """Request code."""

    @property
    def body(self) -> bytes:
        """Body as it travels."""

    @property
    def oneway(self) -> bool:
        """Whether no answer is wanted."""

    def fields(self) -> dict[str, str]:
        """The ext fields; who changes them changes the request."""

    def encode(self, opaque: int) -> bytes:
        """The request as a frame. Raises ValueError where it is over the frame limit."""


class Invoke(msgspec.Struct, eq=False):
    """One request to one address, and what became of it."""

    address: str
    """`host:port` to ask"""
    request: Request
    """what is asked"""
    deadline: int
    """when the answer must be there, ns of the steady clock"""
    synchronous: bool = False
    """somebody waits for this answer alone: a timeout closes the connection, as in Java"""
    again: bool = False
    """it was repeated because the broker said GO_AWAY"""
    began: int = 0
    """when it was written, ns of the steady clock; 0: it was not"""
    ended: int = 0
    """when its end was known"""
    opaque: int = 0
    """its number; 0 before it was written"""
    conversation: int = 0
    """number of the connection"""
    local: str = ""
    """our side of it, `address:port`"""
    request_bytes: int | None = None
    """whole frame; None: nothing was written"""
    response_bytes: int | None = None
    """whole frame of the answer"""
    command: RemotingCommand | None = None
    """the answer"""
    body: bytes = b""
    """its body"""
    waiter: Resumable | None = None
    """who is told"""

    def answer(self, command: RemotingCommand, body: bytes, size: int, now: int) -> None:
        """The answer is there."""
        waiter = self.waiter
        if waiter is None:
            return
        self.waiter = None
        self.command = command
        self.body = body
        self.response_bytes = size
        self.ended = now
        waiter.resume(self)

    def written(self, now: int) -> None:
        """A oneway request has left."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            self.ended = now
            waiter.resume(self)

    def fail(self, error: Exception, now: int) -> None:
        """There will be no answer."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            self.ended = now
            waiter.fail(error)


class Acquire:
    """Wait for permits."""

    __slots__ = ("count", "deadline", "permits")

    def __init__(self, permits: Permits, count: int, deadline: int) -> None:
        self.permits = permits
        self.count = count
        self.deadline = deadline
        """ns of the steady clock; then TooManyRequestsError is thrown"""


class Join:
    """Wait for an operation that many need, such as a route query: it runs once for all."""

    __slots__ = ("deadline", "error", "key", "make")

    def __init__(
        self,
        key: object,
        make: Callable[[], Steps[object]],
        deadline: int,
        error: Callable[[], ClientError],
    ) -> None:
        self.key = key
        """those who say the same key wait for the same operation"""
        self.make = make
        self.deadline = deadline
        """ns of the steady clock; then what `error` gives is thrown"""
        self.error = error


class Await:
    """Wait until somebody else resumes: `begin` is told whom, `forget` that it is too late."""

    __slots__ = ("begin", "deadline", "error", "forget")

    def __init__(
        self,
        begin: Callable[[Resumable], None],
        forget: Callable[[], None],
        deadline: int,
        error: Callable[[], ClientError],
    ) -> None:
        self.begin = begin
        self.forget = forget
        self.deadline = deadline
        """ns of the steady clock; then what `error` gives is thrown"""
        self.error = error


Step = Invoke | Acquire | Join | Await
Steps = Generator[Step, object, T]
"""an operation that gives a T"""


class Permits:
    """So many at a time; who comes too late waits in the order of coming."""

    __slots__ = ("_granting", "_waiting", "free", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """permits in all"""
        self.free = limit
        """permits that nobody has"""
        self._waiting: deque[list[object]] = deque()
        self._granting = False

    def take(self, count: int = 1) -> bool:
        """Take permits if they are free and nobody waits for some."""
        if self._waiting or self.free < count:
            return False
        self.free -= count
        return True

    def wait(self, count: int, ready: Callable[[], None]) -> Callable[[], None]:
        """Call `ready` when the permits are taken; returns what gives the wait up."""
        entry: list[object] = [count, ready]
        self._waiting.append(entry)

        def forget() -> None:
            entry[1] = None
            self._grant()

        return forget

    def give(self, count: int = 1) -> None:
        """Give permits back."""
        self.free += count
        if self._waiting:
            self._grant()

    def _grant(self) -> None:
        if self._granting:  # who was given some gives them back at once: the loop below goes on
            return
        self._granting = True
        try:
            while self._waiting:
                count, ready = self._waiting[0]
                assert isinstance(count, int)
                if ready is not None and self.free < count:
                    return
                self._waiting.popleft()
                if callable(ready):
                    self.free -= count
                    ready()
        finally:
            self._granting = False
