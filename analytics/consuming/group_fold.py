"""Fold of one consumer group by time: members, queue ownership, pulls, and subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from dissectors.remoting.row_facts.heartbeats import subscriptions_in

from ..diagnosis.keys import parts_of
from ..diagnosis.problem import Evidence
from ..diagnosis.rules.consumers.inconsistent_subscription import SubscriptionFold, subscribed_text
from .group_items import (
    BEAT,
    CLAIMED,
    COMMITTED,
    ENDED,
    LEFT,
    LOCKED,
    MICRO,
    MOVED,
    PULL,
    UNLOCKED,
    GroupEvent,
    Rows,
)
from .items import Item, is_own
from .known import Known
from .members import Members
from .pulls_and_locks import PullsAndLocks
from .queue_ownership import QueueOwnership

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
            for group, differing in self._subscriptions.conflicts()
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
