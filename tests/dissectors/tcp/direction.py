"""One direction of a connection, segment by segment, and what came out of it."""

from __future__ import annotations

import random

from dissectors.findings import Finding, FindingKind
from dissectors.tcp.reassembly import Data, Piece, StreamReassembler
from dissectors.tcp.segment import ACK, SYN, Segment
from tests.traffic.talk import START

STREAM = random.Random(11).randbytes(200_000)
M32 = 0xFFFFFFFF


class Direction:
    """A reassembler under test; what it gives is checked as it comes."""

    def __init__(self, isn: int | None = 1000, sequence: int = 1001) -> None:
        self.findings: list[Finding] = []
        self.machine = StreamReassembler(7, self.findings)
        self.sequence = sequence
        self.packet = 0
        self.now = START
        self.given: list[Piece] = []
        self.next = 0
        if isn is not None:
            self.sequence = isn + 1
            self.take(lambda out: self.machine.synchronize(self.segment(isn, b"", SYN), out))

    def segment(self, seq: int, data: bytes, flags: int = ACK, missing: int = 0) -> Segment:
        self.packet += 1
        surrounded = b"<<<" + data + b">>>"
        sequence = (((seq & M32) ^ 0x80000000) - 0x80000000) << 32  # signed, as the bytes are read
        return Segment(
            self.packet,
            self.now,
            b"",
            sequence,
            flags,
            0,
            surrounded,
            3,
            3 + len(data),
            missing,
        )

    def take(self, feed: object) -> list[Piece]:
        out: list[Piece] = []
        feed(out)  # type: ignore[operator]
        for piece in out:
            # In order and without a hole: a byte is given once, or is said to be missing.
            assert piece.offset == self.next
            self.next += piece.end - piece.start if isinstance(piece, Data) else piece.length
        self.given += out
        return out

    def receive(
        self, at: int, end: int, *, data: bytes | None = None, missing: int = 0, later: int = 1000
    ) -> list[Piece]:
        """The bytes `at` to `end` of the stream."""
        payload = STREAM[at:end] if data is None else data
        segment = self.segment(self.sequence + at, payload, missing=missing)
        self.now += later
        return self.take(lambda out: self.machine.receive(segment, out))

    def acknowledge(self, at: int) -> list[Piece]:
        """The other end says that it has all before `at`."""
        segment = self.segment(0, b"")
        segment.ack = (self.sequence + at) & M32
        self.now += 1000
        if not self.machine.waiting:
            return []
        return self.take(lambda out: self.machine.acknowledge(segment, out))

    def finish(self) -> list[Piece]:
        return self.take(self.machine.finish)

    @property
    def kinds(self) -> list[FindingKind]:
        return [info.kind for info in self.findings]

    @property
    def bytes(self) -> bytes:
        """All bytes that were given, gaps as nothing."""
        return b"".join(
            piece.data[piece.start : piece.end] for piece in self.given if isinstance(piece, Data)
        )

    @property
    def holes(self) -> list[tuple[int, int]]:
        return [(p.offset, p.length) for p in self.given if not isinstance(p, Data)]


def assert_real(direction: Direction, start: int = 0) -> None:
    """Every byte that was given stands in the stream where it is said to stand."""
    for piece in direction.given:
        if isinstance(piece, Data):
            at = piece.offset + start
            data = piece.data[piece.start : piece.end]
            assert data == STREAM[at : at + len(data)]
