"""pcap reader: both byte orders, microseconds and nanoseconds, and the patched libpcap format.

A record has no magic number: it is validated by its lengths, its time, and the records after it. If
they are implausible, the reader searches for the next chain of records.
Format: draft-ietf-opsawg-pcap; libpcap's sf-pcap.c for the longer header.
"""

from __future__ import annotations

import re
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

PCAP_HEADER: Final = 24
RECORD_HEADER: Final = 16
"""bytes of a record header with time and lengths: the whole header unless patched"""
PATCHED_HEADER: Final = 24
"""bytes of a record header in the patched format, once written by libpcap on Linux: it ends with
interface, protocol, and packet type"""
MAX_LENGTH: Final = 2 * MAX_PACKET
"""largest packet on the wire, bytes"""
MIN_PACKET: Final = 14
"""smallest packet accepted while searching for records, bytes"""
NEAR: Final = 86400
"""largest plausible time between consecutive records, seconds"""
PROOF: Final = 2
"""consecutive records, whatever their times, that confirm one of unusual length"""
CHAIN: Final = 4
"""consecutive records that confirm each other; half as many if the time of the last one is known"""
INSIDE: Final = 8
"""record bytes per search attempt inside it: a payload may look like records all over"""

PCAP_MAGICS: Final = {
    b"\xd4\xc3\xb2\xa1": (False, 1000, RECORD_HEADER),
    b"\xa1\xb2\xc3\xd4": (True, 1000, RECORD_HEADER),
    b"\x4d\x3c\xb2\xa1": (False, 1, RECORD_HEADER),
    b"\xa1\xb2\x3c\x4d": (True, 1, RECORD_HEADER),
    b"\x34\xcd\xb2\xa1": (False, 1000, PATCHED_HEADER),
    b"\xa1\xb2\xcd\x34": (True, 1000, PATCHED_HEADER),
}
"""magic bytes of a pcap file: (big-endian, nanoseconds per unit of the fraction, bytes of a record
header)"""

# Candidates for a search: the fraction is below 2²⁰ microseconds or 0x3c000000 nanoseconds, a bit
# more than a second; the captured length is at most 0x10ffff and no multiple of 65,536; the length
# on the wire is at most 0x20ffff. `_end_of_record` then checks the exact limits.
_NOT_ZERO: Final = rb"(?:[^\0].|.[^\0])"
_RECORD_LITTLE: Final = re.compile(
    rb"....(?:..[\x00-\x0f]\0)" + _NOT_ZERO + rb"[\x00-\x10]\0..[\x00-\x20]\0", re.DOTALL
)
_RECORD_LITTLE_NANO: Final = re.compile(
    rb"....(?:...[\x00-\x3b])" + _NOT_ZERO + rb"[\x00-\x10]\0..[\x00-\x20]\0", re.DOTALL
)
_RECORD_BIG: Final = re.compile(
    rb"....(?:\0[\x00-\x0f]..)\0[\x00-\x10]" + _NOT_ZERO + rb"\0[\x00-\x20]..", re.DOTALL
)
_RECORD_BIG_NANO: Final = re.compile(
    rb"....(?:[\x00-\x3b]...)\0[\x00-\x10]" + _NOT_ZERO + rb"\0[\x00-\x20]..", re.DOTALL
)
"""patterns of a record header: fraction, captured and original length below their limits"""


