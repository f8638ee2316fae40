"""What the tasks that read ranges tell those that decode: what was read, and when to sweep.

One process looks for closed conversations after a number of packets or bytes, at the end of a
chunk. A task that decodes a share sees few of the packets; here the moments of one process are
found again.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import NamedTuple

import msgspec

from ..conversations.conversation_table import SWEEP_BYTES, SWEEP_PACKETS
from ..expert import ExpertInfo, ExpertKind
from ..tcp.capture import CAPTURE_SHIFT

FindingSeen = tuple[str, str, int, int, int, int]
"""an `ExpertInfo`, its kind by name"""


class Chunks(msgspec.Struct):
    """The chunks of a range, packed: those of one process, but for the ends of the range."""

    numbers: bytes = b""
    """of each chunk in its capture"""
    packets: bytes = b""
    sizes: bytes = b""
    """bytes of the chunk and of what waited before it"""
    times: bytes = b""
    """of the last packet; 0: it has none"""

    def columns(self) -> tuple[bytes, bytes, bytes, bytes]:
        """Return all four."""
        return self.numbers, self.packets, self.sizes, self.times


class RangeSummary(msgspec.Struct):
    """What was read of a range."""

    capture: int
    """its index"""
    start: int
    """offset of the first byte"""
    end: int
    """offset behind the last one; in a compressed file as it is stored"""
    bytes: int
    """bytes that were read"""
    packets: int
    chunks: Chunks
    by_hosts: bool
    """shares are of hosts, because the capture or a key log has secrets of TLS"""
    has_secrets: bool = False
    """secrets of TLS were found in it"""
    findings: list[FindingSeen] = []
    """about the range itself, packets counted from its start; for the first share alone"""


class Sweep(NamedTuple):
    """A moment at which one process sweeps."""

    packet: int
    """id of the last packet before"""
    time: int
    """of this packet"""


def chunks_of(seen: Sequence[tuple[int, int, int, int]]) -> Chunks:
    """Return chunks, each as (number, packets, size, time), as they are sent."""
    columns = [array("q", column).tobytes() for column in zip(*seen, strict=True)]
    return Chunks(*columns)


class RunLayout:
    """How the ranges of all captures follow each other, and what one process would have done."""

    def __init__(self, summaries: Sequence[RangeSummary]) -> None:
        self.by_hosts = any(one.by_hosts for one in summaries)
        """shares are of hosts"""
        self.is_split_wrongly = not self.by_hosts and any(one.has_secrets for one in summaries)
        """there are secrets, so that shares must be of hosts"""
        self.before: dict[tuple[int, int], int] = {}
        """capture and start of the ranges that count → id before their first packet; the others
        were read by the task before them, too"""
        self.findings: list[ExpertInfo] = []
        """about the captures themselves"""
        self.sweeps: list[Sweep] = []
        """the moments in order"""
        places = {(one.capture, one.start): one for one in summaries}
        columns = _Columns()
        for capture in sorted({one.capture for one in summaries}):
            columns.begin(capture)
            self._follow(capture, places, columns)
        self.sweeps = columns.sweeps()

    def _follow(
        self, capture: int, places: dict[tuple[int, int], RangeSummary], columns: _Columns
    ) -> None:
        """Go from range to range of a capture, each where the one before has ended."""
        packets = 0
        one = places.get((capture, 0))
        while one is not None:
            self.before[capture, one.start] = (capture << CAPTURE_SHIFT) + packets
            self.findings += [_moved(info, packets) for info in one.findings]
            columns.add(one.chunks)
            packets += one.packets
            one = places.get((capture, one.end)) if one.end > one.start else None


class _Columns:
    """The chunks of all captures, in order: there are many, so as columns of numbers."""

    def __init__(self) -> None:
        self._numbers, self._packets, self._sizes, self._times = (array("q") for _ in range(4))
        self._captures: list[tuple[int, int]] = []

    def begin(self, capture: int) -> None:
        """Begin a capture."""
        self._captures.append((len(self._packets), capture))
        self._numbers = array("q")

    def add(self, chunks: Chunks) -> None:
        """Add those of a range; its first one may be the rest of the last one."""
        numbers, packets, sizes, times = (_numbers_of(text) for text in chunks.columns())
        if self._numbers and numbers and self._numbers[-1] == numbers[0]:
            self._packets[-1] += packets.pop(0)
            self._sizes[-1] += sizes.pop(0)
            self._times[-1] = times.pop(0) or self._times[-1]
            numbers.pop(0)
        self._numbers.extend(numbers[-1:])
        self._packets.extend(packets)
        self._sizes.extend(sizes)
        self._times.extend(times)

    def sweeps(self) -> list[Sweep]:
        """Return the chunks behind which one process sweeps."""
        counted = [bool(count) for count in self._packets]
        sizes = list(accumulate(map(mul, self._sizes, counted)))
        packets = list(accumulate(self._packets))
        found: list[Sweep] = []
        at = swept_packets = swept_bytes = 0
        while True:
            by_packets = bisect_left(packets, swept_packets + SWEEP_PACKETS, at)
            by_bytes = bisect_left(sizes, swept_bytes + SWEEP_BYTES, at)
            at = min(by_packets, by_bytes)
            if at >= len(packets):
                return found
            found.append(Sweep(self._id_of(at, packets), self._times[at]))
            swept_packets, swept_bytes = packets[at], sizes[at]
            at += 1

    def _id_of(self, at: int, packets: Sequence[int]) -> int:
        """Return the id of the last packet of a chunk."""
        first, capture = self._captures[bisect_right(self._captures, (at, sys.maxsize)) - 1]
        return (capture << CAPTURE_SHIFT) + packets[at] - (packets[first - 1] if first else 0)


def _numbers_of(text: bytes) -> array[int]:
    column = array("q")
    column.frombytes(text)
    return column


def _moved(seen: FindingSeen, by: int) -> ExpertInfo:
    """Return a finding of a range with the packet's number in the capture."""
    name, detail, ts, packet, conversation, offset = seen
    return ExpertInfo(ExpertKind[name], detail, ts, packet + by, conversation, offset)
