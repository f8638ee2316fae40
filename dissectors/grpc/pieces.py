"""Length-prefixed messages: how one direction of a call is cut into them, compressed ones opened.

Rules: of a message only what was captured is kept, up to its first hole and no more than
`LARGEST`. What compressed messages become is bounded by a budget for all of a connection.
gRPC over HTTP/2: Length-Prefixed-Message, Message-Encoding.
"""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

from ..budget import Budget
from ..http2.frame import StreamPlace

PREFIX: Final = 5
"""bytes before a message: whether it is compressed, and its length"""
LARGEST: Final = 16 * 1024 * 1024
"""bytes of one message that are kept: four times what a proxy takes unless it is told otherwise"""
_GZIP: Final = 31
"""window bits of zlib that take a gzip header and nothing else"""


class Piece(NamedTuple):
    """One message of a call."""

    data: bytes
    """the message, opened, as far as it was captured"""
    length: int
    """its bytes on the wire"""
    missing: int
    """bytes that the capture does not have, or that were not kept"""
    problem: str | None
    """why it is not all; None: it is"""
    place: StreamPlace
    """where it was complete"""


class MessageCutter:
    """Cuts what one end says in a call into messages."""

    __slots__ = ("_held", "_lost", "_passed", "_wanted", "broken", "encoding")

    def __init__(self) -> None:
        self.encoding = ""
        """`grpc-encoding`, by which messages are compressed"""
        self.broken = False
        """where messages begin is not known any more"""
        self._held = bytearray()
        self._wanted = PREFIX
        self._lost = 0
        self._passed = 0

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their message."""
        return len(self._held)

    def receive(
        self, data: bytes, missing: int, place: StreamPlace, budget: Budget, out: list[Piece]
    ) -> None:
        """Append the messages that are complete with these bytes, behind which some are missing."""
        if self.broken:
            return
        at = 0
        while True:
            whole = len(self._held) + self._lost + self._passed
            take = min(self._wanted - whole, len(data) - at)
            if self._lost or len(self._held) >= LARGEST:
                self._passed += take
            else:
                self._held += data[at : at + take]
            at += take
            if whole + take < self._wanted:
                break
            if self._wanted == PREFIX:
                self._wanted += int.from_bytes(self._held[1:PREFIX])
                if self._wanted > PREFIX:
                    continue
            self._end(place, budget, out)
        if missing:
            self._lose(missing, place, budget, out)

    def release(self) -> None:
        """Let go what is held; where messages begin is not known any more."""
        self._held = bytearray()
        self.broken = True

    def _end(self, place: StreamPlace, budget: Budget, out: list[Piece]) -> None:
        data = bytes(self._held[PREFIX:])
        length = self._wanted - PREFIX
        missing = self._lost + self._passed
        problem = None
        if self._held[0] and not missing:
            data, problem = opened(data, self.encoding, budget)
        out.append(Piece(data, length, missing, problem, place))
        self._held = bytearray()
        self._wanted = PREFIX
        self._lost = self._passed = 0

    def _lose(self, missing: int, place: StreamPlace, budget: Budget, out: list[Piece]) -> None:
        whole = len(self._held) + self._lost + self._passed
        if self._wanted == PREFIX or whole + missing > self._wanted:
            self.release()
            return
        self._lost += missing
        if whole + missing == self._wanted:
            self._end(place, budget, out)


def opened(data: bytes, encoding: str, budget: Budget) -> tuple[bytes, str | None]:
    """Return a compressed message opened, as far as `budget` has room, and what is wrong."""
    if encoding not in ("gzip", "deflate"):
        return b"", f"compressed by {encoding or 'nothing that was named'}"
    budget.earn(len(data))
    room = min(budget.room, LARGEST)
    unpacker = zlib.decompressobj(_GZIP if encoding == "gzip" else zlib.MAX_WBITS)
    try:
        made = unpacker.decompress(data, room) if room else b""
    except zlib.error as error:
        return b"", f"not {encoding}: {error}"
    budget.spend(len(made))
    if not unpacker.eof:
        return made, "it ends early" if len(made) < room else "it becomes too large"
    return made, None
