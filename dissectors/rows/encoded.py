"""Rows on their way to a file as they are written there: lines of text, or columns of Arrow.

Each knows how many rows each chunk of the captures gave, so that files are cut where they would be
if the rows had come chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow


class RowForm(StrEnum):
    """How rows are handed on."""

    records = "records"
    """as they are"""
    jsonl = "jsonl"
    csv = "csv"
    arrow = "arrow"
    """columns, as Arrow sends them"""


class Lines(NamedTuple):
    """Rows as lines of text."""

    pieces: Sequence[bytes | memoryview]
    """the bytes, of which each piece follows the one before; they hold until more are asked for"""
    counts: list[int]
    """rows by chunk"""

    @property
    def data(self) -> bytes:
        """All bytes, as a copy."""
        return b"".join(self.pieces)

    def split(self, chunks: int) -> tuple[Lines, Lines]:
        """Return the rows of a number of chunks, and those that follow."""
        if chunks >= len(self.counts):
            return self, Lines([], [])
        data, at = self.data, 0
        for _ in range(sum(self.counts[:chunks])):
            at = data.index(b"\n", at) + 1
        return Lines([data[:at]], self.counts[:chunks]), Lines([data[at:]], self.counts[chunks:])


class Columns(NamedTuple):
    """Rows as columns."""

    data: pyarrow.RecordBatch
    counts: list[int]
    """rows by chunk"""

    def split(self, chunks: int) -> tuple[Columns, Columns]:
        """Return the rows of a number of chunks, and those that follow."""
        rows = sum(self.counts[:chunks])
        return Columns(self.data.slice(0, rows), self.counts[:chunks]), Columns(
            self.data.slice(rows), self.counts[chunks:]
        )


EncodedRows = Lines | Columns


def chunks_up_to(counts: list[int], rows: int) -> int:
    """Return after how many chunks there are at least `rows` rows; all where there are less."""
    for place, count in enumerate(counts):
        rows -= count
        if rows <= 0:
            return place + 1
    return len(counts)


def parts_by_chunk(parts: Sequence[pyarrow.RecordBatch], counts: Sequence[int]) -> list[Columns]:
    """Return columns that were ended while chunks were read, each with its rows by chunk."""
    found: list[Columns] = []
    left = list(counts)
    for part in parts:
        rows = part.num_rows
        mine: list[int] = []
        while rows:
            mine.append(min(left[0], rows))
            left[0] -= mine[-1]
            rows -= mine[-1]
            if not left[0]:
                del left[0]
        if part is parts[-1]:
            mine += left
        found.append(Columns(part, mine))
    return found


class EncodedBatch(NamedTuple):
    """Encoded rows of some chunks."""

    seen: int
    """rows before the filter"""
    rows: EncodedRows | None
    """None: there are none yet"""
    messages: EncodedRows | None
    """of exchanges their messages, where the run was asked for them"""

    @property
    def chosen(self) -> int:
        """Rows behind the filter."""
        return sum(self.rows.counts) if self.rows is not None else 0
