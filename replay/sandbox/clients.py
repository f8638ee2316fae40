"""Clients of one broker: connections, groups, and subscriptions.

RocketMQ: ProducerManager, ConsumerManager, ClientChannelInfo, SubscriptionData.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dissectors.remoting.java_hash import java_hash

from .room import BoundedTable, Room, weight_of
from .server import Connection

SUB_ALL: Final = "*"
GROUPS_LIMIT: Final = 20_000
"""groups of one broker: names come from the network"""
NAME_LIMIT: Final = 255
"""characters of a group's or topic's name that is kept"""
EXPRESSION_LIMIT: Final = 65_536
"""characters of an expression that is kept"""
_TAG: Final = 150
"""bytes of a tag in a set beside its text"""
_SUBSCRIPTIONS_LIMIT: Final = 2000


@dataclass(frozen=True, slots=True)
class Subscription:
    """A group's subscription to a topic."""

    topic: str
    expression: str = SUB_ALL
    """`*`, or tags between `||`; SQL for SQL92"""
    expression_type: str = "TAG"
    """TAG or SQL92"""
    version: int = 0
    """creation time, ms since the epoch"""
    tags: frozenset[str] = frozenset()
    """the tags; empty for all"""

    @property
    def size(self) -> int:
        """Memory in bytes."""
        tags = sum(map(sys.getsizeof, self.tags)) + _TAG * len(self.tags)
        return weight_of(self.topic, self.expression, self.expression_type) + tags

    def wants(self, tag: str) -> bool:
        """Return whether the subscription matches a tag."""
        return not self.tags or tag in self.tags

    def value(self) -> dict[str, object]:
        """Return the members of RocketMQ's JSON."""
        return {
            "classFilterMode": False,
            "codeSet": [java_hash(tag) for tag in sorted(self.tags)],
            "expressionType": self.expression_type,
            "subString": self.expression,
            "subVersion": self.version,
            "tagsSet": sorted(self.tags),
            "topic": self.topic,
        }


def subscription_of(
    topic: str, expression: str | None, expression_type: str | None = None, version: int = 0
) -> Subscription:
    """Return a subscription from its text: `*`, `TagA || TagB`.

    A text over `EXPRESSION_LIMIT` gives no tags: the caller must reject it.
    """
    text = expression or SUB_ALL
    kind = expression_type or "TAG"
    tags: frozenset[str] = frozenset()
    if kind == "TAG" and text != SUB_ALL and len(text) <= EXPRESSION_LIMIT:
        tags = frozenset(part.strip() for part in text.split("||") if part.strip())
    return Subscription(topic, text, kind, version, tags)


@dataclass(slots=True)
class GroupMember:
    """One connection of a client process in one group."""

    client_id: str
    """`ip@instance`"""
    connection: Connection
    language: str
    version: int
    """MQVersion ordinal of its header"""
    seen_ms: int
    """time of its last heartbeat"""

    def value(self) -> dict[str, object]:
        """Return the members of RocketMQ's JSON (Connection)."""
        return {
            "clientAddr": self.connection.peer,
            "clientId": self.client_id,
            "language": self.language or "OTHER",
            "version": self.version,
        }


@dataclass(slots=True)
class ConsumerGroup:
    """The members of a consumer group."""

    name: str
    consume_type: str = "CONSUME_PASSIVELY"
    """CONSUME_PASSIVELY (push), CONSUME_ACTIVELY (pull) or CONSUME_POP"""
    message_model: str = "CLUSTERING"
    """CLUSTERING or BROADCASTING"""
    from_where: str = "CONSUME_FROM_LAST_OFFSET"
    """where a group without offsets begins"""
    members: BoundedTable[Connection, GroupMember] = field(default_factory=lambda: _members(Room()))
    subscriptions: BoundedTable[str, Subscription] = field(
        default_factory=lambda: _subscriptions(Room())
    )
    """topic → subscription"""

    def client_ids(self) -> list[str]:
        """Return the distinct client ids of the members."""
        return list(dict.fromkeys(client.client_id for client in self.members.values()))


def _members(room: Room) -> BoundedTable[Connection, GroupMember]:
    return BoundedTable(room, lambda _, member: weight_of(member.client_id, member.language))


def _subscriptions(room: Room) -> BoundedTable[str, Subscription]:
    return BoundedTable(room, lambda _, subscription: subscription.size)


