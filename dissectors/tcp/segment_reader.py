"""Packet parsing down to TCP: link layers, VLAN tags, IPv4 and IPv6, fragments, tunnels.

Link types: https://www.tcpdump.org/linktypes.html. Tunnels: RFC 7348 (VXLAN), RFC 8926 (Geneve),
RFC 2784 and 2890 (GRE), RFC 2003 (IP in IP).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i16_be, read_i64_be
from mypy_extensions import i64

from ..findings import Finding, FindingKind
from .capture import LINKTYPE_ETHERNET, Packet
from .passed_flows import VLAN_ETHERTYPES
from .segment import FIN, RST, SYN, Segment

MAX_TUNNELS: Final = 8
"""maximum depth of nested tunnels; more is an attack or damage"""
MAX_OFFLOADED: Final = 1024 * 1024
"""maximum bytes of an IP packet without a length: twice the size of BIG TCP"""
MAX_IPV6_HEADERS: Final = 16
"""maximum IPv6 extension headers of one packet"""

LINKTYPE_NULL: Final = 0
LINKTYPE_LOOP: Final = 108
LINKTYPE_LINUX_SLL: Final = 113
LINKTYPE_IPV4: Final = 228
LINKTYPE_IPV6: Final = 229
LINKTYPE_LINUX_SLL2: Final = 276
RAW_LINKTYPES: Final = frozenset((12, 14, 101))
"""raw IP: LINKTYPE_RAW, and the DLT_RAW numbers that some systems write to files"""

ETHERTYPE_IPV4: Final = 0x0800
ETHERTYPE_IPV6: Final = 0x86DD
ETHERTYPE_ETHERNET: Final = 0x6558
ETHERTYPE_ERSPAN: Final = 0x88BE

PROTOCOL_IPV4: Final = 4
PROTOCOL_TCP: Final = 6
PROTOCOL_UDP: Final = 17
PROTOCOL_IPV6: Final = 41
PROTOCOL_FRAGMENT: Final = 44
PROTOCOL_GRE: Final = 47
PROTOCOL_AH: Final = 51
IPV6_OPTION_HEADERS: Final = frozenset((0, 43, 60, 135))
"""hop-by-hop, routing, destination options, mobility: all with the same layout"""

VXLAN_PORTS: Final = frozenset((4789, 8472))
GENEVE_PORT: Final = 6081

NOT_IP: Final = "not IP"
NOT_TCP: Final = "not TCP"
FRAGMENT: Final = "IP fragment"
MALFORMED: Final = "malformed"
TOO_DEEP: Final = "tunnels too deep"


@final
class SegmentReader:
    """Parses packets down to TCP; holds incomplete IP datagrams.

    Pure ACKs, most of the segments without data, are returned only while `acks_wanted`, or if they
    announce a zero window.
    """

    def __init__(self) -> None:
        self.skipped: dict[str, int] = {}
        """packets without a segment, by reason"""
        self.findings: list[Finding] = []
        """findings since the last take"""
        self.acks_wanted = False
        """pure ACKs are needed"""
        self.fragments = FragmentTable(self.findings)
        """the incomplete IP datagrams"""
        self._unsupported: set[int] = set()

    def segment_of(self, packet: Packet) -> Segment | None:
        """Return the TCP segment of a packet; None if it has none, which is counted by reason."""
        data = packet.data
        at: i64 = packet.start
        end: i64 = packet.end
        # Fast path for nearly all packets: Ethernet, IPv4 without a tag.
        if packet.linktype == LINKTYPE_ETHERNET and end - at >= 54:
            if read_i16_be(data, at + 12) == ETHERTYPE_IPV4:
                return self._ipv4(packet, data, at + 14, end, b"")
            return self._ethernet(packet, data, at, end, b"")
        return self._link(packet, data, at, end)

    def finish(self) -> None:
        """Finish after the last packet; incomplete datagrams are lost."""
        self.fragments.finish()

    def _skip(self, why: str) -> None:
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def _malformed(self, packet: Packet, detail: str) -> None:
        self._skip(MALFORMED)
        info = Finding(FindingKind.PACKET_MALFORMED, detail, packet.ts, packet.packet, -1, -1)
        self.findings.append(info)

    def _link(self, packet: Packet, data: bytes, at: i64, end: i64) -> Segment | None:
        linktype: i64 = packet.linktype
        size: i64 = end - at
        if linktype == LINKTYPE_ETHERNET:
            return self._ethernet(packet, data, at, end, b"")
        if linktype == LINKTYPE_LINUX_SLL and size >= 16:
            return self._network(packet, data, at + 16, end, _u16(data, at + 14), b"")
        if linktype == LINKTYPE_LINUX_SLL2 and size >= 20:
            return self._network(packet, data, at + 20, end, _u16(data, at), b"")
        if linktype in (LINKTYPE_NULL, LINKTYPE_LOOP) and size >= 4:
            # The family's number differs between systems, as may its byte order.
            return self._ip(packet, data, at + 4, end, b"")
        if linktype in RAW_LINKTYPES or linktype in (LINKTYPE_IPV4, LINKTYPE_IPV6):
            return self._ip(packet, data, at, end, b"")
        known = (LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2, LINKTYPE_NULL, LINKTYPE_LOOP)
        if linktype in known:
            self._malformed(packet, "shorter than its link layer's header")
            return None
        self._skip(f"link type {linktype}")
        if linktype not in self._unsupported and len(self._unsupported) < 64:
            self._unsupported.add(linktype)
            self.findings.append(
                Finding(
                    FindingKind.UNSUPPORTED_LINKTYPE,
                    f"link type {linktype}",
                    packet.ts,
                    packet.packet,
                    -1,
                    -1,
                )
            )
        return None

    def _ethernet(
        self, packet: Packet, data: bytes, at: i64, end: i64, tunnel: bytes
    ) -> Segment | None:
        if end - at < 14:
            self._malformed(packet, "shorter than an Ethernet header")
            return None
        return self._network(packet, data, at + 14, end, _u16(data, at + 12), tunnel)

    def _network(
        self, packet: Packet, data: bytes, at: i64, end: i64, ethertype: i64, tunnel: bytes
    ) -> Segment | None:
        """Parse the payload of an Ethernet type; VLAN tags do not distinguish conversations."""
        while ethertype in VLAN_ETHERTYPES and end - at >= 4:
            ethertype = _u16(data, at + 2)
            at += 4
        if ethertype == ETHERTYPE_IPV4:
            return self._ipv4(packet, data, at, end, tunnel)
        if ethertype == ETHERTYPE_IPV6:
            return self._ipv6(packet, data, at, end, tunnel)
        self._skip(NOT_IP)
        return None

    def _ip(self, packet: Packet, data: bytes, at: i64, end: i64, tunnel: bytes) -> Segment | None:
        """Parse IP of either version, by its first four bits."""
        version = data[at] >> 4 if at < end else 0
        if version == 4:
            return self._ipv4(packet, data, at, end, tunnel)
        if version == 6:
            return self._ipv6(packet, data, at, end, tunnel)
        self._skip(NOT_IP)
        return None

    def _ipv4(
        self, packet: Packet, data: bytes, at: i64, end: i64, tunnel: bytes
    ) -> Segment | None:
        if end - at < 20:
            self._malformed(packet, "shorter than an IPv4 header")
            return None
        header: i64 = (data[at] & 15) << 2
        middle = read_i64_be(data, at + 2)
        # The end comes from here, not from the captured bytes: Ethernet pads short frames.
        length: i64 = (middle >> 48) & 0xFFFF
        protocol: i64 = middle & 0xFF
        if length == 0:
            # Segmentation offload: the card fills in the length after the capture saw the packet.
            length = min(packet.start + packet.length - at, MAX_OFFLOADED)
        if header < 20 or length < header or end - at < header:
            self._malformed(packet, "IPv4 lengths that contradict each other")
            return None
        stop: i64 = at + length
        if (middle >> 16) & 0x3FFF:  # more fragments, or an offset
            return self._fragment4(packet, data, at, header, stop, end, tunnel)
        if protocol == PROTOCOL_TCP and header == 20 and not tunnel:
            return self._tcp(packet, data, at + 20, stop, end, data[at + 12 : at + 24])
        addresses = data[at + 12 : at + 20]
        return self._transport(packet, data, at + header, stop, end, protocol, addresses, tunnel)

    def _fragment4(
        self,
        packet: Packet,
        data: bytes,
        at: i64,
        header: i64,
        stop: i64,
        end: i64,
        tunnel: bytes,
    ) -> Segment | None:
        word: i64 = _u16(data, at + 6)
        addresses = data[at + 12 : at + 20]
        key = addresses + data[at + 4 : at + 6] + data[at + 9 : at + 10] + tunnel
        part = data[at + header : stop] if stop <= end else None
        offset: i64 = (word & 0x1FFF) << 3
        more = word & 0x2000 != 0
        protocol: i64 = data[at + 9]
        return self._fragment(packet, key, offset, more, part, protocol, addresses, tunnel)

    def _fragment(
        self,
        packet: Packet,
        key: bytes,
        offset: i64,
        more: bool,
        part: bytes | None,
        protocol: i64,
        addresses: bytes,
        tunnel: bytes,
    ) -> Segment | None:
        """Parse a datagram if this fragment completes it; `part` is None if it was cut off."""
        whole = None
        if part is not None:
            whole = self.fragments.receive(packet, key, offset, more, part)
        if whole is None:
            self._skip(FRAGMENT)
            return None
        size: i64 = len(whole)
        at: i64 = 0
        if len(addresses) == 32:  # IPv6: these headers are in the fragments, too
            protocol, at = _past_headers(whole, 0, size, protocol)
        return self._transport(packet, whole, at, size, size, protocol, addresses, tunnel)

    def _ipv6(
        self, packet: Packet, data: bytes, at: i64, end: i64, tunnel: bytes
    ) -> Segment | None:
        if end - at < 40:
            self._malformed(packet, "shorter than an IPv6 header")
            return None
        length: i64 = _u16(data, at + 4)
        stop: i64 = at + 40 + length
        if length == 0:
            # A jumbogram, or segmentation offload.
            stop = min(packet.start + packet.length, at + MAX_OFFLOADED)
        addresses = data[at + 8 : at + 40]
        limit: i64 = min(stop, end)
        protocol, at = _past_headers(data, at + 40, limit, data[at + 6])
        if protocol == PROTOCOL_FRAGMENT and at + 8 <= limit:
            return self._fragment6(packet, data, at, stop, end, addresses, tunnel)
        return self._transport(packet, data, at, stop, end, protocol, addresses, tunnel)

    def _fragment6(
        self,
        packet: Packet,
        data: bytes,
        at: i64,
        stop: i64,
        end: i64,
        addresses: bytes,
        tunnel: bytes,
    ) -> Segment | None:
        word: i64 = _u16(data, at + 2)
        key = addresses + data[at + 4 : at + 8] + tunnel
        part = data[at + 8 : stop] if stop <= end else None
        protocol: i64 = data[at]
        offset: i64 = word & 0xFFF8
        return self._fragment(packet, key, offset, word & 1 != 0, part, protocol, addresses, tunnel)

    def _transport(
        self,
        packet: Packet,
        data: bytes,
        at: i64,
        stop: i64,
        end: i64,
        protocol: i64,
        addresses: bytes,
        tunnel: bytes,
    ) -> Segment | None:
        if protocol == PROTOCOL_TCP and at + 4 <= end:
            return self._tcp(packet, data, at, stop, end, addresses + data[at : at + 4] + tunnel)
        if len(tunnel) > MAX_TUNNELS * 5:
            self._skip(TOO_DEEP)
            return None
        end = min(end, stop)
        if protocol == PROTOCOL_UDP and end - at >= 16:
            return self._udp(packet, data, at, end, tunnel)
        if protocol == PROTOCOL_GRE and end - at >= 4:
            return self._gre(packet, data, at, end, tunnel)
        if protocol in (PROTOCOL_IPV4, PROTOCOL_IPV6):
            return self._ip(packet, data, at, end, tunnel + b"I\0\0\0\0")
        self._skip(NOT_TCP)
        return None

    def _udp(self, packet: Packet, data: bytes, at: i64, end: i64, tunnel: bytes) -> Segment | None:
        # Each tunnel adds five bytes to the key: its kind and its id. `address_size` needs it.
        port: i64 = _u16(data, at + 2)
        if port in VXLAN_PORTS and data[at + 8] & 0x08:  # the id is valid
            inner = tunnel + b"V\0" + data[at + 12 : at + 15]
            return self._ethernet(packet, data, at + 16, end, inner)
        if port == GENEVE_PORT and data[at + 8] >> 6 == 0:  # version 0
            start: i64 = at + 16 + ((data[at + 8] & 0x3F) << 2)  # behind the options
            kind: i64 = _u16(data, at + 10)
            inner = tunnel + b"N\0" + data[at + 12 : at + 15]
            return self._encapsulated(packet, data, start, end, kind, inner)
        self._skip(NOT_TCP)
        return None

    def _gre(self, packet: Packet, data: bytes, at: i64, end: i64, tunnel: bytes) -> Segment | None:
        word: i64 = _u16(data, at)
        kind: i64 = _u16(data, at + 2)
        if word & 7:  # version 1 is PPTP
            self._skip(NOT_TCP)
            return None
        place: i64 = at + 4
        if word & 0x8000:  # checksum and reserved
            place += 4
        key = b"\0\0\0\0"
        if word & 0x2000:
            key = data[place : place + 4]
            place += 4
        if word & 0x1000:  # sequence number
            place += 4
            if kind == ETHERTYPE_ERSPAN:
                place += 8
                kind = ETHERTYPE_ETHERNET
        elif kind == ETHERTYPE_ERSPAN:  # ERSPAN type I has no header of its own
            kind = ETHERTYPE_ETHERNET
        return self._encapsulated(packet, data, place, end, kind, tunnel + b"G" + key)

    def _encapsulated(
        self, packet: Packet, data: bytes, at: i64, end: i64, kind: i64, tunnel: bytes
    ) -> Segment | None:
        if kind == ETHERTYPE_ETHERNET:
            return self._ethernet(packet, data, at, end, tunnel)
        return self._network(packet, data, at, end, kind, tunnel)

    def _tcp(
        self, packet: Packet, data: bytes, at: i64, stop: i64, end: i64, key: bytes
    ) -> Segment | None:
        if end - at < 20 or stop - at < 20:
            self._malformed(packet, "shorter than a TCP header")
            return None
        last: i64 = read_i64_be(data, at + 8) & 0xFFFFFFFF
        start: i64 = at + ((last >> 26) & 0x3C)
        flags: i64 = (last >> 16) & 0xFF
        if start - at < 20 or start > stop:
            self._malformed(packet, "a TCP header length that does not fit")
            return None
        window: i64 = last & 0xFFFF
        if start >= stop and not flags & (SYN | FIN | RST) and window and not self.acks_wanted:
            return None  # most packets without data: dropped before an object is made
        missing: i64 = 0
        if stop > end:
            missing = stop - max(end, start)
            start = min(end, start)
            stop = end
        sequence = read_i64_be(data, at + 4)
        return Segment(
            packet.packet, packet.ts, key, sequence, flags, window, data, start, stop, missing
        )


def _past_headers(data: bytes, at: i64, end: i64, protocol: i64) -> tuple[i64, i64]:
    """Return what follows IPv6 extension headers: its protocol, which may be a fragment, and
    offset.
    """
    for _ in range(MAX_IPV6_HEADERS):
        if at + 8 > end:
            break
        if protocol in IPV6_OPTION_HEADERS:
            protocol = data[at]
            at += (data[at + 1] + 1) << 3
        elif protocol == PROTOCOL_AH:
            protocol = data[at]
            at += (data[at + 1] + 2) << 2
        else:
            break
    return protocol, at


def _u16(data: bytes, at: i64) -> i64:
    return i64(read_i16_be(data, at)) & 0xFFFF


MAX_DATAGRAM: Final = 65535
MAX_DATAGRAMS: Final = 512
"""maximum number of incomplete datagrams"""
MAX_WAITING_BYTES: Final = 4 * 1024 * 1024
"""maximum bytes of all waiting fragments"""
MAX_PARTS: Final = 256
"""maximum fragments of one datagram: 65,535 bytes in the smallest sensible ones"""

MAX_AGE: Final = 30_000_000_000
"""nanoseconds that a fragment waits for others, as in Linux"""


@final
class _Datagram:
    """The fragments of one incomplete datagram."""

    def __init__(self, packet: i64, ts: i64) -> None:
        self.packet: i64 = packet
        self.ts: i64 = ts
        self.parts: list[tuple[int, bytes]] = []
        """offset and bytes, in order, without overlaps"""
        self.size: i64 = 0
        self.total: i64 = -1

    def add(self, offset: i64, part: bytes) -> i64:
        """Insert the bytes that are still missing; return how many there were."""
        parts = self.parts
        end: i64 = offset + len(part)
        at: i64 = offset
        index: i64 = 0
        before: i64 = self.size
        while at < end:
            while index < len(parts) and parts[index][0] + len(parts[index][1]) <= at:
                index += 1
            stop: i64 = min(end, parts[index][0]) if index < len(parts) else end
            if at < stop:
                parts.insert(index, (at, part[at - offset : stop - offset]))
                self.size += stop - at
                at = stop
            elif index < len(parts):
                at = parts[index][0] + len(parts[index][1])
        return self.size - before

    def whole(self) -> bytes | None:
        """Return the payload if it is complete, else None."""
        if self.total < 0 or self.size < self.total:
            return None
        # Parts may lie beyond `total`, so the size alone does not prove that nothing is missing.
        have: i64 = 0
        for start, part in self.parts:
            if start != have:
                break
            have += len(part)
        if have < self.total:
            return None
        return b"".join([part for _, part in self.parts])[: self.total]


@final
class FragmentTable:
    """Incomplete datagrams, oldest first: each is returned when its last missing fragment arrives.

    The first copy of a byte wins. Waiting fragments are limited in number, bytes, and parts; the
    oldest datagram is dropped first, with a finding. RFC 791, RFC 8200.
    """

    def __init__(self, findings: list[Finding]) -> None:
        self.received: i64 = 0
        """number of fragments received"""
        self._findings = findings
        self._waiting: dict[bytes, _Datagram] = {}
        self._bytes: i64 = 0

    def receive(
        self, packet: Packet, key: bytes, offset: i64, more: bool, part: bytes
    ) -> bytes | None:
        """Return the whole payload if this fragment completes its datagram, else None."""
        self.received += 1
        end: i64 = offset + len(part)
        if end > MAX_DATAGRAM or not part:  # damage, or an attack
            return None
        if offset == 0 and not more:
            return part  # an atomic fragment (RFC 6946)
        datagram = self._waiting.get(key)
        if datagram is not None and not -MAX_AGE <= packet.ts - datagram.ts <= MAX_AGE:
            self._give_up(key)  # the identification is reused
            datagram = None
        if datagram is None:
            datagram = _Datagram(packet.packet, packet.ts)
            self._waiting[key] = datagram
        if len(datagram.parts) >= MAX_PARTS:
            self._give_up(key)
            return None
        self._bytes += datagram.add(offset, part)
        if not more and datagram.total < 0:
            datagram.total = end
        whole = datagram.whole()
        if whole is not None:
            self._remove(key)
        while self._bytes > MAX_WAITING_BYTES or len(self._waiting) > MAX_DATAGRAMS:
            self._give_up(next(iter(self._waiting)))
        return whole

    def finish(self) -> None:
        """Drop all incomplete datagrams."""
        while self._waiting:
            self._give_up(next(iter(self._waiting)))

    def _remove(self, key: bytes) -> _Datagram:
        datagram = self._waiting.pop(key)
        self._bytes -= datagram.size
        return datagram

    def _give_up(self, key: bytes) -> None:
        datagram = self._remove(key)
        detail = f"{len(datagram.parts)} fragments of {datagram.size} bytes are not complete"
        self._findings.append(
            Finding(FindingKind.FRAGMENT_LOST, detail, datagram.ts, datagram.packet, -1, -1)
        )
