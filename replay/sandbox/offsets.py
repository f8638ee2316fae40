"""Consumer offsets of one broker, and the locks of orderly consumers.

RocketMQ: ConsumerOffsetManager, RebalanceLockManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .clients import NAME_LIMIT
from .room import BoundedTable, Room, weight_of

OFFSETS_LIMIT: Final = 500_000
"""offsets of one broker: groups and topics come from the network"""
# RebalanceLockManager.REBALANCE_LOCK_MAX_LIVE_TIME: clients renew their locks every 20 s
_LOCK_MS: Final = 60_000
_Key = tuple[str, str, int]


def _weight(key: _Key, _: int) -> int:
    return weight_of(key[0], key[1])


class OffsetTable:
    """The offset of each group in each queue."""

    def __init__(self, room: Room) -> None:
        self._offsets = BoundedTable[_Key, int](room, _weight)
        self.resets = BoundedTable[_Key, int](room, _weight)
        """offsets that an administrator set and that the next pull has to learn"""

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the offset that was stored last."""
        return self._offsets.get((group, topic, queue_id))

    def put(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Store an offset; return False if there are too many."""
        key = (group, topic, queue_id)
        if key not in self._offsets and (
            len(self._offsets) >= OFFSETS_LIMIT or max(len(group), len(topic)) > NAME_LIMIT
        ):
            return False
        return self._offsets.put(key, offset)

    def groups_of(self, topic: str) -> list[str]:
        """Return the groups that have an offset in a topic."""
        return sorted({group for group, name, _ in self._offsets if name == topic})

    def topics_of(self, group: str) -> list[str]:
        """Return the topics in which a group has an offset."""
        return sorted({topic for name, topic, _ in self._offsets if name == group})

    def topics_by_group(self) -> dict[str, list[str]]:
        """Return the topics in which each group has an offset."""
        topics: dict[str, set[str]] = {}
        for group, topic, _ in self._offsets:
            topics.setdefault(group, set()).add(topic)
        return {group: sorted(names) for group, names in topics.items()}

    def table(self) -> dict[str, dict[int, int]]:
        """Return the offsets by `topic@group` and queue, as the broker's own file has them."""
        table: dict[str, dict[int, int]] = {}
        for (group, topic, queue_id), offset in self._offsets.items():
            table.setdefault(f"{topic}@{group}", {})[queue_id] = offset
        return table

    def drop_topic(self, topic: str) -> list[tuple[str, str, int]]:
        """Remove the offsets in a topic and return them."""
        gone = [key for key in self._offsets if key[1] == topic]
        for key in gone:
            self._offsets.drop(key)
        return gone

    def drop_group(self, group: str) -> list[tuple[str, str, int]]:
        """Remove the offsets of a group and return them."""
        gone = [key for key in self._offsets if key[0] == group]
        for key in gone:
            self._offsets.drop(key)
        return gone


class LockTable:
    """Queue locks of the clients of each group."""

    def __init__(self, room: Room) -> None:
        self._locks = BoundedTable[_Key, tuple[str, int]](
            room, lambda key, owner: weight_of(key[0], key[1], owner[0])
        )

    def lock(
        self, group: str, client_id: str, queues: Iterable[tuple[str, int]], now_ms: int
    ) -> list[tuple[str, int]]:
        """Lock queues for a client; return those that it holds."""
        got = []
        for topic, queue_id in queues:
            key = (group, topic, queue_id)
            owner, since = self._locks.get(key, (client_id, now_ms))
            if owner != client_id and now_ms - since <= _LOCK_MS:
                continue
            if key not in self._locks and (
                len(self._locks) >= OFFSETS_LIMIT
                or max(len(group), len(topic), len(client_id)) > NAME_LIMIT
            ):
                continue
            if self._locks.put(key, (client_id, now_ms)):
                got.append((topic, queue_id))
        return got

    def unlock(self, group: str, client_id: str, queues: Iterable[tuple[str, int]]) -> None:
        """Unlock queues of a client, but not those of others."""
        for topic, queue_id in queues:
            key = (group, topic, queue_id)
            if self._locks.get(key, ("", 0))[0] == client_id:
                self._locks.drop(key)
