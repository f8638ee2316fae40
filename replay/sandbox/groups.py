"""Subscription groups of one broker: settings, created by the first heartbeat or request.

RocketMQ: SubscriptionGroupConfig, SubscriptionGroupManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .clients import GROUPS_LIMIT, NAME_LIMIT
from .room import BoundedTable, Room, weight_of
from .topics import number_in


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Settings of one group."""

    name: str
    consume_enable: bool = True
    """whether it may pull"""
    broadcast_enable: bool = True
    """whether it may consume in broadcast"""
    orderly: bool = False
    """POP keeps the order of a queue"""
    retry_queues: int = 1
    """queues of its retry topic; 0: failed messages are dropped"""
    retry_max: int = 16
    """failed deliveries before the dead-letter queue"""
    notify: bool = True
    """members are notified when the group changes"""

    def value(self, is_5: bool = True) -> dict[str, object]:
        """Return the members of RocketMQ's JSON, as in 5.x or 4.x."""
        since_5 = {
            "attributes": {},
            "consumeMessageOrderly": self.orderly,
            "consumeTimeoutMinute": 15,
            "groupRetryPolicy": {"type": "CUSTOMIZED"},
            "groupSysFlag": 0,
        }
        return {
            **(since_5 if is_5 else {}),
            "brokerId": 0,
            "consumeBroadcastEnable": self.broadcast_enable,
            "consumeEnable": self.consume_enable,
            "consumeFromMinEnable": True,
            "groupName": self.name,
            "notifyConsumerIdsChangedEnable": self.notify,
            "retryMaxTimes": self.retry_max,
            "retryQueueNums": self.retry_queues,
            "whichBrokerWhenConsumeSlowly": 1,
        }


def group_of_value(value: dict[str, object]) -> GroupConfig | None:
    """Parse a group from its JSON members; None if invalid."""
    name = value.get("groupName")
    if not isinstance(name, str) or not name:
        return None

    return GroupConfig(
        name,
        value.get("consumeEnable", True) is True,
        value.get("consumeBroadcastEnable", True) is True,
        value.get("consumeMessageOrderly") is True,
        number_in(value, "retryQueueNums", 1),
        number_in(value, "retryMaxTimes", 16),
        value.get("notifyConsumerIdsChangedEnable", True) is True,
    )


class GroupTable:
    """The subscription groups of one broker."""

    def __init__(self, room: Room) -> None:
        self._groups = BoundedTable[str, GroupConfig](room, lambda name, _: weight_of(name))

    def get(self, group: str) -> GroupConfig | None:
        """Return the group of that name, or None."""
        return self._groups.get(group)

    def of(self, group: str) -> GroupConfig:
        """Return the group of that name, created if missing."""
        config = self._groups.get(group)
        if config is None:
            config = GroupConfig(group)
            self.put(config)
        return config

    def put(self, config: GroupConfig) -> bool:
        """Create or change a group; return False if there are too many or its name is too long."""
        known = config.name in self._groups
        if not known and (len(self._groups) >= GROUPS_LIMIT or len(config.name) > NAME_LIMIT):
            return False
        return self._groups.put(config.name, config)

    def drop(self, group: str) -> bool:
        """Remove a group; return whether it existed."""
        return self._groups.drop(group) is not None

    def notifies(self, group: str) -> bool:
        """Return whether the members of a group are notified of changes."""
        config = self._groups.get(group)
        return config is None or config.notify

    def __iter__(self) -> Iterator[GroupConfig]:
        return iter(list(self._groups.values()))
