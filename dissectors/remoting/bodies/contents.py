"""Messages written by RocketMQ itself: traces, POP check points and acks, offset events.

Recognised by topic and tag. Application messages are left alone. RocketMQ: TopicValidator,
PopAckConstants, TransactionalMessageUtil, OffsetMovedEvent.
"""

from __future__ import annotations

from typing import Final

from ...foreign import integer_of
from ..fastjson.codec import decode_json
from ..messages.message import StoredMessage
from ..topic_names import OFFSET_MOVED_TOPIC, OP_HALF_TOPIC, REVIVE_PREFIX, is_trace_topic
from .body import Body
from .json_body import typed_body
from .trace import FORMS, decode_trace

TRACE: Final = "trace-records"
OFFSETS: Final = "queue-offsets"

_REVIVE_CLASSES: Final = {"ck": "PopCheckPoint", "ack": "AckMsg", "bAck": "BatchAckMsg"}
"""Tag → class of a record in the revive topic."""
_OWN_TOPICS: Final = frozenset((OP_HALF_TOPIC, OFFSET_MOVED_TOPIC))
_TRACE_STARTS: Final = tuple(f"{kind}\x01".encode() for kind in FORMS)


def is_own_topic(topic: str) -> bool:
    """Return whether RocketMQ itself writes messages of this topic."""
    return is_trace_topic(topic) or topic.startswith(REVIVE_PREFIX) or topic in _OWN_TOPICS


def is_trace(data: bytes) -> bool:
    """Return whether a message body begins like a trace."""
    return data.startswith(_TRACE_STARTS)


def content_of(message: StoredMessage, data: bytes) -> Body | None:
    """Decode the (decompressed) body of a message of RocketMQ itself, or return None."""
    topic = message.topic
    # Clients may send traces to a topic of their own, so that the bytes decide, too.
    if is_trace_topic(topic) or is_trace(data):
        trace = decode_trace(data)
        return Body(TRACE, list(trace.records), problem=trace.problem)
    if topic.startswith(REVIVE_PREFIX):
        name = _REVIVE_CLASSES.get(message.tags or "")
        return typed_body(name, decode_json(data)) if name else None
    if topic == OFFSET_MOVED_TOPIC:
        return typed_body("OffsetMovedEvent", decode_json(data))
    if topic == OP_HALF_TOPIC:
        return _offsets_of(data)
    return None


def _offsets_of(data: bytes) -> Body | None:
    """Decode queue offsets of finished half messages, joined with commas."""
    texts = [text for text in data.decode("utf-8", "replace").split(",") if text]
    offsets = [integer_of(text) for text in texts]
    return None if None in offsets or not offsets else Body(OFFSETS, offsets)
