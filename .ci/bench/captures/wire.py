"""Pcap records with Ethernet, IPv4 and TCP around given payloads, one TCP connection at a time.

A connection knows both sequence spaces, so every ACK number is what a real receiver would send: it
stops before a segment that is late and never passes what is in the file. Checksums are right.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from .truth import Truth

MSS = 1448
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
ACKS_PER_SEGMENT = 0.31 / 0.69
DISTURBED = 0.0025

FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10

Timed = tuple[int, int, bytes]
"""Microseconds, index of the connection, pcap record."""

_RECORD = struct.Struct("<IIII").pack
_HEADERS = struct.Struct(">14sHHHHHH8s4sIIHHHHIII").pack
_SYN_OPTIONS = struct.Struct(">IBBBBIIBBB").pack
_M32 = 0xFFFFFFFF


def sum16(data: bytes) -> int:
    """Return the one's complement sum of `data`, up to multiples of 65535."""
    if len(data) & 1:
        data += b"\0"
    # 65536 is 1 modulo 65535, so the remainder of the whole number is the sum of its words
    return int.from_bytes(data, "big") % 65535


def _complement(total: int) -> int:
    return 65535 - (total % 65535 or 65535)


@dataclass(slots=True)
class Side:
    """One end of a connection: constant header bytes and the state of its sequence space."""

    ethernet: bytes
    """Destination, source, type."""
    addresses: bytes
    """Source and destination IPv4 address."""
    ports: bytes
    """Source and destination port."""
    seq: int
    """Next sequence number this end sends."""
    expected: int = 0
    """Next sequence number this end expects: the ACK number it writes."""
    ip_id: int = 0
    """IP identification of the last packet."""
    clock: int = 0
    """Offset of this end's TCP timestamps."""
    heard: int = 0
    """Last TCP timestamp seen from the other end."""
    debt: float = 0.0
    """Pure ACKs that this end owes."""


