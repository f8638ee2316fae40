"""pcapng reader: any number of sections and interfaces, each with its own link type.

Blocks: section header, interface description, enhanced, simple, and obsolete packet, decryption
secrets; others are skipped.
Format: draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import re
from operator import mul
from typing import Final, final

from mypy_extensions import i64

from .capture import (
    LINKTYPE_ETHERNET,
    MAX_PACKET,
    NANOSECONDS,
    ORDINARY_PACKET,
    CaptureReader,
    Packet,
    RecordCheck,
    read_u32,
    read_u32_pair,
)

PCAPNG_MAGIC: Final = b"\x0a\x0d\x0d\x0a"
MAX_TIME: Final = 1 << 62
"""largest accepted time, nanoseconds since the epoch"""
MAX_BLOCK: Final = 16 * 1024 * 1024
"""largest pcapng block, bytes: Wireshark's own limit"""
MAX_OPTIONS: Final = 4096
"""maximum bytes of packet options in a truncated last block"""
INSIDE: Final = 8
"""block bytes per search attempt inside it: content may look like blocks all over"""
PROOF: Final = 2
"""consecutive blocks that confirm each other: each has its length at both ends"""
WHOLE_FILE: Final = 1 << 40
"""number of blocks in a chain that stands for the rest of the file"""
MAX_INTERFACES: Final = 4096
"""maximum interfaces of one pcapng section; each takes about 100 bytes"""
BLOCK_HEADER: Final = 12
SECTION_HEADER: Final = 0x0A0D0D0A
INTERFACE_DESCRIPTION: Final = 1
OBSOLETE_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
ENHANCED_PACKET: Final = 6
DECRYPTION_SECRETS: Final = 10
TLS_KEY_LOG: Final = 0x544C534B
"""secrets type: TLS key log text"""
BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D
TIME_RESOLUTION: Final = 9
"""code of the option if_tsresol of an interface"""
TIME_OFFSET: Final = 14
"""code of the option if_tsoffset of an interface"""
COMMENT: Final = 1
"""code of the comment option of a packet"""
FAULT_MARK: Final = b"rmqtool injected: "
"""prefix of a comment that marks an injected fault"""
MAX_MARK: Final = 512
"""maximum bytes of such a comment"""
MAX_MARKS: Final = 65_536
"""such comments that may wait for the commands of their packets"""

_BLOCK_LITTLE: Final = re.compile(rb"\x0a\x0d\x0d\x0a|[\1\2\3\6]\0\0\0..[\x00-\x10]\0", re.DOTALL)
_BLOCK_BIG: Final = re.compile(rb"\x0a\x0d\x0d\x0a|\0\0\0[\1\2\3\6]\0[\x00-\x10]..", re.DOTALL)
"""patterns of a block during a search: a section, an interface, a packet"""


@final
class _Interface:
    """One pcapng interface: link type, snap length, and timestamp resolution."""

    __slots__ = ("base", "exact", "linktype", "offset", "snaplen", "unit")

    def __init__(self, linktype: i64, snaplen: i64) -> None:
        self.linktype: i64 = linktype
        self.snaplen: i64 = snaplen
        self.unit: i64 = 1000
        """nanoseconds per tick; 0: see `base`"""
        self.exact: i64 = MAX_TIME // 1000
        """ticks below which `unit` and 64 bits suffice"""
        self.base = 1_000_000
        """ticks per second"""
        self.offset: i64 = 0
        """seconds to add"""


