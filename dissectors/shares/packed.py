"""Packets of a range, packed for the shares that decode them, and unpacked there.

A share's stream is records: number of the packet in its range, time, captured and original length,
link type, kind, then the bytes. Packets without TCP are left out. Fragments and secrets go to every
share: nobody knows yet whose they are.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final
from zlib import crc32

from librt.strings import read_i16_le, read_i32_le, read_i64_le
from mypy_extensions import i64

from ..conversations.keys import hosts_of, reversed_key
from ..tcp.capture import CAPTURE_SHIFT, Packet
from ..tcp.segment_reader import SegmentReader

PACKET: Final = 0
FRAGMENT: Final = 1
SECRETS: Final = 2
RECORD: Final = 24
"""bytes of a record before the packet's own"""
PIECE: Final = 8 * 1024
"""bytes of a piece of a stream: ten thousand of them are what Spark gives a task at a time"""
MAX_KNOWN: Final = 65536
"""directions of which the share is remembered"""
_RECORD: Final = Struct("<IqIIHBx")
_NUMBERS: Final = (1 << CAPTURE_SHIFT) - 1


def share_of(key: bytes, by_hosts: bool, shares: i64) -> i64:
    """Return the share of a direction: the same for both, and by hosts for all of two hosts."""
    if by_hosts:
        return i64(crc32(hosts_of(key))) % shares
    other = reversed_key(key)
    return i64(crc32(key if key < other else other)) % shares


@final
class Packer:
    """Packets in, pieces of the shares' streams out."""

    def __init__(self, shares: i64, by_hosts: bool) -> None:
        self.segments = SegmentReader()
        self.segments.acks_wanted = True  # who waits for one is known where they are decoded
        self._by_hosts = by_hosts
        self._shares: i64 = shares
        self._known: dict[bytes, int] = {}
        self._parts: list[list[bytes]] = [[] for _ in range(shares)]
        self._sizes: list[int] = [0] * shares

    def pack(self, packets: list[Packet]) -> None:
        """Take the packets of a chunk."""
        reader = self.segments
        known = self._known
        for packet in packets:
            fragments: i64 = reader.fragments.received
            findings: i64 = len(reader.experts)
            segment = reader.segment_of(packet)
            if reader.fragments.received != fragments:
                del reader.experts[findings:]  # who puts them together finds the same
                self._for_all(FRAGMENT, packet, packet.data[packet.start : packet.end])
            elif segment is not None:
                share = known.get(segment.key)
                if share is None:
                    share = self._share_of(segment.key)
                self._add(share, PACKET, packet, packet.data[packet.start : packet.end])

    def pack_secrets(self, before: Packet, text: bytes) -> None:
        """Take secrets that the capture has before a packet."""
        self._for_all(SECRETS, before, text)

    def pieces(self) -> list[tuple[int, bytes]]:
        """Return shares and pieces of their streams that are as large as pieces are."""
        return self._taken(PIECE)

    def rest(self) -> list[tuple[int, bytes]]:
        """Return what is left of the streams."""
        return self._taken(1)

    def _share_of(self, key: bytes) -> int:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        share: i64 = share_of(key, self._by_hosts, self._shares)
        self._known[key] = share
        return share

    def _for_all(self, kind: i64, packet: Packet, data: bytes) -> None:
        for share in range(self._shares):
            self._add(share, kind, packet, data)

    def _add(self, share: i64, kind: i64, packet: Packet, data: bytes) -> None:
        number: i64 = packet.packet & _NUMBERS
        size: i64 = len(data)
        head = _RECORD.pack(number, packet.ts, size, packet.length, packet.linktype, kind)
        parts = self._parts[share]
        parts.append(head)
        parts.append(data)
        self._sizes[share] += RECORD + size

    def _taken(self, least: i64) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        for share in range(self._shares):
            size: i64 = self._sizes[share]
            if size < least:
                continue
            data = b"".join(self._parts[share])
            at: i64 = 0
            while size - at >= least:
                found.append((share, data[at : at + PIECE]))
                at = min(at + PIECE, size)
            self._parts[share] = [data[at:]] if at < size else []
            self._sizes[share] = size - at
        return found


@final
class Unpacker:
    """A share's stream in, packets with their place in the capture out."""

    def __init__(self) -> None:
        self.kind: i64 = PACKET
        """what comes next that is not an ordinary packet; that: nothing does"""
        self.other: Packet | None = None
        """its record, as a packet"""
        self._data = b""
        self._at: i64 = 0

    def receive(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._data = self._data[self._at :] + data
        self._at = 0

    def is_behind(self, before: i64, last: i64) -> bool:
        """Return whether the next record is of a packet behind the id `last`."""
        data, at = self._data, self._at
        if len(data) - at < RECORD:
            return False
        return before + (i64(read_i32_le(data, at)) & 0xFFFFFFFF) > last

    def packets(self, before: i64, last: i64) -> list[Packet]:
        """Return the packets that come next, up to the one with the id `last` or what is no packet.

        `before` is the id before the first packet of their range.
        """
        found: list[Packet] = []
        self.kind = PACKET
        self.other = None
        data = self._data
        size: i64 = len(data)
        at: i64 = self._at
        while size - at >= RECORD:
            number: i64 = i64(read_i32_le(data, at)) & 0xFFFFFFFF
            end: i64 = at + RECORD + (i64(read_i32_le(data, at + 12)) & 0xFFFFFFFF)
            if end > size or before + number > last:
                break
            ts: i64 = read_i64_le(data, at + 4)
            length: i64 = i64(read_i32_le(data, at + 16)) & 0xFFFFFFFF
            linktype: i64 = i64(read_i16_le(data, at + 20)) & 0xFFFF
            packet = Packet(before + number, ts, linktype, data, at + RECORD, end, length)
            kind: i64 = data[at + 22]
            at = end
            if kind != PACKET:
                self.kind = kind
                self.other = packet
                break
            found.append(packet)
        self._at = at
        return found
