"""The core on an asyncio loop: protocols that call back, no task a message.

Rules: what is written in one turn of the loop leaves in one write; one timer is set at a time; the
only task is that of a connection being opened.
RocketMQ: NettyRemotingClient.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable

from ..config import TlsSettings, split_address
from ..network import LinkUser
from .problems import connect_problem, local_ip, text_of
from .tls import tls_context

_LINGER = 1.0
"""seconds that a closed connection has to send what was written"""
_HIGH_WATER = 1 << 20
"""bytes that wait to be sent, from which on a connection is not `writable`"""


class NotAllowed(Exception):
    """The guard lets nothing be sent to an address; the text says why."""


class AioLink(asyncio.Protocol):
    """One connection on the loop."""

    def __init__(self, network: AioNetwork, user: LinkUser) -> None:
        self.local = ""
        self.peer = ""
        self.writable = True
        self._network = network
        self._loop = network.loop
        self._user: LinkUser | None = user
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send bytes; those of one turn leave together."""
        out = self._out
        if not out:
            self._loop.call_soon(self._flush)
        out.append(data)
        self._size += len(data)
        if self._size > _HIGH_WATER:  # a turn may write more than there is room for
            self._flush()

    def close(self) -> None:
        """End the connection when all that was written has left."""
        self._flush()
        self._user = None
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection now."""
        self._user = None
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        out = self._out
        if out and self._transport is not None:
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))
            out.clear()
            self._size = 0

    # -- what the loop tells --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self.local = text_of(transport.get_extra_info("sockname"))
        self.peer = text_of(transport.get_extra_info("peername"))
        if self._user is None:  # given up in the meantime
            transport.abort()
            return
        self._network.links.add(self)
        self._user.opened(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._user is not None:
            self._user.received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection ended."""
        self._network.links.discard(self)
        user, self._user = self._user, None
        self._out.clear()
        if user is not None:
            user.ended("closed by the other side" if exc is None else connect_problem(exc)[0])

    def pause_writing(self) -> None:
        """Too much waits to be sent."""
        self.writable = False

    def resume_writing(self) -> None:
        """What waited has left."""
        self.writable = True
        if self._user is not None:
            self._user.resumed()


class AioNetwork:
    """The transport of an asynchronous producer; made within a running loop."""

    def __init__(
        self, tls: TlsSettings | None, guard: Callable[[str], str | None] | None = None
    ) -> None:
        """`guard` says why nothing may be sent to an `ip:port`; None where it may.

        Raises ConfigError for TLS files that cannot be used.
        """
        self.loop = asyncio.get_running_loop()
        self._guard = guard
        self._tls: ssl.SSLContext | None = tls_context(tls) if tls is not None else None
        self._opening: set[asyncio.Task[None]] = set()
        self.links: set[AioLink] = set()
        """connections that are open, or not yet closed"""
        self.now: Callable[[], int] = time.monotonic_ns
        self.epoch: Callable[[], int] = time.time_ns

    def open(self, address: str, timeout_ns: int, user: LinkUser) -> Callable[[], None]:
        """Open a connection to `host:port`; returns what gives the attempt up."""
        task = self.loop.create_task(self._open(address, timeout_ns / 1e9, user))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        return task.cancel  # type: ignore[return-value]

    async def _open(self, address: str, timeout: float, user: LinkUser) -> None:
        parts = split_address(address)
        if parts is None:
            user.refused("that is no address", "a route names it: is the broker set up right?")
            return
        link = AioLink(self, user)
        try:
            async with asyncio.timeout(timeout):
                host, port = await self._allowed(parts) if self._guard is not None else parts
                await self.loop.create_connection(
                    lambda: link,
                    host,
                    port,
                    ssl=self._tls,
                    server_hostname=parts[0] if self._tls is not None else None,
                )
        except NotAllowed as refusal:
            user.refused(str(refusal), "")
        except (OSError, TimeoutError) as error:
            if not link.local:
                link.abort()
                user.refused(*connect_problem(error))
        except asyncio.CancelledError:
            link.abort()

    async def _allowed(self, parts: tuple[str, int]) -> tuple[str, int]:
        """The address that a host's name stands for, if the guard lets it be reached."""
        assert self._guard is not None
        found = await self.loop.getaddrinfo(*parts, type=socket.SOCK_STREAM)
        host, port = found[0][4][:2]
        refusal = self._guard(text_of((host, port)))
        if refusal is not None:
            raise NotAllowed(refusal)
        return str(host), int(port)

    def call_at(self, when: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call at a time of `now`; never before it."""
        return self.loop.call_later(max((when - self.now()) / 1e9, 0) + 0.0005, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call when the current event is dealt with."""
        self.loop.call_soon(callback)

    def local_address(self, address: str) -> str:
        """The own IP address from which an address is reached; nothing is sent."""
        return local_ip(address)

    async def close(self) -> None:
        """Give up the connections that are being opened; the others end when all has left.

        Connections whose other side does not read are ended after a second.
        """
        for task in list(self._opening):
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        until = self.loop.time() + _LINGER
        while self.links and self.loop.time() < until:
            await asyncio.sleep(0 if self.loop.time() < until - _LINGER + 0.01 else 0.01)
        for link in list(self.links):
            link.abort()
        while self.links:
            await asyncio.sleep(0)
