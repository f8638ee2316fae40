"""The rows of a table that are listed: those that a filter leaves, in an order, and their timeline.

A thread looks at the rows as they come; a new filter or order stops it at once and begins anew. All
that a screen asks for is answered at once, with what is known by then. Without a filter and an
order nothing is kept per row.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from threading import Condition, Thread
from typing import Any, Final, NamedTuple

from .disk import RowStore
from .timeline import Timeline

Test = Callable[[object], bool]
PATIENCE: Final = 0.05
"""seconds between two looks whether there are more rows"""
_STEP: Final = 4096
"""rows that are looked at before somebody may ask for others"""


class ListOrder(NamedTuple):
    """What rows are sorted by."""

    column: str
    descending: bool = False


class TimelineOf(NamedTuple):
    """What a timeline takes of a row."""

    time: Callable[[Any], int | None]
    bad: Callable[[Any], bool]
    latency_us: Callable[[Any], int | None]


class Chosen:
    """What one filter leaves, as far as it was looked at."""

    def __init__(
        self, test: Test | None, order: ListOrder | None, of: frozenset[int] | None = None
    ) -> None:
        self.test = test
        self.order = order
        self.of = of
        """rows of these numbers alone; None: all"""
        self.timeline = Timeline()
        self.looked_at = 0
        """number behind the last row that was looked at"""
        is_all = test is None and order is None and of is None
        self.rows: array[int] | None = None if is_all else array("q")
        """numbers of the rows, in the order in which they came; None: all"""
        self.sorted: array[int] | None = None
        """the same in the order that was asked for; None: there is none yet"""


class Listing:
    """Chooses rows of a store."""

    def __init__(self, store: RowStore[Any], of_timeline: TimelineOf) -> None:
        self.store = store
        self.chosen = Chosen(None, None)
        """what is listed; it grows"""
        self._of_timeline = of_timeline
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._run, name="rmqtool-listing", daemon=True)
        self._thread.start()

    def choose(
        self, test: Test | None, order: ListOrder | None, of: frozenset[int] | None = None
    ) -> None:
        """List other rows from now on; `of`: of these numbers alone."""
        with self._changed:
            self.chosen = Chosen(test, order, of)
            self._changed.notify()

    def close(self) -> None:
        """Look at no more rows."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    @property
    def is_done(self) -> bool:
        """All rows that there are were looked at, and are in order."""
        chosen = self.chosen
        ordered = chosen.order is None or len(chosen.sorted or ()) == len(chosen.rows or ())
        return chosen.looked_at >= self.store.count and ordered

    def __len__(self) -> int:
        numbers = self._numbers(self.chosen)
        return self.store.count - self.store.first if numbers is None else len(numbers)

    def number_at(self, place: int) -> int | None:
        """Return the number of the row at a place of the list."""
        numbers = self._numbers(self.chosen)
        if numbers is None:
            number = self.store.first + place
            return number if place >= 0 and number < self.store.count else None
        return numbers[place] if 0 <= place < len(numbers) else None

    def place_of(self, number: int) -> int:
        """Return the place of a row in the list, or of the next one where it is not listed."""
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

    def has(self, number: int) -> bool:
        """Return whether a row is listed."""
        return self.number_at(self.place_of(number)) == number

    def find(self, test: Test, start: int, forward: bool) -> Iterator[int | None]:
        """Look from a place on for a row; yield None now and then, its place in the end."""
        places = range(start, len(self)) if forward else range(start, -1, -1)
        for step, place in enumerate(places):
            number = self.number_at(place)
            row = None if number is None else self.store.at(number)
            if row is not None and test(row):
                yield place
                return
            if step % 256 == 255:
                yield None

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of all rows that are listed now, in their order."""
        numbers = self._numbers(self.chosen)
        if numbers is None:
            yield from range(self.store.first, self.store.count)
        else:
            yield from numbers[:]

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
                    self._changed.wait(PATIENCE)
                    continue
            try:
                self._drop(chosen)
                self._look(chosen)
            except LookupError:  # rows went meanwhile: the next look begins behind them
                chosen.looked_at = max(chosen.looked_at, self.store.first)

    def _drop(self, chosen: Chosen) -> None:
        """Forget rows that are gone; who reads meanwhile has the arrays of before."""
        first, rows = self.store.first, chosen.rows
        if rows is None or not rows or rows[0] >= first:
            return
        if chosen.sorted is not None:
            chosen.sorted = array("q", [number for number in chosen.sorted if number >= first])
        chosen.rows = rows[bisect_left(rows, first) :]

    def _look(self, chosen: Chosen) -> None:
        """Look at all rows that there are, unless others are asked for."""
        while chosen.looked_at < self.store.count:
            start = max(chosen.looked_at, self.store.first)
            stop = min(self.store.count, start + _STEP)
            for first, rows in self.store.runs(start, stop):
                if self._closed or self.chosen is not chosen:
                    return
                self._take(chosen, first, rows)
                chosen.looked_at = first + len(rows)
        if chosen.order is not None and len(chosen.sorted or ()) != len(chosen.rows or ()):
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

    def _sort(self, chosen: Chosen, order: ListOrder) -> None:
        assert chosen.rows is not None
        numbers = chosen.rows[:]
        keys: dict[int, Any] = {}
        wanted = iter(numbers)
        next_one = next(wanted, None)
        while next_one is not None:
            stop = min(self.store.count, next_one + _STEP)
            for first, rows in self.store.runs(next_one, stop):
                if self._closed or self.chosen is not chosen:
                    return
                while next_one is not None and next_one < first + len(rows):
                    keys[next_one] = getattr(rows[next_one - first], order.column)
                    next_one = next(wanted, None)
        missing = [number for number in numbers if keys.get(number) is None]
        there = [number for number in numbers if keys.get(number) is not None]
        there.sort(key=keys.__getitem__, reverse=order.descending)
        chosen.sorted = array("q", there + missing)
