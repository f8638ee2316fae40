"""The listed rows of a table: filtered, sorted, with their timeline.

A thread filters rows as they arrive; a new filter or order restarts it at once. Requests of the
screen are answered at once, from the rows known so far. Without filter and order nothing is kept
per row.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from threading import Condition, Thread
from typing import Any, Final, NamedTuple

from .disk import RowStore

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


Test = Callable[[object], bool]
PATIENCE: Final = 0.05
"""seconds between checks for more rows"""
_STEP: Final = 4096
"""rows that are filtered between checks for a new request"""


class ListOrder(NamedTuple):
    """A sort order."""

    column: str
    descending: bool = False
    when_whole: bool = False
    """only once all rows are there; the column has numbers, which are kept of each row"""


class TimelineOf(NamedTuple):
    """The values of a row that the timeline needs."""

    time: Callable[[Any], int | None]
    bad: Callable[[Any], bool]
    latency_us: Callable[[Any], int | None]


class Chosen:
    """The rows that match a filter so far."""

    def __init__(
        self, test: Test | None, order: ListOrder | None, of: frozenset[int] | None = None
    ) -> None:
        self.test = test
        self.order = order
        self.of = of
        """only rows with these numbers; None: all"""
        self.timeline = Timeline()
        self.looked_at = 0
        """number after the last filtered row"""
        is_all = test is None and order is None and of is None
        self.rows: array[int] | None = None if is_all else array("q")
        """numbers of the rows in arrival order; None: all"""
        self.sorted: array[int] | None = None
        """numbers of the rows in the requested order; None: not sorted yet"""
        self.keys = array("q")
        """sort key of each of `rows`, -1 for none; only for an order `when_whole`"""


class Listing:
    """Filters and sorts the rows of a store."""

    def __init__(
        self,
        store: RowStore[Any],
        of_timeline: TimelineOf,
        is_growing: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_growing`: whether more rows are still read."""
        self.store = store
        self._is_growing = is_growing
        self.chosen = Chosen(None, None)
        """the listed rows; grows while reading"""
        self._of_timeline = of_timeline
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._run, name="rmqtool-listing", daemon=True)
        self._thread.start()

    def choose(
        self, test: Test | None, order: ListOrder | None, of: frozenset[int] | None = None
    ) -> None:
        """List other rows from now on; `of`: only rows with these numbers."""
        with self._changed:
            self.chosen = Chosen(test, order, of)
            self._changed.notify()

    def close(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    @property
    def is_done(self) -> bool:
        """Whether all rows are filtered and sorted, and dropped rows are gone."""
        chosen = self.chosen
        is_whole = chosen.looked_at >= self.store.count and not self._is_to_drop(chosen)
        return is_whole and not self._is_to_sort(chosen)

    def _is_to_drop(self, chosen: Chosen) -> bool:
        """Return whether rows are listed that the store dropped."""
        rows = chosen.rows
        return rows is not None and len(rows) > 0 and rows[0] < self.store.first

    def _is_to_sort(self, chosen: Chosen) -> bool:
        order = chosen.order
        if order is None or (order.when_whole and self._is_growing()):
            return False
        return len(chosen.sorted or ()) != len(chosen.rows or ())

    def __len__(self) -> int:
        numbers = self._numbers(self.chosen)
        return self.store.count - self.store.first if numbers is None else len(numbers)

    def number_at(self, place: int) -> int | None:
        """Return the number of the row at a list position."""
        numbers = self._numbers(self.chosen)
        if numbers is None:
            number = self.store.first + place
            return number if place >= 0 and number < self.store.count else None
        return numbers[place] if 0 <= place < len(numbers) else None

    def place_of(self, number: int) -> int:
        """Return the list position of a row, or of the next row if it is not listed."""
        chosen = self.chosen
        if chosen.sorted is not None:
            try:
                return chosen.sorted.index(number)
            except ValueError:
                return 0
        rows = chosen.rows
        if rows is None:
            return max(0, min(number, self.store.count - 1) - self.store.first)
        return max(0, min(bisect_left(rows, number), len(rows) - 1))

    def row(self, number: int) -> Any:
        """Return a row, or None if it was dropped."""
        return self.store.at(number)

    def has(self, number: int) -> bool:
        """Return whether a row is listed."""
        return self.number_at(self.place_of(number)) == number

    def find(self, test: Test, start: int, forward: bool) -> Iterator[int | None]:
        """Search from a position; yield None periodically, and the position of the match last."""
        places = range(start, len(self)) if forward else range(start, -1, -1)
        for step, place in enumerate(places):
            number = self.number_at(place)
            row = None if number is None else self.store.at(number)
            if row is not None and test(row):
                yield place
                return
            if step % 256 == 255:
                yield None  # now the screen can handle keys

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of all listed rows, in order."""
        numbers = self._numbers(self.chosen)
        if numbers is None:
            yield from range(self.store.first, self.store.count)
        else:
            yield from numbers[:]  # a copy: the thread adds to it

    @staticmethod
    def _numbers(chosen: Chosen) -> array[int] | None:
        return chosen.rows if chosen.sorted is None else chosen.sorted

    # -- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                chosen = self.chosen
                if self.is_done:
                    self._changed.wait(PATIENCE)  # new rows do not notify
                    continue
            self._drop(chosen)
            self._look(chosen)

    def _drop(self, chosen: Chosen) -> None:
        """Remove dropped rows; concurrent readers keep the previous arrays."""
        rows = chosen.rows
        if rows is None or not self._is_to_drop(chosen):
            return
        first = self.store.first
        if chosen.sorted is not None:
            chosen.sorted = array("q", [number for number in chosen.sorted if number >= first])
        dropped = bisect_left(rows, first)
        chosen.rows, chosen.keys = rows[dropped:], chosen.keys[dropped:]

    def _look(self, chosen: Chosen) -> None:
        """Filter all available rows, unless a new request arrives."""
        while chosen.looked_at < self.store.count:
            # Live rows may be dropped before they are filtered.
            start = chosen.looked_at = max(chosen.looked_at, self.store.first)
            stop = min(self.store.count, start + _STEP)
            for first, rows in self.store.runs(start, stop):
                if self._closed or self.chosen is not chosen:
                    return
                self._take(chosen, first, rows)
                chosen.looked_at = first + len(rows)
        if chosen.order is None or not self._is_to_sort(chosen):
            return
        if chosen.order.when_whole:
            self._sort_by_keys(chosen)
        else:
            self._sort(chosen, chosen.order)

    def _take(self, chosen: Chosen, first: int, rows: Sequence[Any]) -> None:
        test = chosen.test
        at: Sequence[int] = range(len(rows))
        if chosen.of is not None:
            at = [place for place in at if first + place in chosen.of]
        if test is not None:
            at = [place for place in at if test(rows[place])]
        add, (time, bad, latency_us) = chosen.timeline.add, self._of_timeline
        for place in at:
            row = rows[place]
            add(time(row), bad(row), latency_us(row))
        if chosen.rows is not None:
            chosen.rows.extend([first + place for place in at])
        if chosen.order is not None and chosen.order.when_whole:
            column = chosen.order.column
            values = [getattr(rows[place], column) for place in at]
            chosen.keys.extend([-1 if key is None else key for key in values])

    @staticmethod
    def _sort_by_keys(chosen: Chosen) -> None:
        """Sort rows by their keys; rows without a key come last."""
        assert chosen.rows is not None
        numbers, keys = chosen.rows, chosen.keys
        places = sorted(range(len(numbers)), key=lambda at: (keys[at] < 0, keys[at]))
        chosen.sorted = array("q", [numbers[at] for at in places])

    def _sort(self, chosen: Chosen, order: ListOrder) -> None:
        assert chosen.rows is not None
        numbers = chosen.rows[:]
        # By runs of rows, because a single row would decode its whole segment.
        keys: dict[int, Any] = {}
        wanted = iter(numbers)
        next_one = next(wanted, None)
        while next_one is not None:
            stop = min(self.store.count, next_one + _STEP)
            for first, rows in self.store.runs(next_one, stop):
                if self._closed or self.chosen is not chosen:
                    return
                while next_one is not None and next_one < first + len(rows):
                    if next_one >= first:  # it may be dropped
                        keys[next_one] = getattr(rows[next_one - first], order.column)
                    next_one = next(wanted, None)
        missing = [number for number in numbers if keys.get(number) is None]
        there = [number for number in numbers if keys.get(number) is not None]
        there.sort(key=keys.__getitem__, reverse=order.descending)
        chosen.sorted = array("q", there + missing)
