"""One stream of a call: what each end said on it so far, kept as bytes."""

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
"""what is wrong where nobody knows how many there were"""


class Taken(NamedTuple):
    """The messages that one end said, one behind the other."""

    body: bytes
    """each behind a prefix as gRPC has it, opened"""
    messages: int
    """how many"""
    wire: int
    """bytes of them on the wire"""
    missing: int
    problem: str | None
    place: StreamPlace | None
    """where the first one was complete"""


class HeldBytes:
    """Bytes that wait for the rest of their calls, of all streams of a connection."""

    def __init__(self) -> None:
        self.bytes = 0


class CallSide:
    """What one end said on a stream: kept as bytes, which take less than values."""

    __slots__ = (
        "_body",
        "_count",
        "_counted",
        "_header_held",
        "_held",
        "_missing",
        "_place",
        "_problem",
        "_wire",
        "cutter",
        "header_bytes",
        "headers",
    )

    def __init__(self, held: HeldBytes) -> None:
        """`held` is where what waits is counted."""
        self.cutter = MessageCutter()
        self.headers: Headers | None = None
        self.header_bytes = 0
        self._body = bytearray()
        self._count = self._wire = self._missing = 0
        self._problem: str | None = None
        self._place: StreamPlace | None = None
        self._held = held
        self._counted = 0
        self._header_held = 0

    @property
    def place(self) -> StreamPlace | None:
        """Where the first message was complete; None: there is none."""
        return self._place

    def receive(self, event: StreamEvent, budget: Budget) -> None:
        """Cut what comes into messages."""
        pieces: list[Piece] = []
        self.cutter.receive(event.data, event.missing, event.place, budget, pieces)
        for piece in pieces:
            self.add(piece)
        if self.cutter.broken:
            self._missing += event.missing
            self._problem = self._problem or BROKEN
        self._count_held()

    def lose(self) -> None:
        """Keep nothing more of it: where its messages begin is not known."""
        self.cutter.release()
        self._problem = self._problem or BROKEN
        self._count_held()

    def keep_headers(self, headers: Headers) -> None:
        """Count headers that are kept with the stream, besides those before."""
        self._header_held += bytes_of(headers)
        self._count_held()

    def drop_headers(self) -> None:
        """Keep no headers: the stream goes on without them."""
        self.headers = [] if self.headers is not None else None
        self._header_held = 0
        self._count_held()

    def forget(self) -> None:
        """Count nothing more of it: the stream has ended."""
        self._held.bytes -= self._counted
        self._counted = 0

    def add(self, piece: Piece) -> None:
        """Keep a message."""
        self._body += b"\0" + len(piece.data).to_bytes(4) + piece.data
        self._count += 1
        self._wire += PREFIX + piece.length
        self._missing += piece.missing
        self._problem = self._problem or piece.problem
        self._place = self._place or piece.place

    def take(self) -> Taken:
        """Return the messages since the last call."""
        taken = Taken(
            bytes(self._body), self._count, self._wire, self._missing, self._problem, self._place
        )
        self._body = bytearray()
        self._count = self._wire = self._missing = 0
        self._problem = self._place = None
        self._count_held()
        return taken

    def _count_held(self) -> None:
        held = self.cutter.held + len(self._body) + self._header_held
        self._held.bytes += held - self._counted
        self._counted = held


class CallStream:
    """One stream."""

    __slots__ = ("asked", "ending", "given", "method", "place", "said")

    def __init__(self, method: Method, place: StreamPlace, held: HeldBytes) -> None:
        self.method = method
        self.place = place
        """where it began"""
        self.asked = CallSide(held)
        self.given = CallSide(held)
        self.said = False
        """its request was given out"""
        self.ending: StreamEvent | None = None
        """what the server ended it by, which waits for the rest of the request"""


def single(taken: Taken) -> Iterator[Taken]:
    """Give messages one by one; what is missing is of the last one that came with a hole."""
    if taken.messages == 1:
        yield taken
        return
    at = 0
    while at + PREFIX <= len(taken.body):
        stop = at + PREFIX + int.from_bytes(taken.body[at + 1 : at + PREFIX])
        body = taken.body[at:stop]
        yield Taken(body, 1, len(body), 0, taken.problem, taken.place)
        at = stop
