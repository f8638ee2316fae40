"""Ordered stored records: the queues and the commit log of a broker.

RocketMQ: ConsumeQueue, MappedFileQueue.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.records import decode_messages

RECORD_OVERHEAD: Final = 400
"""bytes of memory that a record takes beside its own"""


class StoredRecord:
    """A stored message."""

    __slots__ = (
        "data",
        "physical_offset",
        "queue_id",
        "queue_offset",
        "store_ms",
        "tag",
        "topic",
    )

    def __init__(
        self,
        data: bytes,
        topic: str,
        queue_id: int,
        queue_offset: int,
        physical_offset: int,
        store_ms: int,
        tag: str,
    ) -> None:
        self.data = data
        """the record as a pull delivers it"""
        self.topic = sys.intern(topic)  # interned: one text for all messages of a topic
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.physical_offset = physical_offset
        self.store_ms = store_ms
        """when it was stored, ms since the epoch"""
        self.tag = tag
        """its tag; empty for none"""

    @property
    def size(self) -> int:
        """Memory in bytes."""
        return len(self.data) + RECORD_OVERHEAD + (sys.getsizeof(self.tag) if self.tag else 0)

    def message(self) -> StoredMessage:
        """Return the decoded record."""
        return decode_messages(self.data).messages[0]


class Shelf:
    """Ordered records: appended at the end, dropped at the front, with constant-time access."""

    __slots__ = ("_first", "_records")

    def __init__(self) -> None:
        self._records: list[StoredRecord] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._records) - self._first

    def __getitem__(self, place: int) -> StoredRecord:
        return self._records[self._first + place]

    def append(self, record: StoredRecord) -> None:
        """Append a record."""
        self._records.append(record)

    def drop_first(self) -> StoredRecord:
        """Drop the first record and return it."""
        record = self._records[self._first]
        self._first += 1
        if self._first * 8 > len(self._records):
            # Compact rarely, so each record is moved a few times at most.
            del self._records[: self._first]
            self._first = 0
        return record

    def place_of(self, value: int, key: Callable[[StoredRecord], int]) -> int:
        """Return the index of the first record whose key is at least `value`; keys are sorted."""
        return bisect_left(self._records, value, self._first, key=key) - self._first


class StoredQueue:
    """One queue of a topic."""

    __slots__ = ("has_holes", "min_offset", "records")

    def __init__(self) -> None:
        self.has_holes = False
        """whether offsets are missing between the records: their rows were damaged"""
        self.min_offset = 0
        """offset of the first record that is still there"""
        self.records = Shelf()
        """the records from there on"""

    @property
    def max_offset(self) -> int:
        """Offset of the next record."""
        if self.has_holes and len(self.records):
            return self.records[len(self.records) - 1].queue_offset + 1
        return self.min_offset + len(self.records)

    def _place_of(self, offset: int) -> int:
        """Return the index of the first record at or after an offset."""
        if self.has_holes:
            return self.records.place_of(offset, queue_offset_of)
        return offset - self.min_offset

    def at(self, offset: int) -> StoredRecord | None:
        """Return the record with that offset, or None."""
        place = self._place_of(offset)
        if not 0 <= place < len(self.records):
            return None
        record = self.records[place]
        return record if record.queue_offset == offset else None

    def since(self, offset: int) -> Iterator[StoredRecord]:
        """Yield the records from an offset on."""
        for place in range(max(0, self._place_of(offset)), len(self.records)):
            yield self.records[place]

    def offset_at(self, time_ms: int, upper: bool = False) -> int:
        """Return the offset of the first record stored at or after a time, or `upper` the last."""
        if not len(self.records):
            return self.max_offset
        if upper:
            place = max(0, self.records.place_of(time_ms + 1, stored_at) - 1)
        else:
            place = self.records.place_of(time_ms, stored_at)
        if not self.has_holes:
            return self.min_offset + place
        return self.records[place].queue_offset if place < len(self.records) else self.max_offset


def queue_offset_of(record: StoredRecord) -> int:
    return record.queue_offset


def stored_at(record: StoredRecord) -> int:
    return record.store_ms


def physical_offset_of(record: StoredRecord) -> int:
    return record.physical_offset
