"""pcap and pcapng files as packets: bytes in, packets and findings out, no I/O.

A reader is given the file's bytes in chunks of any size (`receive`) and gives the packets that are
complete. A packet does not copy its bytes: it names a range of the chunk it came with. Damaged
bytes are skipped to the next plausible record and said with their offset; a file that ends inside
a record is said to be truncated.

Formats: pcap (both byte orders, microseconds and nanoseconds), draft-ietf-opsawg-pcap; pcapng (any
number of sections and interfaces), draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be, read_i32_le, read_i64_be, read_i64_le
from mypy_extensions import i64

from ..expert import ExpertInfo, ExpertKind

MAX_PACKET: Final = 1024 * 1024
"""largest captured packet, bytes: four times tcpdump's largest snap length, room for BIG TCP"""
MAX_BLOCK: Final = 16 * 1024 * 1024
"""largest pcapng block, bytes: Wireshark's own limit"""
MAX_INTERFACES: Final = 4096
"""interfaces of one pcapng section; one costs some 100 bytes"""

CAPTURE_SHIFT: Final = 40
"""a packet id is the capture's index shifted by this, plus the packet's number in it"""

PCAP_HEADER: Final = 24
RECORD_HEADER: Final = 16
BLOCK_HEADER: Final = 12
SECTION_HEADER: Final = 0x0A0D0D0A
INTERFACE_DESCRIPTION: Final = 1
OBSOLETE_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
ENHANCED_PACKET: Final = 6
BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D
NANOSECONDS: Final = 1_000_000_000

PCAP_MAGICS: Final = {
    b"\xd4\xc3\xb2\xa1": (False, 1000),
    b"\xa1\xb2\xc3\xd4": (True, 1000),
    b"\x4d\x3c\xb2\xa1": (False, 1),
    b"\xa1\xb2\x3c\x4d": (True, 1),
}
"""first bytes of a pcap file: (big-endian, nanoseconds of one unit of the fraction)"""
PCAPNG_MAGIC: Final = b"\x0a\x0d\x0d\x0a"


def packet_number(packet: int) -> int:
    """The number of a packet in its capture file, as in Wireshark's `frame.number`."""
    return packet & ((1 << CAPTURE_SHIFT) - 1)


def capture_index(packet: int) -> int:
    """The index of a packet's capture file in the run."""
    return packet >> CAPTURE_SHIFT


@final
class Packet:
    """One captured packet: a range of the chunk that it was read with."""

    __slots__ = ("data", "end", "length", "linktype", "packet", "start", "ts")

    def __init__(
        self, packet: i64, ts: i64, linktype: i64, data: bytes, start: i64, end: i64, length: i64
    ) -> None:
        self.packet: i64 = packet
        """packet id: capture index and number"""
        self.ts: i64 = ts
        """nanoseconds since the epoch"""
        self.linktype: i64 = linktype
        """LINKTYPE_ number of its interface"""
        self.data = data
        """the bytes that hold it"""
        self.start: i64 = start
        """where it begins in `data`"""
        self.end: i64 = end
        """where its captured bytes end in `data`"""
        self.length: i64 = length
        """its length on the wire; more than was captured where the snap length cut it"""


def read_u32(data: bytes, at: i64, big: bool) -> i64:
    """An unsigned 32-bit integer in the byte order given."""
    return i64(read_i32_be(data, at) if big else read_i32_le(data, at)) & 0xFFFFFFFF


def read_u32_pair(data: bytes, at: i64, big: bool) -> tuple[i64, i64]:
    """Two unsigned 32-bit integers that follow each other, with one look at the bytes."""
    if big:
        both = read_i64_be(data, at)
        return (both >> 32) & 0xFFFFFFFF, both & 0xFFFFFFFF
    both = read_i64_le(data, at)
    return both & 0xFFFFFFFF, (both >> 32) & 0xFFFFFFFF


