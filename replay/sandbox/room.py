"""What a server keeps of what peers said, bounded in bytes, all kinds together.

Groups, members, subscriptions, topics, queues, offsets, locks, settings, messages in flight or due
later, and requests that wait: the names and texts in them come from the network. Each table of a
server takes from one `Room`. Messages and their index by key count against `--store-limit` itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
ENTRY: Final = 300
"""bytes of an entry beside its texts"""
LEAST_ROOM: Final = 16 * 1024 * 1024
UNLIMITED: Final = 1 << 62


class Room:
    """Bytes that the tables of one server may take together."""

    def __init__(self, limit: int = UNLIMITED) -> None:
        self.limit = limit
        """bytes at most"""
        self.used = 0
        """bytes that are taken"""

    def take(self, size: int) -> bool:
        """Take bytes, or give back a negative number of them; return whether that was allowed."""
        if size > 0 and not self.takes(size):
            return False
        self.used += size
        return True

    def takes(self, size: int) -> bool:
        """Return whether so many bytes may be taken now."""
        return self.used + size <= self.limit


def room_of(store_limit: int) -> Room:
    """Return the room of a server whose messages may take `store_limit` bytes: a quarter more."""
    return Room(max(store_limit // 4, LEAST_ROOM))


def weight_of(*texts: str) -> int:
    """Return the bytes that an entry with such texts takes."""
    return ENTRY + sum(map(sys.getsizeof, texts))


class BoundedTable(dict[K, V], Generic[K, V]):
    """A table in a room; entries are added and removed by `put`, `drop` and `empty` alone."""

    def __init__(self, room: Room, weigh: Callable[[K, V], int]) -> None:
        """`weigh` returns the bytes of an entry, always the same for the same one."""
        super().__init__()
        self._room = room
        self._weigh = weigh

    def put(self, key: K, value: V) -> bool:
        """Add or replace an entry; return False where there is no room for it."""
        old = self.get(key)
        before = 0 if old is None else self._weigh(key, old)
        if not self._room.take(self._weigh(key, value) - before):
            return False
        self[key] = value
        return True

    def drop(self, key: K) -> V | None:
        """Remove an entry and return it; None where there is none."""
        value = self.pop(key, None)
        if value is not None:
            self._room.take(-self._weigh(key, value))
        return value

    def empty(self) -> None:
        """Remove all entries."""
        for key in list(self):
            self.drop(key)