@final
class PcapngReader(CaptureReader):
    """A pcapng file: sections, interfaces, enhanced, simple and obsolete packet blocks."""

    def __init__(self, index: int, head: bytes) -> None:
        super().__init__(index, head)
        self.format = "pcapng"
        self._big = False
        self._interfaces: list[_Interface] = []
        self._looks_left: i64 = 0

    def _completed(self, data: bytes) -> bytes:
        """Return the completed block, or b"" for a block that sets how others are read."""
        rest = self._rest
        head = rest if len(rest) >= 8 else rest + data[: 8 - len(rest)]
        if self._lost >= 0 or len(head) < 8 or read_u32(head, 0, self._big) == SECTION_HEADER:
            return b""
        length = read_u32(head, 4, self._big)
        missing: i64 = length - len(rest)
        if length & 3 != 0 or not BLOCK_HEADER <= length <= MAX_BLOCK:
            return b""
        if not 0 < missing <= len(data):
            return b""
        whole = rest + data[:missing]
        return whole if read_u32(whole, length - 4, self._big) == length else b""

    def _packets_of(self, data: bytes, at: i64, packets: list[Packet]) -> i64:
        size: i64 = len(data)
        while size - at >= BLOCK_HEADER:
            if self._lost >= 0:
                at = self._recover(data, at)
                if self._lost >= 0:
                    break
            kind = read_u32(data, at, self._big)
            if kind == SECTION_HEADER:  # reads the same in both byte orders
                self._big = _order_of(data, at, self._big)
            length = read_u32(data, at + 4, self._big)
            bad = length < BLOCK_HEADER or length & 3 != 0 or length > MAX_BLOCK
            if not bad and at + length > size:
                if not self._ended:
                    break
                bad = self._is_odd(kind, data, at, length)
                again: i64 = -1 if bad else self._next_up_to_end(data, at)
                if again >= 0:
                    at = again
                    continue
                if not bad:
                    break
            # A block ends with its length again.
            if bad or read_u32(data, at + length - 4, self._big) != length:
                self._lose(at)
                continue
            self._block(kind, data, at, length, packets)
            at += length
        return at

    def _is_odd(self, kind: i64, data: bytes, at: i64, length: i64) -> bool:
        """Return whether a block cut off by the end of the file more likely has a wrong length."""
        if kind == ENHANCED_PACKET and at + 24 <= len(data):
            captured = read_u32(data, at + 20, self._big)
            return not 32 + captured <= length <= 32 + captured + MAX_OPTIONS
        return length > ORDINARY_PACKET

    def _next_up_to_end(self, data: bytes, at: i64) -> i64:
        """Return the offset of blocks that reach the end of the file, or -1 if it was truncated.

        For a block that is longer than the rest of the file.
        """
        looks = _BLOCK_BIG if self._big else _BLOCK_LITTLE
        self._looks_left = (len(data) - at) // INSIDE
        match = looks.search(data, at + 4)
        while match is not None and self._looks_left > 0:
            start: i64 = match.start()
            if self._in_a_row(data, start, WHOLE_FILE) is RecordCheck.RECORDS:
                self._lose(at)
                self._found_again(start)
                return start
            match = looks.search(data, start + 1)
        return -1

    def _recover(self, data: bytes, at: i64) -> i64:
        """Return where blocks continue, or, while `_lost`, the first offset to keep."""
        looks = _BLOCK_BIG if self._big else _BLOCK_LITTLE
        return self._search(looks, data, at, PROOF, BLOCK_HEADER)

    def _in_a_row(self, data: bytes, at: i64, count: i64) -> RecordCheck:
        """Return whether a chain of `count` blocks begins here."""
        size: i64 = len(data)
        big = self._big
        for index in range(count):
            if size - at < BLOCK_HEADER:
                return self._at_end(index > 0 and at == size)
            if read_u32(data, at, big) == SECTION_HEADER:
                big = _order_of(data, at, big)
            length = read_u32(data, at + 4, big)
            if length < BLOCK_HEADER or length & 3 or length > MAX_PACKET + 1024:
                return RecordCheck.NO_RECORDS
            if at + length > size:
                return self._at_end(index > 0 and count < WHOLE_FILE)
            if read_u32(data, at + length - 4, big) != length:
                return RecordCheck.NO_RECORDS
            at += length
            self._looks_left -= 1
            if count == WHOLE_FILE and self._looks_left <= 0:
                return RecordCheck.NO_RECORDS
        return RecordCheck.RECORDS

    def _block(self, kind: i64, data: bytes, at: i64, length: i64, packets: list[Packet]) -> None:
        if kind == ENHANCED_PACKET and length >= 32:
            self._packet(data, at, length, read_u32(data, at + 8, self._big), packets)
        elif kind == INTERFACE_DESCRIPTION and length >= 20:
            self._interface(data, at, length)
        elif kind == OBSOLETE_PACKET and length >= 32:
            interface, _ = self._u16_pair(data, at + 8)
            self._packet(data, at, length, interface, packets)
        elif kind == SIMPLE_PACKET and length >= 16:
            self._simple_packet(data, at, length, packets)
        elif kind == SECTION_HEADER:
            self._interfaces = []  # packets name them by their number in the section
        elif kind == DECRYPTION_SECRETS and length >= 20:
            size: i64 = read_u32(data, at + 12, self._big)
            if read_u32(data, at + 8, self._big) == TLS_KEY_LOG and size <= length - 20:
                self.secrets.append(data[at + 16 : at + 16 + size])

    def _interface(self, data: bytes, at: i64, length: i64) -> None:
        linktype, _ = self._u16_pair(data, at + 8)
        interface = _Interface(linktype, read_u32(data, at + 12, self._big))
        if len(self._interfaces) >= MAX_INTERFACES:
            self._damaged(self._offset + at, f"more than {MAX_INTERFACES} interfaces")
            return
        self._interfaces.append(interface)
        place: i64 = at + 16
        end: i64 = at + length - 4
        while place + 4 <= end:
            code, size = self._u16_pair(data, place)
            if code == 0 or place + 4 + size > end:
                break
            if code == TIME_RESOLUTION and size >= 1:
                _set_resolution(interface, data[place + 4])
            elif code == TIME_OFFSET and size >= 8:
                order = "big" if self._big else "little"
                raw = data[place + 4 : place + 12]
                offset = int.from_bytes(raw, order, signed=True)  # type: ignore[arg-type]
                if abs(offset) < 1 << 33:  # seconds; more is damage
                    interface.offset = offset
                    interface.exact = 0  # the offset needs the long way of `_timestamp`
            place += 4 + ((size + 3) & ~3)

    def _packet(
        self, data: bytes, at: i64, length: i64, interface_id: i64, packets: list[Packet]
    ) -> None:
        captured = read_u32(data, at + 20, self._big)
        # 32 bytes of a block are not packet or options: 28 before them, and the length at the end.
        if interface_id >= len(self._interfaces) or captured > length - 32 or captured > MAX_PACKET:
            self._damaged(self._offset + at, "a packet block that does not fit its interface")
            return
        interface = self._interfaces[interface_id]
        high, low = read_u32_pair(data, at + 12, self._big)
        self.last_ts = _timestamp(interface, high, low, self.last_ts)
        self._give(interface, data, at + 28, captured, read_u32(data, at + 24, self._big), packets)
        options: i64 = at + 28 + ((captured + 3) & ~3)
        if options + 8 <= at + length - 4:
            self._mark(data, options, at + length - 4)

    def _mark(self, data: bytes, place: i64, end: i64) -> None:
        """Read a comment that marks an injected fault, and attach it to the last packet."""
        while place + 4 <= end:
            code, size = self._u16_pair(data, place)
            if code == 0 or place + 4 + size > end:
                return
            if code == COMMENT and size <= MAX_MARK and len(self.marks) < MAX_MARKS:
                text = data[place + 4 : place + 4 + size]
                if text.startswith(FAULT_MARK):
                    packet: i64 = self._first_id + self.packets
                    self.marks[packet] = text[len(FAULT_MARK) :].decode("utf-8", "replace")
            place += 4 + ((size + 3) & ~3)

    def _u16_pair(self, data: bytes, at: i64) -> tuple[i64, i64]:
        """Return two consecutive unsigned 16-bit integers, such as an option's code and length."""
        word = read_u32(data, at, self._big)
        high: i64 = word >> 16
        low: i64 = word & 0xFFFF
        return (high, low) if self._big else (low, high)

    def _simple_packet(self, data: bytes, at: i64, length: i64, packets: list[Packet]) -> None:
        """Read a simple packet block: first interface, time of the last packet."""
        if not self._interfaces:
            self._damaged(self._offset + at, "a packet block before any interface")
            return
        interface = self._interfaces[0]
        original = read_u32(data, at + 8, self._big)
        captured: i64 = min(original, length - 16)
        if interface.snaplen and captured > interface.snaplen:
            captured = interface.snaplen
        self._give(interface, data, at + 12, captured, original, packets)

    def _give(
        self,
        interface: _Interface,
        data: bytes,
        start: i64,
        captured: i64,
        length: i64,
        packets: list[Packet],
    ) -> None:
        self.packets += 1
        packet: i64 = self._first_id + self.packets
        end: i64 = start + captured
        ts: i64 = self.last_ts
        result = Packet(packet, ts, interface.linktype, data, start, end, length)
        passed = self.passed if interface.linktype == LINKTYPE_ETHERNET else None
        if passed is not None and len(packets) > 0 and passed.passes(data, start, end, ts):
            self._last = result
        else:
            self._last = None
            packets.append(result)


