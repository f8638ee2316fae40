"""Mergeable sums of the delivery folds, by topic and group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from dissectors.histogram import Histogram

from ..diagnosis.keys import joined_key, parts_of

T = TypeVar("T")
MAX_SUMS: Final = 200_000
"""most topics and groups with a row of their own: about 100 MB"""
OTHERS: Final = "(others)"
"""topic and group of the row for all further ones; not a valid topic name"""


class Spread(msgspec.Struct, gc=False):
    """A serializable histogram (`dissectors.histogram`)."""

    buckets: dict[int, int] = {}
    count: int = 0
    total: int = 0
    smallest: int = 0
    largest: int = 0

    def add(self, value: int) -> None:
        """Add a value."""
        # the histogram shares the buckets; only its totals are copied back
        histogram = self.histogram()
        histogram.add(value)
        self._take(histogram)

    def merge(self, other: Spread) -> None:
        """Add all values of another spread."""
        histogram = self.histogram()
        histogram.merge(other.histogram())
        self._take(histogram)

    def histogram(self) -> Histogram:
        """Return a histogram that shares the buckets."""
        histogram = Histogram()
        histogram.buckets, histogram.count, histogram.total = self.buckets, self.count, self.total
        histogram.smallest, histogram.largest = self.smallest, self.largest
        return histogram

    def _take(self, histogram: Histogram) -> None:
        self.count, self.total = histogram.count, histogram.total
        self.smallest, self.largest = histogram.smallest, histogram.largest


class TopicSums(msgspec.Struct, gc=False):
    """Messages sent to a topic."""

    sent: int = 0
    """messages"""
    stored: int = 0
    """messages stored at least once"""
    stored_again: int = 0
    """additional stored copies"""


class GroupSums(msgspec.Struct, gc=False):
    """Deliveries of a topic to a group."""

    delivered: int = 0
    """messages"""
    deliveries: int = 0
    again: int = 0
    returned: int = 0
    dead: int = 0
    records: int = 0
    """stored records delivered; for broadcasting, per member"""
    covered: int = 0
    """delivered records covered by a commit or an acknowledgement"""
    commits: int = 0
    """captured commits and acknowledgements"""
    skipped: int = 0
    filtered: int = 0
    unsure: int = 0
    out_of_order: int = 0
    clients: set[str] = set()
    first_time: int | None = None
    last_time: int | None = None
    to_fetch: int | None = None
    """last lag: messages not fetched"""
    to_commit: int | None = None
    """last lag: messages not committed"""

    def seen(self, time: int) -> None:
        """Extend the time range of the group."""
        self.first_time = time if self.first_time is None else min(self.first_time, time)
        self.last_time = time if self.last_time is None else max(self.last_time, time)


class Duplicates(msgspec.Struct, gc=False):
    """Redeliveries with one cause."""

    count: int = 0
    messages: int = 0
    first: tuple[int, str, int, int, str] | None = None
    """time, capture, packet, commit log offset, and unique key of the first one"""
    last_time: int = 0


class LagPoint(msgspec.Struct, gc=False):
    """Lag of a group in one window."""

    start: int
    """ns"""
    topic: str
    group: str
    to_fetch: int | None
    to_commit: int | None
    queues: int


class Sums(msgspec.Struct, gc=False):
    """All sums; keys are `joined_key`."""

    topics: dict[str, TopicSums] = {}
    groups: dict[str, GroupSums] = {}
    """by topic and group"""
    duplicates: dict[str, Duplicates] = {}
    """by topic, group, cause"""
    times: dict[str, Spread] = {}
    """by topic, group, stage, clocks: µs"""
    lag: list[LagPoint] = []

    def topic(self, name: str) -> TopicSums:
        """Return the sums of a topic."""
        return _sums_of(self.topics, name, (OTHERS,), TopicSums)

    def group(self, topic: str, group: str) -> GroupSums:
        """Return the sums of a group."""
        return _sums_of(self.groups, joined_key(topic, group), (OTHERS, OTHERS), GroupSums)

    def duplicate(self, topic: str, group: str, cause: str) -> Duplicates:
        """Return the sums of a cause."""
        others = OTHERS, OTHERS, cause
        return _sums_of(self.duplicates, joined_key(topic, group, cause), others, Duplicates)

    def time(self, topic: str, group: str, stage: str, clocks: str) -> Spread:
        """Return the times of a stage."""
        others = OTHERS, OTHERS, stage, clocks
        return _sums_of(self.times, joined_key(topic, group, stage, clocks), others, Spread)

    def merge(self, other: Sums) -> None:
        """Add the sums of another task."""
        for name, topic in other.topics.items():
            _add_numbers(self.topic(name), topic)
        for key, group in other.groups.items():
            mine = self.group(*parts_of(key))
            _add_numbers(mine, group)  # all but the times and the lag, which are no sums
            mine.clients |= group.clients
            for time in (group.first_time, group.last_time):
                if time is not None:
                    mine.seen(time)
            if group.to_fetch is not None:
                mine.to_fetch = group.to_fetch  # a single task folds each group and topic
            if group.to_commit is not None:
                mine.to_commit = group.to_commit
        for key, duplicates in other.duplicates.items():
            own = self.duplicate(*parts_of(key))
            _add_numbers(own, duplicates)
            own.last_time = max(own.last_time, duplicates.last_time)
            firsts = [first for first in (own.first, duplicates.first) if first is not None]
            own.first = min(firsts, default=None)
        for key, spread in other.times.items():
            self.time(*parts_of(key)).merge(spread)
        self.lag += other.lag


def _sums_of(known: dict[str, T], key: str, others: tuple[str, ...], make: Callable[[], T]) -> T:
    """Return the sums of a key, or the shared sums of `others` at the limit."""
    sums = known.get(key)
    if sums is None:
        # Names come from peers: without a limit, invented topics would fill the memory.
        if len(known) >= MAX_SUMS:
            key = joined_key(*others)
        sums = known.setdefault(key, make())
    return sums


_TIMES: Final = frozenset(("first_time", "last_time", "to_fetch", "to_commit"))


def _add_numbers(mine: msgspec.Struct, other: msgspec.Struct) -> None:
    for name in mine.__struct_fields__:
        value = getattr(other, name)
        if type(value) is int and name not in _TIMES:
            setattr(mine, name, getattr(mine, name) + value)
