"""Packets, and the common base of the pcap and pcapng readers: bytes in, packets out, no I/O.

Damaged bytes are skipped up to the next plausible record and reported with their offset; a file
that ends inside a record is reported as truncated.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, final

from librt.strings import read_i32_be, read_i32_le, read_i64_be, read_i64_le
from mypy_extensions import i64, mypyc_attr

from ..findings import Finding, FindingKind
from .passed_flows import PassedFlows

MAX_PACKET: Final = 1024 * 1024
"""largest captured packet, bytes: four times tcpdump's largest snap length, room for BIG TCP"""
LINKTYPE_ETHERNET: Final = 1
ORDINARY_PACKET: Final = 128 * 1024
"""bytes: a longer captured packet is so rare that the next record must confirm it"""

# Leaves room for 2²³ captures of 2⁴⁰ packets in a signed 64-bit integer.
CAPTURE_SHIFT: Final = 40
"""a packet id is the capture's index shifted by this, plus the packet's number in it"""

NANOSECONDS: Final = 1_000_000_000


def packet_number(packet: int) -> int:
    """Return the number of a packet in its capture file, as in Wireshark's `frame.number`."""
    return packet & ((1 << CAPTURE_SHIFT) - 1)


def capture_index(packet: int) -> int:
    """Return the index of a packet's capture file in the run."""
    return packet >> CAPTURE_SHIFT


class RecordCheck(Enum):
    """Whether valid records begin at an offset."""

    RECORDS = "as many in a row as prove each other"
    NO_RECORDS = "the bytes are something else"
    UNDECIDED = "the bytes that follow must tell"


@final
@mypyc_attr(acyclic=True)
class Packet:
    """One captured packet: a range of the chunk that contains it."""

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
        """the chunk that contains the packet"""
        self.start: i64 = start
        """offset of the first byte in `data`"""
        self.end: i64 = end
        """offset after the last captured byte in `data`"""
        self.length: i64 = length
        """length on the wire, bytes; larger than the captured length if the snap length cut the
        packet"""


def read_u32(data: bytes, at: i64, big: bool) -> i64:
    """Return an unsigned 32-bit integer in the given byte order."""
    # The functions of librt read signed integers.
    return i64(read_i32_be(data, at) if big else read_i32_le(data, at)) & 0xFFFFFFFF


def read_u32_pair(data: bytes, at: i64, big: bool) -> tuple[i64, i64]:
    """Return two consecutive unsigned 32-bit integers with a single read."""
    if big:
        both = read_i64_be(data, at)
        return (both >> 32) & 0xFFFFFFFF, both & 0xFFFFFFFF
    both = read_i64_le(data, at)
    return both & 0xFFFFFFFF, (both >> 32) & 0xFFFFFFFF


