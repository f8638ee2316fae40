"""Packets as capture files: pcap in all its forms, pcapng with any interfaces.

draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .network import LINKS, packets
from .talk import SECOND, Tcp

Timed = tuple[int, bytes]
"""nanoseconds since the epoch, bytes of a packet"""


def pcap(
    timed: Iterable[Timed],
    linktype: int = 1,
    *,
    big: bool = False,
    nano: bool = False,
    patched: bool = False,
    snaplen: int = 262144,
) -> bytes:
    """A pcap file; packets are cut to the snap length."""
    order = ">" if big else "<"
    magic = 0xA1B23C4D if nano else 0xA1B2CD34 if patched else 0xA1B2C3D4
    more = struct.pack(f"{order}IHBx", 2, 0x0800, 4) if patched else b""
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snaplen, linktype)]
    for ts, data in timed:
        seconds, rest = divmod(ts, SECOND)
        fraction = rest if nano else rest // 1000
        kept = data[:snaplen]
        head = struct.pack(f"{order}IIII", seconds, fraction, len(kept), len(data))
        parts.append(head + more + kept)
    return b"".join(parts)


def pcap_of(segments: Iterable[Tcp], link: str = "ethernet", **form: object) -> bytes:
    """Segments as a pcap file on a link of `network.LINKS`."""
    return pcap(packets(segments, link), LINKS[link].linktype, **form)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Interface:
    """A pcapng interface: link type, resolution (the option's byte), seconds added."""

    linktype: int = 1
    resolution: int | None = None
    offset: int = 0
    snaplen: int = 0

    @property
    def ticks(self) -> int:
        """Ticks of a second."""
        if self.resolution is None:
            return 10**6
        power = self.resolution & 0x7F
        return 1 << power if self.resolution & 0x80 else 10**power


class PcapngWriter:
    """Blocks of one pcapng file in the order they are asked for."""

    def __init__(self, big: bool = False) -> None:
        self.order = ">" if big else "<"
        self.interfaces: list[Interface] = []
        self.parts: list[bytes] = []
        self.section()

    def bytes(self) -> bytes:
        return b"".join(self.parts)

    def block(self, kind: int, body: bytes) -> None:
        """Any block; the body is padded to four bytes."""
        body += b"\0" * (-len(body) % 4)
        size = struct.pack(f"{self.order}I", 12 + len(body))
        self.parts.append(struct.pack(f"{self.order}I", kind) + size + body + size)

    def option(self, code: int, value: bytes) -> bytes:
        head = struct.pack(f"{self.order}HH", code, len(value))
        return head + value + b"\0" * (-len(value) % 4)

    def section(self, big: bool | None = None) -> None:
        """A new section: interfaces are counted anew."""
        if big is not None:
            self.order = ">" if big else "<"
        self.interfaces = []
        options = self.option(4, b"a test") + self.option(0, b"")
        self.block(0x0A0D0D0A, struct.pack(f"{self.order}IHHq", 0x1A2B3C4D, 1, 0, -1) + options)

    def interface(self, interface: Interface) -> None:
        options = self.option(2, b"eth0")
        if interface.resolution is not None:
            options += self.option(9, bytes((interface.resolution,)))
        if interface.offset:
            options += self.option(14, struct.pack(f"{self.order}q", interface.offset))
        options += self.option(0, b"")
        head = struct.pack(f"{self.order}HHI", interface.linktype, 0, interface.snaplen)
        self.interfaces.append(interface)
        self.block(1, head + options)

    def _stamp(self, ts: int, which: int) -> tuple[int, int]:
        interface = self.interfaces[which]
        ticks = (ts - interface.offset * SECOND) * interface.ticks // SECOND
        return ticks >> 32, ticks & 0xFFFFFFFF

    def enhanced(self, ts: int, data: bytes, which: int = 0, length: int | None = None) -> None:
        high, low = self._stamp(ts, which)
        size = len(data) if length is None else length
        head = struct.pack(f"{self.order}IIIII", which, high, low, len(data), size)
        padded = data + b"\0" * (-len(data) % 4)
        self.block(6, head + padded + self.option(2, b"\0\0\0\x01") + self.option(0, b""))

    def obsolete(self, ts: int, data: bytes, which: int = 0) -> None:
        high, low = self._stamp(ts, which)
        head = struct.pack(f"{self.order}HHIIII", which, 0, high, low, len(data), len(data))
        self.block(2, head + data)

    def simple(self, data: bytes, length: int | None = None) -> None:
        size = len(data) if length is None else length
        self.block(3, struct.pack(f"{self.order}I", size) + data)


def pcapng(
    timed: Sequence[tuple[int, bytes, int]], interfaces: Sequence[Interface], *, big: bool = False
) -> bytes:
    """A pcapng file of enhanced packet blocks: (time, bytes, interface)."""
    writer = PcapngWriter(big)
    for interface in interfaces:
        writer.interface(interface)
    for ts, data, which in timed:
        writer.enhanced(ts, data, which)
    return writer.bytes()
