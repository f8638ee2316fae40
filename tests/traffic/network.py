"""TCP segments as packets: IPv4 and IPv6, fragments, tunnels, link layers.

RFC 791, 8200, 9293, 7348 (VXLAN), 2784 and 2890 (GRE), 8926 (Geneve), 2003 (IP in IP); link types
of https://www.tcpdump.org/linktypes.html. Checksums are right, so that other tools agree.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from .talk import Tcp

TCP, UDP, GRE, IPIP, IPV6 = 6, 17, 47, 4, 41
HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION, AUTHENTICATION = 0, 43, 44, 60, 51

Packet = bytes
"""an IP packet"""


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) & 1:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@cache
def address(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def tcp(segment: Tcp) -> bytes:
    """Header and payload; options are padded to four bytes."""
    options = segment.options + b"\0" * (-len(segment.options) % 4)
    head = struct.pack(
        ">HHIIBBHHH",
        segment.src.port,
        segment.dst.port,
        segment.seq,
        segment.ack,
        (5 + len(options) // 4) << 4,
        segment.flags,
        segment.window,
        0,
        0,
    )
    whole = head + options + segment.payload
    source, destination = address(segment.src.address), address(segment.dst.address)
    pseudo = source + destination + struct.pack(">II", len(whole), TCP)
    total = checksum(pseudo + whole)
    return whole[:16] + struct.pack(">H", total) + whole[18:]


def ipv4(
    source: str,
    destination: str,
    protocol: int,
    payload: bytes,
    *,
    options: bytes = b"",
    ident: int = 0,
    fragment: int = 0x4000,
    length: int | None = None,
) -> Packet:
    """`fragment` is the flags and offset word; `length` is for lies."""
    options += b"\0" * (-len(options) % 4)
    size = 20 + len(options) + len(payload) if length is None else length
    head = struct.pack(
        ">BBHHHBBH4s4s",
        0x40 | (5 + len(options) // 4),
        0,
        size,
        ident,
        fragment,
        64,
        protocol,
        0,
        address(source),
        address(destination),
    )
    head += options
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def extension(kind: int, size: int = 8) -> tuple[int, bytes]:
    """An IPv6 extension header of so many bytes, as (its number, bytes after next-header)."""
    if kind == AUTHENTICATION:
        return kind, bytes((size // 4 - 2,)) + b"\0" * (size - 2)
    return kind, bytes((size // 8 - 1,)) + b"\x01" + bytes((size - 4,)) + b"\0" * (size - 4)


def ipv6(
    source: str,
    destination: str,
    protocol: int,
    payload: bytes,
    *,
    extensions: Sequence[tuple[int, bytes]] = (),
    length: int | None = None,
) -> Packet:
    """Extension headers in order, each named by the one before it."""
    numbers = [number for number, _ in extensions] + [protocol]
    chain = b"".join(
        bytes((numbers[index + 1],)) + rest for index, (_, rest) in enumerate(extensions)
    )
    size = len(chain) + len(payload) if length is None else length
    head = struct.pack(">IHBB", 6 << 28, size, numbers[0], 64)
    return head + address(source) + address(destination) + chain + payload


def ip(segment: Tcp, *, ident: int = 0) -> Packet:
    """A segment in the IP version of its addresses."""
    source, destination = segment.src.address, segment.dst.address
    if ":" in source:
        return ipv6(source, destination, TCP, tcp(segment))
    return ipv4(source, destination, TCP, tcp(segment), ident=ident)


def fragments(segment: Tcp, size: int, ident: int) -> list[Packet]:
    """A segment as IP fragments of so many payload bytes (a multiple of eight)."""
    source, destination = segment.src.address, segment.dst.address
    whole = tcp(segment)
    found = []
    for at in range(0, len(whole), size):
        part = whole[at : at + size]
        more = at + size < len(whole)
        if ":" in source:
            head = struct.pack(">BHI", 0, at | more, ident)
            found.append(ipv6(source, destination, TCP, part, extensions=[(FRAGMENT, head)]))
        else:
            word = (at >> 3) | (0x2000 if more else 0)
            found.append(ipv4(source, destination, TCP, part, ident=ident, fragment=word))
    return found


# -- link layers --------------------------------------------------------------------------------


def _ethertype(packet: Packet) -> int:
    return 0x86DD if packet[0] >> 4 == 6 else 0x0800


def ethernet(packet: Packet, *tags: tuple[int, int]) -> bytes:
    """An Ethernet frame, with VLAN tags (type, id), padded to 60 bytes as cards do."""
    head = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02"
    for kind, vlan in tags:
        head += struct.pack(">HH", kind, vlan)
    frame = head + struct.pack(">H", _ethertype(packet)) + packet
    return frame + b"\0" * max(60 - len(frame), 0)


def sll(packet: Packet) -> bytes:
    return struct.pack(">HHH8sH", 4, 1, 6, b"\x02\0\0\0\0\x01\0\0", _ethertype(packet)) + packet


def sll2(packet: Packet) -> bytes:
    kind = _ethertype(packet)
    return struct.pack(">HHIHBB8s", kind, 0, 2, 1, 4, 6, b"\x02\0\0\0\0\x01\0\0") + packet


def null(packet: Packet, order: str = "<") -> bytes:
    """BSD loopback: the address family in the byte order of the machine."""
    return struct.pack(f"{order}I", 30 if packet[0] >> 4 == 6 else 2) + packet


@dataclass(frozen=True)
class Link:
    """A link type: its number in capture files, and a packet as it carries it."""

    linktype: int
    wrap: Callable[[Packet], bytes]
    version: int = 0
    """the only IP version that it can carry; 0: both"""


LINKS = {
    "ethernet": Link(1, ethernet),
    "vlan": Link(1, lambda packet: ethernet(packet, (0x8100, 7))),
    "qinq": Link(1, lambda packet: ethernet(packet, (0x88A8, 100), (0x8100, 7))),
    "qinq-old": Link(1, lambda packet: ethernet(packet, (0x9100, 100), (0x8100, 7))),
    "sll": Link(113, sll),
    "sll2": Link(276, sll2),
    "null-little": Link(0, null),
    "null-big": Link(0, lambda packet: null(packet, ">")),
    "loop": Link(108, lambda packet: null(packet, ">")),
    "raw": Link(101, bytes),
    "raw-bsd": Link(12, bytes),
    "raw-openbsd": Link(14, bytes),
    "ipv4": Link(228, bytes, 4),
    "ipv6": Link(229, bytes, 6),
}


# -- tunnels ------------------------------------------------------------------------------------

OUTER = ("192.168.77.1", "192.168.77.2")


def udp(source: str, destination: str, port: int, payload: bytes) -> Packet:
    head = struct.pack(">HHHH", 49152, port, 8 + len(payload), 0)
    return ipv4(source, destination, UDP, head + payload)


def vxlan(packet: Packet, vni: int = 7, port: int = 4789) -> Packet:
    head = struct.pack(">II", 0x08000000, vni << 8)
    return udp(*OUTER, port, head + ethernet(packet))


def geneve(packet: Packet, vni: int = 7, options: bytes = b"", inner: bool = True) -> Packet:
    """With an Ethernet frame inside, or the IP packet itself."""
    kind = 0x6558 if inner else _ethertype(packet)
    head = struct.pack(">BBHI", len(options) // 4, 0, kind, vni << 8) + options
    return udp(*OUTER, 6081, head + (ethernet(packet) if inner else packet))


def gre(
    packet: Packet,
    *,
    key: int | None = None,
    sequence: int | None = None,
    summed: bool = False,
    inner: bool = False,
) -> Packet:
    """GRE with its optional parts; `inner`: an Ethernet frame inside."""
    flags = (0x8000 if summed else 0) | (0x2000 if key is not None else 0)
    flags |= 0x1000 if sequence is not None else 0
    kind = 0x6558 if inner else _ethertype(packet)
    head = struct.pack(">HH", flags, kind)
    if summed:
        head += b"\0\0\0\0"
    if key is not None:
        head += struct.pack(">I", key)
    if sequence is not None:
        head += struct.pack(">I", sequence)
    return ipv4(*OUTER, GRE, head + (ethernet(packet) if inner else packet))


def erspan(packet: Packet, sequence: int = 1) -> Packet:
    """ERSPAN type II: GRE with a sequence number, eight bytes, an Ethernet frame."""
    head = struct.pack(">HHIII", 0x1000, 0x88BE, sequence, 0x10000064, 0)
    return ipv4(*OUTER, GRE, head + ethernet(packet))


def ip_in_ip(packet: Packet) -> Packet:
    return ipv4(*OUTER, IPV6 if packet[0] >> 4 == 6 else IPIP, packet)


def ip_in_ipv6(packet: Packet) -> Packet:
    return ipv6("fd00::7:1", "fd00::7:2", IPV6 if packet[0] >> 4 == 6 else IPIP, packet)


TUNNELS: dict[str, Callable[[Packet], Packet]] = {
    "vxlan": vxlan,
    "vxlan-linux": lambda packet: vxlan(packet, port=8472),
    "geneve": geneve,
    "geneve-options": lambda packet: geneve(packet, options=b"\x01\x02\x03\x01abcd"),
    "geneve-ip": lambda packet: geneve(packet, inner=False),
    "gre": gre,
    "gre-key": lambda packet: gre(packet, key=77),
    "gre-all": lambda packet: gre(packet, key=77, sequence=1, summed=True),
    "gre-ethernet": lambda packet: gre(packet, key=77, inner=True),
    "erspan": erspan,
    "ip-in-ip": ip_in_ip,
    "ip-in-ipv6": ip_in_ipv6,
    "vxlan-in-gre": lambda packet: gre(vxlan(packet)),
}


def packets(segments: Iterable[Tcp], link: str = "ethernet") -> list[tuple[int, bytes]]:
    """Time and bytes of each segment's packet on a link."""
    wrap = LINKS[link].wrap
    return [
        (segment.ts, wrap(ip(segment, ident=index & 0xFFFF)))
        for index, segment in enumerate(segments)
    ]
