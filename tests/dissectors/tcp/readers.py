"""Packets of a capture given as bytes, in any pieces, in words that can be compared."""

from __future__ import annotations

from typing import NamedTuple

from dissectors.findings import Finding
from dissectors.tcp.capture import packet_number
from dissectors.tcp.formats import PCAP_HEADER, reader_of


class Seen(NamedTuple):
    """A packet."""

    number: int
    ts: int
    linktype: int
    data: bytes
    length: int


def read(capture: bytes, chunk: int = 1 << 30) -> tuple[list[Seen], list[Finding]]:
    """All packets and findings of a capture that comes in pieces of `chunk` bytes."""
    reader = reader_of(3, capture[:PCAP_HEADER])
    assert reader is not None
    found = []
    for at in range(PCAP_HEADER, len(capture), chunk):
        found += reader.receive(capture[at : at + chunk])
    found += reader.finish()
    assert reader.packets == len(found)
    seen = [
        Seen(packet_number(p.packet), p.ts, p.linktype, p.data[p.start : p.end], p.length)
        for p in found
    ]
    assert all(p.packet >> 40 == 3 for p in found)
    return seen, reader.take_findings()
