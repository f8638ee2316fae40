"""The blocking transport: sockets are served only in `run`, while a caller waits.

No thread: waiting for an operation serves all connections and timers, so heartbeats and brokers'
requests are served in sends and in `Producer.poll`. Data written before the next select leaves in
one write. No link blocks: `ready` is called when its socket is ready.
RocketMQ: NettyRemotingClient, TlsHelper.
"""

from __future__ import annotations

import heapq
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from dissectors.endpoint import endpoint_of_socket, split_endpoint

from ..config import AddressGuard, TlsSettings
from ..errors import ClosedError
from ..forks import blind
from ..wire.network import LinkUser
from .problems import NOT_A_NAME, connect_problem, is_ip_address, local_ip, refusal_of
from .tls import server_name_of, tls_context

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE
_CHUNK: Final = 1 << 18
_HIGH_WATER: Final = 1 << 20
"""bytes that wait to be sent, from which on a connection is not `writable`"""


class SocketLink:
    """One connection, being opened or open."""

    def __init__(self, network: BlockingNetwork, user: LinkUser) -> None:
        self.local = ""
        self.peer = ""
        self.writable = True
        self.socket: socket.socket | None = None
        self._network = network
        self._user: LinkUser | None = user
        self._addresses: list[tuple[socket.AddressFamily, tuple[object, ...]]] = []
        self._named = ""
        self._connected = False
        self._closing = False
        self._out: list[bytes] = []
        self._rest = b""
        self._events = 0
        # TLS runs over memory buffers, so that all sockets share one path for reads and writes.
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._secured = True

    def encrypt(self, tls: ssl.SSLContext, name: str) -> None:
        """Enable TLS; `name` must match the server's certificate.

        Raises ValueError for an invalid name.
        """
        self._tls = tls.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._secured = False

    # -- interface for the core -----------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send bytes; those of one loop turn leave together."""
        if not self._out:
            self._network.dirty.append(self)
        self._out.append(data)

    def close(self) -> None:
        """Close the connection after all written data has left."""
        self._user = None
        self._closing = True
        self.flush()
        if not self._rest:
            self._drop()

    def abort(self) -> None:
        """Abort the connection now."""
        self._user = None
        self._drop()

    # -- opening --------------------------------------------------------------------------------

    def start(self, named: str, host: str, port: int) -> None:
        """Start connecting to the first resolved address of a host; `named` is `host:port`."""
        self._named = named
        if not is_ip_address(host) and self._is_refused(named):
            return
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            self._refuse(error)
            return
        self._addresses = [(entry[0], entry[4]) for entry in addresses]
        self._next_address()

    def _next_address(self) -> None:
        while True:  # no recursion: any number of addresses may fail at once
            family, address = self._addresses.pop(0)
            self._drop()
            # one refused address ends the attempt: a name must not lead past the guard
            if self._is_refused(endpoint_of_socket(address)):
                return
            try:
                sock = self.socket = socket.socket(family, socket.SOCK_STREAM)
                sock.setblocking(False)
                # the writes of a turn are joined already: Nagle's algorithm would only delay them
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.connect(address)
            except BlockingIOError:
                pass
            except OSError as error:
                if self._addresses:
                    continue
                self._give_up(*connect_problem(error))
                return
            self._watch(WRITE)
            return

    def _finish_connect(self) -> None:
        assert self.socket is not None
        number = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._refuse(OSError(number, ""))
            return
        self._connected = True
        self.local = endpoint_of_socket(self.socket.getsockname())
        try:
            self.peer = endpoint_of_socket(self.socket.getpeername())
        except OSError as error:  # ended in the meantime
            self._refuse(error)
            return
        if self._is_refused(self.peer):  # the system may have connected to another address
            return
        self._watch(READ)
        if self._tls is None:
            self._open()
        else:
            self._shake_hands()

    def _is_refused(self, address: str) -> bool:
        """Return whether the guard refuses an address, and end the attempt if so."""
        refusal = refusal_of(self._network.guard, address, self._named)
        if refusal is not None:
            self._give_up(refusal, "")
        return refusal is not None

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
        # the server's first records may have come together with the end of the handshake
        if self._user is not None and self._incoming.pending:
            self._receive_plain()

    def _open(self) -> None:
        if self._user is not None:
            self._user.opened(self)

    def _refuse(self, error: Exception) -> None:
        if self._addresses:
            self._next_address()
            return
        self._give_up(*connect_problem(error))

    def _give_up(self, reason: str, hint: str) -> None:
        user, self._user = self._user, None
        self._drop()
        if user is not None:
            user.refused(reason, hint)

    # -- events ---------------------------------------------------------------------------------

    def ready(self, events: int) -> None:
        """Read from or write to the ready socket."""
        if self.socket is None:  # dropped because of an earlier event of this turn
            return
        if not self._connected:
            self._finish_connect()
            return
        if events & WRITE:
            self._push()
        if events & READ and self.socket is not None:
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
            # TLS may have to respond by itself, as to a key update
            self._push()

    def flush(self) -> None:
        """Send the data written in this turn."""
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
        """Send buffered data."""
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
        self._watch(READ | WRITE if self._rest else READ)
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
            user.refused(reason, "check that TLS is on at this port and accepts our certificate")

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
        sock, self.socket = self.socket, None
        self._out = []
        self._rest = b""
        if sock is not None:
            if self._events:
                self._network.selector.unregister(sock)
            self._events = 0
            sock.close()


