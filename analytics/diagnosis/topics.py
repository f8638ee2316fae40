"""Topics that are RocketMQ's own: nobody is told that such a topic is missing or closed.

RocketMQ: TopicValidator, MixAll, KeyBuilder.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

DEFAULT_TOPIC: Final = "TBW102"
"""The topic whose route a producer takes for a topic that has none (createTopicKey)."""

_PREFIXES: Final = ("%RETRY%", "%DLQ%", "%LMQ%", "rmq_sys_", "RMQ_SYS_")
_SUFFIX: Final = "_REPLY_TOPIC"
_NAMES: Final = frozenset(
    (
        DEFAULT_TOPIC,
        "SCHEDULE_TOPIC_XXXX",
        "BenchmarkTest",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "CHECKPOINT_TOPIC",
        "DefaultHeartBeatSyncerTopic",
    )
)


@lru_cache(4096)
def is_own_topic(topic: str | None) -> bool:
    """Return whether a topic is RocketMQ's own, or there is none; retry topics are its own."""
    return not topic or topic in _NAMES or topic.startswith(_PREFIXES) or topic.endswith(_SUFFIX)
