"""The streams of a capture and their frames, cut the simple way: what oracles are given.

Only for captures without holes: a stream's bytes from its SYN on, then length prefix by length
prefix. Nothing of `dissectors.remoting` or `dissectors.conversations.conversation` is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dissectors.tcp.formats import reader_of
from dissectors.tcp.reassembly import Data, Gap, StreamReassembler
from dissectors.tcp.segment import SYN, Segment
from dissectors.tcp.segment_reader import SegmentReader
from dissectors.tcp.source import FileSource


class Stream(NamedTuple):
    """One direction of a connection."""

    source: str
    destination: str
    data: bytes
    whole: bool
    """it starts with a SYN and has no hole"""


class _Side:
    def __init__(self, number: int) -> None:
        self.reassembler = StreamReassembler(number, [])
        self.pieces: list[Data | Gap] = []


def segments_of(path: Path) -> Iterator[Segment]:
    """All TCP segments with payload, SYN, FIN or RST."""
    source = FileSource(str(path))
    data = b"".join(source.chunks())
    source.close()
    reader = reader_of(0, data)
    assert reader is not None, path
    packets = reader.receive(b"")
    segments = SegmentReader()
    for packet in packets:
        segment = segments.segment_of(packet)
        if segment is not None:
            yield segment


def streams_of(path: Path) -> list[Stream]:
    """The streams of a capture in order of appearance; ports are not used twice in samples."""
    sides: dict[bytes, _Side] = {}
    for segment in segments_of(path):
        side = sides.setdefault(segment.key, _Side(len(sides)))
        if segment.flags & SYN:
            side.reassembler.synchronize(segment, side.pieces)
            segment.seq = (segment.seq + 1) & 0xFFFFFFFF
        if segment.end > segment.start or segment.missing:
            side.reassembler.receive(segment, side.pieces)
    found: list[Stream] = []
    for key, side in sides.items():
        side.reassembler.finish(side.pieces)
        data = b"".join(
            piece.data[piece.start : piece.end] for piece in side.pieces if isinstance(piece, Data)
        )
        whole = side.reassembler.isn >= 0 and side.reassembler.gaps == 0
        found.append(Stream(_end(key, 0), _end(key, 1), data, whole))
    return found


def frames_of(stream: Stream) -> list[bytes]:
    """The frames of a whole stream, length prefix included, up to where it is not RocketMQ."""
    frames: list[bytes] = []
    at = 0
    data = stream.data
    while at + 8 <= len(data):
        total = int.from_bytes(data[at : at + 4], "big")
        if total < 6 or total > 16 << 20 or data[at + 4] > 1:
            break
        if at + 4 + total > len(data):
            break
        frames.append(data[at : at + 4 + total])
        at += 4 + total
    return frames


def _end(key: bytes, which: int) -> str:
    size = 4 if len(key) == 12 else 16
    address = key[which * size : which * size + size]
    port = int.from_bytes(key[2 * size + 2 * which : 2 * size + 2 * which + 2], "big")
    if size == 4:
        return ".".join(str(byte) for byte in address) + f":{port}"
    import ipaddress

    return f"[{ipaddress.IPv6Address(address).compressed}]:{port}"
