"""POP messages in flight: delivered and not yet acknowledged.

A group pops the messages of a queue in order; unacknowledged ones are redelivered: in the group's
retry topic, or for ordered groups at their offset. Pure except for the store it reads; the clock is
an argument.
RocketMQ: PopMessageProcessor, PopBufferMergeService, PopReviveService, ConsumerOrderInfoManager.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..clients import NAME_LIMIT, Subscription
from ..offsets import OFFSETS_LIMIT
from ..room import ENTRY, BoundedTable, Room, weight_of
from ..store.shelf import StoredQueue, StoredRecord

IN_FLIGHT_LIMIT: Final = 200_000
"""messages handed out and not acknowledged, at one broker"""
_MOST_SCANNED: Final = 4_000
_FREE_DEADLINES: Final = 1_000
"""deadlines that may be out of date"""


class PopKey(NamedTuple):
    """A queue as a group sees it."""

    group: str
    """consumer group"""
    topic: str
    """topic, or the group's POP retry topic of it"""
    queue_id: int
    """queue"""


@dataclass(slots=True)
class PopQueue:
    """A group's offset in a queue, and its messages in flight."""

    next_offset: int
    """offset of the next message to hand out"""
    in_flight: dict[int, int] = field(default_factory=dict)
    """offset → until when it is invisible, ms since the epoch"""

    @property
    def committed(self) -> int:
        """Offset below which everything is acknowledged."""
        return min(self.in_flight, default=self.next_offset)


class Expired(NamedTuple):
    """A message whose invisible time has expired."""

    key: PopKey
    """queue and group"""
    offset: int
    """the message"""


class PopQueues:
    """Messages in flight of the POP groups of one broker."""

    def __init__(self, begin: Callable[[PopKey], int], room: Room) -> None:
        """`begin` returns the start offset of a group in a new queue."""
        self._begin = begin
        self._room = room
        self._queues = BoundedTable[PopKey, PopQueue](
            self._room, lambda key, _: ENTRY + weight_of(key.group, key.topic)
        )
        self._deadlines: list[tuple[int, PopKey, int]] = []
        """(until when, queue, offset); some of them are acknowledged or extended since"""
        self.in_flight = 0
        """messages handed out and not acknowledged"""

    def queue(self, key: PopKey) -> PopQueue:
        """Return a group's state in a queue."""
        queue = self._queues.get(key)
        if queue is None:
            queue = PopQueue(self._begin(key))
            if len(self._queues) < OFFSETS_LIMIT and len(key.group) <= NAME_LIMIT:
                self._queues.put(key, queue)
        return queue

    def take(
        self, key: PopKey, queue: StoredQueue, most: int, until_ms: int, subscription: Subscription
    ) -> list[StoredRecord]:
        """Deliver at most `most` messages of a queue, invisible until `until_ms`."""
        state = self.queue(key)
        if key not in self._queues:
            return []  # no room to record the messages in flight
        # the store may have dropped messages, or the topic may be a new one of that name
        state.next_offset = min(max(state.next_offset, queue.min_offset), queue.max_offset)
        taken: list[StoredRecord] = []
        begin = state.next_offset
        for record in queue.since(begin):
            full = self.in_flight >= IN_FLIGHT_LIMIT or not self._room.takes(ENTRY)
            # bounded: tags that match nothing would read a whole queue within one request
            if len(taken) >= most or full or record.queue_offset - begin >= _MOST_SCANNED:
                break
            # after a rewind, some behind that offset may still be invisible
            if record.queue_offset not in state.in_flight and subscription.wants(record.tag):
                taken.append(record)
                self._hold(key, state, record.queue_offset, until_ms)
            state.next_offset = record.queue_offset + 1
        return taken

    def has_more(self, key: PopKey, queue: StoredQueue) -> bool:
        """Return whether there are messages to deliver."""
        return self.queue(key).next_offset < queue.max_offset

    def acknowledge(self, key: PopKey, offset: int) -> None:
        """Acknowledge a message; do nothing if it is not in flight."""
        if self.queue(key).in_flight.pop(offset, None) is not None:
            self._let_go()

    def extend(self, key: PopKey, offset: int, until_ms: int) -> bool:
        """Change the invisible time of a message; return False if it is not in flight."""
        state = self.queue(key)
        if state.in_flight.pop(offset, None) is None:
            return False
        self._let_go()
        self._hold(key, state, offset, until_ms)
        return True

    def _hold(self, key: PopKey, state: PopQueue, offset: int, until_ms: int) -> None:
        state.in_flight[offset] = until_ms
        self.in_flight += 1
        self._room.take(ENTRY)
        heapq.heappush(self._deadlines, (until_ms, key, offset))
        # acknowledged entries stay until their time: they are removed in bulk before they add up
        if len(self._deadlines) > 2 * self.in_flight + _FREE_DEADLINES:
            self._deadlines = [entry for entry in self._deadlines if self._is_due(*entry)]
            heapq.heapify(self._deadlines)

    def _let_go(self) -> None:
        self.in_flight -= 1
        self._room.take(-ENTRY)

    def _is_due(self, until_ms: int, key: PopKey, offset: int) -> bool:
        state = self._queues.get(key)
        # an extended message has another deadline: this entry is out of date
        return state is not None and state.in_flight.get(offset) == until_ms

    @property
    def next_deadline(self) -> int | None:
        """Earliest possible expiry, ms since the epoch, or None."""
        return self._deadlines[0][0] if self._deadlines else None

    def expire(self, now_ms: int) -> Iterator[Expired]:
        """Yield expired messages, which are then no longer in flight."""
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            until_ms, key, offset = heapq.heappop(self._deadlines)
            if self._is_due(until_ms, key, offset):
                del self._queues[key].in_flight[offset]
                self._let_go()
                yield Expired(key, offset)

    def go_back(self, key: PopKey, offset: int) -> None:
        """Rewind to an offset: an ordered group must redeliver it first."""
        state = self.queue(key)
        state.next_offset = min(state.next_offset, offset)
        for later in [other for other in state.in_flight if other >= offset]:
            del state.in_flight[later]
            self._let_go()
