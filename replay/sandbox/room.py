"""A shared byte limit of everything that a server keeps about its peers.

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
    """The byte limit of all tables of one server."""

    def __init__(self, limit: int = UNLIMITED) -> None:
        self.limit = limit
        """bytes at most"""
        self.used = 0
        """bytes that are taken"""

    def take(self, size: int) -> bool:
        """Reserve bytes, or release a negative number; return whether that was allowed."""
        # a release is always allowed, even beyond the limit
        if size > 0 and not self.takes(size):
            return False
        self.used += size
        return True

    def takes(self, size: int) -> bool:
        """Return whether so many bytes can be reserved now."""
        return self.used + size <= self.limit


def room_of(store_limit: int) -> Room:
    """Return the room of a server with this `store_limit`: a quarter of it, in addition."""
    return Room(max(store_limit // 4, LEAST_ROOM))


def weight_of(*texts: str) -> int:
    """Return the bytes that an entry with such texts takes."""
    return ENTRY + sum(map(sys.getsizeof, texts))


class BoundedTable(dict[K, V], Generic[K, V]):
    """A table in a room; entries change only by `put`, `drop`, and `empty`."""

    def __init__(self, room: Room, weigh: Callable[[K, V], int]) -> None:
        """`weigh` returns the bytes of an entry and must be deterministic."""
        super().__init__()
        self._room = room
        self._weigh = weigh

    def put(self, key: K, value: V) -> bool:
        """Add or replace an entry; return False if there is no room."""
        old = self.get(key)
        before = 0 if old is None else self._weigh(key, old)
        if not self._room.take(self._weigh(key, value) - before):
            return False
        self[key] = value
        return True

    def drop(self, key: K) -> V | None:
        """Remove an entry and return it, or None."""
        value = self.pop(key, None)
        if value is not None:
            self._room.take(-self._weigh(key, value))
        return value

    def empty(self) -> None:
        """Remove all entries."""
        for key in list(self):
            self.drop(key)
