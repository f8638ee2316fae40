"""Fold of one consumer group by time: members, queue ownership, pulls, and subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from dissectors.remoting.row_facts.heartbeats import consumers_in, subscriptions_in

from ..diagnosis.keys import parts_of
from ..diagnosis.problem import Evidence
from ..diagnosis.rules.consumers.inconsistent_subscription import SubscriptionFold, subscribed_text
from ..diagnosis.rules.consumers.rebalance_storm import TOGETHER_NS
from .group_items import (
    BEAT,
    CLAIMED,
    COMMITTED,
    ENDED,
    LEFT,
    LISTED,
    LOCKED,
    MICRO,
    MOVED,
    NOTIFIED,
    OPENED,
    PULL,
    UNLOCKED,
    GroupEvent,
    Rows,
)
from .items import Item, is_own
from .known import Known
from .pulls_and_locks import PullsAndLocks
from .queue_ownership import QueueOwnership

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


_EVENT: Final = msgspec.json.Decoder(GroupEvent)
MAX_TOPICS: Final = 1024


class GroupRows(msgspec.Struct, gc=False):
    """Table rows of all groups of a task."""

    tables: dict[str, Rows] = {}

    def add(self, name: str, rows: Rows) -> None:
        """Add rows of a table."""
        self.tables.setdefault(name, []).extend(rows)

    def merge(self, other: GroupRows) -> None:
        """Add the rows of another task."""
        for name, rows in other.tables.items():
            self.add(name, rows)


def fold_groups(items: Iterable[Item], known: Known) -> GroupRows:
    """Return the table rows of items sorted by group and time."""
    result = GroupRows()
    fold: GroupFold | None = None
    for item in items:
        (group,) = parts_of(item.key)
        if fold is None or fold.group != group:
            if fold is not None:
                fold.finish(result)
            fold = GroupFold(group, known)
        fold.add(_EVENT.decode(item.text))
    if fold is not None:
        fold.finish(result)
    return result


class GroupFold:
    """Folds the events of one group in order of time."""

    def __init__(self, group: str, known: Known) -> None:
        self.group = group
        self._context = known.context
        self._members = Members(group, known.with_connections)
        self._ownership = QueueOwnership(group, known, self._members.moved)
        self._pulls_and_locks = PullsAndLocks(group, known)
        self._subscriptions = SubscriptionFold(group)
        self._topics: set[str] = set()

    def add(self, event: GroupEvent) -> None:
        """Add an event."""
        kind = event.kind
        # It also shows members whose heartbeats were not captured.
        if kind == PULL:
            self._members.pulled(event)
            self._ownership.pull(event)
            self._pulls_and_locks.pull(event)
            return
        if kind == CLAIMED:
            self._ownership.claim(event)
            return
        self._members.add(event)  # all other events show members
        if kind == COMMITTED:
            self._ownership.commit(event)
        elif kind == MOVED:
            self._ownership.reset(event)
        elif kind in (LOCKED, UNLOCKED):
            self._pulls_and_locks.lock(event)
        elif kind == BEAT:
            self._beat(event)
        elif kind == LEFT:
            self._subscriptions.take_stop(event.client, event.time)
        elif kind == ENDED:
            self._subscriptions.take_end(event.endpoint, event.time)

    def _beat(self, event: GroupEvent) -> None:
        self._subscriptions.take_announced(
            event.client,
            event.texts,
            event.endpoint,
            event.address,
            lambda text: Evidence(
                event.capture, event.packet or None, event.time, event.conversation, text
            ),
        )
        for subscription in subscriptions_in(event.texts):
            if subscription.group == self.group and len(self._topics) < MAX_TOPICS:
                self._topics.add(subscription.topic)

    def finish(self, result: GroupRows) -> None:
        """Add the rows of the group to `result`."""
        # before the rows of queues: an unanswered pull ends with the membership
        for client, time in self._members.ends():
            self._ownership.ended(client, time)
        result.add("consumer_members", self._members.member_rows())
        result.add("consumer_rebalances", self._members.rebalance_rows())
        result.add("consumer_queues", self._ownership.queue_rows())
        topics = [topic for topic in self._topics if not is_own(topic)]
        result.add("consumer_queues_odd", self._ownership.odd_rows(topics))
        result.add("consumer_pulls", self._pulls_and_locks.pull_rows())
        result.add("consumer_slaves", self._pulls_and_locks.slave_rows())
        result.add("consumer_locks", self._pulls_and_locks.lock_rows())
        result.add("consumer_offsets", self._ownership.jump_rows())
        result.add("consumer_subscriptions", self._subscription_rows())
        if left_out := self._ownership.left_out + self._pulls_and_locks.left_out:
            result.add("consumer_limits", [{"group": self.group, "left_out": left_out}])

    def _subscription_rows(self) -> Rows:
        """Return the subscriptions of each member, marked where members differ."""
        conflicting = {
            client: forms
            # A heartbeat has the subscriptions of all groups of its client.
            for group, differing in self._subscriptions.conflicts(self._context)
            if group == self.group
            for client, (forms, _) in differing.items()
        }
        return [
            {
                "group": self.group,
                "client": client,
                "subscribed": subscribed_text(form[1:]),
                "model": form[0],
                "since": seen.first // MICRO,
                "until": seen.last // MICRO,
                "differs": conflicting.get(client) == form,
            }
            for client, forms in sorted(self._subscriptions.groups.get(self.group, {}).items())
            for form, seen in sorted(forms.items())
        ]


def group_tables(result: GroupRows, known: Known) -> Mapping[str, Rows]:  # noqa: ARG001
    """Return the rows of each table, by table name."""
    return result.tables
