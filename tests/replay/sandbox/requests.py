"""Requests to a sandbox broker that several tests make."""

from __future__ import annotations

from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.records import decode_messages

from .talk import Reply, Talk, pull_fields

TOPIC = "Orders"


def messages_of(reply: Reply) -> tuple[StoredMessage, ...]:
    decoded = decode_messages(reply.body)
    assert decoded.problems == ()
    return decoded.messages


def read(broker: Talk, topic: str, queue_id: int = 0, offset: int = 0) -> list[StoredMessage]:
    """The messages of a queue; waits a moment for the first."""
    reply = broker.ask(11, pull_fields(topic, queue_id, offset, hold_ms=3000))
    return list(messages_of(reply)) if reply.code == 0 else []
