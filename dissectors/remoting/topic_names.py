"""Names of topics and groups with a meaning to RocketMQ: system topics, retries, replies.

RocketMQ: TopicValidator, MixAll, TraceConstants, LiteUtil, PopAckConstants, TimerMessageStore,
HeartbeatSyncer, Validators.
"""

from __future__ import annotations

import re
from typing import Final

RETRY_PREFIX: Final = "%RETRY%"
"""prefix of a group's retry topic"""
DLQ_PREFIX: Final = "%DLQ%"
"""prefix of a group's dead-letter topic"""
LMQ_PREFIX: Final = "%LMQ%"
"""prefix of queues that a broker derives from another topic's messages"""
LITE_PREFIX: Final = f"{LMQ_PREFIX}$"
"""prefix of lite topics"""
REPLY_SUFFIX: Final = "_REPLY_TOPIC"
"""suffix of the topic for replies to a cluster's consumers"""

DEFAULT_TOPIC: Final = "TBW102"
"""The topic whose route producers use for a topic without one (createTopicKey)."""
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
"""messages waiting for their delay level"""
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
"""messages waiting for their delivery time"""
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
"""messages waiting for the end of their transaction"""
OP_HALF_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
"""marks of finished half messages"""
ROCKSDB_HALF_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_OP_HALF_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
"""for brokers of 5.5 that keep transactions in RocksDB"""
CHECKED_OUT_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
"""messages whose transaction was checked too often"""
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC: Final = "OFFSET_MOVED_EVENT"
"""events of brokers that move an offset"""
REVIVE_PREFIX: Final = "rmq_sys_REVIVE_LOG_"
"""prefix of the topic of POP check points and acks"""
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
"""default topic of client traces"""
TRACE_DATA_PREFIX: Final = "rmq_sys_TRACE_DATA_"
"""prefix of the trace topic with access channel CLOUD"""

CHECKPOINT_TOPIC: Final = "CHECKPOINT_TOPIC"
"""for the checkpoint that RocksDB is restored from"""

SYSTEM_PREFIX: Final = "rmq_sys_"
NOT_FOR_SENDS: Final = frozenset(
    (
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        ROCKSDB_HALF_TOPIC,
        ROCKSDB_OP_HALF_TOPIC,
        CHECKED_OUT_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
    )
)
"""System topics that no client may send to."""
SYSTEM_TOPICS: Final = NOT_FOR_SENDS | {
    DEFAULT_TOPIC,
    TRACE_TOPIC,
    "BenchmarkTest",
    CHECKPOINT_TOPIC,
}
"""Java's list of system topics, besides those with `SYSTEM_PREFIX`."""
_WITH_USER_MESSAGES: Final = frozenset(
    (
        *(DEFAULT_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, ROCKSDB_HALF_TOPIC),
        *(CHECKED_OUT_TOPIC, SELF_TEST_TOPIC, "BenchmarkTest"),
    )
)
"""system topics with messages of applications"""
_INTERNAL_PREFIXES: Final = (SYSTEM_PREFIX, SYSTEM_PREFIX.upper(), LMQ_PREFIX)
_WAITING_TOPICS: Final = frozenset(
    (
        *(SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, OP_HALF_TOPIC),
        *(ROCKSDB_HALF_TOPIC, ROCKSDB_OP_HALF_TOPIC),
    )
)
"""topics whose name does not contain the original topic"""
UNUSUAL_STARTS: Final = frozenset(map(ord, ("%", *(topic[0] for topic in _WAITING_TOPICS))))
"""first characters of topics that may not be their own original topic"""
PROXY_HEARTBEATS: Final = "DefaultHeartBeatSyncerTopic"
"""synchronises client data between proxies"""


def is_system_topic(topic: str) -> bool:
    """Return whether Java treats a topic as a system topic."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX)


def is_internal_topic(topic: str) -> bool:
    """Return whether only RocketMQ itself uses a topic; false for retries and replies."""
    # More than Java's list: later brokers and proxies created topics without adding them to it.
    return (
        topic in SYSTEM_TOPICS or topic == PROXY_HEARTBEATS or topic.startswith(_INTERNAL_PREFIXES)
    )


def has_own_messages(topic: str) -> bool:
    """Return whether RocketMQ itself writes the bodies of a topic's messages."""
    return is_internal_topic(topic) and not (
        topic in _WITH_USER_MESSAGES or topic.startswith(LMQ_PREFIX)
    )


def is_group_topic(topic: str) -> bool:
    """Return whether a topic is a group's retry or dead-letter topic, also in a namespace."""
    return RETRY_PREFIX in topic or DLQ_PREFIX in topic


def is_trace_topic(topic: str) -> bool:
    """Return whether a topic is a default trace topic."""
    return topic == TRACE_TOPIC or topic.startswith(TRACE_DATA_PREFIX)


def original_topic_of(topic: str | None, properties: dict[str, str]) -> str | None:
    """Return the original topic of a message, or None if unknown."""
    if not topic:
        return None
    if names_itself(topic):
        return topic
    # First: a delayed retry has its retry topic, not the original one, as REAL_TOPIC.
    property_topic = properties.get("RETRY_TOPIC") or properties.get("DLQ_ORIGIN_TOPIC")
    if property_topic:
        return property_topic
    real_topic = properties.get("REAL_TOPIC")
    if real_topic and real_topic != topic:
        return original_topic_of_name(real_topic)
    return original_topic_of_name(topic)


def group_of(topic: str) -> str:
    """Return the group of a `%RETRY%` or `%DLQ%` topic, with its namespace if present."""
    for mark in (RETRY_PREFIX, DLQ_PREFIX):
        space, prefix, group = topic.partition(mark)
        if prefix:
            return f"{space}{group}"
    return topic


def names_itself(topic: str) -> bool:
    """Return whether a topic is its own original topic."""
    return not topic.startswith("%") and topic not in _WAITING_TOPICS


def original_topic_of_name(topic: str | None, group: str | None = None) -> str | None:
    """Return the original topic from a topic name alone; for POP retry topics, from the part
    after `group`.
    """
    if not topic or topic in _WAITING_TOPICS:
        return None
    if not topic.startswith("%"):
        return topic
    if not topic.startswith(RETRY_PREFIX):
        return None
    rest = topic[len(RETRY_PREFIX) :]
    # POP joins group and topic with `_`, which both may contain, or in newer brokers with `+`.
    if group and rest.startswith(group) and rest[len(group) : len(group) + 1] in ("_", "+"):
        return rest[len(group) + 1 :] or None
    return rest.partition("+")[2] or None


INNER_PRODUCER: Final = "CLIENT_INNER_PRODUCER"
"""producer group of every Java client"""
TRACER_PREFIX: Final = "_INNER_TRACE_PRODUCER"
"""prefix of producer groups that send traces, to any topic"""
NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
"""valid names of topics and groups"""
