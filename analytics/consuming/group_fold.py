"""One consumer group by time: its members, what they hold, ask and subscribe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from dissectors.remoting.row_facts.heartbeats import subscriptions_in
from dissectors.rows.tables import encodable_value

from ..diagnosis.keys import parts_of
from ..diagnosis.problem import Evidence
from ..diagnosis.rules.consumers.inconsistent_subscription import SubscriptionFold, subscribed_text
from .asking import Asking
from .group_items import (
    BEAT,
    COMMITTED,
    ENDED,
    LEFT,
    LOCKED,
    MOVED,
    PULL,
    UNLOCKED,
    GroupEvent,
)
from .holding import Holding
from .items import Item, is_own
from .known import Known
from .members import Members

Rows = list[dict[str, object]]
_EVENT: Final = msgspec.json.Decoder(GroupEvent)
MICRO: Final = 1000
MAX_TOPICS: Final = 1024


class GroupRows(msgspec.Struct, gc=False):
    """Rows of the tables, of all groups of a task."""

    tables: dict[str, Rows] = {}

    def add(self, name: str, rows: Rows) -> None:
        """Add rows of a table."""
        self.tables.setdefault(name, []).extend(rows)

    def merge(self, other: GroupRows) -> None:
        """Add what another task found."""
        for name, rows in other.tables.items():
            self.add(name, rows)


def fold_groups(items: Iterable[Item], known: Known) -> GroupRows:
    """Return the rows of items that are sorted by group and time."""
    found = GroupRows()
    fold: GroupFold | None = None
    for item in items:
        (group,) = parts_of(item.key)
        if fold is None or fold.group != group:
            if fold is not None:
                fold.finish(found)
            fold = GroupFold(group, known)
        fold.add(_EVENT.decode(item.text))
    if fold is not None:
        fold.finish(found)
    return found


class GroupFold:
    """Takes the events of one group by time."""

    def __init__(self, group: str, known: Known) -> None:
        self.group = group
        self._members = Members(group, known.with_connections)
        self._holding = Holding(group, known, self._members.moved)
        self._asking = Asking(group, known)
        self._subscriptions = SubscriptionFold(group)
        self._topics: set[str] = set()

    def add(self, event: GroupEvent) -> None:
        """Take an event."""
        kind = event.kind
        if kind == PULL:
            self._members.pulled(event)
            self._holding.pull(event)
            self._asking.pull(event)
            return
        self._members.add(event)
        if kind == COMMITTED:
            self._holding.commit(event)
        elif kind == MOVED:
            self._holding.reset(event)
        elif kind in (LOCKED, UNLOCKED):
            self._asking.lock(event)
        elif kind == BEAT:
            self._beat(event)
        elif kind == LEFT:
            self._subscriptions.take_stop(event.client, event.time)
        elif kind == ENDED:
            self._subscriptions.take_end(event.endpoint, event.time)

    def _beat(self, event: GroupEvent) -> None:
        self._subscriptions.take_announced(
            event.texts,
            event.endpoint,
            lambda what: Evidence(
                event.capture, event.packet or None, event.time, event.conversation, what
            ),
        )
        for one in subscriptions_in(event.texts):
            if one.group == self.group and len(self._topics) < MAX_TOPICS:
                self._topics.add(one.topic)

    def finish(self, found: GroupRows) -> None:
        """Add the rows of the group."""
        for client, time in self._members.ends():
            self._holding.ended(client, time)
        found.add("consumer_members", self._members.member_rows())
        found.add("consumer_rebalances", self._members.rebalance_rows())
        found.add("consumer_queues", self._holding.queue_rows())
        topics = [topic for topic in self._topics if not is_own(topic)]
        found.add("consumer_queues_odd", self._holding.odd_rows(topics))
        found.add("consumer_pulls", self._asking.pull_rows())
        found.add("consumer_slaves", self._asking.slave_rows())
        found.add("consumer_locks", self._asking.lock_rows())
        found.add("consumer_offsets", self._holding.jump_rows())
        found.add("consumer_subscriptions", self._subscription_rows())
        if left_out := self._holding.left_out + self._asking.left_out:
            found.add("consumer_limits", [{"group": self.group, "left_out": left_out}])

    def _subscription_rows(self) -> Rows:
        """Return what each member subscribes; the rule of the diagnosis says who differs."""
        apart = {
            client: forms
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
                "differs": apart.get(client) == form,
            }
            for client, forms in sorted(self._subscriptions.groups.get(self.group, {}).items())
            for form, seen in sorted(forms.items())
        ]


def group_tables(found: GroupRows, known: Known) -> Mapping[str, Rows]:  # noqa: ARG001
    """Return the rows of each table, by its name."""
    return {
        name: [{key: encodable_value(value) for key, value in row.items()} for row in rows]
        for name, rows in found.tables.items()
    }
