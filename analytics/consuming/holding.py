"""Which client pulled which queue and when, where offsets jumped, and reads from slaves.

A long poll that is still open when another client begins is no second reader: a queue has two
readers only where each of them asks again after the other one did.
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
"""time without a request after which a client no longer holds a queue: long polls end after 30 s"""
TURNS: Final = 3
"""changes of who asks, between the same two: a queue that is handed over changes once"""
MAX_SHARED: Final = 256
SHORT_NS: Final = 1_000_000_000
"""a queue may move for this time without a request of anybody"""
_MOVED_NAME: Final = ResponseCode(OFFSET_MOVED).name
Place = tuple[str, str, int]
"""topic, broker, queue"""


class Holder(msgspec.Struct, gc=False):
    """A client that pulled one queue, and from when to when."""

    client: str
    first: int
    last: int
    """its last request"""
    until: int
    """its last request or answer"""
    pulls: int = 0
    messages: int = 0
    first_offset: int | None = None
    next_offset: int | None = None
    waits: bool = False
    """its last pull was not answered"""


class Sharing(msgspec.Struct, gc=False):
    """A time in which two clients pulled a queue."""

    clients: set[str]
    first: int
    last: int


class _Queue(msgspec.Struct, gc=False):
    now: dict[str, Holder] = {}
    past: list[Holder] = []
    latest: str = ""
    """client of the latest request"""
    endpoint: str = ""
    """`address:port` of it: two clients may have one id"""
    switches: list[tuple[int, str, str]] = []
    """the last few: time, `address:port` before and behind"""
    shared: list[Sharing] = []
    expected: int | None = None
    """offset that is asked next"""
    retried: int | None = None
    """offset of a pull without answer, which may be asked again"""
    committed: int | None = None


class Holding:
    """Takes the pulls and commits of one group by time."""

    def __init__(self, group: str, known: Known, moved: Callable[[int], None]) -> None:
        """Make it; `moved` is called when a queue goes to another client."""
        self._group = group
        self._known = known
        self._moved = moved
        self._broadcast = group in known.broadcasting
        self._queues: dict[Place, _Queue] = {}
        self._stretches = 0
        self._jumps: Rows = []
        self._ended: dict[str, list[int]] = {}
        """client -> when it ended to be a member, ns"""
        self.left_out = 0

    def ended(self, client: str, time: int) -> None:
        """Note that a client is no longer a member."""
        self._ended.setdefault(client, []).append(time)

    def pull(self, event: GroupEvent) -> None:
        """Take a pull of a queue; POP names none."""
        if event.queue is None or event.queue < 0 or event.topic is None:
            return
        queue = self._queue(event)
        if queue is None:
            return
        held = queue.now.get(event.client)
        sharing = self._switch(queue, event)
        paused = held is not None and event.time - held.until > PAUSE_NS
        if held is not None and (paused or (queue.latest != event.client and not sharing)):
            queue.past.append(queue.now.pop(event.client))
            held = None
        if held is None:
            held = self._begin(queue, event)
        if held is not None:
            held.last = event.time
            held.until = max(held.until, event.answered or event.time)
            held.waits = event.answered is None
            held.pulls += 1
            held.messages += event.messages or 0
            held.next_offset = event.following or held.next_offset
        self._check_offset(queue, event)

    def _switch(self, queue: _Queue, event: GroupEvent) -> bool:
        """Note who asks; return whether two clients ask in turns."""
        before, queue.endpoint = queue.endpoint, event.endpoint
        if before in ("", event.endpoint):
            last = queue.shared[-1].last if queue.shared else 0
            return event.time - last <= PAUSE_NS
        turns = queue.switches = [
            *queue.switches[1 - TURNS :],
            (event.time, before, event.endpoint),
        ]
        ends = {end for _, *both in turns for end in both}
        first = turns[0][0]
        if self._broadcast or len(turns) < TURNS or len(ends) > 2:
            return False
        if event.time - first > PAUSE_NS:
            return False
        clients = {queue.latest, event.client}
        if len(clients) == 1:
            clients = {f"{event.client} from {end}" for end in ends}
        sharing = queue.shared[-1] if queue.shared else None
        if sharing is not None and first <= sharing.last:
            sharing.last = event.time
            sharing.clients |= clients
        elif len(queue.shared) < MAX_SHARED:
            queue.shared.append(Sharing(clients, first, event.time))
        return True

    def commit(self, event: GroupEvent) -> None:
        """Take a commit of a consumer; one that goes back is told."""
        queue = self._queue(event) if event.topic is not None else None
        if queue is None or event.asked is None:
            return
        if queue.committed is not None and event.asked < queue.committed:
            self._jump(event, "commit went back", queue.committed, event.asked)
        queue.committed = event.asked

    def reset(self, event: GroupEvent) -> None:
        """Take a broker's word that an administrator set offsets anew."""
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
        held = Holder(event.client, event.time, event.time, event.time)
        held.first_offset = event.asked
        queue.now[event.client] = held
        return held

    def _check_offset(self, queue: _Queue, event: GroupEvent) -> None:
        """Tell a pull that does not go on where the one before ended."""
        same = queue.latest == event.client
        expected = queue.expected
        queue.latest = event.client
        if event.asked is None or self._broadcast:
            return
        if expected is not None and event.asked not in (expected, queue.retried):
            who = "" if same else ", by another client"
            what = "pulled again" if event.asked < expected else "skipped"
            self._jump(event, what + who, expected, event.asked)
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
        """Return the rows of the table of offsets."""
        return self._jumps

    def queue_rows(self) -> Rows:
        """Return the rows of the table of queues."""
        rows = []
        for place, queue in sorted(self._queues.items()):
            held = _ordered(queue)
            for index, one in enumerate(held):
                following = next(
                    (other for other in held[index + 1 :] if other.client != one.client), None
                )
                until = self._until(one, following)
                rows.append(self._row(place, one, until, following))
        return rows

    def _until(self, one: Holder, following: Holder | None) -> int:
        """Return when a client ended to hold a queue; a pull without answer holds it on."""
        ends = [] if following is None else [following.first]
        if not one.waits:
            return min([one.until, *(end for end in ends if end >= one.last)])
        ends += [*self._ended.get(one.client, ()), one.last + PAUSE_NS]
        if self._known.context.last_time is not None:
            ends.append(self._known.context.last_time)
        return min((end for end in ends if end >= one.last), default=one.last)

    def _row(
        self, place: Place, one: Holder, until: int, following: Holder | None
    ) -> dict[str, object]:
        topic, broker, number = place
        return {
            "group": self._group,
            "topic": topic,
            "broker": broker,
            "queue_id": number,
            "client": one.client,
            "since": one.first // MICRO,
            "until": until // MICRO,
            "next_client": None if following is None else following.client,
            "pulls": one.pulls,
            "messages": one.messages,
            "first_offset": one.first_offset,
            "next_offset": one.next_offset,
        }

    def odd_rows(self, topics: Iterable[str]) -> Rows:
        """Return the rows of the table of queues that nobody, or more than one, pulled."""
        if self._broadcast:
            return []
        rows: Rows = []
        for place, queue in sorted(self._queues.items()):
            held = _ordered(queue)
            for one, other in pairwise(held):
                start = self._until(one, other)
                between = other.first - start
                if between >= SHORT_NS:
                    who = sorted({one.client, other.client})
                    rows.append(self._odd(place, "nobody pulled", who, start, other.first))
            for sharing in queue.shared:
                who = sorted(sharing.clients)
                rows.append(
                    self._odd(place, "two clients pulled", who, sharing.first, sharing.last)
                )
        rows += self._never(topics)
        return rows

    def _never(self, topics: Iterable[str]) -> Rows:
        """Return the queues of the route that nobody was seen to pull."""
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
    every = [*queue.past, *queue.now.values()]
    return sorted(every, key=lambda one: (one.first, one.client))
