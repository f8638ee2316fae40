"""Cut captures into ranges that different tasks read: a file, or part of an uncompressed one.

A file is cut where a packet's record begins. Records have no mark, and a payload may look like
them, so a place is believed only if every row of records that may begin in the bytes before leads
there: the true row is one of them. Where rows disagree, or none goes on, the file is not cut. The
task that reads a range sees whether its last record ends there; if not, it reads on, and what the
task behind it read does not count (`summary.RunLayout`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Protocol

import msgspec

from ..tcp.capture import MAX_PACKET
from ..tcp.formats import PCAP_HEADER, PCAP_MAGICS, PCAPNG_MAGIC, is_capture
from ..tcp.pcapng import (
    BLOCK_HEADER,
    BYTE_ORDER_MAGIC,
    DECRYPTION_SECRETS,
    ENHANCED_PACKET,
    INTERFACE_DESCRIPTION,
    OBSOLETE_PACKET,
    SECTION_HEADER,
    SIMPLE_PACKET,
)
from ..tcp.source import expand_sources

RANGE_BYTES = 32 * 1024 * 1024
"""bytes of a range, about"""
LOOKED_AT = 256 * 1024
"""bytes that are looked at for each place where a file is cut"""
_BEGINNINGS = 64 * 1024
"""bytes of these in which rows of records may begin"""
_REACH = 192 * 1024
"""offset in them that a row must reach"""
_MAX_HEAD = 1024 * 1024
"""bytes of a pcapng file before its first packet, at most, if it is to be cut"""
_LARGEST = 96 * 1024
"""bytes of a packet in a row that is believed: a captured segment of the kernel fits"""
_NEAR = 86400
"""seconds by which packets that follow each other are apart, at most"""
_LONGEST = 366 * 86400
"""seconds from the first packet of a file to its last, at most, if it is to be cut"""
_PACKET_KINDS = (OBSOLETE_PACKET, SIMPLE_PACKET, ENHANCED_PACKET)


class CaptureRange(msgspec.Struct):
    """What one task reads."""

    name: str
    """the capture, as a whole path"""
    capture: int
    """its index among all captures"""
    start: int
    """offset of the first byte"""
    ends: list[int]
    """places where another range begins, the nearest first; the first one is this one's end"""
    head: bytes
    """what must be read before: a file header, or a section with its interfaces"""
    is_whole: bool
    """it is all of a file, compressed or not"""
    is_alone: bool
    """there is no other capture"""


class Plan(msgspec.Struct):
    """What all tasks read."""

    ranges: list[CaptureRange]
    """in order"""
    by_hosts: bool
    """a capture begins with secrets of TLS"""


class _Records(Protocol):
    """How the records of a format follow each other."""

    head: bytes
    looks: re.Pattern[bytes]
    """how one may begin"""

    def end_of(self, data: bytes, at: int, before: int) -> tuple[int, int]:
        """Return where a record ends and its second; -1: there is none, or it ends a row."""


NEXT_ENDS = 16
"""places behind a range that its task knows, in case it must read on"""


def plan_of(names: Sequence[str], range_bytes: int = RANGE_BYTES) -> Plan:
    """Return the ranges of captures; raise CaptureError where one is not there."""
    captures = [os.path.abspath(name) for name in expand_sources(names)]
    ranges: list[CaptureRange] = []
    by_hosts = False
    for index, name in enumerate(captures):
        cuts, head, has_secrets = _cuts_of(name, range_bytes)
        by_hosts = by_hosts or has_secrets
        whole = len(cuts) == 1
        for place, start in enumerate(cuts):
            ends = cuts[place + 1 : place + 1 + NEXT_ENDS]
            ranges.append(CaptureRange(name, index, start, ends, head, whole, len(captures) == 1))
    return Plan(ranges, by_hosts)