def _set_resolution(interface: _Interface, resolution: int) -> None:
    """Apply if_tsresol: a power of ten, or of two if the top bit is set."""
    power = resolution & 0x7F
    if resolution & 0x80:
        interface.base = 1 << min(power, 62)
    else:
        interface.base = 10 ** min(power, 18)
    exact = NANOSECONDS % interface.base == 0
    interface.unit = NANOSECONDS // interface.base if exact else 0
    interface.exact = MAX_TIME // interface.unit if exact and not interface.offset else 0


def _timestamp(interface: _Interface, high: i64, low: i64, last: i64) -> i64:
    """Return nanoseconds since the epoch; an implausible time (after 2116) becomes the last one."""
    if high < 1 << 30:
        ticks: i64 = (high << 32) | low
        if ticks < interface.exact:
            return ticks * interface.unit
    whole = (int(high) << 32) | int(low)
    # Not by `*`: Python handles signals during large-integer multiplication, and compiled code
    # treats an exception raised there as a failed allocation, and aborts.
    ns: int = mul(whole, NANOSECONDS) // interface.base + mul(int(interface.offset), NANOSECONDS)
    return ns if 0 <= ns < MAX_TIME else last


def _order_of(data: bytes, at: i64, big: bool) -> bool:
    """Return whether a section is big-endian; keep the byte order if its magic is damaged."""
    if read_u32(data, at + 8, True) == BYTE_ORDER_MAGIC:
        return True
    return big and read_u32(data, at + 8, False) != BYTE_ORDER_MAGIC
