"""The injections of a running sandbox: which are active, their targets and effects.

Rules: injections of a request combine: all latencies, then the first of the other kinds in the
given order. Random numbers are drawn per injection and broker, so the same request order at a
broker has the same results in every run with one seed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from dissectors.endpoint import host_of
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.heartbeat import client_id_of
from dissectors.rows.outcome import operation_on

from ..events import EventKind
from ..request import ReceivedRequest, groups_of, topic_of
from ..room import Room
from ..server import Connection, HandlerResponse
from .injection import NOT_OF_REQUESTS, Injection, InjectionKind

_FROZEN_LIMIT: Final = 100_000
_LATER_LIMIT: Final = 200_000
"""responses that are held back at a time; further ones go out at once"""
_HELD_BYTES: Final = 256 * 1024 * 1024
"""bytes of responses that are held back, and of frozen requests"""
DISK_FULL: Final = (
    "service not available now. It may be caused by one of the following reasons: the broker's "
    "disk is full [CL:  1.00 CQ:  1.00 INDEX:  1.00], messages are put to the slave, message store "
    "has been shut down, etc."
)
# read as a frame, its length is negative: the top bit is set
_GARBAGE: Final = bytes(range(128, 256)) * 2
# 1 GiB, with a JSON header of 96 bytes
_HUGE: Final = (1 << 30).to_bytes(4, "big") + b"\x00\x00\x00\x60"


class Server(Protocol):
    """The target of injections: a broker or the NameServer."""

    @property
    def name(self) -> str:
        """`namesrv` or the broker's name."""

    def execute(self, request: ReceivedRequest) -> None:
        """Serve a request as a healthy server does."""

    def note_error(self, request: ReceivedRequest, response: HandlerResponse) -> None:
        """Count an error response."""

    def tell(self, kind: EventKind, connection: Connection | None = None, detail: str = "") -> None:
        """Emit an event."""

    def drop_connections(self, chosen: Callable[[Connection], bool]) -> None:
        """Reset the chosen connections."""


@dataclass(slots=True, eq=False)
class _Armed:
    """An injection that is scheduled or active."""

    injection: Injection
    since: float
    """the loop's time that its windows count from"""
    number: int
    """place among the injections"""
    hits: dict[str, int] = field(default_factory=dict)
    """requests hit, by server"""
    chances: dict[str, random.Random] = field(default_factory=dict)
    """where its chance comes from, by server"""
    timers: list[asyncio.TimerHandle] = field(default_factory=list)
    """what happens when its windows begin and end"""