def _cuts_of(name: str, range_bytes: int) -> tuple[list[int], bytes, bool]:
    """Return where the ranges of a file begin, its head, and whether secrets of TLS are in that."""
    if not os.path.isfile(name) or not is_capture(name):
        return [0], b"", False
    cuts = [0]
    with open(name, "rb") as file:
        records, has_secrets = _records_of(file.read(_MAX_HEAD))
        size = os.fstat(file.fileno()).st_size
        if records is None:
            return cuts, b"", has_secrets
        for near in range(range_bytes, size - range_bytes // 2, range_bytes):
            file.seek(near)
            cut = _cut_in(file.read(LOOKED_AT), records)
            if cut >= 0 and cuts[-1] < near + cut < size:
                cuts.append(near + cut)
    return cuts, records.head, has_secrets


def _cut_in(data: bytes, records: _Records) -> int:
    """Return where all rows of records lead that begin in these bytes; -1: nowhere."""
    reached: set[int] = set()
    followed: set[int] = set()
    match = records.looks.search(data, 0, _BEGINNINGS)
    while match is not None and len(reached) < 2:
        row = []
        at, before = match.start(), -1
        while 0 <= at < _REACH and at not in followed:
            row.append(at)
            at, before = records.end_of(data, at, before)
        if at >= _REACH and records.end_of(data, at, before)[0] >= 0:
            reached.add(at)
        if at < 0:
            row.pop()  # behind another record it might be one
        followed.update(row)
        match = records.looks.search(data, match.start() + 1, _BEGINNINGS)
    return reached.pop() if len(reached) == 1 else -1


def _records_of(start: bytes) -> tuple[_Records | None, bool]:
    """Return how records follow each other in a file that begins so, and whether there are secrets.

    None: it is not cut.
    """
    if start[:4] in PCAP_MAGICS and len(start) >= PCAP_HEADER:
        return _PcapRecords(start), False
    if start[:4] == PCAPNG_MAGIC and len(start) >= BLOCK_HEADER:
        return _blocks_of(start)
    return None, False


class _PcapRecords:
    """Records of a pcap file."""

    def __init__(self, start: bytes) -> None:
        self.head = start[:PCAP_HEADER]
        big, unit, header = PCAP_MAGICS[start[:4]]
        # Without it a row of headers that are read 4 bytes late is as good as the true one.
        self._first = int.from_bytes(start[PCAP_HEADER:][:4], "big" if big else "little")
        self._header = Struct((">" if big else "<") + "IIII" + f"{header - 16}x")
        self._fractions = 1_000_000_000 // unit
        sizes = rb"\0[\0\1]..\0[\0-\x20].." if big else rb"..[\0\1]\0..[\0-\x20]\0"
        self.looks = re.compile(rb"(?s).{8}" + sizes)

    def end_of(self, data: bytes, at: int, before: int) -> tuple[int, int]:
        """Return where a record ends and its second."""
        if at + self._header.size > len(data):
            return -1, before
        second, fraction, captured, length = self._header.unpack_from(data, at)
        is_near = before < 0 or abs(second - before) <= _NEAR
        is_near = is_near and -_NEAR <= second - self._first <= _LONGEST
        fits = 14 <= captured <= min(length, _LARGEST) and length <= 2 * MAX_PACKET
        if not (is_near and fits and fraction < self._fractions):
            return -1, before
        return at + self._header.size + captured, second


class _Blocks:
    """Blocks of a section of a pcapng file."""

    def __init__(self, head: bytes, big: bool) -> None:
        self.head = head
        self._number = Struct(">I" if big else "<I")
        kind = rb"\0\0\0\x06\0[\0\1].." if big else rb"\x06\0\0\0..[\0\1]\0"
        self.looks = re.compile(rb"(?s)" + kind)

    def end_of(self, data: bytes, at: int, before: int) -> tuple[int, int]:
        """Return where a packet's block ends; other blocks end a row."""
        if at + 28 > len(data) or self._at(data, at) != ENHANCED_PACKET:
            return -1, before
        length = self._at(data, at + 4)
        captured = self._at(data, at + 20)
        end = at + length
        if length % 4 or not 32 + captured <= length <= _LARGEST or end > len(data):
            return -1, before
        return (end, 0) if self._at(data, end - 4) == length else (-1, before)

    def _at(self, data: bytes, at: int) -> int:
        number: int = self._number.unpack_from(data, at)[0]
        return number


def _blocks_of(start: bytes) -> tuple[_Records | None, bool]:
    """Return how blocks follow each other, and whether there are secrets before the packets."""
    big = int.from_bytes(start[8:12], "big") == BYTE_ORDER_MAGIC
    head = b""
    has_secrets = False
    for kind, block in _first_blocks(start, big):
        if kind in _PACKET_KINDS:
            return _Blocks(head, big), has_secrets
        if kind in (SECTION_HEADER, INTERFACE_DESCRIPTION):
            head += block
        has_secrets = has_secrets or kind == DECRYPTION_SECRETS
    return None, has_secrets


def _first_blocks(start: bytes, big: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the blocks of a section, kind and bytes."""
    number = Struct(">II" if big else "<II")
    at = 0
    while at + BLOCK_HEADER <= len(start):
        kind, length = number.unpack_from(start, at)
        if length < BLOCK_HEADER or length % 4 or (at > 0 and kind == SECTION_HEADER):
            return
        yield kind, start[at : at + length]
        at += length
