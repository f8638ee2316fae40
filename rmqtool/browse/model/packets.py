"""The packets of chosen exchanges, and no others, from the captures into one pcapng file.

Rules: the captures are read twice: to find the packets of each frame, and to write them. In
decrypted streams (TLS) only the packet that completed the frame is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dissectors.tcp.capture import Packet
from dissectors.tcp.decompression import MOST_TIMES
from dissectors.tcp.formats import PCAP_HEADER, reader_of
from dissectors.tcp.pcapng_writer import PcapngWriter
from dissectors.tcp.segment import SYN
from dissectors.tcp.segment_reader import SegmentReader
from dissectors.tcp.source import StoredSource, sources_of

from .export import new_file
from .frames import KeptExchange, KeptFrame

_PREFIX = 8
"""bytes of a frame before its header: two lengths, of which the second has the type in it"""
_WRAP = 1 << 32
"""TCP numbers bytes modulo this"""


def packets_in(names: Sequence[str], max_ratio: int = MOST_TIMES) -> Iterator[Packet]:
    """Yield all packets of captures, with the ids that a decode run assigns.

    `max_ratio`: bytes that each byte of a compressed capture may become.
    """
    for index, source in enumerate(sources_of(names)):
        if isinstance(source, StoredSource):
            source.max_ratio = max_ratio
        head, reader = b"", None
        try:
            for chunk in source.chunks():
                if reader is not None:
                    yield from reader.receive(chunk)
                    continue
                head += chunk
                if len(head) >= PCAP_HEADER:
                    reader = reader_of(index, head)
                    if reader is None:
                        break
                    yield from reader.receive(b"")
            if reader is not None:
                yield from reader.finish(source.problem)
        finally:
            source.close()


class _Direction:
    """The frames to find in one direction."""

    def __init__(self) -> None:
        self.frames: list[KeptFrame] = []
        self.base: int | None = None
        """sequence number of the first byte, from which frames have their offsets"""
        self.isn: int | None = None
        """initial sequence number, which tells a new connection from a repeated SYN"""
        self.found: dict[int, set[int]] = {}
        """place of a frame → packets that may carry it"""

    def receive(self, packet: int, seq: int, length: int) -> Iterator[int]:
        """Add a segment; yield the packets of the frames that it completes."""
        if self.base is None:
            self.base = seq
        start = (seq - self.base) % _WRAP
        for place, frame in enumerate(self.frames):
            if packet > frame.packet:  # the frame was complete
                continue
            first = frame.offset % _WRAP
            size = _PREFIX + len(frame.header) + frame.body_length
            # The frame, the segment, or both may cross the wrap.
            if (start - first) % _WRAP < size or (first - start) % _WRAP < length:
                self.found.setdefault(place, set()).add(packet)
            if packet == frame.packet:
                yield packet
                yield from self.found.pop(place, ())


def packet_ids(names: Sequence[str], chosen: Sequence[KeptExchange], max_ratio: int) -> set[int]:
    """Return the ids of the packets that carried these exchanges."""
    directions: dict[bytes, _Direction] = {}
    last = -1
    for exchange in chosen:
        for frame in (exchange.request, exchange.response):
            if frame is not None:
                directions.setdefault(frame.key, _Direction()).frames.append(frame)
                last = max(last, frame.packet)
    segments = SegmentReader()
    ids: set[int] = set()
    for packet in packets_in(names, max_ratio):
        # Ids only grow, so the rest of the captures need not be read.
        if packet.packet > last:
            break
        segment = segments.segment_of(packet)
        direction = None if segment is None else directions.get(segment.key)
        if segment is None or direction is None:
            continue
        if segment.flags & SYN and segment.seq != direction.isn:
            direction.isn = segment.seq
            direction.base = (segment.seq + 1) % _WRAP
            direction.found.clear()  # of another connection with the same ports
        length = segment.end - segment.start + segment.missing
        if length:
            ids.update(direction.receive(packet.packet, segment.seq, length))
    return ids | {
        sought.packet
        for of in directions.values()
        for sought in of.frames
        if sought.packet not in ids
    }


def write_packets(
    names: Sequence[str],
    chosen: Sequence[KeptExchange],
    path: Path,
    max_ratio: int = MOST_TIMES,
) -> int:
    """Write the packets of exchanges; return how many. Raise OSError, CaptureError."""
    ids = packet_ids(names, chosen, max_ratio)
    writer: PcapngWriter | None = None
    with new_file(path) as file:
        for packet in packets_in(names, max_ratio):
            if packet.packet in ids:
                if writer is None:
                    writer = PcapngWriter(file, packet.linktype)
                data = packet.data[packet.start : packet.end]
                writer.write(packet.ts, data, packet.length)
    return 0 if writer is None else writer.packets
