"""What the core wants of a transport: connections that call back, a clock, timers. No I/O here.

`replay.transport` has two of these, for blocking sockets and for asyncio; tests have a third one
without sockets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

MS: Final = 1_000_000
"""ns of a millisecond"""


class Timer(Protocol):
    """Something that will be called."""

    def cancel(self) -> None:
        """Cancel it."""


class Link(Protocol):
    """An open connection."""

    local: str
    """our side, `address:port`"""
    peer: str
    """the other side, `address:port`"""
    writable: bool
    """what is written now leaves soon; False: it would wait in memory"""

    def write(self, data: bytes) -> None:
        """Send bytes; those of one turn leave together."""

    def close(self) -> None:
        """End the connection when all that was written has left; nothing is called after this."""

    def abort(self) -> None:
        """End the connection now; nothing is called after this."""


class LinkUser(Protocol):
    """Who a transport tells."""

    def opened(self, link: Link) -> None:
        """Handle the open connection."""

    def refused(self, reason: str, hint: str) -> None:
        """Handle a connection that could not be opened."""

    def received(self, data: bytes) -> None:
        """Handle received bytes."""

    def ended(self, reason: str) -> None:
        """Handle the end of the connection by the peer or the network."""

    def resumed(self) -> None:
        """Handle that `writable` is true again."""


class Network(Protocol):
    """A transport."""

    def now(self) -> int:
        """Return ns of a clock that never goes back."""

    def epoch(self) -> int:
        """Return ns since the epoch, of the wall clock."""

    def open(self, address: str, timeout_ns: int, user: LinkUser) -> Callable[[], None]:
        """Open a connection to `host:port`; return what gives the attempt up."""

    def call_at(self, when: int, callback: Callable[[], None]) -> Timer:
        """Call at a time of `now`."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call when the current event is dealt with."""

    def local_address(self, address: str) -> str:
        """Return the own IP address from which an address is reached; nothing is sent."""