class Injector:
    """The injections of one sandbox."""

    def __init__(
        self, seed: int, clock: Callable[[], float], remark: str = "injected by the sandbox"
    ) -> None:
        """`clock` returns seconds, as the loop's does; `remark` is the default of errors."""
        self.is_active = False
        """there are injections"""
        self.hits = 0
        """requests that an injection hit"""
        self._seed = seed
        self._remark = remark
        self._clock = clock
        self._armed: list[_Armed] = []
        self._servers: list[Server] = []
        self._frozen: list[tuple[Server, ReceivedRequest]] = []
        self._count = 0
        self._held_back = 0
        self._room = Room(_HELD_BYTES)
        self._client_ids: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()

    def watch(self, server: Server) -> None:
        """Add a server as a target of injections."""
        self._servers.append(server)

    def add(self, injections: Sequence[Injection]) -> None:
        """Add injections; their windows start now."""
        for injection in injections:
            armed = _Armed(injection, self._clock(), self._count)
            self._count += 1
            self._armed.append(armed)
            self.is_active = True
            self._await_window(armed, 0)

    def close(self) -> None:
        """Remove all injections and drop frozen requests."""
        self._frozen = []
        self.clear()

    def clear(self) -> None:
        """Remove all injections and serve frozen requests."""
        for armed in self._armed:
            for timer in armed.timers:
                timer.cancel()
        self._armed = []
        self.is_active = False
        self._thaw()

    # -- interface for servers ------------------------------------------------------------------

    def admits(self, server: str, connection: Connection) -> bool:
        """Return whether to accept a connection; make it a slow reader if injected."""
        for armed in self._on(server):
            if armed.injection.kind is InjectionKind.DOWN and self._is_for(armed, connection):
                return False
        # also before its window: each read asks for the rate of that moment
        if any(
            armed.injection.kind is InjectionKind.SLOW_READ and armed.injection.is_on(server)
            for armed in self._armed
        ):
            connection.pace = lambda size: self._seconds_for(server, connection, size)
        return True

    def is_listed(self, server: str) -> bool:
        """Return whether routes include a broker."""
        return not any(
            armed.injection.kind is InjectionKind.LEAVE_ROUTE for armed in self._on(server)
        )

    def perm(self, server: str) -> int:
        """Return a broker's perm in routes: 4 or 6."""
        read_only = any(
            armed.injection.kind is InjectionKind.READ_ONLY for armed in self._on(server)
        )
        return 4 if read_only else 6

    def take(self, server: Server, request: ReceivedRequest) -> bool:
        """Apply injections to a request; return False if it is to be served normally."""
        topic, groups = topic_of(request), groups_of(request)
        if request.code == RequestCode.HEART_BEAT:
            self._client_ids[request.connection] = client_id_of(request.body) or ""
        delay = 0.0
        chosen: _Armed | None = None
        for armed in self._on(server.name):
            # latencies add up; of the other kinds, the first one counts
            if chosen is not None and armed.injection.kind is not InjectionKind.LATENCY:
                continue
            if not armed.injection.hits(request.code, topic, groups):
                continue
            if not self._is_for(armed, request.connection) or not self._hits(armed, server.name):
                continue
            if armed.injection.latency is not None:
                delay += armed.injection.latency.draw(self._chance(armed, server.name))
            if armed.injection.kind is not InjectionKind.LATENCY:
                chosen = armed
        if chosen is None and not delay:
            return False
        self.hits += 1
        server.tell(
            EventKind.INJECTED,
            request.connection,
            _describe(chosen.injection if chosen is not None else None, delay, request.code, topic),
        )
        if chosen is None:
            request.shape = lambda answered, response: self._later(
                delay, answered, answered.send, response
            )
            server.execute(request)
        else:
            self._act(chosen, server, request, delay)
        return True

    # -- internal -------------------------------------------------------------------------------

    def _on(self, server: str) -> list[_Armed]:
        now = self._clock()
        return [
            armed
            for armed in self._armed
            if armed.injection.is_on(server)
            and armed.injection.lasts_at((now - armed.since) * 1000)
        ]

    def _chance(self, armed: _Armed, server: str) -> random.Random:
        chance = armed.chances.get(server)
        if chance is None:
            # its own numbers for each broker: the order of requests at others changes nothing
            chance = armed.chances[server] = random.Random(f"{self._seed} {armed.number} {server}")
        return chance

    def _is_for(self, armed: _Armed, connection: Connection) -> bool:
        peer = connection.peer
        names = (host_of(peer), peer, self._client_ids.get(connection, ""))
        return armed.injection.is_for(names)

    def _hits(self, armed: _Armed, server: str) -> bool:
        injection = armed.injection
        if injection.kind in NOT_OF_REQUESTS:
            return False
        hit = armed.hits.get(server, 0)
        if injection.times is not None and hit >= injection.times:
            return False
        if (
            injection.probability < 1
            and self._chance(armed, server).random() >= injection.probability
        ):
            return False
        armed.hits[server] = hit + 1
        return True

    def _act(self, armed: _Armed, server: Server, request: ReceivedRequest, delay: float) -> None:
        injection = armed.injection
        if injection.kind is InjectionKind.FREEZE:
            self._freeze(server, request)
            return
        response = self._error_of(armed, server.name)

        def shape(answered: ReceivedRequest, done: HandlerResponse) -> None:
            final = done
            if response is not None:
                # Codes 10 to 12 mean stored, so the response has offsets and ids.
                final = response._replace(fields=done.fields)
                server.note_error(answered, final)
            self._later(
                delay, answered, lambda last: _finish(injection.kind, answered, last), final
            )

        if injection.stored or injection.kind is InjectionKind.HALF:
            request.shape = shape
            server.execute(request)
        else:
            shape(request, HandlerResponse())

    def _later(
        self,
        seconds: float,
        request: ReceivedRequest,
        act: Callable[[HandlerResponse], None],
        response: HandlerResponse,
    ) -> None:
        request.body = b""  # only the response is delayed
        size = request.size + len(response.body)
        if seconds <= 0 or self._held_back >= _LATER_LIMIT or not self._room.take(size):
            act(response)
            return
        self._held_back += 1

        def now() -> None:
            self._held_back -= 1
            self._room.take(-size)
            act(response)

        asyncio.get_running_loop().call_later(seconds, now)

    def _error_of(self, armed: _Armed, server: str) -> HandlerResponse | None:
        """Return the error response of an injection; None for other kinds."""
        injection = armed.injection
        if injection.kind is InjectionKind.ERROR:
            return HandlerResponse(injection.code, remark=injection.remark or self._remark)
        if injection.kind is InjectionKind.DISK_FULL:
            return HandlerResponse(
                ResponseCode.SERVICE_NOT_AVAILABLE, remark=injection.remark or DISK_FULL
            )
        if injection.kind is InjectionKind.READ_ONLY:
            remark = injection.remark or f"the broker[{server}] sending message is forbidden"
            return HandlerResponse(ResponseCode.NO_PERMISSION, remark=remark)
        if injection.kind is InjectionKind.BUSY:
            chance = self._chance(armed, server)
            remark = injection.remark or (
                "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in "
                f"queue: {chance.randrange(200, 400)}ms, size of queue: {chance.randrange(1000)}"
            )
            return HandlerResponse(ResponseCode.SYSTEM_BUSY, remark=remark)
        return None

    def _seconds_for(self, server: str, connection: Connection, size: int) -> float:
        """Return the pause of a connection after `size` bytes, in seconds."""
        rates = [
            armed.injection.rate
            for armed in self._on(server)
            if armed.injection.kind is InjectionKind.SLOW_READ and self._is_for(armed, connection)
        ]
        return size / min(rates) if rates else 0.0

    # -- windows --------------------------------------------------------------------------------

    def _await_window(self, armed: _Armed, from_ms: int) -> None:
        """Call `_begin` with the first window that begins at this time or later."""
        window = armed.injection.next_window(from_ms)
        if window is not None:
            self._call_at(armed, window[0], partial(self._begin, armed, *window))

    def _call_at(self, armed: _Armed, ms: int, call: Callable[[], None]) -> None:
        # from the start of the injection: what a timer is late does not add up
        wait = max(0.0, armed.since + ms / 1000 - self._clock())
        armed.timers.append(asyncio.get_running_loop().call_later(wait, call))

    def _begin(self, armed: _Armed, begin: int, end: int | None) -> None:
        for server in self._servers:
            if armed.injection.is_on(server.name):
                server.tell(EventKind.WINDOW, None, f"begins: {armed.injection}")
                if armed.injection.kind is InjectionKind.DOWN:
                    server.drop_connections(partial(self._is_for, armed))
        armed.timers = []
        if end is not None:
            self._call_at(armed, end, partial(self._end, armed))
        self._await_window(armed, begin + 1)

    def _end(self, armed: _Armed) -> None:
        for server in self._servers:
            if armed.injection.is_on(server.name):
                server.tell(EventKind.WINDOW, None, f"ends: {armed.injection}")
        if armed.injection.kind is InjectionKind.FREEZE:
            self._thaw()

    def _freeze(self, server: Server, request: ReceivedRequest) -> None:
        if len(self._frozen) < _FROZEN_LIMIT and self._room.take(request.size):
            self._frozen.append((server, request))
            request.connection.pause_reading()
        else:
            request.connection.close(reset=True)

    def _thaw(self) -> None:
        frozen, self._frozen = self._frozen, []
        self._room.take(-sum(request.size for _, request in frozen))
        for server, request in frozen:
            request.connection.resume_reading()
            if request.connection.is_open:
                server.execute(request)


def _finish(kind: InjectionKind, request: ReceivedRequest, response: HandlerResponse) -> None:
    """Finish a request according to the kind of its injection."""
    connection = request.connection
    if kind is InjectionKind.SILENT:
        return
    if kind is InjectionKind.DROP:
        connection.close(reset=True)
    elif kind is InjectionKind.HALF:
        frame = connection.encode_response(request.command, response)
        connection.write(frame[: len(frame) // 2])
        connection.close()
    elif kind is InjectionKind.GARBAGE:
        connection.write(_GARBAGE)
    elif kind is InjectionKind.HUGE:
        connection.write(_HUGE)
    else:
        request.send(response)


def _describe(injection: Injection | None, delay: float, code: int, topic: str) -> str:
    what = [] if injection is None else [str(injection)]
    if delay:
        what.append(f"{delay * 1000:.1f}ms later")
    return f"{', '.join(what)}: {operation_on(code, topic)}"
