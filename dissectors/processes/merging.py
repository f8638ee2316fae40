"""Merge of the rows of several processes in single-process order.

A run is a group of rows that one process emitted for one packet, or for one conversation that the
packet ended: four 64-bit integers (packet id, index within the packet, rows, bytes). The first two
are its place; places are unique over all processes and ascending in each.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64

PLACE: Final = 16
"""bytes of a place"""
RUN: Final = 32
"""bytes of a run"""
COUNT: Final = 24
"""bytes of a row count of an exchange"""
LAST: Final = (1 << 63) - 1
"""after all packets"""


def runs_of(places: bytes, ends: bytes) -> bytes:
    """Return the runs of rows with these places.

    `ends` are the end offsets of the lines, a 64-bit integer each; empty if the rows are not text.
    """
    out = BytesWriter()
    count: i64 = len(places) // PLACE
    at: i64 = 0
    byte: i64 = 0
    while at < count:
        packet = read_i64_le(places, at * PLACE)
        place = read_i64_le(places, at * PLACE + 8)
        begin: i64 = at
        first: i64 = byte
        at += 1
        while (
            at < count
            and read_i64_le(places, at * PLACE) == packet
            and read_i64_le(places, at * PLACE + 8) == place
        ):
            at += 1
        if ends:
            byte = read_i64_le(ends, (at - 1) * 8)
        write_i64_le(out, packet)
        write_i64_le(out, place)
        write_i64_le(out, at - begin)
        write_i64_le(out, byte - first)
    return out.getvalue()


def runs_of_counts(places: bytes, counts: bytes) -> bytes:
    """Return the runs of rows that some of the exchanges with these places gave.

    `counts` are three 64-bit integers each: index of the exchange, number of rows, end offset.
    """
    out = BytesWriter()
    at: i64 = 0
    byte: i64 = 0
    while at < len(counts):
        exchange = read_i64_le(counts, at)
        end = read_i64_le(counts, at + 16)
        write_i64_le(out, read_i64_le(places, exchange * PLACE))
        write_i64_le(out, read_i64_le(places, exchange * PLACE + 8))
        write_i64_le(out, read_i64_le(counts, at + 8))
        write_i64_le(out, end - byte)
        byte = end
        at += COUNT
    return out.getvalue()


def rows_of(runs: bytes) -> int:
    """Return the number of rows in runs."""
    rows: i64 = 0
    at: i64 = 16
    while at < len(runs):
        rows += read_i64_le(runs, at)
        at += RUN
    return int(rows)


def places_at(places: bytes, rows: list[int]) -> bytes:
    """Return the places of the rows with these indexes; an index may repeat."""
    out = BytesWriter()
    for row in rows:
        at: i64 = row
        write_i64_le(out, read_i64_le(places, at * PLACE))
        write_i64_le(out, read_i64_le(places, at * PLACE + 8))
    return out.getvalue()


@final
class _Head:
    """The runs of one process, with the merge position."""

    def __init__(self, runs: bytes) -> None:
        self._runs = runs
        self._at: i64 = 0
        self.begun: i64 = 0
        """bytes of the runs before the current one"""
        self.packet: i64 = LAST
        self.place: i64 = 0
        self.rows: i64 = 0
        self.bytes: i64 = 0
        self.begin: i64 = 0
        """bytes of the lines before the current run"""
        self.read()

    def read(self) -> None:
        """Read the next run."""
        self.begin += self.bytes
        self.bytes = 0
        self.begun = self._at
        if self._at >= len(self._runs):
            self.packet = LAST
            return
        self.packet = read_i64_le(self._runs, self._at)
        self.place = read_i64_le(self._runs, self._at + 8)
        self.rows = read_i64_le(self._runs, self._at + 16)
        self.bytes = read_i64_le(self._runs, self._at + 24)
        self._at += RUN


def _first_of(heads: list[_Head]) -> i64:
    """Return the index of the process with the earliest run."""
    earliest: i64 = 0
    first = heads[0]
    for number in range(1, len(heads)):
        head = heads[number]
        if head.packet < first.packet or (head.packet == first.packet and head.place < first.place):
            earliest = number
            first = head
    return earliest


def merged_lines(
    lines: list[memoryview], parts: list[bytes], floor: i64 = LAST
) -> tuple[list[memoryview], list[tuple[int, int]]]:
    """Return the lines of all processes in single-process order, as views of the input.

    Also return the merge position of each process: bytes of its lines, bytes of its runs.

    Args:
        lines: the lines of each process
        parts: the runs of each process
        floor: lines of this packet and later ones are left
    """
    heads: list[_Head] = []
    for runs in parts:
        heads.append(_Head(runs))
    pieces: list[memoryview] = []
    while True:
        which: i64 = _first_of(heads)
        head = heads[which]
        if head.packet >= floor:
            return pieces, [(head.begin, head.begun) for head in heads]
        begin: i64 = head.begin
        head.read()
        # Runs of one process in a row are one piece.
        while head.packet < floor and _first_of(heads) == which:
            head.read()
        pieces.append(lines[which][begin : head.begin])


def merged_places(parts: list[bytes]) -> list[int]:
    """Return the row indexes of all processes in single-process order.

    `parts` are the runs of each process; indexes count through the rows of the first process, then
    the second, and so on.
    """
    heads: list[_Head] = []
    begins: list[int] = []
    rows: i64 = 0
    for runs in parts:
        heads.append(_Head(runs))
        begins.append(rows)
        rows += rows_of(runs)
    order: list[int] = []
    while True:
        which: i64 = _first_of(heads)
        head = heads[which]
        if head.packet == LAST:
            return order
        begin: i64 = begins[which]
        end: i64 = begin + head.rows
        while begin < end:
            order.append(begin)
            begin += 1
        begins[which] = end
        head.read()
