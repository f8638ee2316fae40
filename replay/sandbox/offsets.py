"""Consumer offsets of one broker, and the locks of orderly consumers.

RocketMQ: ConsumerOffsetManager, RebalanceLockManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .clients import NAME_LIMIT

OFFSETS_LIMIT: Final = 500_000
"""offsets of one broker: groups and topics come from the network"""
_LOCK_MS: Final = 60_000


class OffsetTable:
    """How far each group is in each queue."""

    def __init__(self) -> None:
        self._offsets: dict[tuple[str, str, int], int] = {}
        self.resets: dict[tuple[str, str, int], int] = {}
        """offsets that an administrator set and that the next pull has to learn"""

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the offset that was stored last."""
        return self._offsets.get((group, topic, queue_id))

    def put(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Store an offset; False where there are too many."""
        key = (group, topic, queue_id)
        if key not in self._offsets and (
            len(self._offsets) >= OFFSETS_LIMIT or max(len(group), len(topic)) > NAME_LIMIT
        ):
            return False
        self._offsets[key] = offset
        return True

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

    def groups(self) -> list[str]:
        """Return all groups with an offset."""
        return sorted({group for group, _, _ in self._offsets})

    def table(self) -> dict[str, dict[int, int]]:
        """Return the offsets by `topic@group` and queue, as the broker's own file has them."""
        table: dict[str, dict[int, int]] = {}
        for (group, topic, queue_id), offset in self._offsets.items():
            table.setdefault(f"{topic}@{group}", {})[queue_id] = offset
        return table

    def drop_topic(self, topic: str) -> list[tuple[str, str, int]]:
        """Forget the offsets in a topic; what was forgotten."""
        gone = [key for key in self._offsets if key[1] == topic]
        for key in gone:
            del self._offsets[key]
        return gone

    def drop_group(self, group: str) -> list[tuple[str, str, int]]:
        """Forget the offsets of a group; what was forgotten."""
        gone = [key for key in self._offsets if key[0] == group]
        for key in gone:
            del self._offsets[key]
        return gone


class LockTable:
    """Which client of a group has which queue for itself."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, str, int], tuple[str, int]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[tuple[str, int]], now_ms: int
    ) -> list[tuple[str, int]]:
        """Lock queues for a client; those that it has now."""
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
            self._locks[key] = (client_id, now_ms)
            got.append((topic, queue_id))
        return got

    def unlock(self, group: str, client_id: str, queues: Iterable[tuple[str, int]]) -> None:
        """Give queues back; those of others stay locked."""
        for topic, queue_id in queues:
            key = (group, topic, queue_id)
            if self._locks.get(key, ("", 0))[0] == client_id:
                del self._locks[key]
