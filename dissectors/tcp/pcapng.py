"""pcapng files as packets: any number of sections and interfaces, each with its own link type.

Blocks: section header, interface description, enhanced, simple and obsolete packet; others are
passed over. Format: draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from .capture import MAX_PACKET, NANOSECONDS, CaptureReader, Packet, read_u32, read_u32_pair

PCAPNG_MAGIC: Final = b"\x0a\x0d\x0d\x0a"
MAX_BLOCK: Final = 16 * 1024 * 1024
"""largest pcapng block, bytes: Wireshark's own limit"""
MAX_INTERFACES: Final = 4096
"""interfaces of one pcapng section; one costs some 100 bytes"""
BLOCK_HEADER: Final = 12
SECTION_HEADER: Final = 0x0A0D0D0A
INTERFACE_DESCRIPTION: Final = 1
OBSOLETE_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
ENHANCED_PACKET: Final = 6
BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D


@final
class _Interface:
    """One pcapng interface: link type, snap length and the unit of its time stamps."""

    __slots__ = ("base", "linktype", "offset", "snaplen", "unit")

    def __init__(self, linktype: i64, snaplen: i64) -> None:
        self.linktype: i64 = linktype
        self.snaplen: i64 = snaplen
        self.unit: i64 = 1000
        """nanoseconds of one tick; 0: see `base`"""
        self.base = 1_000_000
        """ticks of one second"""
        self.offset: i64 = 0
        """seconds to add"""


