"""The topics that clients send their message traces to, unless they are told another one.

Apart from the bodies of traces, so that who only tells them apart need not load all decoders.
RocketMQ: TopicValidator.RMQ_SYS_TRACE_TOPIC, TraceConstants.TRACE_TOPIC_PREFIX.
"""

from __future__ import annotations

from typing import Final

TRACE_TOPICS: Final = ("RMQ_SYS_TRACE_TOPIC", "rmq_sys_TRACE_DATA_")
"""The trace topic, and the beginning of its name with access channel CLOUD."""


def is_trace_topic(topic: str) -> bool:
    """Whether clients send their traces to this topic, unless they are told another one."""
    return topic == TRACE_TOPICS[0] or topic.startswith(TRACE_TOPICS[1])
