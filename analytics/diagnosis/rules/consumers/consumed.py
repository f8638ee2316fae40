"""Offsets stored by a group for one queue over time: its consumption progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dissectors.rows.record import ExchangeRecord

from ...problem import Evidence, time_of
from .pulled import LastPoints, Point

_Stored = tuple[int, int, str, int, int]
"""time, offset, capture, packet, conversation"""


class Commits:
    """Offsets of one queue: the last one per time step."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: LastPoints[_Stored] = LastPoints()

    def add(self, row: ExchangeRecord, offset: int) -> None:
        """Add a request that stores an offset."""
        packet = row.request_packet if row.request_packet is not None else row.response_packet
        self._points.add((time_of(row), offset, row.capture, packet or 0, row.conversation))

    def ordered(self) -> list[_Stored]:
        """Return the stored offsets, sorted by time."""
        return self._points.ordered()

    def against(self, pulled: Sequence[Point]) -> list[Point]:
        """Return the stored offsets with the end of the queue in the latest pull, by time."""
        points = []
        number = 0
        for time, offset, capture, packet, conversation in self.ordered():
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
