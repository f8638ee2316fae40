"""Encoded rows on their way to a file: lines of text, or Arrow columns.

The rows per chunk of the captures are kept, so that files are split at the same rows as without
encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS: Final = 4096
"""rows converted to columns together"""


class RowForm(StrEnum):
    """Form in which rows are passed on."""

    records = "records"
    """as objects"""
    jsonl = "jsonl"
    csv = "csv"
    arrow = "arrow"
    """as Arrow columns"""


class Lines(NamedTuple):
    """Rows as lines of text."""

    pieces: Sequence[bytes | memoryview]
    """consecutive pieces of the text, valid until the next batch is requested"""
    counts: list[int]
    """rows per chunk"""

    @property
    def data(self) -> bytes:
        """All bytes, as a copy."""
        return b"".join(self.pieces)

    def split(self, chunks: int) -> tuple[Lines, Lines]:
        """Return the rows of the first `chunks` chunks, and the rest."""
        if chunks >= len(self.counts):
            return self, Lines([], [])
        data, at = self.data, 0
        for _ in range(sum(self.counts[:chunks])):
            at = data.index(b"\n", at) + 1
        return Lines([data[:at]], self.counts[:chunks]), Lines([data[at:]], self.counts[chunks:])


class Columns(NamedTuple):
    """Rows as Arrow columns."""

    data: pyarrow.RecordBatch
    counts: list[int]
    """rows per chunk"""

    def split(self, chunks: int) -> tuple[Columns, Columns]:
        """Return the rows of the first `chunks` chunks, and the rest."""
        rows = sum(self.counts[:chunks])
        return Columns(self.data.slice(0, rows), self.counts[:chunks]), Columns(
            self.data.slice(rows), self.counts[chunks:]
        )


EncodedRows = Lines | Columns


def chunks_up_to(counts: list[int], rows: int) -> int:
    """Return after how many chunks there are at least `rows` rows, or the number of chunks."""
    for place, count in enumerate(counts):
        rows -= count
        if rows <= 0:
            return place + 1
    return len(counts)


def parts_by_chunk(parts: Sequence[pyarrow.RecordBatch], counts: Sequence[int]) -> list[Columns]:
    """Return column parts that span chunks, each with its rows per chunk."""
    result: list[Columns] = []
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
            mine += left  # chunks without rows at the end
        result.append(Columns(part, mine))
    return result


class EncodedBatch(NamedTuple):
    """Encoded rows of some chunks."""

    seen: int
    """rows before the filter"""
    rows: EncodedRows | None
    """None: no rows ready yet"""
    messages: EncodedRows | None
    """messages of the exchanges, if requested"""

    @property
    def chosen(self) -> int:
        """Rows after the filter."""
        return sum(self.rows.counts) if self.rows is not None else 0
