"""Settings of the topics and subscription groups of one broker, created on demand.

RocketMQ: TopicConfig, TopicConfigManager, TopicValidator, PermName, SubscriptionGroupConfig,
SubscriptionGroupManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from dissectors.remoting.topic_names import (
    CHECKPOINT_TOPIC,
    DEFAULT_TOPIC,
    DLQ_PREFIX,
    NAME,
    RETRY_PREFIX,
    ROCKSDB_HALF_TOPIC,
    ROCKSDB_OP_HALF_TOPIC,
    SYSTEM_TOPICS,
    TIMER_TOPIC,
)

from .clients import GROUPS_LIMIT, NAME_LIMIT
from .room import BoundedTable, Room, weight_of

READ: Final = 4
WRITE: Final = 2
INHERIT: Final = 1

_OF_ROCKSDB: Final = {CHECKPOINT_TOPIC, ROCKSDB_HALF_TOPIC, ROCKSDB_OP_HALF_TOPIC}
OWN_TOPICS: Final = (SYSTEM_TOPICS | {TIMER_TOPIC}) - _OF_ROCKSDB
"""Topics that a broker has from its start."""
# since 4.7; retry and dead-letter topics have the name of a group in theirs
_LONGEST: Final = 127
_LONGEST_RETRY: Final = 255
TOPICS_LIMIT: Final = 100_000
"""topics of one broker: names come from the network"""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Settings of one topic."""

    name: str
    read_queues: int = 16
    """queues that consumers read"""
    write_queues: int = 16
    """queues that producers write"""
    perm: int = READ | WRITE
    """4 readable, 2 writable, 1 other topics are made after it"""
    sys_flag: int = 0
    """bits of the topic, passed on"""
    order: bool = False
    filter_type: str = "SINGLE_TAG"
    """SINGLE_TAG or MULTI_TAG"""
    attributes: tuple[tuple[str, str], ...] = ()
    """attributes of 5.x"""

    def text(self, with_attributes: bool) -> str:
        """Return the text of Java's toString, which remarks contain."""
        perm = "".join(
            letter if self.perm & bit else "-"
            for letter, bit in (("R", READ), ("W", WRITE), ("X", INHERIT))
        )
        attributes = ", attributes={}" if with_attributes else ""
        return (
            f"TopicConfig [topicName={self.name}, readQueueNums={self.read_queues}, "
            f"writeQueueNums={self.write_queues}, perm={perm}, "
            f"topicFilterType={self.filter_type}, topicSysFlag={self.sys_flag}, "
            f"order={str(self.order).lower()}{attributes}]"
        )

    def value(self, is_5: bool = True) -> dict[str, object]:
        """Return the members of RocketMQ's JSON, as in 5.x or 4.x."""
        return {
            **({"attributes": dict(self.attributes)} if is_5 else {}),
            "order": self.order,
            "perm": self.perm,
            "readQueueNums": self.read_queues,
            "topicFilterType": self.filter_type,
            "topicName": self.name,
            "topicSysFlag": self.sys_flag,
            "writeQueueNums": self.write_queues,
        }


def number_in(value: Mapping[str, object], member: str, default: int) -> int:
    """Return a number sent by a client; the default if not in 0 to 65536."""
    number = value.get(member, default)
    return number if isinstance(number, int) and 0 <= number <= 1 << 16 else default


def topic_of_value(value: dict[str, object]) -> TopicConfig | None:
    """Parse a topic from its JSON members; None if invalid."""
    name = value.get("topicName")
    if not isinstance(name, str) or not name:
        return None

    attributes = value.get("attributes")
    pairs = attributes.items() if isinstance(attributes, dict) else ()
    return TopicConfig(
        name,
        number_in(value, "readQueueNums", 16),
        number_in(value, "writeQueueNums", 16),
        number_in(value, "perm", READ | WRITE),
        number_in(value, "topicSysFlag", 0),
        value.get("order") is True,
        str(value.get("topicFilterType", "SINGLE_TAG")),
        tuple((str(key), str(item)) for key, item in pairs),
    )


def why_no_name(topic: str, named: bool) -> str | None:
    """Return why a topic name is invalid (`named`: in the text of 5.x); None if valid."""
    if not topic.strip():
        return "The specified topic is blank."
    retry = topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
    longest = _LONGEST_RETRY if retry else _LONGEST
    if len(topic) > longest:
        return f"The specified topic is longer than topic max length {longest}."
    if not NAME.fullmatch(topic):
        which = f": {topic}," if named else ""
        return (
            f"The specified topic{which} contains illegal characters, allowing only "
            f"^{NAME.pattern}$"
        )
    return None


def _weight(name: str, config: TopicConfig) -> int:
    return weight_of(name, config.filter_type, *chain.from_iterable(config.attributes))


class TopicTable:
    """The topics of one broker."""

    def __init__(self, room: Room) -> None:
        self._topics = BoundedTable[str, TopicConfig](room, _weight)
        self.changes = 0
        """how often a topic was made, changed or removed: the counter of its DataVersion"""

    def get(self, topic: str) -> TopicConfig | None:
        """Return the topic of that name."""
        return self._topics.get(topic)

    def put(self, config: TopicConfig) -> bool:
        """Create or change a topic; return False if there are too many."""
        if config.name not in self._topics and len(self._topics) >= TOPICS_LIMIT:
            return False
        if not self._topics.put(config.name, config):
            return False
        self.changes += 1
        return True

    def drop(self, topic: str) -> bool:
        """Remove a topic; return whether it existed."""
        if self._topics.drop(topic) is None:
            return False
        self.changes += 1
        return True

    def empty(self) -> None:
        """Remove all topics."""
        self._topics.empty()

    def __iter__(self) -> Iterator[TopicConfig]:
        return iter(list(self._topics.values()))

    def made_by_send(
        self, topic: str, default_topic: str, queues: int, auto_create: bool
    ) -> TopicConfig | None:
        """Create a topic for a send from `default_topic`; None if not allowed.

        Retry topics get one queue, whatever the default topic is.
        """
        if topic.startswith(RETRY_PREFIX):
            return TopicConfig(topic, 1, 1)
        pattern = self._topics.get(default_topic)
        if pattern is None or not pattern.perm & INHERIT:
            return None
        if default_topic == DEFAULT_TOPIC and not auto_create:
            return None
        number = max(0, min(queues, pattern.write_queues))
        # a topic that a send makes is no template itself
        perm = pattern.perm & ~INHERIT
        return replace(
            pattern, name=topic, read_queues=number, write_queues=number, perm=perm, order=False
        )


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
