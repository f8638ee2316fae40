"""When a replication reached which offset: a bounded list of points.

When full, every second point is dropped, so the list spans the whole capture and gives upper
bounds. RocketMQ: DefaultHAConnection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

MOST_POINTS: Final = 256
"""maximum points of a list"""

Point = tuple[int, int]
"""commit log offset, and a time (ns since the epoch) by which everything before it was passed"""


@final
class Passed:
    """Increasing offsets, each with its time."""

    __slots__ = ("_points", "_skip", "_step")

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._step = 1
        self._skip = 0

    @property
    def points(self) -> tuple[Point, ...]:
        """The points, in order."""
        return tuple(self._points)

    def note(self, offset: int, ts: int) -> None:
        """Add an offset, if it is beyond the last one."""
        points = self._points
        if points and offset <= points[-1][0]:
            return
        self._skip += 1
        if self._skip < self._step:
            return
        self._skip = 0
        points.append((offset, ts))
        if len(points) > MOST_POINTS:
            del points[::2]
            self._step *= 2


def passed_at(points: Sequence[Sequence[int]], offset: int) -> int | None:
    """Return a time by which `offset` was passed, or None if that was not captured."""
    return next((ts for beyond, ts in points if beyond > offset), None)
