"""Offsets that a group stores for one queue over time: how far it is consumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dissectors.rows.record import ExchangeRecord

from ...problem import Evidence, asked, place_of
from .pulled import MAX_POINTS, Point

FIRST_STEP: Final = 1_000_000_000
"""ns of a step of time at first"""
_Stored = tuple[int, int, str, int, int]
"""time, offset, capture, packet, conversation"""


class Commits:
    """Offsets of one queue: the first and the last one, and the last of each step of time.

    Steps get longer as time goes on, which does not depend on the order of what is added.
    """

    __slots__ = ("_points", "_step", "first", "highest", "last", "lowest")

    def __init__(self, row: ExchangeRecord, offset: int) -> None:
        self.first = self.last = _shown(row, offset)
        self.lowest = self.highest = offset
        self._step = FIRST_STEP
        self._points: dict[int, _Stored] = {}
        self.add(row, offset)

    def add(self, row: ExchangeRecord, offset: int) -> None:
        """Take a request that stores an offset."""
        one = _shown(row, offset)
        if place_of(one) < place_of(self.first):
            self.first = one
        if place_of(one) > place_of(self.last):
            self.last = one
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
        """Return what was stored, by time."""
        return [self._points[at] for at in sorted(self._points)]

    def against(self, pulled: Sequence[Point]) -> list[Point]:
        """Return what is consumed beside where the queue ended as of its last pull, by time."""
        found = []
        number = 0
        for at in sorted(self._points):
            time, offset, capture, packet, conversation = self._points[at]
            while number < len(pulled) and pulled[number].time <= time:
                number += 1
            if number:
                end = pulled[number - 1].end
                found.append(Point(time, offset, end, capture, packet, conversation, ""))
        return found


class Stand(NamedTuple):
    """A time in which the stored offset of a queue did not move although it had more messages."""

    offset: int
    since: int
    """ns"""
    until: int
    end: int
    """offset at which the queue ended by then"""
    following: int
    """offset that was fetched next by then"""
    begun: Evidence
    more: Evidence
    """the pull that shows that there are more messages"""
    ended: Evidence
    recovered: bool
    """it moved on later"""


def longest_stand(commits: Commits, pulled: Sequence[Point], queue: int) -> Stand | None:
    """Return the longest time in which an offset stood still; None: it never did."""
    points = commits.ordered()
    found: list[Stand] = []
    at = 0
    while at < len(points):
        last = at
        while last + 1 < len(points) and points[last + 1][1] == points[at][1]:
            last += 1
        offset, until = points[at][1], points[last][0]
        more = [one for one in pulled if one.end > offset and one.time <= until]
        if more:
            recovered = any(one[1] > offset for one in points[last + 1 :])
            found.append(
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
    return max(found, key=lambda one: (one.until - one.since, -one.since), default=None)


def _evidence(point: _Stored, queue: int) -> Evidence:
    time, offset, capture, packet, conversation = point
    what = f"queue {queue}: stored offset {offset}"
    return Evidence(capture, packet or None, time, conversation, what)


def _shown(row: ExchangeRecord, offset: int) -> Evidence:
    return asked(row, f"queue {row.queue_id}: stored offset {offset}")