class CaptureReader:
    """Base of both readers: unread bytes, their offset in the file, and findings."""

    def __init__(self, index: int, head: bytes) -> None:
        """`head` is what was already read; `receive` continues after it."""
        self.format = ""
        self.packets: i64 = 0
        """packets so far"""
        self.passed: PassedFlows | None = None
        """flows whose packets are counted but not returned, unless first or last of a chunk"""
        self.findings: list[Finding] = []
        """findings not yet taken"""
        self.secrets: list[bytes] = []
        """TLS secrets in the file, as key logs, not yet taken"""
        self.marks: dict[int, str] = {}
        """packet id → fault that rmqtool injected there, not yet taken"""
        self.last_ts: i64 = 0
        """time of the last packet"""
        self._last: Packet | None = None
        self._first_id: i64 = index << CAPTURE_SHIFT
        self._rest = head
        self._offset: i64 = 0
        self._lost: i64 = -1
        self._ended = False

    def receive(self, data: bytes) -> list[Packet]:
        """Return the packets that these bytes complete."""
        packets: list[Packet] = []
        if self.passed is not None:
            self.passed.begin()
        at: i64 = 0
        if self._rest:
            first = self._completed(data)
            if first:  # copies one record; else the whole chunk is copied
                at = len(first) - len(self._rest)
                self._offset += self._packets_of(first, 0, packets) - at
            else:
                data = self._rest + data
        used: i64 = self._packets_of(data, at, packets)
        self._give_last(packets)
        self._rest = data[used:]
        self._offset += used
        return packets

    @property
    def waiting(self) -> i64:
        """Bytes of the incomplete record."""
        return len(self._rest)

    def take_findings(self) -> list[Finding]:
        """Return the findings since the last call."""
        findings = self.findings
        self.findings = []
        return findings

    def finish(self, problem: str | None = None) -> list[Packet]:
        """Finish the file; `problem` is the reason if it ended early.

        Return the packets after damage near the end, which no later record can confirm.
        """
        packets: list[Packet] = []
        self._ended = True
        data = self._rest
        used: i64 = self._packets_of(data, 0, packets)
        self._give_last(packets)
        self._rest = b""
        self._offset += used
        left: i64 = len(data) - used
        if self._lost >= 0:
            end: i64 = self._offset + left
            self._damaged(self._lost, f"{end - self._lost} bytes up to the end are not a packet")
            left = 0
        if problem is not None or left:
            detail = problem or f"{left} bytes of a packet that is cut off"
            self._report(FindingKind.CAPTURE_TRUNCATED, detail, self._offset)
        return packets

    def _give_last(self, packets: list[Packet]) -> None:
        """Append the last packet if it was skipped as part of a passed flow: its time counts."""
        if self._last is not None:
            packets.append(self._last)
            self._last = None

    def _completed(self, data: bytes) -> bytes:
        """Return the completed record, or b"" if these bytes do not certainly complete it."""
        raise NotImplementedError

    def _packets_of(self, data: bytes, at: i64, packets: list[Packet]) -> i64:
        """Append the complete packets from an offset on; return the offset after the used bytes."""
        raise NotImplementedError

    def _in_a_row(self, data: bytes, at: i64, count: i64) -> RecordCheck:
        """Return whether a chain of `count` records begins here."""
        raise NotImplementedError

    def _at_end(self, fits: bool) -> RecordCheck:
        """Return the verdict on a chain that the bytes end in; `fits`: it may end here."""
        if not self._ended:
            return RecordCheck.UNDECIDED
        return RecordCheck.RECORDS if fits else RecordCheck.NO_RECORDS

    def _search(
        self, looks: re.Pattern[bytes], data: bytes, at: i64, count: i64, header: i64
    ) -> i64:
        """Search for `count` records in a row; `header` is the length of a record header.

        Return where records continue, or, while `_lost`, the first offset to keep.
        """
        undecided: i64 = -1
        match = looks.search(data, at)
        while match is not None:
            start: i64 = match.start()
            verdict = self._in_a_row(data, start, count)
            if verdict is RecordCheck.RECORDS:
                self._found_again(start)
                return start
            if verdict is RecordCheck.UNDECIDED and undecided < 0:
                undecided = start
            match = looks.search(data, start + 1)
        # The last bytes may be the beginning of a header that continues in the next chunk.
        return undecided if undecided >= 0 else max(at, len(data) - header + 1)

    def _damaged(self, offset: i64, detail: str) -> None:
        self._report(FindingKind.CAPTURE_DAMAGED, detail, offset)

    def _report(self, kind: FindingKind, detail: str, offset: i64) -> None:
        packet: i64 = self._first_id + self.packets
        self.findings.append(Finding(kind, detail, self.last_ts, packet, -1, offset))

    def _lose(self, at: i64) -> None:
        """Start the search for the next record: the bytes from this offset on are damaged."""
        if self._lost < 0:
            self._lost = self._offset + at

    def _found_again(self, at: i64) -> None:
        if self._lost >= 0:
            end: i64 = self._offset + at
            self._damaged(self._lost, f"{end - self._lost} bytes are not a packet and were skipped")
            self._lost = -1
