"""The steps that an operation yields to its driver.

An operation (a send, a route query) is a generator: it yields steps, is resumed with their results,
and gets their errors thrown into it. It knows neither sockets nor the clock's source.

An operation that asks a NameServer for a route, at most two at a time, and a driver by hand:

>>> from replay.config import ProducerConfig
>>> from replay.wire.request import plain_request
>>> def route(config: ProducerConfig, permits: Permits, topic: str) -> Steps[bytes]:
...     deadline = 3_000_000_000
...     yield Acquire(permits, 1, deadline)
...     try:
...         request = plain_request(config, 105, {"topic": topic})
...         invoke = yield Invoke("127.0.0.1:9876", request, deadline)
...     finally:
...         permits.give()
...     return invoke.body
>>> permits = Permits(2)
>>> steps = route(ProducerConfig(group="g", namesrv="127.0.0.1:9876"), permits, "Orders")
>>> next(steps)
Acquire(1 of Permits(2 of 2 free), deadline 3000 ms)
>>> permits.take()
True
>>> invoke = steps.send(None)
>>> invoke
Invoke(GET_ROUTEINFO_BY_TOPIC to 127.0.0.1:9876, body 0 bytes, deadline 3000 ms)
>>> invoke.command = RemotingCommand(0, 1, 1, "JAVA", 479, None, {})
>>> invoke.body = b"{}"
>>> invoke
Invoke(GET_ROUTEINFO_BY_TOPIC to 127.0.0.1:9876, body 0 bytes, responded SUCCESS, body 2 bytes)
>>> steps.send(invoke)
Traceback (most recent call last):
StopIteration: b'{}'
>>> permits
Permits(2 of 2 free)

RocketMQ: ResponseFuture is `Invoke`; SemaphoreReleaseOnlyOnce is `Permits`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from dissectors.printable import printable
from dissectors.remoting.code_names import request_name, response_name
from dissectors.remoting.command import RemotingCommand

from ..errors import ClientError

T = TypeVar("T")


class Resumable(Protocol):
    """A waiter for the end of a step."""

    done: bool
    """no longer needed"""

    def resume(self, value: object) -> None:
        """Resume the operation with the result of the step."""

    def fail(self, error: Exception) -> None:
        """Resume the operation with the error of the step."""


class Request(Protocol):
    """A request to a peer, before it has an opaque."""

    @property
    def code(self) -> int:
        """Request code."""

    @property
    def body(self) -> bytes:
        """Encoded body."""

    @property
    def oneway(self) -> bool:
        """Whether the request is oneway."""

    def fields(self) -> dict[str, str]:
        """Return the ext fields; changes affect the request."""

    def encode(self, opaque: int) -> bytes:
        """Return the request as a frame. Raises ValueError if it is over the frame limit."""


class Invoke(msgspec.Struct, eq=False):
    """One request to one address, and its outcome."""

    address: str
    """`host:port` to ask"""
    request: Request
    deadline: int
    """deadline of the response, ns of the monotonic clock"""
    synchronous: bool = False
    """somebody waits for this response alone: a timeout closes the connection, as in Java"""
    again: bool = False
    """it was repeated after GO_AWAY"""
    began: int = 0
    """when it was written, ns of the steady clock; 0: it was not"""
    ended: int = 0
    opaque: int = 0
    """its number; 0 before it was written"""
    conversation: int = 0
    """number of the connection"""
    local: str = ""
    """our side of it, `address:port`"""
    request_bytes: int | None = None
    """whole frame; None: nothing was written"""
    response_bytes: int | None = None
    """whole frame of the response"""
    command: RemotingCommand | None = None
    """the response"""
    body: bytes = b""
    """its body"""
    waiter: Resumable | None = None
    """the waiter of the outcome"""

    def __repr__(self) -> str:
        """Return request and outcome without header fields, which may be secret."""
        request = self.request
        target = f"{request_name(request.code)} to {printable(self.address)}"
        return f"Invoke({target}, body {len(request.body)} bytes, {self._state()})"

    def _state(self) -> str:
        if self.command is not None:
            name = response_name(self.command.code)
            return f"responded {name}, body {len(self.body)} bytes"
        if self.ended:
            return "written" if self.request.oneway else "failed"
        oneway = "oneway, " if self.request.oneway else ""
        return f"{oneway}{_deadline(self.deadline)}"

    def complete(self, command: RemotingCommand, body: bytes, size: int, now: int) -> None:
        """Handle the response."""
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
        """Note that a oneway request has left."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            self.ended = now
            waiter.resume(self)

    def fail(self, error: Exception, now: int) -> None:
        """Handle a request that will get no response."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            self.ended = now
            waiter.fail(error)


@dataclass(slots=True, eq=False, repr=False)
class Acquire:
    """Wait for permits."""

    permits: Permits
    count: int
    deadline: int
    """ns of the steady clock; then TooManyRequestsError is thrown"""

    def __repr__(self) -> str:
        return f"Acquire({self.count} of {self.permits!r}, {_deadline(self.deadline)})"


@dataclass(slots=True, eq=False, repr=False)
class Join:
    """Wait for a shared operation, such as a route query, that runs once for all waiters."""

    key: object
    """waiters with the same key share one operation"""
    make: Callable[[], Steps[object]]
    deadline: int
    """ns of the steady clock; then what `error` gives is thrown"""
    error: Callable[[], ClientError]

    def __repr__(self) -> str:
        return f"Join({self.key!r}, {_deadline(self.deadline)})"


@dataclass(slots=True, eq=False, repr=False)
class Await:
    """Wait for an external event: `begin` gets the waiter, `forget` is called on a timeout."""

    begin: Callable[[Resumable], None]
    forget: Callable[[], None]
    deadline: int
    """ns of the steady clock; then what `error` gives is thrown"""
    error: Callable[[], ClientError]

    def __repr__(self) -> str:
        begin = getattr(self.begin, "__qualname__", type(self.begin).__name__)
        return f"Await({begin}, {_deadline(self.deadline)})"


Step = Invoke | Acquire | Join | Await
Steps = Generator[Step, object, T]
"""an operation that gives a T"""


class Permits:
    """A semaphore with a FIFO queue of waiters."""

    __slots__ = ("_granting", "_waiting", "free", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """permits in all"""
        self.free = limit
        """free permits"""
        self._waiting: deque[list[object]] = deque()
        self._granting = False

    def __repr__(self) -> str:
        waiting = f", {len(self._waiting)} waiting" if self._waiting else ""
        return f"Permits({self.free} of {self.limit} free{waiting})"

    def take(self, count: int = 1) -> bool:
        """Take permits if enough are free and nobody is waiting."""
        # nobody overtakes: a request for many permits would wait forever
        if self._waiting or self.free < count:
            return False
        self.free -= count
        return True

    def wait(self, count: int, ready: Callable[[], None]) -> Callable[[], None]:
        """Call `ready` when the permits are taken; return a function that cancels the wait."""
        entry: list[object] = [count, ready]
        self._waiting.append(entry)

        def forget() -> None:
            # those behind it may need fewer permits than this one did
            entry[1] = None
            self._grant()

        return forget

    def give(self, count: int = 1) -> None:
        """Release permits."""
        self.free += count
        if self._waiting:
            self._grant()

    def _grant(self) -> None:
        if self._granting:  # a waiter may release its permits at once: the loop below continues
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


def _deadline(ns: int) -> str:
    return f"deadline {ns // 1_000_000} ms"
