"""When a replication passed which offset: a bounded list of points.

Of many points every second one goes, then every second again, so the list spans all of the capture
and says "at the latest". RocketMQ: DefaultHAConnection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

MOST_POINTS: Final = 256
"""points of one list"""

Point = tuple[int, int]
"""offset in the commit log and a time, ns since the epoch: all before it had passed by then"""


@final
class Passed:
    """Offsets that grow, each with the time when it was reached."""

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
        """Take an offset; one that is not beyond the last is none."""
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
    """Return when all up to and with `offset` had passed at the latest; None: that was not seen."""
    return next((ts for beyond, ts in points if beyond > offset), None)