@final
class PcapngReader(CaptureReader):
    """A pcapng file: sections, interfaces, enhanced, simple and obsolete packet blocks."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.format = "pcapng"
        self._big = False
        self._interfaces: list[_Interface] = []

    def _packets_of(self, data: bytes, found: list[Packet]) -> i64:
        at: i64 = 0
        size: i64 = len(data)
        while size - at >= BLOCK_HEADER:
            kind = read_u32(data, at, self._big)
            if kind == SECTION_HEADER:
                self._big = read_u32(data, at + 8, True) == BYTE_ORDER_MAGIC
            length = read_u32(data, at + 4, self._big)
            bad = length < BLOCK_HEADER or length & 3 != 0 or length > MAX_BLOCK
            if not bad and self._lost < 0 and at + length > size:
                break
            if bad or self._lost >= 0 or read_u32(data, at + length - 4, self._big) != length:
                self._lose(at)
                again = self._next_block(data, at + 4)
                if again < 0:
                    at = max(at, size - MAX_PACKET)
                    break
                at = again
                self._found_again(at)
                continue
            self._block(kind, data, at, length, found)
            at += length
        return at

    def _next_block(self, data: bytes, at: i64) -> i64:
        """Where the next enhanced packet block begins whose two lengths agree, or -1."""
        order = "big" if self._big else "little"
        kind = ENHANCED_PACKET.to_bytes(4, order)  # type: ignore[arg-type]
        size: i64 = len(data)
        place = data.find(kind, at)
        while place >= 0 and place + 8 <= size:
            length = read_u32(data, place + 4, self._big)
            fits = 32 <= length <= MAX_PACKET + 1024 and place + length <= size
            if fits and read_u32(data, place + length - 4, self._big) == length:
                return place
            place = data.find(kind, place + 1)
        return -1

    def _block(self, kind: i64, data: bytes, at: i64, length: i64, found: list[Packet]) -> None:
        if kind == ENHANCED_PACKET and length >= 32:
            self._packet(data, at, length, read_u32(data, at + 8, self._big), found)
        elif kind == INTERFACE_DESCRIPTION and length >= 20:
            self._interface(data, at, length)
        elif kind == OBSOLETE_PACKET and length >= 32:
            first = read_u32(data, at + 8, self._big)
            interface: i64 = first >> 16 if self._big else first & 0xFFFF
            self._packet(data, at, length, interface, found)
        elif kind == SIMPLE_PACKET and length >= 16:
            self._simple_packet(data, at, length, found)
        elif kind == SECTION_HEADER:
            self._interfaces = []

    def _interface(self, data: bytes, at: i64, length: i64) -> None:
        word = read_u32(data, at + 8, self._big)
        linktype: i64 = word >> 16 if self._big else word & 0xFFFF
        interface = _Interface(linktype, read_u32(data, at + 12, self._big))
        if len(self._interfaces) >= MAX_INTERFACES:
            self._damaged(self._offset + at, f"more than {MAX_INTERFACES} interfaces")
            return
        self._interfaces.append(interface)
        place: i64 = at + 16
        end: i64 = at + length - 4
        while place + 4 <= end:
            word = read_u32(data, place, self._big)
            code: i64 = word >> 16 if self._big else word & 0xFFFF
            size: i64 = word & 0xFFFF if self._big else word >> 16
            if code == 0 or place + 4 + size > end:
                break
            if code == 9 and size >= 1:
                _set_resolution(interface, data[place + 4])
            elif code == 14 and size >= 8:
                order = "big" if self._big else "little"
                raw = data[place + 4 : place + 12]
                offset = int.from_bytes(raw, order, signed=True)  # type: ignore[arg-type]
                if abs(offset) < 1 << 33:
                    interface.offset = offset
            place += 4 + ((size + 3) & ~3)

    def _packet(self, data: bytes, at: i64, length: i64, which: i64, found: list[Packet]) -> None:
        captured = read_u32(data, at + 20, self._big)
        if which >= len(self._interfaces) or captured > length - 32 or captured > MAX_PACKET:
            self._damaged(self._offset + at, "a packet block that does not fit its interface")
            return
        interface = self._interfaces[which]
        high, low = read_u32_pair(data, at + 12, self._big)
        self.last_ts = _timestamp(interface, high, low, self.last_ts)
        self._give(interface, data, at + 28, captured, read_u32(data, at + 24, self._big), found)

    def _simple_packet(self, data: bytes, at: i64, length: i64, found: list[Packet]) -> None:
        """A block without interface and time: the first interface, the time of the last packet."""
        if not self._interfaces:
            self._damaged(self._offset + at, "a packet block before any interface")
            return
        interface = self._interfaces[0]
        original = read_u32(data, at + 8, self._big)
        captured: i64 = min(original, length - 16)
        if interface.snaplen and captured > interface.snaplen:
            captured = interface.snaplen
        self._give(interface, data, at + 12, captured, original, found)

    def _give(
        self,
        interface: _Interface,
        data: bytes,
        start: i64,
        captured: i64,
        length: i64,
        found: list[Packet],
    ) -> None:
        self.packets += 1
        packet: i64 = self._first_id + self.packets
        end: i64 = start + captured
        ts: i64 = self.last_ts
        found.append(Packet(packet, ts, interface.linktype, data, start, end, length))


def _set_resolution(interface: _Interface, resolution: int) -> None:
    """The option if_tsresol: a power of ten, or of two where the top bit is set."""
    power = resolution & 0x7F
    if resolution & 0x80:
        interface.base = 1 << min(power, 62)
    else:
        interface.base = 10 ** min(power, 18)
    exact = NANOSECONDS % interface.base == 0
    interface.unit = NANOSECONDS // interface.base if exact else 0


def _timestamp(interface: _Interface, high: i64, low: i64, last: i64) -> i64:
    """Nanoseconds since the epoch; a time that no clock shows (after 2262) is the last one."""
    if interface.unit and high < 1 << 24:
        near: i64 = ((high << 32) | low) * interface.unit
        if 0 <= near < 1 << 61:
            return near + interface.offset * NANOSECONDS
    ticks = (int(high) << 32) | int(low)
    exact = ticks * NANOSECONDS // interface.base + int(interface.offset) * NANOSECONDS
    return exact if 0 <= exact < 1 << 62 else last