class Connection:
    """Both ends of one TCP connection; its methods return the packets, in order of time."""

    def __init__(
        self,
        index: int,
        rng: random.Random,
        truth: Truth,
        client: bytes,
        server: bytes,
        acks_per_segment: float = ACKS_PER_SEGMENT,
        disturbed: float = DISTURBED,
    ) -> None:
        """Take the two endpoints as 4 bytes of address and 2 of port.

        `acks_per_segment`: pure ACKs; `disturbed`: the part of segments that come late or twice.
        """
        self.index = index
        self.acks_per_segment = acks_per_segment
        self.disturbed = disturbed
        self.rng = rng
        self.truth = truth
        self.now = 0
        self.late_due = rng.random() * 0.75
        self.repeat_due = rng.random() * 0.75
        self.client = self._side(client, server)
        self.server = self._side(server, client)
        self.client.expected = self.server.seq
        self.server.expected = self.client.seq

    def _side(self, own: bytes, other: bytes) -> Side:
        # one connection in eight is about to wrap
        wraps = self.rng.random() < 0.125
        seq = (1 << 32) - self.rng.randrange(1 << 18) if wraps else self.rng.getrandbits(32)
        mac = b"\x02\x00"
        return Side(
            ethernet=mac + other[:4] + mac + own[:4] + b"\x08\x00",
            addresses=own[:4] + other[:4],
            ports=own[4:6] + other[4:6],
            seq=seq & _M32,
            ip_id=self.rng.getrandbits(16),
            clock=self.rng.getrandbits(31),
        )

    def _packet(self, side: Side, flags: int, seq: int, payload: bytes) -> Timed:
        """Return the record of one segment without SYN."""
        now = self.now
        size = len(payload)
        side.ip_id = ip_id = (side.ip_id + 1) & 0xFFFF
        total = 52 + size
        peer = self.server if side is self.client else self.client
        stamp = (side.clock + now // 1000) & _M32
        echo = side.heard
        peer.heard = stamp
        ack = side.expected
        word = 0x8000 | flags
        fixed = sum16(side.addresses)
        ip_sum = _complement(0x4500 + total + ip_id + 0x4000 + 0x4006 + fixed)
        tcp_sum = _complement(
            fixed
            + 6
            + (32 + size)
            + sum16(side.ports)
            + seq
            + ack
            + word
            + 2058
            + 0x0101080A
            + stamp
            + echo
            + sum16(payload)
        )
        self.truth.packets += 1
        record = _RECORD(now // 1000000, now % 1000000, 66 + size, 66 + size)
        headers = _HEADERS(
            side.ethernet, 0x4500, total, ip_id, 0x4000, 0x4006, ip_sum, side.addresses,
            side.ports, seq, ack, word, 2058, tcp_sum, 0, 0x0101080A, stamp, echo,
        )  # fmt: skip
        return now, self.index, record + headers + payload

    def _syn(self, side: Side, flags: int) -> Timed:
        """Return the record of a SYN: MSS, SACK permitted, timestamps, window scale."""
        ack = side.expected if flags & ACK else 0
        stamp = (side.clock + self.now // 1000) & _M32
        options = (
            _SYN_OPTIONS(
                0x02040000 | MSS + 12, 4, 2, 8, 10, stamp, side.heard if ack else 0, 1, 3, 3
            )
            + b"\x07"
        )
        peer = self.server if side is self.client else self.client
        peer.heard = stamp
        head = side.ports + struct.pack(">IIHHHH", side.seq, ack, 0xA000 | flags, 64240, 0, 0)
        pseudo = sum16(side.addresses) + 6 + 40
        tcp_sum = _complement(pseudo + sum16(head + options))
        side.ip_id = (side.ip_id + 1) & 0xFFFF
        ip_sum = _complement(0x4500 + 60 + side.ip_id + 0x4000 + 0x4006 + sum16(side.addresses))
        ip = struct.pack(">HHHHHH", 0x4500, 60, side.ip_id, 0x4000, 0x4006, ip_sum)
        segment = head[:16] + struct.pack(">HH", tcp_sum, 0) + options
        frame = side.ethernet + ip + side.addresses + segment
        self.truth.packets += 1
        size = len(frame)
        record = _RECORD(self.now // 1000000, self.now % 1000000, size, size)
        return self.now, self.index, record + frame

    def open(self) -> list[Timed]:
        """Return the three packets of the handshake."""
        client, server = self.client, self.server
        packets = [self._syn(client, SYN)]
        client.seq = (client.seq + 1) & _M32
        server.expected = client.seq
        self.now += 180
        packets.append(self._syn(server, SYN | ACK))
        server.seq = (server.seq + 1) & _M32
        client.expected = server.seq
        self.now += 20
        packets.append(self._packet(client, ACK, client.seq, b""))
        return packets

    def close(self) -> list[Timed]:
        """Return FIN and ACK of both ends."""
        packets = []
        for side, peer in ((self.client, self.server), (self.server, self.client)):
            self.now += 100
            packets.append(self._packet(side, FIN | ACK, side.seq, b""))
            side.seq = (side.seq + 1) & _M32
            peer.expected = side.seq
        self.now += 20
        packets.append(self._packet(self.client, ACK, self.client.seq, b""))
        return packets

    def send(self, from_client: bool, payloads: list[bytes]) -> list[Timed]:
        """Return the packets of one flight of segments, with the receiver's pure ACKs."""
        side, peer = self.client, self.server
        if not from_client:
            side, peer = peer, side
        seq = side.seq
        segments: list[tuple[int, bytes]] = []
        for payload in payloads:
            segments.append((seq, payload))
            seq = (seq + len(payload)) & _M32
        side.seq = seq
        self._disturb(segments)
        packets: list[Timed] = []
        beyond = 0
        for start, payload in segments:
            packets.append(self._packet(side, ACK | PSH, start, payload))
            ahead = (start - peer.expected) & _M32
            if ahead == 0:
                # a filled hole releases what came after it
                peer.expected = (peer.expected + max(len(payload), beyond)) & _M32
                beyond = 0
            elif ahead < 1 << 31:
                beyond = max(beyond, ahead + len(payload))
            self.now += 3
            peer.debt += self.acks_per_segment
            if peer.debt >= 1:
                peer.debt -= 1
                packets.append(self._packet(peer, ACK, peer.seq, b""))
                self.truth.pure_acks += 1
                self.now += 4
        self.truth.data_segments += len(segments)
        return packets

    def _disturb(self, segments: list[tuple[int, bytes]]) -> None:
        """Move or repeat one segment now and then: at most one hole is open at a time."""
        count = len(segments)
        self.late_due += self.disturbed * count
        self.repeat_due += self.disturbed * count
        if count > 1 and self.late_due >= 1:
            self.late_due -= 1
            self.truth.late += 1
            at = self.rng.randrange(count - 1)
            late = segments.pop(at)
            segments.insert(at + self.rng.randint(1, min(3, count - 1 - at)), late)
        if self.repeat_due >= 1:
            self.repeat_due -= 1
            self.truth.repeated += 1
            at = self.rng.randrange(count)
            segments.insert(min(count, at + self.rng.randint(1, 4)), segments[at])
