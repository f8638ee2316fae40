"""Segments of one direction of a connection that were sent again and again.

A sender that gets no acknowledgement sends its earliest unacknowledged segment again, after pauses
that double (RFC 6298). A run of those is a stall. A single loss, and packets that were captured
twice, are none.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

LEAST_REPEATS: Final[i64] = 3
LEAST_NS: Final[i64] = 500_000_000
"""from the first repetition to the last one"""
PROBE_BYTES: Final = 1
MAX_STALLS: Final = 8
"""stalls that are remembered of one direction: the first ones"""


@final
class Repeats:
    """The stalls of one direction."""

    __slots__ = ("_count", "_first", "_last", "_offset", "_size", "_stalls")

    def __init__(self) -> None:
        self._stalls: list[tuple[int, int, int, int]] = []
        self._offset: i64 = -1
        self._first: i64 = 0
        self._last: i64 = 0
        self._count: i64 = 0
        self._size: i64 = 0

    def note(self, offset: i64, size: i64, ts: i64) -> None:
        """Note a segment of which every byte was sent before, by the place of its first byte."""
        if offset == self._offset:
            self._count += 1
            self._last = ts
            return
        self._end_run()
        self._offset = offset
        self._first = self._last = ts
        self._count = 1
        self._size = size

    def stalls(self) -> list[tuple[int, int, int, int]]:
        """Return (first repetition, last one, how many, bytes) of each stall; times in ns."""
        found = self._stalls[:]
        if self._tells():
            found.append((self._first, self._last, self._count, self._size))
        return found

    def _end_run(self) -> None:
        if self._tells():
            self._stalls.append((self._first, self._last, self._count, self._size))

    def _tells(self) -> bool:
        """Return whether the repetitions since the last stall are another one."""
        lasted: i64 = self._last - self._first
        long = self._count >= LEAST_REPEATS and lasted >= LEAST_NS
        return long and len(self._stalls) < MAX_STALLS


def noted(repeats: Repeats | None, offset: i64, size: i64, ts: i64) -> Repeats | None:
    """Note a segment as `Repeats.note`, unless it may be a probe of a window of 0.

    Some systems send one byte again and again as such a probe, which the other end acknowledges.
    None: none was noted yet.
    """
    if size <= PROBE_BYTES:
        return repeats
    if repeats is None:
        repeats = Repeats()
    repeats.note(offset, size, ts)
    return repeats