class ClientTable:
    """Producer and consumer groups of one broker."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.producers: dict[str, BoundedTable[Connection, GroupMember]] = {}
        """group → members"""
        self.consumers: dict[str, ConsumerGroup] = {}
        """group → members and subscriptions"""
        self._producer_of = BoundedTable[str, Connection](
            self._room, lambda client_id, _: weight_of(client_id)
        )

    def add_producer(self, group: str, client: GroupMember) -> bool:
        """Add a member to the producer group that a heartbeat names; return whether it is new."""
        members = self.producers.get(group)
        if members is None:
            if not self._reserve(group, len(self.producers)):
                return False
            members = self.producers[group] = _members(self._room)
        new = client.connection not in members
        if not members.put(client.connection, client):
            # a group without members takes no room
            if not members:
                self._end_producers(group)
            return False
        if new:
            # Of two processes with one client id, the later one counts, as in a real broker.
            self._producer_of.put(client.client_id, client.connection)
        return new

    def add_consumer(
        self,
        group: ConsumerGroup,
        client: GroupMember,
        subscriptions: list[Subscription] | None,
    ) -> bool:
        """Add a consumer group of a heartbeat; return whether members or subscriptions changed.

        `group` has the heartbeat's settings; `subscriptions` None means unchanged.
        """
        old_group = self.consumers.get(group.name)
        if old_group is None:
            if not self._reserve(group.name, len(self.consumers)):
                return False
            group.members, group.subscriptions = _members(self._room), _subscriptions(self._room)
            old_group = self.consumers[group.name] = group
        old_group.consume_type = group.consume_type
        old_group.message_model = group.message_model
        old_group.from_where = group.from_where
        changed = client.connection not in old_group.members
        if not old_group.members.put(client.connection, client):
            if not old_group.members:
                self._end_consumers(group.name)
            return False
        if subscriptions is not None:
            changed |= _update(old_group.subscriptions, subscriptions[:_SUBSCRIPTIONS_LIMIT])
        return changed

    def _reserve(self, group: str, count: int) -> bool:
        """Reserve room for a group beside `count` others; return whether there is any."""
        if count >= GROUPS_LIMIT or len(group) > NAME_LIMIT:
            return False
        return self._room.take(weight_of(group))

    def _end_producers(self, group: str) -> None:
        del self.producers[group]
        self._room.take(-weight_of(group))

    def _end_consumers(self, group: str) -> None:
        self.consumers.pop(group).subscriptions.empty()
        self._room.take(-weight_of(group))

    def remove(
        self, connection: Connection, producer: str | None = None, consumer: str | None = None
    ) -> tuple[list[str], list[str]]:
        """Remove a connection from groups, by default from all; return (producer, consumer) groups
        left.
        """
        everything = producer is None and consumer is None
        left: tuple[list[str], list[str]] = ([], [])
        if everything:
            for client_id in [i for i, who in self._producer_of.items() if who is connection]:
                self._producer_of.drop(client_id)
        for group in list(self.producers) if everything else [producer]:
            members = self.producers.get(group or "")
            if group and members is not None and (member := members.drop(connection)) is not None:
                left[0].append(group)
                if self._producer_of.get(member.client_id) is connection:
                    self._producer_of.drop(member.client_id)
                if not members:
                    self._end_producers(group)
        for name in list(self.consumers) if everything else [consumer]:
            known = self.consumers.get(name or "")
            if name and known is not None and known.members.drop(connection) is not None:
                left[1].append(name)
                if not known.members:
                    self._end_consumers(name)
        return left

    def silent_since(self, before_ms: int) -> set[Connection]:
        """Return connections of clients whose last heartbeat is older than `before_ms`."""
        return {
            connection for connection, client in self.all_members() if client.seen_ms < before_ms
        }

    def all_members(self) -> Iterator[tuple[Connection, GroupMember]]:
        """Yield every membership of every group."""
        for members in self.producers.values():
            yield from members.items()
        for group in self.consumers.values():
            yield from group.members.items()

    def client(self, client_id: str) -> Connection | None:
        """Return the latest connection of the producer with a client id."""
        return self._producer_of.get(client_id)


def _update(known: BoundedTable[str, Subscription], now: list[Subscription]) -> bool:
    changed = False
    now = [
        item
        for item in now
        if max(len(item.topic), len(item.expression_type)) <= NAME_LIMIT
        and len(item.expression) <= EXPRESSION_LIMIT
    ]
    for subscription in now:
        old = known.get(subscription.topic)
        newer = old is None or old.version < subscription.version
        if newer and known.put(subscription.topic, subscription):
            # a newer version of the same expression changes nothing for the members
            changed |= old is None or old.expression != subscription.expression
    # what a heartbeat no longer names is unsubscribed
    topics = {subscription.topic for subscription in now}
    for topic in [topic for topic in known if topic not in topics]:
        known.drop(topic)
        changed = True
    return changed
