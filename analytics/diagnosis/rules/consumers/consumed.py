"""Offsets stored by a group for one queue over time: its consumption progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dissectors.rows.record import ExchangeRecord

from ...problem import Evidence, asked
from .pulled import MAX_POINTS, Point

FIRST_STEP: Final = 1_000_000_000
"""initial time step, ns"""
_Stored = tuple[int, int, str, int, int]
"""time, offset, capture, packet, conversation"""


class Commits:
    """Offsets of one queue: the first and the last one, and the last per time step.

    Steps get longer over time, independently of the order of additions.
    """

    __slots__ = ("_points", "_step", "first", "highest", "last", "lowest")

    def __init__(self, row: ExchangeRecord, offset: int) -> None:
        self.first = self.last = _shown(row, offset)
        self.lowest = self.highest = offset
        self._step = FIRST_STEP
        self._points: dict[int, _Stored] = {}
        self.add(row, offset)

    def add(self, row: ExchangeRecord, offset: int) -> None:
        """Add a request that stores an offset."""
        one = _shown(row, offset)
        self.first = min(self.first, one)
        self.last = max(self.last, one)
        self.lowest = min(self.lowest, offset)
        self.highest = max(self.highest, offset)
        self._keep((one.time, offset, one.capture, one.packet or 0, one.conversation))
        while len(self._points) > MAX_POINTS:
            self._step *= 2
            points, self._points = self._points, {}
            for point in points.values():
                self._keep(point)

    def _keep(self, point: _Stored) -> None:
        at = point[0] // self._step
        before = self._points.get(at)
        if before is None or point > before:
            self._points[at] = point

    def ordered(self) -> list[_Stored]:
        """Return the stored offsets, sorted by time."""
        return [self._points[at] for at in sorted(self._points)]

    def against(self, pulled: Sequence[Point]) -> list[Point]:
        """Return the stored offsets with the end of the queue in the latest pull, by time."""
        points = []
        number = 0
        for at in sorted(self._points):
            time, offset, capture, packet, conversation = self._points[at]
            while number < len(pulled) and pulled[number].time <= time:
                number += 1
            if number:
                end = pulled[number - 1].end
                points.append(Point(time, offset, end, capture, packet, conversation, ""))
        return points


class Stand(NamedTuple):
    """A period without progress of the stored offset of a queue that had more messages."""

    offset: int
    since: int
    """ns"""
    until: int
    end: int
    """end offset of the queue at that time"""
    following: int
    """next fetch offset at that time"""
    begun: Evidence
    more: Evidence
    """the pull that proves more messages"""
    ended: Evidence
    recovered: bool
    """the offset moved again later"""


def longest_stand(commits: Commits, pulled: Sequence[Point], queue: int) -> Stand | None:
    """Return the longest period without progress, or None."""
    points = commits.ordered()
    stands: list[Stand] = []
    at = 0
    while at < len(points):
        last = at
        while last + 1 < len(points) and points[last + 1][1] == points[at][1]:
            last += 1
        offset, until = points[at][1], points[last][0]
        # Without a later message in the queue, an offset that does not move is no problem.
        more = [point for point in pulled if point.end > offset and point.time <= until]
        if more:
            recovered = any(point[1] > offset for point in points[last + 1 :])
            stands.append(
                Stand(
                    offset,
                    max(more[0].time, points[at][0]),
                    until,
                    more[-1].end,
                    more[-1].following,
                    _evidence(points[at], queue),
                    more[-1].evidence(queue),
                    _evidence(points[last], queue),
                    recovered,
                )
            )
        at = last + 1
    return max(stands, key=lambda item: (item.until - item.since, -item.since), default=None)


def _evidence(point: _Stored, queue: int) -> Evidence:
    time, offset, capture, packet, conversation = point
    text = f"queue {queue}: stored offset {offset}"
    return Evidence(capture, packet or None, time, conversation, text)


def _shown(row: ExchangeRecord, offset: int) -> Evidence:
    return asked(row, f"queue {row.queue_id}: stored offset {offset}")
