"""Lag of one group and topic over time.

Only pull responses carry the end of a queue; the last value is used until the next one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..diagnosis.rules.consumers.pulled import messages_behind
from .items import SeenFetch
from .known import Known
from .sums import LagPoint, Sums

MAX_QUEUES: Final = 4096
MAX_CLIENTS: Final = 1024


class _Queue(msgspec.Struct, gc=False):
    end: int | None = None
    following: int | None = None
    committed: int | None = None

    def to_fetch(self) -> int | None:
        return _behind(self.end, self.following)

    def to_commit(self) -> int | None:
        return _behind(self.end, self.committed)


def _behind(end: int | None, at: int | None) -> int | None:
    return None if end is None or at is None else messages_behind(end, at)


class LagFold:
    """Folds fetches and commits in order of time."""

    def __init__(self, topic: str, group: str, known: Known, sums: Sums) -> None:
        self._topic = topic
        self._group = group
        self._width = known.window_us * 1000
        self._sums = sums
        self._queues: dict[tuple[str, int], _Queue] = {}
        self._to_fetch: int | None = None
        self._to_commit: int | None = None
        self._point: LagPoint | None = None

    def add(self, row: SeenFetch) -> None:
        """Add a fetch or commit."""
        # A commit shows no fetch, and its client is not known here.
        if row.committed is None:
            sums = self._sums.group(self._topic, self._group)
            sums.seen(row.time)
            if len(sums.clients) < MAX_CLIENTS:
                sums.clients.add(row.client)
        queue = self._queues.get((row.broker, row.queue))
        if queue is None:
            if len(self._queues) >= MAX_QUEUES:
                return
            queue = self._queues[row.broker, row.queue] = _Queue()
        # the sums over all queues are kept up to date, not computed again for each row
        before = queue.to_fetch(), queue.to_commit()
        if row.committed is not None:
            queue.committed = row.committed
        if row.end is not None:
            queue.end = row.end
        if row.following is not None:
            queue.following = row.following
        self._to_fetch = _moved(self._to_fetch, before[0], queue.to_fetch())
        self._to_commit = _moved(self._to_commit, before[1], queue.to_commit())
        self._note(row.time - row.time % self._width)

    def _note(self, start: int) -> None:
        """Record the largest lag of each window."""
        if self._to_fetch is None and self._to_commit is None:
            return
        point = self._point
        if point is None or point.start != start:
            point = LagPoint(start, self._topic, self._group, None, None, 0)
            self._point = point
            self._sums.lag.append(point)
        point.to_fetch = _largest(point.to_fetch, self._to_fetch)
        point.to_commit = _largest(point.to_commit, self._to_commit)
        point.queues = len(self._queues)

    def finish(self) -> None:
        """Record the final lag of the group."""
        if self._to_fetch is None and self._to_commit is None:
            return
        sums = self._sums.group(self._topic, self._group)
        sums.to_fetch, sums.to_commit = self._to_fetch, self._to_commit


def _moved(total: int | None, before: int | None, after: int | None) -> int | None:
    """Return a sum over queues after the value of one queue changed."""
    if after is None:
        return total
    return (total or 0) + after - (before or 0)


def _largest(first: int | None, second: int | None) -> int | None:
    return max((value for value in (first, second) if value is not None), default=None)
