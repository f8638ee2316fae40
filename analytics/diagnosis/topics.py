"""Topics that are RocketMQ's own: nobody is told that such a topic is missing or closed."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dissectors.remoting.topic_names import (
    DLQ_PREFIX,
    REPLY_SUFFIX,
    RETRY_PREFIX,
    is_internal_topic,
)

_OF_GROUPS: Final = (RETRY_PREFIX, DLQ_PREFIX)


@lru_cache(4096)
def is_own_topic(topic: str | None) -> bool:
    """Return whether a topic is RocketMQ's own, or there is none; retry topics are its own."""
    if not topic or topic.startswith(_OF_GROUPS) or topic.endswith(REPLY_SUFFIX):
        return True
    return is_internal_topic(topic)
