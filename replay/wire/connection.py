"""The protocol state of one connection to a NameServer or broker, without the socket.

The clock is an argument (ns, steady). Memory: one unfinished frame, one entry per request.
RocketMQ: NettyRemotingAbstract (responseTable, processMessageReceived, scanResponseTable).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dissectors.decode.strict_reader import StrictProblem, StrictReader
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand

from ..errors import ClientError, ProtocolError, SendTimeoutError
from .steps import Invoke

NEVER: Final = 1 << 62
"""ns: a time in the infinite future"""
# opaque is an int of Java: 31 bits stay positive
_OPAQUES: Final = 0x7FFFFFFF


class Opaques:
    """The opaques of a client's requests, unique across its connections."""

    __slots__ = ("_last",)

    def __init__(self, last: int = -1) -> None:
        self._last = last

    def next(self) -> int:
        """Return the next number, 0 to 2^31 - 1."""
        self._last = number = (self._last + 1) & _OPAQUES
        return number


OnRequest = Callable[["RemotingConnection", RemotingCommand, bytes], None]


class RemotingConnection:
    """The state of one connection."""

    def __init__(
        self, number: int, address: str, local: str, opaques: Opaques, on_request: OnRequest
    ) -> None:
        self.number = number
        """number of the connection, in the order in which they were opened"""
        self.address = address
        """the other side"""
        self.local = local
        """our side, `address:port`"""
        self.table: dict[int, Invoke] = {}
        """requests that are not answered, by opaque, the oldest first"""
        self.earliest = NEVER
        """earliest possible deadline of its requests"""
        self.used = 0
        """when something was last sent or received"""
        self.orphans = 0
        """responses without a request: late or duplicate"""
        self._opaques = opaques
        self._on_request = on_request
        self._reader = StrictReader(number)

    def begin(self, invoke: Invoke, now: int) -> bytes:
        """Assign an opaque to the request and return its bytes; ValueError over the frame limit."""
        opaque = self._opaques.next()
        request = invoke.request
        data = request.encode(opaque)
        invoke.opaque = opaque
        invoke.began = self.used = now
        invoke.local = self.local
        invoke.conversation = self.number
        invoke.request_bytes = len(data)
        if not request.oneway:
            self.table[opaque] = invoke
            if invoke.deadline < self.earliest:
                self.earliest = invoke.deadline
        return data

    def receive(self, data: bytes, now: int) -> ProtocolError | None:
        """Receive bytes: pass responses to their requests, and requests to their handler.

        Returns why the connection must end; None if it may go on.
        """
        self.used = now
        pop = self.table.pop
        for command, body, size in self._reader.receive(data):
            if command.flag & RESPONSE_FLAG:
                # `earliest` stays: a look too early costs less than a new minimum for each response
                invoke = pop(command.opaque, None)
                if invoke is None:
                    self.orphans += 1
                    continue
                invoke.complete(command, body, size, now)
            else:
                self._on_request(self, command, body)
        # Unlike a reader of captures, a client does not search for the next frame after a bad one.
        problem = self._reader.problem
        return None if problem is None else self._error_of(problem)

    def expire(self, now: int) -> list[Invoke]:
        """Remove the requests that timed out."""
        if now < self.earliest:
            return []
        table = self.table
        over = [invoke for invoke in table.values() if invoke.deadline <= now]
        for invoke in over:
            del table[invoke.opaque]
        self.earliest = min([invoke.deadline for invoke in table.values()], default=NEVER)
        return over

    def fail(self, error: ClientError, now: int) -> None:
        """Close the connection and fail all its requests."""
        table, self.table = self.table, {}
        self.earliest = NEVER
        for invoke in table.values():
            invoke.fail(error, now)

    def _error_of(self, problem: StrictProblem) -> ProtocolError:
        if problem.protocol is not None:
            hint = f"it looks like {problem.protocol}; check the port"
            return ProtocolError(f"{self.address} does not speak RocketMQ", hint)
        if problem.bad_header:
            return ProtocolError(f"{self.address} sent {problem.detail}")
        hint = (
            "check that this is the port of a NameServer or broker,"
            " and that both sides use TLS, or neither"
        )
        return ProtocolError(
            f"{self.address} sent what is not a RocketMQ frame ({problem.detail})", hint
        )


def timeout_error(invoke: Invoke, timeout_ms: int) -> SendTimeoutError:
    """Return the error of a request that timed out."""
    hint = "the server is slow, frozen, or unreachable"
    if invoke.request.code in SENDS:
        hint = "the broker is slow, frozen, or unreachable; it may have stored the message anyway"
    return SendTimeoutError(f"no response from {invoke.address} within {timeout_ms} ms", hint)
