"""The core on blocking calls: sockets that are served while somebody waits, and by `run` alone.

Rules: no thread; whoever waits for an operation serves all connections and timers meanwhile, so
heartbeats and brokers' requests are served in sends and in `Producer.poll`. What is written before
the next look at the sockets leaves in one write.
RocketMQ: NettyRemotingClient.
"""

from __future__ import annotations

import heapq
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable

from ..config import TlsSettings, split_address
from ..network import LinkUser
from .problems import connect_problem, local_ip, text_of
from .tls import tls_context

_CHUNK = 1 << 18
_HIGH_WATER = 1 << 20
"""bytes that wait to be sent, from which on a connection is not `writable`"""
_LINGER_NS = 1_000_000_000
"""time that a closed connection has to send what was written"""
_READ = selectors.EVENT_READ
_WRITE = selectors.EVENT_WRITE


class SocketTimer:
    """Something that will be called when its time is over."""

    __slots__ = ("callback", "when")

    def __init__(self, when: int, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """It will not be called."""
        self.callback = None

    def __lt__(self, other: SocketTimer) -> bool:
        return self.when < other.when


class SocketLink:
    """One connection, being opened or open."""

    def __init__(
        self, network: BlockingNetwork, user: LinkUser, host: str, tls: ssl.SSLContext | None
    ) -> None:
        self.local = ""
        self.peer = ""
        self.writable = True
        self.socket: socket.socket | None = None
        self._network = network
        self._user: LinkUser | None = user
        self._addresses: list[tuple[socket.AddressFamily, tuple[object, ...]]] = []
        self._connected = False
        self._closing = False
        self._out: list[bytes] = []
        self._rest = b""
        self._events = 0
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._secured = tls is None
        if tls is not None:
            self._tls = tls.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    # -- what the core asks ---------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send bytes; those of one turn leave together."""
        if not self._out:
            self._network.dirty.append(self)
        self._out.append(data)

    def close(self) -> None:
        """End the connection when all that was written has left."""
        self._user = None
        self._closing = True
        self.flush()
        if not self._rest:
            self._drop()

    def abort(self) -> None:
        """End the connection now."""
        self._user = None
        self._drop()

    # -- opening --------------------------------------------------------------------------------

    def start(self, host: str, port: int) -> None:
        """Begin to connect to the first address of a host that is found."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            self._refuse(error)
            return
        self._addresses = [(entry[0], entry[4]) for entry in found]
        self._next_address()

    def _next_address(self) -> None:
        family, address = self._addresses.pop(0)
        self._drop()
        try:
            one = self.socket = socket.socket(family, socket.SOCK_STREAM)
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.connect(address)
        except BlockingIOError:
            pass
        except OSError as error:
            self._refuse(error)
            return
        self._watch(_WRITE)

    def _finish_connect(self) -> None:
        assert self.socket is not None
        number = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._refuse(OSError(number, ""))
            return
        self._connected = True
        self.local = text_of(self.socket.getsockname())
        try:
            self.peer = text_of(self.socket.getpeername())
        except OSError as error:  # ended in the meantime
            self._refuse(error)
            return
        self._watch(_READ)
        if self._tls is None:
            self._open()
        else:
            self._shake_hands()

    def _shake_hands(self) -> None:
        assert self._tls is not None
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._push()
            return
        except ssl.SSLError as error:
            self._push()  # the alert that tells the other side
            self._addresses = []
            self._refuse(error)
            return
        self._push()
        self._secured = True
        self._open()
        if self._user is not None and self._incoming.pending:
            self._receive_plain()

    def _open(self) -> None:
        if self._user is not None:
            self._user.opened(self)

    def _refuse(self, error: Exception) -> None:
        if self._addresses:
            self._next_address()
            return
        user, self._user = self._user, None
        self._drop()
        if user is not None:
            user.refused(*connect_problem(error))

    # -- events ---------------------------------------------------------------------------------

    def ready(self, events: int) -> None:
        """The socket can be read from or written to."""
        if self.socket is None:  # dropped by what an earlier event of this turn led to
            return
        if not self._connected:
            self._finish_connect()
            return
        if events & _WRITE:
            self._push()
        if events & _READ and self.socket is not None:
            self._read()

    def _read(self) -> None:
        assert self.socket is not None
        try:
            data = self.socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(connect_problem(error)[0])
            return
        if self._tls is not None:
            self._incoming.write(data)
            if not data:
                self._incoming.write_eof()
            if not self._secured:
                self._end("closed within the TLS handshake") if not data else self._shake_hands()
            else:
                self._receive_plain()
        elif not data:
            self._end("closed by the other side")
        elif self._user is not None:
            self._user.received(data)

    def _receive_plain(self) -> None:
        assert self._tls is not None
        parts: list[bytes] = []
        ended = ""
        try:
            while part := self._tls.read(_CHUNK):
                parts.append(part)
            ended = "closed by the other side"
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            ended = connect_problem(error)[0]
        if parts and self._user is not None:
            self._user.received(b"".join(parts))
        if ended:
            self._end(ended)
        else:
            self._push()

    def flush(self) -> None:
        """Send what was written in this turn."""
        out, self._out = self._out, []
        if not out or self.socket is None:
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        if self._tls is not None:
            self._tls.write(data)
            self._push()
        else:
            self._send(self._rest + data if self._rest else data)

    def _push(self) -> None:
        """Send what waits."""
        data = self._rest
        if self._tls is not None:
            data += self._outgoing.read()
        if data and self.socket is not None:
            self._send(data)

    def _send(self, data: bytes) -> None:
        assert self.socket is not None
        try:
            sent = self.socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._rest = b""
            self._end(connect_problem(error)[0])
            return
        self._rest = data[sent:] if sent < len(data) else b""
        if self._closing and not self._rest:
            self._drop()
            return
        self._watch(_READ | _WRITE if self._rest else _READ)
        if not self.writable and not self._rest:
            self.writable = True
            if self._user is not None:
                self._user.resumed()
        elif len(self._rest) > _HIGH_WATER:
            self.writable = False

    def _end(self, reason: str) -> None:
        user, self._user = self._user, None
        opened = self._secured and self._connected
        self._drop()
        if user is None:
            return
        if opened:
            user.ended(reason)
        else:
            user.refused(reason, "is TLS on at this port, and does it accept our certificate?")

    def _watch(self, events: int) -> None:
        if events == self._events or self.socket is None:
            return
        selector = self._network.selector
        if self._events:
            selector.modify(self.socket, events, self)
        else:
            selector.register(self.socket, events, self)
        self._events = events

    def _drop(self) -> None:
        one, self.socket = self.socket, None
        self._out = []
        self._rest = b""
        if one is not None:
            if self._events:
                self._network.selector.unregister(one)
            self._events = 0
            one.close()


class BlockingNetwork:
    """The transport of a blocking producer."""

    def __init__(self, tls: TlsSettings | None) -> None:
        """Raises ConfigError for TLS files that cannot be used."""
        self._tls = tls_context(tls) if tls is not None else None
        self.selector = selectors.DefaultSelector()
        self.dirty: list[SocketLink] = []
        self._timers: list[SocketTimer] = []
        self._soon: deque[Callable[[], None]] = deque()
        self._calling = False
        self.now: Callable[[], int] = time.monotonic_ns
        self.epoch: Callable[[], int] = time.time_ns

    def open(self, address: str, timeout_ns: int, user: LinkUser) -> Callable[[], None]:  # noqa: ARG002 - the core looks at the clock
        """Open a connection to `host:port`; returns what gives the attempt up."""
        parts = split_address(address)
        if parts is None:
            user.refused("that is no address", "a route names it: is the broker set up right?")
            return _nothing
        link = SocketLink(self, user, parts[0], self._tls)
        link.start(*parts)
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
        """The own IP address from which an address is reached; nothing is sent."""
        return local_ip(address)

    def run(self, done: Callable[[], bool], until: int | None = None) -> None:
        """Serve all connections and timers until `done` says so, or until that time."""
        while not done():
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
        """Seconds until something is due; None for never."""
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
