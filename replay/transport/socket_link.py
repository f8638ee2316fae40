"""One non-blocking socket of a blocking producer: opened, encrypted, read, written, ended.

Rules: nothing here waits; `ready` is called when the socket can do something. TLS runs over buffers
in memory, so that one path reads and writes all sockets.
RocketMQ: NettyRemotingClient, TlsHelper.
"""

from __future__ import annotations

import selectors
import socket
import ssl
from typing import Final, Protocol

from dissectors.endpoint import endpoint_of_socket

from ..config import AddressGuard
from ..wire.network import LinkUser
from .problems import connect_problem, is_ip_address, refusal_of

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE
_CHUNK: Final = 1 << 18
_HIGH_WATER: Final = 1 << 20
"""bytes that wait to be sent, from which on a connection is not `writable`"""


class Selecting(Protocol):
    """Who looks at the sockets."""

    selector: selectors.BaseSelector
    dirty: list[SocketLink]
    """links that were written to in this turn"""
    guard: AddressGuard | None
    """says why nothing may be sent to an address"""


class SocketLink:
    """One connection, being opened or open."""

    def __init__(self, network: Selecting, user: LinkUser) -> None:
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
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._secured = True

    def encrypt(self, tls: ssl.SSLContext, name: str) -> None:
        """Encrypt what will be sent; `name` is what the server's certificate must name.

        Raises ValueError for what cannot be a name.
        """
        self._tls = tls.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._secured = False

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

    def start(self, named: str, host: str, port: int) -> None:
        """Begin to connect to the first address of a host that is found; `named` is `host:port`."""
        self._named = named
        if not is_ip_address(host) and self._is_refused(named):
            return
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
        if self._is_refused(endpoint_of_socket(address)):
            return
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
        self._watch(WRITE)

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
        """Return whether the guard lets nothing be sent to an address; that ends the attempt."""
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
        """Read from or write to the socket, whichever is ready."""
        if self.socket is None:  # dropped by what an earlier event of this turn led to
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
