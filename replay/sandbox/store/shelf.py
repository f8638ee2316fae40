"""Stored records in order: the queues of a broker, and its commit log.

RocketMQ: ConsumeQueue, MappedFileQueue.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from dissectors.remoting.message import StoredMessage, decode_messages


class Record:
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
        self.topic = topic
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.physical_offset = physical_offset
        self.store_ms = store_ms
        """when it was stored, ms since the epoch"""
        self.tag = tag
        """its tag; empty for none"""

    def message(self) -> StoredMessage:
        """The record taken apart."""
        return decode_messages(self.data).messages[0]


class Shelf:
    """Records in order, added behind and forgotten in front; any place is found at once."""

    __slots__ = ("_first", "_records")

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._records) - self._first

    def __getitem__(self, place: int) -> Record:
        return self._records[self._first + place]

    def append(self, record: Record) -> None:
        """Add the next one."""
        self._records.append(record)

    def drop_first(self) -> Record:
        """Forget the first one and return it."""
        record = self._records[self._first]
        self._first += 1
        if self._first * 8 > len(self._records):
            # Moved in one go, so that each record is moved a few times at the most.
            del self._records[: self._first]
            self._first = 0
        return record

    def place_of(self, value: int, key: Callable[[Record], int]) -> int:
        """Place of the first record whose key is not below `value`; keys never fall."""
        return bisect_left(self._records, value, self._first, key=key) - self._first


class Queue:
    """One queue of a topic."""

    __slots__ = ("min_offset", "records")

    def __init__(self) -> None:
        self.min_offset = 0
        """offset of the first record that is still there"""
        self.records = Shelf()
        """the records from there on"""

    @property
    def max_offset(self) -> int:
        """Offset of the next record."""
        return self.min_offset + len(self.records)

    def at(self, offset: int) -> Record | None:
        """The record with that offset, if it is there."""
        place = offset - self.min_offset
        return self.records[place] if 0 <= place < len(self.records) else None

    def since(self, offset: int) -> Iterator[Record]:
        """The records from that offset on."""
        for place in range(max(0, offset - self.min_offset), len(self.records)):
            yield self.records[place]

    def offset_at(self, time_ms: int, upper: bool = False) -> int:
        """Offset of the first record stored at or after a time; `upper`: of the last up to it."""
        if not len(self.records):
            return self.max_offset
        if upper:
            return self.min_offset + max(0, self.records.place_of(time_ms + 1, stored_at) - 1)
        return self.min_offset + self.records.place_of(time_ms, stored_at)


def stored_at(record: Record) -> int:
    return record.store_ms


def physical_offset_of(record: Record) -> int:
    return record.physical_offset
