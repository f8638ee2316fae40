"""Membership of a group over time, and the effects of each change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from dissectors.remoting.row_facts.heartbeats import consumers_in

from ..diagnosis.rules.consumers.rebalance_storm import TOGETHER_NS
from .group_items import BEAT, ENDED, LEFT, LISTED, MICRO, NOTIFIED, OPENED, GroupEvent, Rows

MAX_MEMBERS: Final = 4096
MAX_CHANGES: Final = 20_000
SETTLES_NS: Final = 60_000_000_000
"""time after a change in which moved queues count for it: members rebalance every 20 s"""
BEFORE, JOINED = "before the capture", "joined"
OPEN, LEAVES = "still a member", "left"


class Stretch(msgspec.Struct, gc=False):
    """A period in which a client was a member."""

    client: str
    endpoint: str
    first: int
    last: int
    """time of its last activity"""
    began: str | None
    """None: unknown"""
    ended: str = OPEN
    heartbeats: int = 0
    type: str | None = None
    model: str | None = None
    brokers: set[str] = set()


class Change(msgspec.Struct, gc=False):
    """An event after which members rebalance."""

    time: int
    cause: str
    client: str | None
    before: int | None
    after: int | None
    """number of members seen; None: unknown"""
    notices: int = 0
    lists: int = 0
    moved: int = 0
    last_move: int = 0
    capture: str = ""
    packet: int = 0


class Members:
    """Folds the events of one group in order of time."""

    def __init__(self, group: str, with_connections: bool) -> None:
        self._group = group
        self._with_connections = with_connections
        self._now: dict[str, Stretch] = {}
        self._past: list[Stretch] = []
        self._opened: set[str] = set()
        """endpoints whose connection start was captured"""
        self._open: dict[str, set[str]] = {}
        """client -> endpoints on which it sends heartbeats"""
        self._gone: set[str] = set()
        self.changes: list[Change] = []
        self._forms: dict[str, tuple[str, ...]] = {}
        self._noticed = 0

    def add(self, event: GroupEvent) -> None:
        """Add an event."""
        if event.kind == BEAT:
            self._beat(event)
        elif event.kind == LEFT:
            self._end(event, LEAVES)
            self._open.pop(event.client, None)
        elif event.kind == OPENED:
            if len(self._opened) < MAX_CHANGES:
                self._opened.add(event.endpoint)
        elif event.kind == ENDED:
            self._lost(event)
        elif event.kind == NOTIFIED:
            self._notice(event)
        elif event.kind == LISTED and self.changes:
            change = self.changes[-1]
            if event.time - change.time <= SETTLES_NS:
                change.lists += 1
        stretch = self._now.get(event.client)
        # what a broker or a connection does shows no activity of the member
        if stretch is not None and event.kind not in (NOTIFIED, OPENED, ENDED):
            stretch.last = max(stretch.last, event.time)

    def pulled(self, event: GroupEvent) -> None:
        """Add a pull: it shows a member without captured heartbeats."""
        stretch = self._now.get(event.client)
        # once it has left, only a heartbeat makes a client a member again
        if stretch is None and event.client not in self._gone:
            if len(self._now) + len(self._past) >= MAX_MEMBERS:
                return
            stretch = self._now[event.client] = self._begun(event)
            stretch.began = BEFORE if event.endpoint not in self._opened else None
        if stretch is not None:
            stretch.last = max(stretch.last, event.time)

    def moved(self, time: int) -> None:
        """Count a queue that moved to another member at this time."""
        change = self.changes[-1] if self.changes else None
        if change is None or time - change.time > SETTLES_NS:
            change = self._change(time, "not seen", None, None)
            if change is None:
                return
        change.moved += 1
        change.last_move = max(change.last_move, time)

    def _begun(self, event: GroupEvent) -> Stretch:
        began = None
        if self._with_connections:
            began = JOINED if event.endpoint in self._opened else BEFORE
        return Stretch(event.client, event.endpoint, event.time, event.time, began)

    def _beat(self, event: GroupEvent) -> None:
        consumers = consumers_in(event.texts)
        consumer = next((each for each in consumers if each.name == self._group), None)
        stretch = self._now.get(event.client)
        if stretch is None:
            if len(self._now) + len(self._past) >= MAX_MEMBERS:
                return
            count = len(self._now)
            stretch = self._now[event.client] = self._begun(event)
            # A member since before the capture joined nothing that the capture shows.
            if stretch.began != BEFORE:
                change = self._change(event.time, "joined", event, count)
                if change is not None:
                    change.after = count + 1
            self._gone.discard(event.client)
        stretch.heartbeats += 1
        stretch.brokers.add(event.broker)
        if consumer is not None:
            stretch.type, stretch.model = consumer.type, consumer.model
        self._open.setdefault(event.client, set()).add(event.endpoint)
        # a client sends the same heartbeat to every broker: only another form is a change
        form = tuple(sorted(text for text in event.texts if text.startswith("subscription=")))
        before = self._forms.get(event.client)
        if form and before is not None and before != form:
            self._change(event.time, "subscription changed", event, len(self._now))
        if form:
            self._forms[event.client] = form

    def _lost(self, event: GroupEvent) -> None:
        endpoints = self._open.get(event.client)
        if endpoints is None:
            return
        endpoints.discard(event.endpoint)
        if not endpoints:  # a member is lost only with the last of its connections
            del self._open[event.client]
            self._end(event, f"connection ended: {event.result}")

    def _end(self, event: GroupEvent, reason: str) -> None:
        stretch = self._now.pop(event.client, None)
        if stretch is None:
            return
        count = len(self._now) + 1
        stretch.ended, stretch.last = reason, max(stretch.last, event.time)
        self._past.append(stretch)
        self._gone.add(event.client)
        change = self._change(event.time, reason, event, count)
        if change is not None:
            change.after = count - 1

    def _change(
        self, time: int, cause: str, event: GroupEvent | None, before: int | None
    ) -> Change | None:
        if len(self.changes) >= MAX_CHANGES:
            return None
        change = Change(time, cause, event.client if event is not None else None, before, before)
        if event is not None:
            change.capture, change.packet = event.capture, event.packet
        self.changes.append(change)
        return change

    def _notice(self, event: GroupEvent) -> None:
        """Count a notification for the preceding change, or add a change without known cause."""
        change = self.changes[-1] if self.changes else None
        # a broker tells each member in turn, so notifications of one change follow one another
        if change is None or event.time - max(change.time, self._noticed) > 20 * TOGETHER_NS:
            change = self._change(event.time, "told by the broker", event, None)
            if change is None:
                return
            change.client = None  # the one that was told did not change
        self._noticed = event.time
        change.notices += 1

    def ends(self) -> Iterator[tuple[str, int]]:
        """Yield former members and the time their membership ended."""
        for stretch in self._past:
            yield stretch.client, stretch.last

    def member_rows(self) -> Rows:
        """Return the rows of the table of members."""
        return [
            {
                "group": self._group,
                "client": stretch.client,
                "address": stretch.endpoint,
                "since": stretch.first // MICRO,
                "until": stretch.last // MICRO,
                "began": stretch.began,
                "ended": stretch.ended,
                "heartbeats": stretch.heartbeats,
                "type": stretch.type,
                "model": stretch.model,
                "brokers": sorted(stretch.brokers),
            }
            for stretch in [*self._past, *self._now.values()]
        ]

    def rebalance_rows(self) -> Rows:
        """Return the rows of the table of rebalances."""
        return [
            {
                "group": self._group,
                "time": change.time // MICRO,
                "cause": change.cause,
                "client": change.client,
                "members_before": change.before,
                "members_after": change.after,
                "told": change.notices,
                "lists": change.lists,
                "queues_moved": change.moved,
                "length_us": (change.last_move - change.time) // MICRO if change.moved else None,
                "capture": change.capture or None,
                "packet": change.packet or None,
            }
            for change in self.changes
        ]
