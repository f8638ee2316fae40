"""Connections that a replay opens while it captures: their traffic is ignored.

Rules: a connection is known by both its ends before its first byte leaves, so its packets are
recognized whenever they are captured. Behind an address translation (NAT) they are not: the target
then counts as a captured address, and the run ends.
"""

from __future__ import annotations

from typing import Final

MOST: Final = 65_536
"""connections that are remembered, the newest ones: more than a host can have to one address"""


class OwnConnections:
    """Address pairs, `ip:port`; shared by the sending and the reading thread."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], None] = {}

    def add(self, local: str, peer: str) -> None:
        """Remember a connection that was just opened."""
        ends = self._ends
        # a packet of either direction may be looked up
        for pair in ((local, peer), (peer, local)):
            ends.pop(pair, None)
            ends[pair] = None
        while len(ends) > 2 * MOST:
            del ends[next(iter(ends))]

    def __contains__(self, ends: object) -> bool:
        return ends in self._ends