@final
class PcapReader(CaptureReader):
    """Reader of a pcap file; `reader_of` must have checked the head (24 bytes or more)."""

    def __init__(self, index: int, head: bytes) -> None:
        super().__init__(index, head[PCAP_HEADER:])
        self.format = "pcap"
        self._big, unit, size = PCAP_MAGICS[head[:4]]
        self._unit: i64 = unit
        self._header: i64 = size
        # The upper bits tell of a frame check sequence, or are reserved.
        self._linktype: i64 = read_u32(head, 20, self._big) & 0xFFFF
        self._offset = PCAP_HEADER
        self._looks_left: i64 = 0
        if self._big:
            self._looks = _RECORD_BIG if unit == 1000 else _RECORD_BIG_NANO
        else:
            self._looks = _RECORD_LITTLE if unit == 1000 else _RECORD_LITTLE_NANO

    def _completed(self, data: bytes) -> bytes:
        """Return the completed record, or b"" if it or the next one is implausible.

        The search for damage needs both.
        """
        rest = self._rest
        head = rest if len(rest) >= self._header else rest + data[: self._header - len(rest)]
        if self._lost >= 0 or len(head) < self._header or self._is_odd(head, 0):
            return b""
        missing: i64 = self._header + read_u32(head, 8, self._big) - len(rest)
        if missing <= 0 or missing + self._header > len(data) or self._is_odd(data, missing):
            return b""
        return rest + data[:missing]

    def _is_odd(self, data: bytes, at: i64) -> bool:
        """Return whether the record at this offset needs confirmation by the next one."""
        captured, length = read_u32_pair(data, at + 8, self._big)
        fraction: i64 = read_u32(data, at + 4, self._big) * self._unit
        odd = captured > ORDINARY_PACKET or captured > length or fraction >= NANOSECONDS
        return odd or not 0 < length <= MAX_LENGTH

    def _packets_of(self, data: bytes, at: i64, packets: list[Packet]) -> i64:
        big = self._big
        unit: i64 = self._unit
        header: i64 = self._header
        linktype: i64 = self._linktype
        number: i64 = self._first_id + self.packets
        last: i64 = -1
        size: i64 = len(data)
        ts: i64 = self.last_ts
        passed = self.passed if linktype == LINKTYPE_ETHERNET else None
        is_passed = False
        while size - at >= header:
            captured, length = read_u32_pair(data, at + 8, big)
            seconds, fraction = read_u32_pair(data, at, big)
            fraction *= unit
            # `_is_odd`, inlined: this loop runs once per packet.
            odd = captured > ORDINARY_PACKET or captured > length or fraction >= NANOSECONDS
            if odd or not 0 < length <= MAX_LENGTH or self._lost >= 0:
                verdict = RecordCheck.NO_RECORDS
                if self._lost < 0:
                    verdict = self._in_a_row(data, at, PROOF)
                if verdict is RecordCheck.UNDECIDED:
                    break
                if verdict is RecordCheck.NO_RECORDS:
                    if is_passed:  # its length may be wrong
                        packets.append(self._packet_at(data, last, at, number, ts))
                        is_passed = False
                    self.packets = number - self._first_id
                    self.last_ts = ts
                    at = self._recover(data, at, last, packets)
                    last = -1
                    if self._lost >= 0:
                        break
                    continue
            end: i64 = at + header + captured
            if end > size:
                # Incomplete: it continues in the next chunk. At the end of the file, it is cut off
                # or has a wrong length.
                again: i64 = self._next_up_to_end(data, at) if self._ended else -1
                if again < 0:
                    break
                at = again
                continue
            number += 1
            ts = seconds * NANOSECONDS + fraction
            # The first packet of a chunk is returned in any case, as the last one: its time counts.
            is_passed = (
                passed is not None
                and len(packets) > 0
                and passed.passes(data, at + header, end, ts)
            )
            if not is_passed:
                packets.append(Packet(number, ts, linktype, data, at + header, end, length))
            last = at
            at = end
        if is_passed:
            packets.append(self._packet_at(data, last, at, number, ts))
        self.packets = number - self._first_id
        self.last_ts = ts
        return at

    def _packet_at(self, data: bytes, at: i64, end: i64, number: i64, ts: i64) -> Packet:
        """Return the packet of the record in this range."""
        length: i64 = read_u32(data, at + 12, self._big)
        return Packet(number, ts, self._linktype, data, at + self._header, end, length)

    def _recover(self, data: bytes, at: i64, last: i64, packets: list[Packet]) -> i64:
        """Return where records continue, or, while `_lost`, the first offset to keep."""
        if last >= 0:
            # The last record may have swallowed others: its length is the only thing that says
            # where this one begins.
            self._looks_left = (at - last) // INSIDE
            inside: i64 = self._next_inside(data, last + self._header, at)
            if inside >= 0:
                packets[len(packets) - 1].end = inside
                detail = "the length of a packet is wrong: there are others in it"
                self._damaged(self._offset + last, detail)
                return inside
        self._lose(at)
        return self._search(self._looks, data, at, CHAIN, self._header)

    def _next_up_to_end(self, data: bytes, at: i64) -> i64:
        """Return the offset of records that reach the end of the file, or -1 if it was truncated.

        For a record that is longer than the rest of the file.
        """
        self._looks_left = (len(data) - at) // INSIDE
        again: i64 = self._next_inside(data, at + self._header, len(data))
        if again >= 0:
            self._lose(at)
            self._found_again(again)
        return again

    def _next_inside(self, data: bytes, at: i64, end: i64) -> i64:
        """Return the offset of a chain of plausible records up to `end` or beyond, or -1."""
        looks = self._looks
        match = looks.search(data, at, end)
        while match is not None and self._looks_left > 0:
            start: i64 = match.start()
            if self._reach(data, start, end) is RecordCheck.RECORDS:
                return start
            match = looks.search(data, start + 1, end)
        return -1

    def _in_a_row(self, data: bytes, at: i64, count: i64) -> RecordCheck:
        """Return whether a chain of records begins here; a short one if the first fits the last
        packet.
        """
        before: i64 = self._last_second()
        passed: i64 = 0
        while passed < count:
            if len(data) - at < self._header:
                return self._at_end(passed > 0 and at <= len(data))
            end: i64 = self._end_of_record(data, at)
            if end < 0:
                return RecordCheck.NO_RECORDS
            seconds: i64 = read_u32(data, at, self._big)
            near = before - NEAR <= seconds <= before + NEAR
            if passed == 0 and near:
                count = min(count, CHAIN // 2)
            elif passed > 0 and not near and count > PROOF:
                return RecordCheck.NO_RECORDS
            before = seconds
            at = end
            passed += 1
        return RecordCheck.RECORDS

    def _reach(self, data: bytes, at: i64, end: i64) -> RecordCheck:
        """Return whether plausible records follow each other from here to `end` or beyond."""
        size: i64 = len(data)
        before: i64 = 0
        passed: i64 = 0
        while self._looks_left > 0:
            if size - at < self._header:
                return self._at_end(passed > 0 and at <= size)
            next_at: i64 = self._end_of_record(data, at)
            seconds: i64 = read_u32(data, at, self._big)
            near = passed == 0 or before - NEAR <= seconds <= before + NEAR
            if next_at < 0 or not near:
                return RecordCheck.NO_RECORDS
            before = seconds
            at = next_at
            passed += 1
            if at >= size and (end == size or at == size):
                return RecordCheck.RECORDS if at == size else RecordCheck.NO_RECORDS
            if at > end:
                return self._goes_on(data, at)
            self._looks_left -= 1
        return RecordCheck.NO_RECORDS

    def _goes_on(self, data: bytes, at: i64) -> RecordCheck:
        """Return whether one more record begins here, as far as the bytes show."""
        if len(data) - at < self._header:
            return RecordCheck.RECORDS
        if self._in_a_row(data, at, 1) is RecordCheck.NO_RECORDS:
            return RecordCheck.NO_RECORDS
        return RecordCheck.RECORDS

    def _end_of_record(self, data: bytes, at: i64) -> i64:
        """Return the end of a plausible record at this offset, or -1."""
        captured, length = read_u32_pair(data, at + 8, self._big)
        if captured > MAX_PACKET or captured > length or length > MAX_LENGTH:
            return -1
        fraction: i64 = read_u32(data, at + 4, self._big)
        if captured < MIN_PACKET or fraction * self._unit >= NANOSECONDS:
            return -1
        return at + self._header + captured

    def _last_second(self) -> i64:
        """Return the time of the last packet, or a time near no other if there was none."""
        return self.last_ts // NANOSECONDS if self.packets > 0 else -NEAR
