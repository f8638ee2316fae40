"""Spells: signs of one problem, parted where it was quiet for longer than its state may last.

Rules: how signs are parted depends on their times only, not on the order in which they come.
States are kept by intervals that are no longer than that quiet, so that no interval has signs of
two spells; where there are too many, the intervals grow, and spells that are near become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from .problem import Tally

HOUR: Final = 3_600_000_000_000
"""ns without a sign after which a state that passes by itself has passed"""
_LONGEST: Final = 1 << 62
"""an interval of this length has every time"""
MAX_INTERVALS: Final = 256
"""intervals of one tally"""

T = TypeVar("T")


def spells(
    signs: Iterable[T], span: Callable[[T], tuple[int, int]], lasts: int | None
) -> list[list[T]]:
    """Return the signs by spell, by time; `lasts` None: they are all of one spell.

    `span` gives the first and the last time of a sign.
    """
    found: list[list[T]] = []
    until = 0
    for one in sorted(signs, key=span):
        first, last = span(one)
        if not found or (lasts is not None and first - until > lasts):
            found.append([one])
            until = last
        else:
            found[-1].append(one)
            until = max(until, last)
    return found


class Parts(Generic[T]):
    """States by name and interval of time."""

    def __init__(self, most: int, make: Callable[[str], T], join: Callable[[T, T], None]) -> None:
        self._most = most
        self._make = make
        self._join = join
        self._width = 0
        self._parts: dict[tuple[str, int], T] = {}

    def part(self, name: str, time: int, lasts: int | None) -> T | None:
        """Return the state of a name at a time; None where there are too many names."""
        width = self._width
        if not width:
            width = self._width = lasts or _LONGEST
        part = self._parts.get((name, time // width))
        if part is None:
            while len(self._parts) >= self._most:
                if self._width >= _LONGEST:
                    return None
                self._widen()
            place = name, time // self._width
            part = self._parts.get(place)
            if part is None:
                part = self._parts[place] = self._make(name)
        return part

    def items(self) -> Iterator[tuple[str, int, int, T]]:
        """Yield name, begin and end of the interval, and the state: by name, then time."""
        width = self._width
        for name, at in sorted(self._parts):
            yield name, at * width, (at + 1) * width, self._parts[name, at]

    def _widen(self) -> None:
        """Let each interval be twice as long."""
        before, self._parts = self._parts, {}
        self._width *= 2
        for name, at in sorted(before):
            known = self._parts.get((name, at // 2))
            if known is None:
                self._parts[name, at // 2] = before[name, at]
            else:
                self._join(known, before[name, at])


class SpellTally:
    """Tallies of one thing, one for each spell."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: Parts[Tally] = Parts(MAX_INTERVALS, lambda _: Tally(), Tally.merge)

    def at(self, time: int) -> Tally:
        """Return the tally that takes what was seen at a time."""
        part = self._parts.part("", time, HOUR)
        assert part is not None, "one name fits"
        return part

    def spells(self) -> list[Tally]:
        """Return a tally for each spell, by time."""
        counted = [tally for *_, tally in self._parts.items() if tally.count]
        return [joined(one) for one in spells(counted, span_of, HOUR)]


def joined(tallies: Iterable[Tally]) -> Tally:
    """Return what several tallies counted."""
    tally = Tally()
    for one in tallies:
        tally.merge(one)
    return tally


def span_of(tally: Tally) -> tuple[int, int]:
    """Return the first and the last time of a tally."""
    return tally.first, tally.last
