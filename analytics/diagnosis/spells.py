"""Spells: signs of one problem, split at gaps longer than its state may last.

Rules: the split depends only on the times of the signs, not on their order. States are kept by
intervals no longer than that gap, so no interval has signs of two spells; if there are too many,
the intervals grow, and adjacent spells become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from dissectors.times import SECOND

from .problem import Tally

HOUR: Final = 3_600_000_000_000
"""ns without a sign after which a transient state has passed"""
_LONGEST: Final = 1 << 62
"""an interval of this length contains every time"""
MAX_INTERVALS: Final = 256
"""maximum intervals of one tally"""
MAX_TIMES: Final = 1000
"""maximum intervals of times"""

T = TypeVar("T")


def spells(
    signs: Iterable[T], span: Callable[[T], tuple[int, int]], lasts: int | None
) -> list[list[T]]:
    """Split signs into spells, sorted by time; `lasts` None: a single spell.

    `span` returns the first and the last time of a sign.
    """
    spells_: list[list[T]] = []
    until = 0
    for sign in sorted(signs, key=span):
        first, last = span(sign)
        if not spells_ or (lasts is not None and first - until > lasts):
            spells_.append([sign])
            until = last
        else:
            spells_[-1].append(sign)
            until = max(until, last)
    return spells_


class Parts(Generic[T]):
    """States by name and time interval."""

    def __init__(self, most: int, make: Callable[[str], T], join: Callable[[T, T], None]) -> None:
        self._most = most
        self._make = make
        self._join = join
        self._width = 0
        self._parts: dict[tuple[str, int], T] = {}

    def part(self, name: str, time: int, lasts: int | None) -> T | None:
        """Return the state of a name at a time, or None if there are too many names."""
        width = self._width
        if not width:
            # Not longer than a gap between spells: no interval has signs of two of them.
            width = self._width = lasts or _LONGEST
        part = self._parts.get((name, time // width))
        if part is None:
            while len(self._parts) >= self._most:
                if self._width >= _LONGEST:
                    return None  # one interval per name: there are too many names
                self._widen()
            place = name, time // self._width
            part = self._parts.get(place)
            if part is None:
                part = self._parts[place] = self._make(name)
        return part

    def at(self, time: int, lasts: int | None) -> T:
        """Return the state at a time, for states without a name."""
        part = self.part("", time, lasts)
        assert part is not None, "one name fits"
        return part

    def items(self) -> Iterator[tuple[str, int, int, T]]:
        """Yield name, start and end of the interval, and the state, sorted by name and time."""
        width = self._width
        for name, at in sorted(self._parts):
            yield name, at * width, (at + 1) * width, self._parts[name, at]

    def _widen(self) -> None:
        """Double the length of the intervals."""
        before, self._parts = self._parts, {}
        self._width *= 2
        # Sorted, because the first of two becomes the joined state, in any order of rows.
        for name, at in sorted(before):
            known = self._parts.get((name, at // 2))
            if known is None:
                self._parts[name, at // 2] = before[name, at]
            else:
                self._join(known, before[name, at])


class Times:
    """Times, of which the first and the last of each interval are kept."""

    __slots__ = ("_spans", "_width")

    def __init__(self) -> None:
        self._width = SECOND
        self._spans: dict[int, tuple[int, int]] = {}

    def add(self, time: int) -> None:
        """Add a time, ns."""
        self._take(time, time)
        while len(self._spans) > MAX_TIMES:
            spans, self._spans = self._spans, {}
            self._width *= 2
            for first, last in spans.values():
                self._take(first, last)

    def __iter__(self) -> Iterator[int]:
        """Yield the kept times, sorted."""
        for _, (first, last) in sorted(self._spans.items()):
            yield from (first,) if first == last else (first, last)

    def _take(self, first: int, last: int) -> None:
        place = first // self._width
        begin, end = self._spans.get(place, (first, last))
        self._spans[place] = min(begin, first), max(end, last)


class SpellTally:
    """Tallies of one item, one per spell."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: Parts[Tally] = Parts(MAX_INTERVALS, lambda _: Tally(), Tally.merge)

    def at(self, time: int) -> Tally:
        """Return the tally for a time."""
        return self._parts.at(time, HOUR)

    def spells(self) -> list[Tally]:
        """Return a tally per spell, sorted by time."""
        counted = [tally for *_, tally in self._parts.items() if tally.count]
        return [joined(spell) for spell in spells(counted, span_of, HOUR)]


def joined(tallies: Iterable[Tally]) -> Tally:
    """Merge several tallies."""
    tally = Tally()
    for one in tallies:
        tally.merge(one)
    return tally


def span_of(tally: Tally) -> tuple[int, int]:
    """Return the first and the last time of a tally."""
    return tally.first, tally.last
