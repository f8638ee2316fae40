"""A capture that passes as if an interface gave it: by its own times, under a clock of the test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dissectors.live.interface import pcap_head, pcap_records
from dissectors.live.packet_ring import RingPacket
from dissectors.tcp.capture import CaptureReader, Packet
from dissectors.tcp.formats import PCAP_HEADER, reader_of
from dissectors.tcp.source import BytesSource, source_of

STEP = 200_000_000
"""ns between two looks at what came"""
LONGEST = 60_000_000_000
"""ns of a pause that is waited for; a longer one is made so long"""


class Passing:
    """A `Source` that gives packets when it is their time, and empty chunks in between."""

    compression = None
    size = None
    problem: str | None = None

    def __init__(self, packets: Sequence[Packet], name: str = "lo", after: int = 0) -> None:
        """`after`: ns that the capture goes on without packets."""
        self.name = name
        self.bytes_read = 0
        self.now = packets[0].ts
        """the steady clock, in ns; by chance it shows the time of the capture"""
        self._packets = sorted(packets, key=lambda one: one.ts)
        self._after = after

    def chunks(self) -> Iterator[bytes]:
        """Yield what came in each step."""
        yield pcap_head(self._packets[0].linktype)
        at = 0
        while at < len(self._packets):
            self.now = max(self.now + STEP, self._packets[at].ts - LONGEST)
            came = []
            while at < len(self._packets) and self._packets[at].ts <= self.now:
                came.append(_in_ring(self._packets[at]))
                at += 1
            yield pcap_records(came)
        for _ in range(self._after // STEP):
            self.now += STEP
            yield b""

    def close(self) -> None:
        """Nothing is open."""


def _in_ring(packet: Packet) -> RingPacket:
    return RingPacket(packet.ts, bytes(packet.data[packet.start : packet.end]), packet.length)


def packets_of(data: bytes) -> list[Packet]:
    """Return the packets of a capture in memory."""
    return _packets_in(BytesSource("x.pcap", data).chunks())


def packets_in(name: str) -> list[Packet]:
    """Return the packets of a capture file."""
    source = source_of(name)
    try:
        return _packets_in(source.chunks())
    finally:
        source.close()


def _packets_in(chunks: Iterator[bytes]) -> list[Packet]:
    found: list[Packet] = []
    reader: CaptureReader | None = None
    head = b""
    for chunk in chunks:
        if reader is not None:
            found += reader.receive(chunk)
            continue
        head += chunk
        if len(head) >= PCAP_HEADER:
            reader = reader_of(0, head)
            assert reader is not None
            found += reader.receive(b"")
    if reader is not None:
        found += reader.finish()
    return found
