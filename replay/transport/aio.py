"""The asyncio transport: protocol callbacks, no task per message.

Rules: data of one loop turn leaves in one write; one timer is set at a time; the only task is that
of opening a connection.
RocketMQ: NettyRemotingClient.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from dissectors.endpoint import endpoint_of_socket, split_endpoint

from ..config import AddressGuard, TlsSettings
from ..forks import blind
from ..wire.network import LinkUser
from .names import addresses_of
from .problems import NOT_A_NAME, connect_problem, is_ip_address, local_ip, refusal_of
from .tls import server_name_of, tls_context

CLOSED: Final = "closed by the other side"
"""the reason of an end in order"""
_NO_LINGER: Final = struct.pack("ii", 1, 0)
"""as SO_LINGER: the end of the connection is an RST"""
_LINGER = 1.0
"""seconds that a closed connection has to send what was written"""
_HIGH_WATER = 1 << 20
"""bytes that wait to be sent, from which on a connection is not `writable`"""


class NotAllowed(Exception):
    """The guard refuses an address; the text says why."""


class AioLink(asyncio.Protocol):
    """One connection on the loop."""

    def __init__(self, network: AioNetwork, user: LinkUser) -> None:
        self.local = ""
        self.peer = ""
        self.writable = True
        self.half_closed: Callable[[], bool] | None = None
        """called when the other side sends no more but may read: whether it stays open for that"""
        self._network = network
        self._loop = network.loop
        self._user: LinkUser | None = user
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._size = 0
        self._paused = 0

    def send(self, data: bytes) -> None:
        """Send bytes now: `writable` is updated at once."""
        # what `write` collected goes first
        if self._out:
            self._flush()
        if self._transport is not None:
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Pause reading; calls nest."""
        self._paused += 1
        if self._paused == 1 and self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Undo one `pause_reading`."""
        self._paused -= 1
        if self._paused == 0 and self._transport is not None:
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send bytes; those of one loop turn leave together."""
        out = self._out
        if not out:
            self._loop.call_soon(self._flush)
        out.append(data)
        self._size += len(data)
        if self._size > _HIGH_WATER:  # one turn may write more than the buffer limit
            self._flush()

    def close(self) -> None:
        """Close the connection after all written data has left."""
        self._flush()
        self._user = None
        # The second close() of a TLS transport of asyncio breaks it: its other methods raise.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Abort the connection now."""
        self._user = None
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()

    def reset(self) -> None:
        """Abort the connection with an RST: the other side sees that it failed."""
        sock = None if self._transport is None else self._transport.get_extra_info("socket")
        if sock is not None:
            with suppress(OSError):  # it is closed already
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.abort()

    @property
    def can_half_close(self) -> bool:
        """Whether half-close is possible, which TLS does not allow."""
        return self._transport is not None and self._transport.can_write_eof()

    def half_close(self) -> None:
        """Close the sending direction after all written data has left; keep reading."""
        self._flush()
        if self._transport is not None:
            self._transport.write_eof()

    @property
    def descriptor(self) -> int:
        """Descriptor of the socket, or -1."""
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        return -1 if sock is None else int(sock.fileno())

    @property
    def unsent(self) -> int:
        """Number of unsent bytes."""
        waiting = self._transport.get_write_buffer_size() if self._transport is not None else 0
        return self._size + waiting

    def _flush(self) -> None:
        out = self._out
        if out and self._transport is not None:
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))
            out.clear()
            self._size = 0

    # -- callbacks of the loop ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle the open connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=self._network.high_water)
        self.local = endpoint_of_socket(transport.get_extra_info("sockname"))
        self.peer = endpoint_of_socket(transport.get_extra_info("peername"))
        if self._user is None:  # abandoned in the meantime
            transport.abort()
            return
        self._network.links.add(self)
        self._user.opened(self)

    def data_received(self, data: bytes) -> None:
        """Pass received bytes on."""
        if self._user is not None:
            self._user.received(data)

    def eof_received(self) -> bool:
        """Handle a half-close by the peer; return whether to stay open."""
        return self._user is not None and self.half_closed is not None and self.half_closed()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        self._network.links.discard(self)
        user, self._user = self._user, None
        self._out.clear()
        if user is not None:
            user.ended(CLOSED if exc is None else connect_problem(exc)[0])

    def pause_writing(self) -> None:
        """Handle a full send buffer."""
        self.writable = False

    def resume_writing(self) -> None:
        """Handle a drained send buffer."""
        self.writable = True
        if self._user is not None:
            self._user.resumed()


