"""What two ends of a TCP connection say, as segments with the numbers that real stacks write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
START = 1_795_168_800_000_000_000
"""2026-11-20T10:00:00Z in nanoseconds"""
MICROSECOND = 1000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


@dataclass(frozen=True)
class End:
    """Address and port of one end."""

    address: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


CLIENT = End("10.0.0.5", 51234)
BROKER = End("10.0.0.1", 10911)


@dataclass(frozen=True, repr=False)
class Tcp:
    """One TCP segment on its way."""

    src: End
    dst: End
    seq: int
    ack: int
    flags: int
    payload: bytes
    ts: int
    window: int = 502
    options: bytes = b""

    def __repr__(self) -> str:
        flags = "".join(
            name for bit, name in ((SYN, "S"), (FIN, "F"), (RST, "R")) if self.flags & bit
        )
        start, size = self.payload[:12].hex(" "), len(self.payload)
        return f"{self.src}>{self.dst} {flags} {self.seq}+{size} ack {self.ack} {start}"


class Talk:
    """A TCP connection; `segments` is what a capture between the ends sees."""

    def __init__(
        self,
        client: End = CLIENT,
        server: End = BROKER,
        *,
        isn: tuple[int, int] = (1000, 5000),
        at: int = START,
        step: int = 100 * MICROSECOND,
        mss: int = 1448,
    ) -> None:
        self.ends = (client, server)
        self.next = list(isn)
        self.now = at
        self.step = step
        self.mss = mss
        self.segments: list[Tcp] = []

    def add(self, side: int, flags: int, payload: bytes = b"", seq: int | None = None) -> Tcp:
        """`side` 0 is the client."""
        segment = Tcp(
            self.ends[side],
            self.ends[1 - side],
            (self.next[side] if seq is None else seq) & 0xFFFFFFFF,
            self.next[1 - side] & 0xFFFFFFFF if flags & ACK else 0,
            flags,
            payload,
            self.now,
        )
        self.segments.append(segment)
        self.now += self.step
        return segment

    def open(self) -> Talk:
        """The three packets of the handshake."""
        self.add(0, SYN)
        self.next[0] += 1
        self.add(1, SYN | ACK)
        self.next[1] += 1
        self.add(0, ACK)
        return self

    def say(
        self, side: int, data: bytes, *, sizes: Iterable[int] = (), acked: bool = False
    ) -> Talk:
        """Data cut into segments: of `sizes` as far as they reach, then of the MSS."""
        cuts = iter(sizes)
        at = 0
        while at < len(data):
            size = max(next(cuts, self.mss), 1)
            part = data[at : at + size]
            self.add(side, PSH | ACK, part)
            self.next[side] += len(part)
            at += len(part)
        if acked:
            self.ack(1 - side)
        return self

    def ack(self, side: int) -> Talk:
        """A pure acknowledgement."""
        self.add(side, ACK)
        return self

    def keep_alive(self, side: int, byte: bytes = b"") -> Talk:
        """A probe with the number before the next one; some stacks put a byte into it."""
        self.add(side, ACK, byte, self.next[side] - 1)
        return self

    def wait(self, duration: int) -> Talk:
        """Nothing is said for so many nanoseconds."""
        self.now += duration
        return self

    def fin(self, side: int) -> Talk:
        """One end closes its direction."""
        self.add(side, FIN | ACK)
        self.next[side] += 1
        return self

    def close(self) -> Talk:
        """Both ends close."""
        return self.fin(0).fin(1).ack(0)

    def reset(self, side: int, payload: bytes = b"") -> Talk:
        """One end resets the connection."""
        self.add(side, RST | ACK, payload)
        return self


def retimed(segments: Iterable[Tcp], at: int = START, step: int = 100 * MICROSECOND) -> list[Tcp]:
    """The segments in this order, captured one after the other."""
    return [replace(segment, ts=at + index * step) for index, segment in enumerate(segments)]


def merged(*talks: Talk) -> list[Tcp]:
    """What a capture of several connections sees, in order of time."""
    everything = [segment for talk in talks for segment in talk.segments]
    return sorted(everything, key=lambda segment: segment.ts)