class CaptureReader:
    """What both formats share: the bytes not yet used, their place in the file, the findings."""

    def __init__(self, index: int) -> None:
        self.format = ""
        self.packets: i64 = 0
        """packets given out so far"""
        self.experts: list[ExpertInfo] = []
        """findings that were not taken yet"""
        self.last_ts: i64 = 0
        """time of the last packet"""
        self._first_id: i64 = index << CAPTURE_SHIFT
        self._rest = b""
        self._offset: i64 = 0
        self._lost: i64 = -1

    def receive(self, data: bytes) -> list[Packet]:
        """The packets that are complete with these bytes."""
        if self._rest:
            data = self._rest + data
        found: list[Packet] = []
        used: i64 = self._packets_of(data, found)
        self._rest = data[used:]
        self._offset += used
        return found

    def take_experts(self) -> list[ExpertInfo]:
        """The findings since the last call."""
        taken = self.experts
        self.experts = []
        return taken

    def finish(self, problem: str | None = None) -> None:
        """The file has ended; `problem` says why, where it was not by itself."""
        end: i64 = self._offset + len(self._rest)
        if self._lost >= 0:
            self._damaged(self._lost, f"{end - self._lost} bytes up to the end are no packet")
        elif problem is not None or self._rest:
            detail = problem or f"{len(self._rest)} bytes of a packet that is cut off"
            self._say(ExpertKind.CAPTURE_TRUNCATED, detail, self._offset)

    def _packets_of(self, data: bytes, found: list[Packet]) -> i64:
        raise NotImplementedError

    def _damaged(self, offset: i64, detail: str) -> None:
        self._say(ExpertKind.CAPTURE_DAMAGED, detail, offset)

    def _say(self, kind: ExpertKind, detail: str, offset: i64) -> None:
        packet: i64 = self._first_id + self.packets
        self.experts.append(ExpertInfo(kind, detail, self.last_ts, packet, -1, offset))

    def _lose(self, at: i64) -> None:
        """From here on the bytes are no record; the search for the next one begins."""
        if self._lost < 0:
            self._lost = self._offset + at

    def _found_again(self, at: i64) -> None:
        if self._lost >= 0:
            end: i64 = self._offset + at
            self._damaged(self._lost, f"{end - self._lost} bytes are no packet and were skipped")
            self._lost = -1


@final
class PcapReader(CaptureReader):
    """A pcap file. The first 24 bytes must have been checked by `reader_of`."""

    def __init__(self, index: int, header: bytes) -> None:
        super().__init__(index)
        self.format = "pcap"
        self._big, unit = PCAP_MAGICS[header[:4]]
        self._unit: i64 = unit
        self._linktype: i64 = read_u32(header, 20, self._big) & 0xFFFF
        self._offset = PCAP_HEADER

    def _packets_of(self, data: bytes, found: list[Packet]) -> i64:
        big = self._big
        unit: i64 = self._unit
        linktype: i64 = self._linktype
        number: i64 = self._first_id + self.packets
        at: i64 = 0
        size: i64 = len(data)
        ts: i64 = self.last_ts
        while size - at >= RECORD_HEADER:
            captured, length = read_u32_pair(data, at + 8, big)
            seconds, fraction = read_u32_pair(data, at, big)
            fraction *= unit
            damaged = captured > MAX_PACKET or captured > length or fraction >= NANOSECONDS
            if damaged or self._lost >= 0:
                self._lose(at)
                again = self._next_record(data, at)
                if again < 0:
                    at = max(at, size - 2 * RECORD_HEADER - MAX_PACKET)
                    break
                at = again
                self._found_again(at)
                continue
            end: i64 = at + RECORD_HEADER + captured
            if end > size:
                break
            number += 1
            ts = seconds * NANOSECONDS + fraction
            found.append(Packet(number, ts, linktype, data, at + RECORD_HEADER, end, length))
            at = end
        self.packets = number - self._first_id
        self.last_ts = ts
        return at

    def _next_record(self, data: bytes, at: i64) -> i64:
        """Where the next two plausible record headers in a row begin, or -1.

        They are looked for by the upper half of the seconds (18 hours) of the last good packet.
        """
        order = "big" if self._big else "little"
        seconds = int(self.last_ts) // NANOSECONDS
        half = (seconds >> 16).to_bytes(2, order)  # type: ignore[arg-type]
        shift = 0 if self._big else 2
        place = data.find(half, at + 1 + shift)
        while place >= 0:
            start: i64 = place - shift
            if self._plausible(data, start):
                return start
            place = data.find(half, place + 1)
        return -1

    def _plausible(self, data: bytes, at: i64) -> bool:
        size: i64 = len(data)
        for _ in range(2):
            if at + RECORD_HEADER > size:
                return False
            captured, length = read_u32_pair(data, at + 8, self._big)
            fraction = read_u32(data, at + 4, self._big) * self._unit
            bad = captured > MAX_PACKET or captured > length or length > 2 * MAX_PACKET
            if bad or captured < 14 or fraction >= NANOSECONDS:
                return False
            at += RECORD_HEADER + captured
            if at == size:
                return True
        return True


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


def reader_of(index: int, head: bytes) -> CaptureReader | None:
    """The reader for a file that begins with these (at least 24) bytes, or None if it is neither.

    A pcap reader is to be given the bytes after the first 24, a pcapng reader all of them.
    """
    if head[:4] in PCAP_MAGICS and len(head) >= PCAP_HEADER:
        return PcapReader(index, head)
    if head[:4] == PCAPNG_MAGIC and len(head) >= BLOCK_HEADER:
        return PcapngReader(index)
    return None
