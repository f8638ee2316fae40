"""Rows of several processes in the order of one: what each sends is cut into runs and merged.

A run is the rows of one process that one packet gave out, or one conversation that this packet
ended. Where it belongs is said by the id of the packet and its place there; no two processes have
the same, and those of one process grow. Places are two 64-bit integers each: packet and place;
runs are four: packet, place, rows, bytes.
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
"""bytes of what says how many rows an exchange gave"""
LAST: Final = (1 << 63) - 1
"""behind all packets"""


def runs_of(places: bytes, ends: bytes) -> bytes:
    """Return the runs of rows with these places; `ends` says where the line of each ends, a 64-bit
    integer each; no `ends`: they are no text.
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

    `counts` are three 64-bit integers each: which exchange, how many rows, where the last one ends.
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
    """Return how many rows runs have."""
    rows: i64 = 0
    at: i64 = 16
    while at < len(runs):
        rows += read_i64_le(runs, at)
        at += RUN
    return int(rows)


def places_at(places: bytes, rows: list[int]) -> bytes:
    """Return the places of some rows, each as often as its number is there."""
    out = BytesWriter()
    for row in rows:
        at: i64 = row
        write_i64_le(out, read_i64_le(places, at * PLACE))
        write_i64_le(out, read_i64_le(places, at * PLACE + 8))
    return out.getvalue()


@final
class _Head:
    """The runs of one process, and how far they are merged."""

    def __init__(self, runs: bytes) -> None:
        self._runs = runs
        self._at: i64 = 0
        self.begun: i64 = 0
        """bytes of the runs before it"""
        self.packet: i64 = LAST
        self.place: i64 = 0
        self.rows: i64 = 0
        self.bytes: i64 = 0
        self.begin: i64 = 0
        """bytes before it"""
        self.read()

    def read(self) -> None:
        """Look at the next run."""
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
    """Return which process has the earliest run."""
    found: i64 = 0
    first = heads[0]
    for number in range(1, len(heads)):
        head = heads[number]
        if head.packet < first.packet or (head.packet == first.packet and head.place < first.place):
            found = number
            first = head
    return found


def merged_lines(
    lines: list[memoryview], parts: list[bytes], floor: i64 = LAST
) -> tuple[list[memoryview], list[tuple[int, int]]]:
    """Return the lines of all processes in the order of one, piece by piece: where they stand.

    Then how far each process is merged: bytes of its lines, bytes of its runs.

    Args:
        lines: the lines of each
        parts: the runs of each
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
        while head.packet < floor and _first_of(heads) == which:
            head.read()
        pieces.append(lines[which][begin : head.begin])


def merged_places(parts: list[bytes]) -> list[int]:
    """Return the rows of all processes in the order of one.

    `parts` are the runs of each; a row is called by its number where the rows of the first process
    are followed by those of the second, and so on.
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
