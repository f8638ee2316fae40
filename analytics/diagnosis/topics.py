"""RocketMQ's system topics, which are never reported as missing or closed."""

from __future__ import annotations

from functools import lru_cache

from dissectors.remoting.topic_names import REPLY_SUFFIX, is_group_topic, is_internal_topic


@lru_cache(4096)
def is_own_topic(topic: str | None) -> bool:
    """Return whether a topic is a system topic (including retry topics) or empty."""
    return (
        not topic
        or is_group_topic(topic)
        or topic.endswith(REPLY_SUFFIX)
        or is_internal_topic(topic)
    )
