"""Length-prefixed messages: cut one direction of a call into messages and decompress them.

Rules: a message is kept up to its first hole and `LARGEST` bytes. Decompressed bytes of a
connection share a budget. gRPC over HTTP/2: Length-Prefixed-Message, Message-Encoding.
"""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

from ..budget import Budget
from ..http2.frame import StreamPlace

PREFIX: Final = 5
"""bytes of a message prefix: compression flag and length"""
LARGEST: Final = 16 * 1024 * 1024
"""bytes kept of one message: four times the default limit of a proxy"""
_GZIP: Final = 31
"""window bits of zlib that accept only a gzip header"""


class Piece(NamedTuple):
    """One message of a call."""

    data: bytes
    """the captured part, decompressed"""
    length: int
    """its bytes on the wire"""
    missing: int
    """bytes not captured or not kept"""
    problem: str | None
    """why the message is incomplete, or None"""
    place: StreamPlace
    """where it was complete"""


class MessageCutter:
    """Cuts one side of a call into messages."""

    __slots__ = ("_held", "_lost", "_passed", "_wanted", "broken", "encoding")

    def __init__(self) -> None:
        self.encoding = ""
        """`grpc-encoding` of compressed messages"""
        self.broken = False
        """message boundaries are lost"""
        self._held = bytearray()
        self._wanted = PREFIX
        self._lost = 0
        self._passed = 0

    @property
    def held(self) -> int:
        """Bytes held of an incomplete message."""
        return len(self._held)

    def receive(
        self, data: bytes, missing: int, place: StreamPlace, budget: Budget, out: list[Piece]
    ) -> None:
        """Append the messages that these bytes complete; `missing` bytes follow them."""
        if self.broken:
            return
        at = 0
        while True:
            whole = len(self._held) + self._lost + self._passed
            take = min(self._wanted - whole, len(data) - at)
            if self._lost or len(self._held) >= LARGEST:  # counted, not kept
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
        """Drop the held bytes; message boundaries are lost."""
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
        if self._wanted == PREFIX or whole + missing > self._wanted:  # a prefix is in the hole
            self.release()
            return
        self._lost += missing
        if whole + missing == self._wanted:
            self._end(place, budget, out)


def opened(data: bytes, encoding: str, budget: Budget) -> tuple[bytes, str | None]:
    """Decompress a message as far as `budget` allows; return it and its problem."""
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
