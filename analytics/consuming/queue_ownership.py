"""Queue ownership of a group over time, and offset jumps.

A long poll still open when another client starts pulling is not a second reader: a queue has two
readers only if both keep sending requests in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final

import msgspec

from dissectors.remoting.codes import ResponseCode

from ..diagnosis.rules.consumers.offset_moved import MOVED as OFFSET_MOVED
from .group_items import GroupEvent
from .known import Known

Rows = list[dict[str, object]]
MAX_QUEUES: Final = 4096
MAX_STRETCHES: Final = 20_000
MAX_JUMPS: Final = 20_000
MICRO: Final = 1000
PAUSE_NS: Final = 60_000_000_000
"""idle time after which a client no longer owns a queue: long polls end after 30 s"""
TURNS: Final = 3
"""alternations between two clients that prove sharing: a handed-over queue changes once"""
MAX_SHARED: Final = 256
SHORT_NS: Final = 1_000_000_000
"""idle time of a queue that a handover may take"""
_MOVED_NAME: Final = ResponseCode(OFFSET_MOVED).name
Place = tuple[str, str, int]
"""(topic, broker, queue)"""


class Holder(msgspec.Struct, gc=False):
    """A client that pulled one queue, and when."""

    client: str
    first: int
    last: int
    """time of its last request"""
    until: int
    """time of its last request or response"""
    pulls: int = 0
    messages: int = 0
    first_offset: int | None = None
    next_offset: int | None = None
    waits: bool = False
    """its last pull is unanswered"""


class SharedQueue(msgspec.Struct, gc=False):
    """A period in which two clients pulled a queue."""

    clients: set[str]
    first: int
    last: int


class _Queue(msgspec.Struct, gc=False):
    now: dict[str, Holder] = {}
    past: list[Holder] = []
    latest: str = ""
    """client of the latest request"""
    endpoint: str = ""
    """its `address:port`, because two clients may share an id"""
    switches: list[tuple[int, str, str]] = []
    """last few switches: (time, previous `address:port`, next `address:port`)"""
    shared: list[SharedQueue] = []
    expected: int | None = None
    """expected offset of the next pull"""
    retried: int | None = None
    """offset of an unanswered pull, which may be retried"""
    committed: int | None = None


class QueueOwnership:
    """Folds the pulls and commits of one group in order of time."""

    def __init__(self, group: str, known: Known, moved: Callable[[int], None]) -> None:
        """Initialize; `moved` is called when a queue goes to another client."""
        self._group = group
        self._known = known
        self._moved = moved
        self._broadcast = group in known.context.broadcasting
        self._queues: dict[Place, _Queue] = {}
        self._stretches = 0
        self._jumps: Rows = []
        self._ended: dict[str, list[int]] = {}
        """client -> times at which its membership ended, ns"""
        self.left_out = 0

    def ended(self, client: str, time: int) -> None:
        """Record that a client left the group."""
        self._ended.setdefault(client, []).append(time)

    def pull(self, event: GroupEvent) -> None:
        """Add a pull of a queue; POP has no queue and is skipped."""
        if event.queue is None or event.queue < 0 or event.topic is None:
            return
        queue = self._queue(event)
        if queue is None:
            return
        holder = queue.now.get(event.client)
        sharing = self._switch(queue, event)
        paused = holder is not None and event.time - holder.until > PAUSE_NS
        if holder is not None and (paused or (queue.latest != event.client and not sharing)):
            queue.past.append(queue.now.pop(event.client))
            holder = None
        if holder is None:
            holder = self._begin(queue, event)
        if holder is not None:
            holder.last = event.time
            holder.until = max(holder.until, event.answered or event.time)
            holder.waits = event.answered is None
            holder.pulls += 1
            holder.messages += event.messages or 0
            holder.next_offset = event.following or holder.next_offset
        self._check_offset(queue, event)

    def _switch(self, queue: _Queue, event: GroupEvent) -> bool:
        """Record the pulling client; return whether two clients pull in turn."""
        before, queue.endpoint = queue.endpoint, event.endpoint
        if before in ("", event.endpoint):
            last = queue.shared[-1].last if queue.shared else 0
            return event.time - last <= PAUSE_NS
        turns = queue.switches = [
            *queue.switches[1 - TURNS :],
            (event.time, before, event.endpoint),
        ]
        endpoints_seen = {end for _, *endpoints in turns for end in endpoints}
        first = turns[0][0]
        if self._broadcast or len(turns) < TURNS or len(endpoints_seen) > 2:
            return False
        if event.time - first > PAUSE_NS:
            return False
        clients = {queue.latest, event.client}
        if len(clients) == 1:
            clients = {f"{event.client} from {end}" for end in endpoints_seen}
        sharing = queue.shared[-1] if queue.shared else None
        if sharing is not None and first <= sharing.last:
            sharing.last = event.time
            sharing.clients |= clients
        elif len(queue.shared) < MAX_SHARED:
            queue.shared.append(SharedQueue(clients, first, event.time))
        return True

    def commit(self, event: GroupEvent) -> None:
        """Add a consumer's commit; record one that goes back."""
        queue = self._queue(event) if event.topic is not None else None
        if queue is None or event.asked is None:
            return
        if queue.committed is not None and event.asked < queue.committed:
            self._jump(event, "commit went back", queue.committed, event.asked)
        queue.committed = event.asked

    def reset(self, event: GroupEvent) -> None:
        """Record an offset reset by an administrator."""
        self._jump(event, "reset by an administrator", None, None)

    def _queue(self, event: GroupEvent) -> _Queue | None:
        place = (event.topic or "", event.broker, -1 if event.queue is None else event.queue)
        queue = self._queues.get(place)
        if queue is None:
            if len(self._queues) >= MAX_QUEUES:
                self.left_out += 1
                return None
            queue = self._queues[place] = _Queue()
        return queue

    def _begin(self, queue: _Queue, event: GroupEvent) -> Holder | None:
        if self._stretches >= MAX_STRETCHES:
            self.left_out += 1
            return None
        self._stretches += 1
        if queue.latest and queue.latest != event.client and not self._broadcast:
            self._moved(event.time)
        holder = Holder(event.client, event.time, event.time, event.time)
        holder.first_offset = event.asked
        queue.now[event.client] = holder
        return holder

    def _check_offset(self, queue: _Queue, event: GroupEvent) -> None:
        """Record a pull that does not continue at the end of the previous one."""
        same_client = queue.latest == event.client
        expected = queue.expected
        queue.latest = event.client
        if event.asked is None or self._broadcast:
            return
        if expected is not None and event.asked not in (expected, queue.retried):
            suffix = "" if same_client else ", by another client"
            what = "pulled again" if event.asked < expected else "skipped"
            self._jump(event, what + suffix, expected, event.asked)
        if event.result == _MOVED_NAME:
            self._jump(event, "moved by the broker", event.asked, event.following)
        if event.following is not None:
            queue.expected, queue.retried = event.following, None
        else:
            queue.expected = queue.retried = event.asked

    def _jump(self, event: GroupEvent, what: str, start: int | None, end: int | None) -> None:
        if len(self._jumps) >= MAX_JUMPS:
            self.left_out += 1
            return
        self._jumps.append(
            {
                "group": self._group,
                "time": event.time // MICRO,
                "what": what,
                "topic": event.topic,
                "broker": event.broker,
                "queue_id": event.queue,
                "client": event.client,
                "from_offset": start,
                "to_offset": end,
                "messages": abs(end - start) if start is not None and end is not None else None,
                "capture": event.capture,
                "packet": event.packet or None,
            }
        )

    def jump_rows(self) -> Rows:
        """Return the rows of the offsets table."""
        return self._jumps

    def queue_rows(self) -> Rows:
        """Return the rows of the queues table."""
        rows = []
        for place, queue in sorted(self._queues.items()):
            holders = _ordered(queue)
            for index, holder in enumerate(holders):
                following = next(
                    (other for other in holders[index + 1 :] if other.client != holder.client), None
                )
                until = self._until(holder, following)
                rows.append(self._row(place, holder, until, following))
        return rows

    def _until(self, holder: Holder, following: Holder | None) -> int:
        """Return when a client stopped owning a queue; an unanswered pull extends ownership."""
        ends = [] if following is None else [following.first]
        if not holder.waits:
            return min([holder.until, *(end for end in ends if end >= holder.last)])
        ends += [*self._ended.get(holder.client, ()), holder.last + PAUSE_NS]
        if self._known.context.last_time is not None:
            ends.append(self._known.context.last_time)
        return min((end for end in ends if end >= holder.last), default=holder.last)

    def _row(
        self, place: Place, holder: Holder, until: int, following: Holder | None
    ) -> dict[str, object]:
        topic, broker, number = place
        return {
            "group": self._group,
            "topic": topic,
            "broker": broker,
            "queue_id": number,
            "client": holder.client,
            "since": holder.first // MICRO,
            "until": until // MICRO,
            "next_client": None if following is None else following.client,
            "pulls": holder.pulls,
            "messages": holder.messages,
            "first_offset": holder.first_offset,
            "next_offset": holder.next_offset,
        }

    def odd_rows(self, topics: Iterable[str]) -> Rows:
        """Return the rows of unassigned and doubly assigned queues."""
        if self._broadcast:
            return []
        rows: Rows = []
        for place, queue in sorted(self._queues.items()):
            holders = _ordered(queue)
            for holder, successor in pairwise(holders):
                start = self._until(holder, successor)
                between = successor.first - start
                if between >= SHORT_NS:
                    clients = sorted({holder.client, successor.client})
                    rows.append(self._odd(place, "nobody pulled", clients, start, successor.first))
            for sharing in queue.shared:
                clients = sorted(sharing.clients)
                rows.append(
                    self._odd(place, "two clients pulled", clients, sharing.first, sharing.last)
                )
        rows += self._never(topics)
        return rows

    def _never(self, topics: Iterable[str]) -> Rows:
        """Return the queues of the route that no client pulled."""
        pulled: dict[str, set[tuple[str, int]]] = {}
        for topic, broker, number in self._queues:
            pulled.setdefault(topic, set()).add((broker, number))
        return [
            self._odd((topic, broker.name, number), "nobody pulled", [], None, None)
            for topic in sorted(set(topics) & pulled.keys())
            for broker in self._known.context.brokers_of(topic)
            for number in range(min(broker.read_queues, MAX_QUEUES))
            if (broker.name, number) not in pulled[topic]
        ]

    def _odd(
        self, place: Place, what: str, clients: list[str], start: int | None, end: int | None
    ) -> dict[str, object]:
        topic, broker, number = place
        length = None if start is None or end is None else (end - start) // MICRO
        return {
            "group": self._group,
            "topic": topic,
            "broker": broker,
            "queue_id": number,
            "what": what,
            "clients": clients,
            "since": None if start is None else start // MICRO,
            "until": None if end is None else end // MICRO,
            "length_us": length,
        }


def _ordered(queue: _Queue) -> list[Holder]:
    holders = [*queue.past, *queue.now.values()]
    return sorted(holders, key=lambda holder: (holder.first, holder.client))
