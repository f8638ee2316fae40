"""Packets read to segments."""

from __future__ import annotations

from dataclasses import replace

from dissectors.tcp.capture import Packet
from dissectors.tcp.segment import Segment, reversed_key, source_of
from dissectors.tcp.segment_reader import SegmentReader
from tests.traffic.talk import ACK, PSH, START, End, Tcp

V4 = Tcp(End("10.0.0.5", 51234), End("10.0.0.1", 10911), 0x89ABCDEF, 0xFEDCBA98, PSH | ACK,
         b"payload", START, 777)  # fmt: skip
V6 = replace(V4, src=End("2001:db8::5", 51234), dst=End("2001:db8::1", 10911))


def read(
    data: bytes,
    linktype: int = 1,
    *,
    length: int | None = None,
    reader: SegmentReader | None = None,
) -> Segment | None:
    """The segment of a packet that lies in the middle of other bytes."""
    size = len(data) if length is None else length
    packet = Packet(42, START, linktype, b"\xee" * 9 + data + b"\xdd" * 9, 9, 9 + len(data), size)
    return (reader or SegmentReader()).segment_of(packet)


def assert_is(found: Segment | None, wanted: Tcp) -> None:
    """Every field of a segment, whole."""
    assert found is not None
    assert (found.packet, found.ts) == (42, START)
    assert (found.seq, found.ack, found.flags) == (wanted.seq, wanted.ack, wanted.flags)
    assert found.window == wanted.window
    assert found.data[found.start : found.end] == wanted.payload
    assert found.missing == 0
    assert source_of(found.key) == str(wanted.src)
    assert source_of(reversed_key(found.key)) == str(wanted.dst)
    assert reversed_key(reversed_key(found.key)) == found.key


LONG = (replace(V4, payload=bytes(range(256)) * 12), replace(V6, payload=bytes(range(256)) * 12))
