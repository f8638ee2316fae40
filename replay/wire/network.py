"""The transport interface of the core: connections with callbacks, a clock, timers. No I/O.

`replay.transport` has two of these, for blocking sockets and for asyncio; tests have a third one
without sockets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

MS: Final = 1_000_000
"""ns of a millisecond"""


class Timer(Protocol):
    """A scheduled callback."""

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
        """Send bytes; those of one loop turn leave together."""

    def close(self) -> None:
        """Close the connection after all written data has left; there are no further callbacks."""

    def abort(self) -> None:
        """Abort the connection now; there are no further callbacks."""


class LinkUser(Protocol):
    """The callbacks of a transport."""

    def opened(self, link: Link) -> None:
        """Handle the open connection."""

    def refused(self, reason: str, hint: str) -> None:
        """Handle a failed connection attempt."""

    def received(self, data: bytes) -> None:
        """Handle received bytes."""

    def ended(self, reason: str) -> None:
        """Handle a connection closed by the peer or the network."""

    def resumed(self) -> None:
        """Handle that `writable` is true again."""


class Network(Protocol):
    """A transport."""

    def now(self) -> int:
        """Return the monotonic clock in ns."""

    def epoch(self) -> int:
        """Return ns since the epoch, of the wall clock."""

    def open(self, address: str, timeout_ns: int, user: LinkUser) -> Callable[[], None]:
        """Open a connection to `host:port`; return a function that cancels the attempt."""

    def call_at(self, when: int, callback: Callable[[], None]) -> Timer:
        """Call at a time of `now`."""

    def local_address(self, address: str) -> str:
        """Return the local IP address of the route to an address, without sending anything."""
