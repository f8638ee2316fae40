"""State of one stream of a call: the messages of each side so far, kept as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ..budget import Budget
from ..http2.connection import StreamEvent
from ..http2.frame import StreamPlace
from ..http2.header_blocks import Headers, bytes_of
from .definition import Method
from .pieces import PREFIX, MessageCutter, Piece

BROKEN: Final = "messages are missing"
"""problem if the number of missing messages is unknown"""


class Taken(NamedTuple):
    """Consecutive messages of one side."""

    body: bytes
    """the decompressed messages, each behind a gRPC length prefix"""
    messages: int
    """number of messages"""
    wire: int
    """their bytes on the wire"""
    missing: int
    problem: str | None
    place: StreamPlace | None
    """where the first message was complete"""


class HeldBytes:
    """Bytes held for incomplete calls, over all streams of a connection."""

    def __init__(self) -> None:
        self.bytes = 0


class CallSide:
    """One side of a stream; its messages are kept as bytes, which take less memory than values."""

    __slots__ = (
        "_body",
        "_count",
        "_counted",
        "_header_held",
        "_held",
        "_missing",
        "_problem",
        "_wire",
        "cutter",
        "header_bytes",
        "headers",
        "last",
        "place",
    )

    def __init__(self, held: HeldBytes) -> None:
        """`held` counts the bytes that are kept."""
        self.cutter = MessageCutter()
        self.headers: Headers | None = None
        self.header_bytes = 0
        self._body = bytearray()
        self._count = self._wire = self._missing = 0
        self._problem: str | None = None
        self.place: StreamPlace | None = None
        """where the first message was complete"""
        self.last: StreamPlace | None = None
        """where the last message was complete"""
        self._held = held
        self._counted = 0
        self._header_held = 0

    def receive(self, event: StreamEvent, budget: Budget) -> None:
        """Cut incoming bytes into messages."""
        pieces: list[Piece] = []
        self.cutter.receive(event.data, event.missing, event.place, budget, pieces)
        for piece in pieces:
            self.add(piece)
        if self.cutter.broken:  # otherwise the messages count their own missing bytes
            self._missing += event.missing
            self._problem = self._problem or BROKEN
        self._count_held()

    def lose(self) -> None:
        """Drop the buffered bytes: message boundaries are lost."""
        self.cutter.release()
        self._problem = self._problem or BROKEN
        self._count_held()

    def keep_headers(self, headers: Headers) -> None:
        """Count headers that are kept with the stream."""
        self._header_held += bytes_of(headers)
        self._count_held()

    def drop_headers(self) -> None:
        """Drop the kept headers; the stream continues without them."""
        self.headers = [] if self.headers is not None else None
        self._header_held = 0
        self._count_held()

    def forget(self) -> None:
        """Release the bytes of a stream that has ended."""
        self._held.bytes -= self._counted
        self._counted = 0

    def add(self, piece: Piece) -> None:
        """Keep a message."""
        # With a prefix as on the wire, but decompressed and without what is missing.
        self._body += b"\0" + len(piece.data).to_bytes(4) + piece.data
        self._count += 1
        self._wire += PREFIX + piece.length
        self._missing += piece.missing
        self._problem = self._problem or piece.problem
        self.place = self.place or piece.place
        self.last = piece.place

    def take(self) -> Taken:
        """Return the messages since the last call."""
        taken = Taken(
            bytes(self._body), self._count, self._wire, self._missing, self._problem, self.place
        )
        self._body = bytearray()
        self._count = self._wire = self._missing = 0
        self._problem = self.place = self.last = None
        self._count_held()
        return taken

    def _count_held(self) -> None:
        held = self.cutter.held + len(self._body) + self._header_held
        self._held.bytes += held - self._counted
        self._counted = held


class CallStream:
    """One HTTP/2 stream of a call."""

    __slots__ = ("client", "ending", "method", "place", "requested", "server", "waiting")

    def __init__(self, method: Method, place: StreamPlace, held: HeldBytes) -> None:
        self.method = method
        self.place = place
        """where it began"""
        self.client = CallSide(held)
        self.server = CallSide(held)
        self.requested = False
        """its request was emitted"""
        self.waiting = 0
        """telemetry requests of the client without a response"""
        self.ending: StreamEvent | None = None
        """the event with which the server ended the stream before the request was complete"""


def single(taken: Taken) -> Iterator[Taken]:
    """Yield messages one by one; missing bytes count for the last message with a hole."""
    if taken.messages == 1:
        yield taken
        return
    at = 0
    while at + PREFIX <= len(taken.body):
        stop = at + PREFIX + int.from_bytes(taken.body[at + 1 : at + PREFIX])
        body = taken.body[at:stop]
        yield Taken(body, 1, len(body), 0, taken.problem, taken.place)
        at = stop