_FORKED = "the process was forked in the middle of a call"
_LINGER_NS = 1_000_000_000
"""time that a closed connection has to send what was written"""


class SocketTimer:
    """A scheduled callback."""

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
        """`guard` returns why an address is refused, or None.

        Raises ConfigError for unusable TLS files.
        """
        self.guard = guard
        self._settings = tls
        self._tls = tls_context(tls) if tls is not None else None
        self.selector: selectors.BaseSelector = selectors.DefaultSelector()
        self.dirty: list[SocketLink] = []
        """links that were written to in this turn"""
        self._timers: list[SocketTimer] = []
        self._soon: deque[Callable[[], None]] = deque()
        self._calling = False
        self._is_parents = False
        """this process was forked: the connections are those of its parent"""
        self.now: Callable[[], int] = time.monotonic_ns
        self.epoch: Callable[[], int] = time.time_ns

    def open(self, address: str, timeout_ns: int, user: LinkUser) -> Callable[[], None]:  # noqa: ARG002 - the core looks at the clock
        """Open a connection to `host:port`; return a function that cancels the attempt."""
        if self._is_parents:
            user.refused(_FORKED, "")
            return _nothing
        parts = split_endpoint(address)
        if parts is None:
            user.refused("not a valid address", "a route names it; check brokerIP1 of the broker")
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
        """Call after the current event is handled."""
        self._soon.append(callback)

    def local_address(self, address: str) -> str:
        """Return the local IP address of the route to an address, without sending anything."""
        return local_ip(address)

    def run(self, done: Callable[[], bool], until: int | None = None) -> None:
        """Serve all connections and timers until `done` returns true, or until a time."""
        while not done():
            if self._is_parents:
                raise ClosedError(_FORKED)
            self._flush()
            # a callback may call `run` again: it is not run within itself
            if self._soon and not self._calling:
                self._call_soon()
                continue
            if until is not None and self.now() >= until:
                return
            self._serve(self._next_timer(until))
        self._flush()

    def serve_ready(self) -> None:
        """Handle ready events without waiting."""
        self._serve(0)

    def _serve(self, wait: float | None) -> None:
        """Handle the events of at most `wait` seconds, and the timers that are due."""
        for key, events in self.selector.select(wait):
            key.data.ready(events)
        self._fire()

    def close(self) -> None:
        """Send buffered data for a second at most; close everything."""
        # links that have nothing left to send are out of the selector already
        self.run(lambda: not self.selector.get_map(), self.now() + _LINGER_NS)
        for key in list(self.selector.get_map().values()):
            key.data.abort()
        self.selector.close()
        self._timers.clear()
        self._soon.clear()

    def forked(self) -> None:
        """Leave all connections to the parent process."""
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
        """Return the seconds until the next timer, or None."""
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
