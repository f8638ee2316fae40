"""Queue ownership of a group over time, and offset jumps.

Which queues two clients pulled in turn, or none pulled, is what the rules of `diagnose` find as
well: `QueuePulls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.ext_fields import POPS

from ..diagnosis.rules.consumers.offset_reset import MOVED as OFFSET_MOVED
from ..diagnosis.rules.consumers.queue_pulls import (
    PAUSE_NS,
    QueuePlace,
    QueuePulls,
    waits_until,
)
from .group_items import MICRO, GroupEvent, Rows
from .known import Known

MAX_QUEUES: Final = 4096
MAX_STRETCHES: Final = 20_000
MAX_JUMPS: Final = 20_000
_MOVED_NAME: Final = ResponseCode(OFFSET_MOVED).name
_POP_NAMES: Final = frozenset(RequestCode(code).name for code in POPS)


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
    claimed: bool = False
    """it claimed the queue again after its last pull"""


class _Queue(msgspec.Struct, gc=False):
    now: dict[str, Holder] = {}
    past: list[Holder] = []
    latest: str = ""
    """client of the latest request"""
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
        self._queues: dict[QueuePlace, _Queue] = {}
        self._pulls = QueuePulls()
        self._stretches = 0
        self._jumps: Rows = []
        self._ended: dict[str, list[int]] = {}
        """client -> times at which its membership ended, ns"""
        self._left_out = 0

    @property
    def left_out(self) -> int:
        """Number of events that are in no table because of a limit."""
        return self._left_out + self._pulls.left_out

    def ended(self, client: str, time: int) -> None:
        """Record that a client left the group."""
        self._ended.setdefault(client, []).append(time)

    def pull(self, event: GroupEvent) -> None:
        """Add a pull of a queue; POP has no queue and is skipped."""
        if event.queue is None or event.queue < 0 or event.topic is None:
            return
        if event.operation not in _POP_NAMES:  # with POP, any client may take any queue
            pulls = self._pulls.of(event.topic, event.address, event.queue, event.endpoint)
            if pulls is not None:
                pulls.add(event.time, event.answered)
        queue = self._queue(event)
        if queue is None:
            return
        holder = queue.now.get(event.client)
        if holder is not None and (
            event.time - holder.until > PAUSE_NS
            or (holder.claimed and queue.latest != event.client)
        ):
            # after a pause, or after another client had the queue, this is a new period
            queue.past.append(queue.now.pop(event.client))
            holder = None
        if holder is None:
            holder = self._begin(queue, event)
        if holder is not None:
            holder.last = event.time
            holder.until = max(holder.until, event.answered or event.time)
            holder.waits, holder.claimed = event.answered is None, False
            holder.pulls += 1
            holder.messages += event.messages or 0
            if event.following is not None:
                holder.next_offset = event.following
        self._check_offset(queue, event)

    def claim(self, event: GroupEvent) -> None:
        """Add the offset query of a client that takes a queue over."""
        if event.queue is None or event.topic is None:
            return
        pulls = self._pulls.of(event.topic, event.address, event.queue, event.endpoint)
        if pulls is not None:
            pulls.claims.add(event.time, event.time)
        queue = self._queues.get(QueuePlace(event.topic, event.broker, event.queue))
        if queue is not None and event.client in queue.now:
            queue.now[event.client].claimed = True

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
        number = -1 if event.queue is None else event.queue
        place = QueuePlace(event.topic or "", event.broker, number)
        queue = self._queues.get(place)
        if queue is None:
            if len(self._queues) >= MAX_QUEUES:
                self._left_out += 1
                return None
            queue = self._queues[place] = _Queue()
        return queue

    def _begin(self, queue: _Queue, event: GroupEvent) -> Holder | None:
        if self._stretches >= MAX_STRETCHES:
            self._left_out += 1
            return None
        self._stretches += 1
        # members of a broadcasting group all pull every queue
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
        # In a broadcasting group each member has an offset of its own.
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
        else:  # without a response, the client asks for the same offset again
            queue.expected = queue.retried = event.asked

    def _jump(self, event: GroupEvent, what: str, start: int | None, end: int | None) -> None:
        if len(self._jumps) >= MAX_JUMPS:
            self._left_out += 1
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
        rows: Rows = []
        for place, queue in sorted(self._queues.items()):
            holders = _ordered(queue)
            # from the end, because a search from each period on would be quadratic
            following: Holder | None = None
            later: Holder | None = None
            of_queue: Rows = []
            for holder in reversed(holders):
                if later is not None and later.client != holder.client:
                    following = later
                until = self._until(holder, following)
                of_queue.append(self._row(place, holder, until, following))
                later = holder
            rows += reversed(of_queue)
        return rows

    def _until(self, holder: Holder, following: Holder | None) -> int:
        """Return when a client stopped owning a queue; an unanswered pull extends ownership."""
        until = holder.until
        if holder.waits:
            end = self._known.context.last_time or holder.last
            until = waits_until(holder.last, end, self._ended.get(holder.client, ()))
        # An unanswered pull may outlast the handover, but ownership ended with it at the latest.
        if following is not None and following.first >= holder.last:
            until = min(until, following.first)
        return until

    def _row(
        self, place: QueuePlace, holder: Holder, until: int, following: Holder | None
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
        queues = self._pulls.seen(self._known.context)
        rows = [
            self._odd(one.place, "two clients pulled", one.clients, one.first, one.last)
            for one in queues.shared()
        ]
        for idle in queues.unpulled(self._ended):
            # A slow client does not give its queue up, nor does one at the end of the capture.
            if idle.after is not None and (idle.before != idle.after or idle.length > PAUSE_NS):
                clients = {idle.before, idle.after}
                rows.append(self._odd(idle.place, "nobody pulled", clients, idle.first, idle.last))
        for topic in sorted(queues.topics.intersection(topics)):
            _, never = queues.of_route(topic)
            rows += [self._odd(place, "nobody pulled", (), None, None) for place in never]
        return rows

    def _odd(
        self,
        place: QueuePlace,
        what: str,
        clients: Iterable[str],
        start: int | None,
        end: int | None,
    ) -> dict[str, object]:
        topic, broker, number = place
        length = None if start is None or end is None else (end - start) // MICRO
        return {
            "group": self._group,
            "topic": topic,
            "broker": broker,
            "queue_id": number,
            "what": what,
            "clients": sorted(clients),
            "since": None if start is None else start // MICRO,
            "until": None if end is None else end // MICRO,
            "length_us": length,
        }


def _ordered(queue: _Queue) -> list[Holder]:
    holders = [*queue.past, *queue.now.values()]
    return sorted(holders, key=lambda holder: (holder.first, holder.client))
