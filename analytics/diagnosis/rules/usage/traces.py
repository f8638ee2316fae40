"""Detect message trace sends.

RocketMQ: TraceConstants, TopicValidator.RMQ_SYS_TRACE_TOPIC.
"""

from __future__ import annotations

from dissectors.remoting.topic_names import TRACER_PREFIX, is_trace_topic
from dissectors.rows.record import ExchangeRecord

from ...keys import Flow


def is_traced(row: ExchangeRecord | Flow) -> bool:
    """Return whether a send carries the trace of other messages."""
    topic = row.topic
    if topic is not None and is_trace_topic(topic):
        return True
    group = row.group
    return group is not None and group.startswith(TRACER_PREFIX)
