"""The connections that a replay opens while it captures: what they carry is not captured traffic.

Rules: a connection is known by both its ends before its first byte leaves, so its packets are known
whenever they are captured. An address translation in between gives them another end: then the
target is seen as an address of the capture, and the run ends.
"""

from __future__ import annotations

from typing import Final

MOST: Final = 65_536
"""connections that are remembered, the newest ones: more than a host can have to one address"""


class OwnConnections:
    """Pairs of ends, `ip:port`; used by the thread that sends and the one that reads."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], None] = {}

    def add(self, local: str, peer: str) -> None:
        """Remember a connection that was just opened."""
        ends = self._ends
        for pair in ((local, peer), (peer, local)):
            ends.pop(pair, None)
            ends[pair] = None
        while len(ends) > 2 * MOST:
            del ends[next(iter(ends))]

    def __contains__(self, ends: object) -> bool:
        return ends in self._ends
