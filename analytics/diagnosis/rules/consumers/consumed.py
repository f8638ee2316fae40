"""Offsets that a group stores for one queue over time: how far it is consumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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


def _shown(row: ExchangeRecord, offset: int) -> Evidence:
    return asked(row, f"queue {row.queue_id}: stored offset {offset}")
