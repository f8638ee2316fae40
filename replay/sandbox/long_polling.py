"""Long polling: pulls that wait for a message.

A held request is tried again when a matching message arrives in its queue, and finally when it
times out; then it is answered in any case. Messages of one loop turn are delivered together.
RocketMQ: PullRequestHoldService, NotifyMessageArrivingListener.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from .room import ENTRY, Room
from .server import Connection
from .store.shelf import StoredRecord


@dataclass(slots=True, eq=False)
class Held:
    """A held request."""

    key: tuple[str, int]
    """topic and queue that it waits for"""
    connection: Connection
    """where it came from"""
    wants: Callable[[StoredRecord], bool]
    """whether a message is for it"""
    resume: Callable[[], None]
    """responds now, with what is there"""
    size: int = 0
    """bytes of the request, which is kept with it"""
    timer: asyncio.TimerHandle | None = None
    """when its time is over"""


class LongPolling:
    """The held requests of one broker."""

    def __init__(self, limit: int, room: Room) -> None:
        """At most `limit` requests are held at a time, within the memory of `room`."""
        self._room = room
        self._limit = limit
        self._held: dict[tuple[str, int], list[Held]] = {}
        self._count = 0
        self._ready: list[Held] = []

    def __len__(self) -> int:
        return self._count

    def hold(self, held: Held, seconds: float) -> bool:
        """Hold a request; return False if there are too many."""
        if self._count >= self._limit or not self._room.take(ENTRY + held.size):
            return False
        self._count += 1
        self._held.setdefault(held.key, []).append(held)
        loop = asyncio.get_running_loop()
        held.timer = loop.call_later(seconds, self._resume, held)
        return True

    def arrived(self, key: tuple[str, int], record: StoredRecord) -> None:
        """Handle a message stored in a queue."""
        waiting = self._held.get(key)
        if waiting is None:
            return
        for held in [held for held in waiting if held.wants(record)]:
            self._remove(held)
            if not self._ready:
                asyncio.get_running_loop().call_soon(self._resume_ready)
            self._ready.append(held)

    def count(self, key: tuple[str, int]) -> int:
        """Return the number of held requests of a queue."""
        return len(self._held.get(key, ()))

    def wake(self, topic: str) -> None:
        """Respond to all held requests of a topic, because it changed."""
        for key in [key for key in self._held if key[0] == topic]:
            for held in list(self._held.get(key, ())):  # a response may end other connections
                self._resume(held)

    def forget(self, connection: Connection) -> None:
        """Handle the end of a connection."""
        for waiting in list(self._held.values()):
            for held in [held for held in waiting if held.connection is connection]:
                self._remove(held)

    def close(self) -> None:
        """Drop all held requests without responses."""
        for waiting in list(self._held.values()):
            for held in list(waiting):
                self._remove(held)

    def _resume(self, held: Held) -> None:
        if self._remove(held):
            held.resume()

    def _resume_ready(self) -> None:
        ready, self._ready = self._ready, []
        for held in ready:
            held.resume()

    def _remove(self, held: Held) -> bool:
        # answered or dropped already
        if held.timer is None:
            return False
        held.timer.cancel()
        held.timer = None
        self._room.take(-ENTRY - held.size)
        self._count -= 1
        waiting = self._held[held.key]
        waiting.remove(held)
        if not waiting:
            del self._held[held.key]
        return True
