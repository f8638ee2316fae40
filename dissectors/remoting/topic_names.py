"""Names of topics that mean something to RocketMQ: its own topics, retries, dead letters, replies.

Rules: what Java calls a system topic (`is_system_topic`) is a part of what no application sends to
(`is_internal_topic`): brokers and proxies have made topics of their own since without adding them
to that list.
RocketMQ: TopicValidator, MixAll, TraceConstants, LiteUtil, PopAckConstants, TimerMessageStore,
HeartbeatSyncer.
"""

from __future__ import annotations

from typing import Final

RETRY_PREFIX: Final = "%RETRY%"
"""of the topic of a group's retries"""
DLQ_PREFIX: Final = "%DLQ%"
"""of the topic of a group's dead letters"""
LMQ_PREFIX: Final = "%LMQ%"
"""of queues that a broker makes of another topic's messages"""
LITE_PREFIX: Final = f"{LMQ_PREFIX}$"
"""of those that are lite topics"""
REPLY_SUFFIX: Final = "_REPLY_TOPIC"
"""of the topic that answers of a cluster's consumers go to"""

DEFAULT_TOPIC: Final = "TBW102"
"""The topic whose route a producer takes for a topic that has none (createTopicKey)."""
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
"""messages that wait for their delay level"""
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
"""messages that wait for their time"""
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
"""messages that wait for the end of their transaction"""
OP_HALF_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
"""which of these are done"""
ROCKSDB_HALF_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_OP_HALF_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
"""of brokers of 5.5 that keep transactions in RocksDB"""
CHECKED_OUT_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
"""messages whose transaction was checked too often"""
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC: Final = "OFFSET_MOVED_EVENT"
"""what a broker says when it moves an offset"""
REVIVE_PREFIX: Final = "rmq_sys_REVIVE_LOG_"
"""of the topic of what was popped and acknowledged"""
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
"""where clients send their traces, unless they are told another topic"""
TRACE_DATA_PREFIX: Final = "rmq_sys_TRACE_DATA_"
"""of that topic with access channel CLOUD"""

CHECKPOINT_TOPIC: Final = "CHECKPOINT_TOPIC"
"""of the checkpoint that RocksDB is restored from"""

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
"""Topics that Java lists as the system's, besides those that start with `SYSTEM_PREFIX`."""
_INTERNAL_PREFIXES: Final = (SYSTEM_PREFIX, SYSTEM_PREFIX.upper(), LMQ_PREFIX)
PROXY_HEARTBEATS: Final = "DefaultHeartBeatSyncerTopic"
"""what proxies tell each other of their clients"""


def is_system_topic(topic: str) -> bool:
    """Return whether Java takes a topic for one of the system's."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX)


def is_internal_topic(topic: str) -> bool:
    """Return whether only RocketMQ itself has a use for a topic; retries and replies are not so."""
    return (
        topic in SYSTEM_TOPICS or topic == PROXY_HEARTBEATS or topic.startswith(_INTERNAL_PREFIXES)
    )


def is_trace_topic(topic: str) -> bool:
    """Return whether clients send their traces to a topic, unless they are told another one."""
    return topic == TRACE_TOPIC or topic.startswith(TRACE_DATA_PREFIX)
