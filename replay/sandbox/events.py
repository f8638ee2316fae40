"""Events of a sandbox: one small record per event."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, Protocol


class EventKind(StrEnum):
    """Kinds of events."""

    LISTENING = "listening"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    REFUSED = "refused"
    BAD_BYTES = "bad bytes"
    CLIENT = "client"
    CLIENT_GONE = "client gone"
    TOPIC = "topic"
    SENT = "sent"
    PULLED = "pulled"
    REQUEST = "request"
    ANSWERED = "answered"
    INJECTED = "fault"
    WINDOW = "window"
    CHECK = "check"
    DELIVERED = "delivered"
    DEAD_LETTER = "dead letter"
    STORE_FULL = "store full"
    STORE_DAMAGED = "store damaged"
    INTERNAL = "internal error"


class SandboxEvent(NamedTuple):
    """An event of the sandbox."""

    at_ms: int
    """when, ms since the epoch"""
    kind: EventKind
    server: str
    """`namesrv` or the broker's name"""
    peer: str = ""
    """address of the client, `ip:port`"""
    detail: str = ""
    """for people; may hold text from the network"""
    code: int | None = None
    """request code"""
    topic: str = ""
    messages: int = 1
    """how many, of sends and pulls"""
    response: int | None = None
    """response code"""


EventSink = Callable[[SandboxEvent], None]
"""Called in the sandbox's own thread; it must return at once."""


class EventPeer(Protocol):
    """The connection that an event is about."""

    peer: str
    """address of the client, `ip:port`"""


class Events:
    """Emits the events of one server."""

    def __init__(self, sink: EventSink | None, now_ms: Callable[[], int], server: str) -> None:
        self.server = server
        self._sink = sink
        self._now_ms = now_ms

    def tell(
        self,
        kind: EventKind,
        connection: EventPeer | None = None,
        detail: str = "",
        *,
        code: int | None = None,
        topic: str = "",
        count: int = 1,
        response: int | None = None,
    ) -> None:
        """Emit an event; see `SandboxEvent`."""
        if self._sink is not None:
            peer = connection.peer if connection is not None else ""
            at = self._now_ms()
            event = SandboxEvent(at, kind, self.server, peer, detail, code, topic, count, response)
            self._sink(event)