class AioNetwork:
    """The transport of an asynchronous producer; made within a running loop."""

    def __init__(
        self,
        tls: TlsSettings | None,
        guard: AddressGuard | None = None,
        high_water: int = _HIGH_WATER,
        protocols: Sequence[str] = (),
    ) -> None:
        """`guard` returns why an address is refused, or None. `high_water`: number of unsent bytes
        from which a connection is not `writable`; `protocols`: the ALPN protocols of TLS.

        Raises ConfigError for unusable TLS files.
        """
        self.loop = asyncio.get_running_loop()
        self.high_water = high_water
        self._guard = guard
        self._settings = tls
        self._tls: ssl.SSLContext | None = tls_context(tls) if tls is not None else None
        if self._tls is not None and protocols:
            self._tls.set_alpn_protocols(list(protocols))
        self._opening: set[asyncio.Task[None]] = set()
        self._sockets: set[socket.socket] = set()
        """sockets of the connections that are being opened"""
        self.links: set[AioLink] = set()
        """connections that are open, or not yet closed"""
        self.now: Callable[[], int] = time.monotonic_ns
        self.epoch: Callable[[], int] = time.time_ns

    @property
    def peers(self) -> list[str]:
        """Peer addresses of all open connections, `ip:port`."""
        return [link.peer for link in self.links if link.peer]

    def open(self, address: str, timeout_ns: int, user: LinkUser) -> Callable[[], None]:
        """Open a connection to `host:port`; return a function that cancels the attempt."""
        task = self.loop.create_task(self._open(address, timeout_ns / 1e9, user))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        return task.cancel  # type: ignore[return-value]

    async def _open(self, address: str, timeout: float, user: LinkUser) -> None:
        parts = split_endpoint(address)
        if parts is None:
            user.refused("not a valid address", "a route names it; check brokerIP1 of the broker")
            return
        link = AioLink(self, user)
        try:
            async with self._patience(timeout):
                host = server_name_of(self._settings, parts[0]) if self._settings else None
                connected = await self._connected(address, parts, self._guard)
                self._sockets.add(connected)
                try:
                    await self.loop.create_connection(
                        lambda: link, sock=connected, ssl=self._tls, server_hostname=host
                    )
                except NOT_A_NAME:  # a name that TLS rejects: the socket has no owner yet
                    connected.close()
                    raise
                finally:
                    self._sockets.discard(connected)
        except NotAllowed as refusal:
            user.refused(str(refusal), "")
        except (OSError, TimeoutError, *NOT_A_NAME) as error:
            # set in connection_made: since then the user gets `ended`, not `refused`
            if not link.local:
                link.abort()
                user.refused(*connect_problem(error))
        except asyncio.CancelledError:
            # cancelled by the user, who expects no callback
            link.abort()

    @asynccontextmanager
    async def _patience(self, seconds: float) -> AsyncIterator[None]:
        """Raise TimeoutError after a time in which this process could run."""
        async with asyncio.timeout(None) as limit:

            def expired() -> None:
                now = self.loop.time()
                # A busy machine may stop this process beyond the deadline. Then the timer and the
                # end of the connect are seen at once: it gets as long again as it was late.
                limit.reschedule(now + max(now - deadline, 0))

            deadline = self.loop.time() + seconds
            timer = self.loop.call_at(deadline, expired)
            try:
                yield
            finally:
                timer.cancel()

    async def _connected(
        self, named: str, parts: tuple[str, int], guard: AddressGuard | None
    ) -> socket.socket:
        """Connect to the first reachable address of a host, if the guard allows it.

        The guard checks a name before the lookup, the resolved address, and the peer address after
        connecting. Raises NotAllowed, OSError.
        """
        if guard is not None and not is_ip_address(parts[0]):
            _ask(guard, named, named)
        problem: OSError | None = None
        for family, _, _, _, address in await addresses_of(*parts):
            if guard is not None:
                _ask(guard, endpoint_of_socket(address), named)
            sock = socket.socket(family, socket.SOCK_STREAM)
            self._sockets.add(sock)
            try:
                sock.setblocking(False)
                await self.loop.sock_connect(sock, address)
                if guard is not None:
                    # the system may connect elsewhere: 0.0.0.0 leads to 127.0.0.1
                    _ask(guard, endpoint_of_socket(sock.getpeername()), named)
            except OSError as error:
                sock.close()
                problem = error
                continue
            except BaseException:
                sock.close()
                raise
            finally:
                self._sockets.discard(sock)
            return sock
        raise problem or OSError("the name has no address")

    def forked(self) -> None:
        """Leave all connections to the parent process."""
        blind(
            [*(link.descriptor for link in self.links), *(sock.fileno() for sock in self._sockets)]
        )

    def call_at(self, when: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call at a time of `now`; never before it."""
        # half a millisecond more, because the loop may fire a timer a little early
        return self.loop.call_later(max((when - self.now()) / 1e9, 0) + 0.0005, callback)

    def local_address(self, address: str) -> str:
        """Return the local IP address of the route to an address, without sending anything."""
        return local_ip(address)

    async def close(self) -> int:
        """Cancel connections being opened; close the others after all data has left.

        Connections whose peer does not read are aborted after a second; return the number of
        dropped bytes.
        """
        for task in list(self._opening):
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        until = self.loop.time() + _LINGER
        while self.links and self.loop.time() < until:
            # most ends take a few turns; after 10 ms, waiting must not keep the processor busy
            await asyncio.sleep(0 if self.loop.time() < until - _LINGER + 0.01 else 0.01)
        dropped = sum(link.unsent for link in self.links)
        for link in list(self.links):
            link.abort()
        # connection_lost comes in the next turn
        while self.links:
            await asyncio.sleep(0)
        return dropped


def _ask(guard: AddressGuard, address: str, named: str) -> None:
    """Raise NotAllowed if the guard refuses an address."""
    refusal = refusal_of(guard, address, named)
    if refusal is not None:
        raise NotAllowed(refusal)
