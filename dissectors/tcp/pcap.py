"""pcap files as packets: both byte orders, microseconds and nanoseconds.

A record has no mark of its own: what it is, is told by its lengths and its time, and by what
follows it. Where they cannot be right the next records in a row are looked for, first in the last
one: a length that is wrong may have swallowed others.

Format: draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

import re
from typing import Final, final

from mypy_extensions import i64

from .capture import (
    MAX_PACKET,
    NANOSECONDS,
    ORDINARY_PACKET,
    CaptureReader,
    Packet,
    read_u32,
    read_u32_pair,
)

PCAP_HEADER: Final = 24
RECORD_HEADER: Final = 16
MAX_LENGTH: Final = 2 * MAX_PACKET
"""largest packet on the wire, bytes"""
MIN_PACKET: Final = 14
"""bytes of a packet that is believed while looking for records"""
NEAR: Final = 86400
"""seconds by which records that follow each other are believed to be apart"""
PROOF: Final = 2
"""records in a row, whatever their times, that prove one of unusual length"""
CHAIN: Final = 4
"""records in a row that prove each other; half of them where the time of the last one is known"""
INSIDE: Final = 8
"""bytes of a record for each look inside it: its payload may look like records all over"""

PCAP_MAGICS: Final = {
    b"\xd4\xc3\xb2\xa1": (False, 1000),
    b"\xa1\xb2\xc3\xd4": (True, 1000),
    b"\x4d\x3c\xb2\xa1": (False, 1),
    b"\xa1\xb2\x3c\x4d": (True, 1),
}
"""first bytes of a pcap file: (big-endian, nanoseconds of one unit of the fraction)"""

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
"""how a record's header may look: fraction, captured and original length below their limits"""


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
        self._undecided: i64 = 0
        self._looks_left: i64 = 0
        if self._big:
            self._looks = _RECORD_BIG if unit == 1000 else _RECORD_BIG_NANO
        else:
            self._looks = _RECORD_LITTLE if unit == 1000 else _RECORD_LITTLE_NANO

    def _packets_of(self, data: bytes, found: list[Packet]) -> i64:
        big = self._big
        unit: i64 = self._unit
        linktype: i64 = self._linktype
        number: i64 = self._first_id + self.packets
        at: i64 = 0
        last: i64 = -1
        size: i64 = len(data)
        ts: i64 = self.last_ts
        while size - at >= RECORD_HEADER:
            captured, length = read_u32_pair(data, at + 8, big)
            seconds, fraction = read_u32_pair(data, at, big)
            fraction *= unit
            odd = captured > ORDINARY_PACKET or captured > length or fraction >= NANOSECONDS
            if odd or not 0 < length <= MAX_LENGTH or self._lost >= 0:
                verdict: i64 = self._chain(data, at, PROOF, -1) if self._lost < 0 else 0
                if verdict < 0:
                    break
                if verdict == 0:
                    self.packets = number - self._first_id
                    self.last_ts = ts
                    at = self._recover(data, at, last, found)
                    last = -1
                    if self._lost >= 0:
                        break
                    continue
            end: i64 = at + RECORD_HEADER + captured
            if end > size:
                again: i64 = self._next_up_to_end(data, at) if self._ended else -1
                if again < 0:
                    break
                at = again
                continue
            number += 1
            ts = seconds * NANOSECONDS + fraction
            found.append(Packet(number, ts, linktype, data, at + RECORD_HEADER, end, length))
            last = at
            at = end
        self.packets = number - self._first_id
        self.last_ts = ts
        return at

    def _recover(self, data: bytes, at: i64, last: i64, found: list[Packet]) -> i64:
        """Where records go on, or, while `_lost`, from where on the bytes must be kept."""
        if last >= 0:
            self._looks_left = (at - last) // INSIDE
            inside: i64 = self._next_record(data, last + RECORD_HEADER, at)
            if inside >= 0:
                found[len(found) - 1].end = inside
                detail = "the length of a packet is wrong: there are others in it"
                self._damaged(self._offset + last, detail)
                return inside
        self._lose(at)
        again: i64 = self._next_record(data, at, -1)
        if again < 0:
            return self._undecided
        self._found_again(again)
        return again

    def _next_up_to_end(self, data: bytes, at: i64) -> i64:
        """Where records begin that fill the file, in one that is larger than what is left of it.

        -1: there are none, so the file was cut off.
        """
        self._looks_left = (len(data) - at) // INSIDE
        again: i64 = self._next_record(data, at + RECORD_HEADER, len(data))
        if again >= 0:
            self._lose(at)
            self._found_again(again)
        return again

    def _next_record(self, data: bytes, at: i64, across: i64) -> i64:
        """Where plausible records in a row begin, or -1; they must reach behind `across`."""
        stop: i64 = len(data) if across < 0 else across
        self._undecided = max(at, len(data) - RECORD_HEADER + 1)
        undecided: i64 = -1
        looks = self._looks
        match = looks.search(data, at, stop)
        while match is not None and (across < 0 or self._looks_left > 0):
            start: i64 = match.start()
            verdict: i64 = self._chain(data, start, CHAIN, across)
            if verdict > 0:
                return start
            if verdict < 0 and undecided < 0:
                undecided = start
            match = looks.search(data, start + 1, stop)
        if undecided >= 0:
            self._undecided = undecided
        return -1

    def _chain(self, data: bytes, at: i64, count: i64, across: i64) -> i64:
        """1: plausible records stand in a row here; 0: they do not; -1: more bytes must tell."""
        size: i64 = len(data)
        before: i64 = self.last_ts // NANOSECONDS if self.packets > 0 else -NEAR
        passed: i64 = 0
        while passed < count:
            if size - at < RECORD_HEADER:
                return (1 if passed > 0 and at <= size else 0) if self._ended else -1
            captured, length = read_u32_pair(data, at + 8, self._big)
            seconds, fraction = read_u32_pair(data, at, self._big)
            bad = captured > MAX_PACKET or captured > length or length > MAX_LENGTH
            if bad or captured < MIN_PACKET or fraction * self._unit >= NANOSECONDS:
                return 0
            near = before - NEAR <= seconds <= before + NEAR
            if not near and passed > 0 and count > PROOF:
                return 0
            if near and passed == 0 and across < 0:
                count = min(count, CHAIN // 2)
            before = seconds
            at += RECORD_HEADER + captured
            passed += 1
            if across >= 0:
                if at >= size and (across == size or at == size):
                    return 1 if at == size else 0
                if at > across:
                    return 1 if size - at < RECORD_HEADER or self._chain(data, at, 1, -1) else 0
                count += 1
                self._looks_left -= 1
                if self._looks_left <= 0:
                    return 0
        return 1
