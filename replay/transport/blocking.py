"""The core on blocking calls: sockets that are served while somebody waits, and by `run` alone.

Rules: no thread; whoever waits for an operation serves all connections and timers meanwhile, so
heartbeats and brokers' requests are served in sends and in `Producer.poll`. What is written before
the next look at the sockets leaves in one write.
RocketMQ: NettyRemotingClient.
"""

from __future__ import annotations

import heapq
import selectors
import time
from collections import deque
from collections.abc import Callable

from dissectors.endpoint import split_endpoint

from ..config import AddressGuard, TlsSettings
from ..errors import ClosedError
from ..forks import blind
from ..wire.network import LinkUser
from .problems import NOT_A_NAME, connect_problem, local_ip
from .socket_link import SocketLink
from .tls import server_name_of, tls_context

_FORKED = "the process was forked in the middle of a call"
_LINGER_NS = 1_000_000_000
"""time that a closed connection has to send what was written"""


class SocketTimer:
    """Something that will be called when its time is over."""

    __slots__ = ("callback", "when")

    def __init__(self, when: int, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Cancel the call."""
        self.callback = None

    def __lt__(self, other: SocketTimer) -> bool:
        return self.when < other.when


class BlockingNetwork:
    """The transport of a blocking producer."""

    def __init__(self, tls: TlsSettings | None, guard: AddressGuard | None = None) -> None:
        """`guard` says why nothing may be sent to an address; None where it may.

        Raises ConfigError for TLS files that cannot be used.
        """
        self.guard = guard
        self._settings = tls
        self._tls = tls_context(tls) if tls is not None else None
        self.selector: selectors.BaseSelector = selectors.DefaultSelector()
        self.dirty: list[SocketLink] = []
        self._timers: list[SocketTimer] = []
        self._soon: deque[Callable[[], None]] = deque()
        self._calling = False
        self._is_parents = False
        """this process was forked: the connections are those of its parent"""
        self.now: Callable[[], int] = time.monotonic_ns
        self.epoch: Callable[[], int] = time.time_ns

    def open(self, address: str, timeout_ns: int, user: LinkUser) -> Callable[[], None]:  # noqa: ARG002 - the core looks at the clock
        """Open a connection to `host:port`; return what gives the attempt up."""
        if self._is_parents:
            user.refused(_FORKED, "")
            return _nothing
        parts = split_endpoint(address)
        if parts is None:
            user.refused("not a valid address", "a route names it: is the broker set up right?")
            return _nothing
        link = SocketLink(self, user)
        try:
            if self._tls is not None and self._settings is not None:
                link.encrypt(self._tls, server_name_of(self._settings, parts[0]))
            link.start(address, *parts)
        except NOT_A_NAME as error:  # not a valid host name: too long, with a NUL, ...
            link.abort()
            user.refused(*connect_problem(error))
        return link.abort

    def call_at(self, when: int, callback: Callable[[], None]) -> SocketTimer:
        """Call at a time of `now`; never before it."""
        timer = SocketTimer(when, callback)
        heapq.heappush(self._timers, timer)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call when the current event is dealt with."""
        self._soon.append(callback)

    def local_address(self, address: str) -> str:
        """Return the own IP address from which an address is reached; nothing is sent."""
        return local_ip(address)

    def run(self, done: Callable[[], bool], until: int | None = None) -> None:
        """Serve all connections and timers until `done` says so, or until that time."""
        while not done():
            if self._is_parents:
                raise ClosedError(_FORKED)
            self._flush()
            if self._soon and not self._calling:
                self._call_soon()
                continue
            now = self.now()
            if until is not None and now >= until:
                return
            wait = self._next_timer(until)
            for key, events in self.selector.select(wait):
                key.data.ready(events)
            self._fire()
        self._flush()

    def serve_ready(self) -> None:
        """Deal with what is there, without waiting."""
        for key, events in self.selector.select(0):
            key.data.ready(events)
        self._fire()

    def close(self) -> None:
        """Let what was written leave, for a second at most; give everything back to the system."""
        self.run(lambda: not self.selector.get_map(), self.now() + _LINGER_NS)
        for key in list(self.selector.get_map().values()):
            key.data.abort()
        self.selector.close()
        self._timers.clear()
        self._soon.clear()

    def forked(self) -> None:
        """Leave all connections to the parent of this process."""
        self._is_parents = True
        blind(key.fd for key in self.selector.get_map().values())
        self.selector.close()  # and not unregister: that would change the parent's epoll set
        self._timers.clear()
        self._soon.clear()
        self.dirty.clear()

    def _flush(self) -> None:
        while self.dirty:
            dirty, self.dirty = self.dirty, []
            for link in dirty:
                link.flush()

    def _call_soon(self) -> None:
        self._calling = True
        try:
            while self._soon:
                self._soon.popleft()()
        finally:
            self._calling = False

    def _next_timer(self, until: int | None) -> float | None:
        """Return the seconds until something is due; None for never."""
        timers = self._timers
        while timers and timers[0].callback is None:
            heapq.heappop(timers)
        due = timers[0].when if timers else None
        if until is not None and (due is None or until < due):
            due = until
        return None if due is None else max((due - self.now()) / 1e9, 0.0)

    def _fire(self) -> None:
        timers = self._timers
        now = self.now()
        while timers and timers[0].when <= now:
            callback, timer = timers[0].callback, heapq.heappop(timers)
            timer.callback = None
            if callback is not None:
                callback()


def _nothing() -> None:
    pass
