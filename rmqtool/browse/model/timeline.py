"""Rate, errors and latency over time, in buckets that grow with the time they cover."""

from __future__ import annotations

from typing import Final, NamedTuple

MOST_BUCKETS: Final = 4096
"""buckets in memory; with more time each one covers twice as much"""
NARROWEST: Final = 1_000_000
"""nanoseconds of the narrowest bucket"""


class Bucket(NamedTuple):
    """Counts within a time interval."""

    start: int
    """nanoseconds since the epoch"""
    end: int
    rows: int
    bad: int
    """rows with a failure"""
    latency_us: int
    """longest latency; 0: no responses"""


class Timeline:
    """Counts rows by time; rows may come in any order."""

    def __init__(self) -> None:
        self._width = NARROWEST
        self._buckets: dict[int, list[int]] = {}
        self.first: int | None = None
        """time of the earliest row"""
        self.last: int | None = None

    def add(self, time: int | None, bad: bool, latency_us: int | None) -> None:
        """Count a row."""
        if time is None:
            return
        if self.first is None or time < self.first:
            self.first = time
        if self.last is None or time > self.last:
            self.last = time
        key = time // self._width
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= MOST_BUCKETS:
                self._widen()
                key = time // self._width
            bucket = self._buckets.setdefault(key, [0, 0, 0])
        bucket[0] += 1
        bucket[1] += bad
        if latency_us is not None and latency_us > bucket[2]:
            bucket[2] = latency_us

    def _widen(self) -> None:
        # to a half, so that not each further bucket widens them again
        while len(self._buckets) >= MOST_BUCKETS // 2:
            self._width *= 2
            merged: dict[int, list[int]] = {}
            for key, (count, bad, latency) in self._buckets.items():
                into = merged.setdefault(key // 2, [0, 0, 0])
                into[0] += count
                into[1] += bad
                into[2] = max(into[2], latency)
            self._buckets = merged

    def columns(self, number: int) -> list[Bucket]:
        """Return the whole time range as equal intervals."""
        first, last = self.first, self.last
        if first is None or last is None or number < 1:
            return []
        length = max(-(-(last - first + 1) // number), 1)
        totals = [[0, 0, 0] for _ in range(number)]
        for key, (count, bad, latency) in list(self._buckets.items()):
            middle = key * self._width + self._width // 2
            into = totals[min(max((middle - first) // length, 0), number - 1)]
            into[0] += count
            into[1] += bad
            into[2] = max(into[2], latency)
        return [
            Bucket(first + at * length, first + (at + 1) * length, *total)
            for at, total in enumerate(totals)
        ]
