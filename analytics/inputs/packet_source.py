"""The packets of captures as a frame of Spark: each task reads one range, and nothing twice.

A row is a piece of a share's stream. `place` orders the rows of a share: first what is known of
every range, then the pieces, range by range.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from dissectors.shares.range_reader import Piece, RangeReader
from dissectors.shares.ranges import CaptureRange, plan_of
from dissectors.shares.summary import RangeSummary

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from .row_batches import Arrays

SHARE, PLACE, DATA = "share", "place", "data"
SCHEMA = f"{SHARE} int, {PLACE} long, {DATA} binary"
PIECE_SHIFT: Final = 40
"""a piece's place is the number of its range, from 1, shifted by this, plus its own"""
_BATCH_PIECES = 128
"""pieces of an Arrow batch: one megabyte"""
_SUMMARY = msgspec.msgpack.Decoder(RangeSummary)
_Row = tuple[int, int, bytes]


class PacketReader:
    """Plans the ranges, and reads one in each task."""

    def __init__(
        self, paths: list[str], range_bytes: int, shares: int, by_hosts: bool, max_ratio: int
    ) -> None:
        """Raise CaptureError where a capture is not there."""
        plan = plan_of(paths, range_bytes)
        self._shares = shares
        self._by_hosts = by_hosts or plan.by_hosts
        self._max_ratio = max_ratio
        self._ranges = [msgspec.json.encode(one) for one in plan.ranges]

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the pieces of all ranges; each is read by a task of its own."""
        count = len(self._ranges)
        return spark.range(0, count, 1, count).mapInArrow(self._read, SCHEMA)

    def _read(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for index in map(int, batch.column(0).to_numpy()):
                yield from self._read_range(index)

    def _read_range(self, index: int) -> Iterator[pyarrow.RecordBatch]:
        """Give the pieces of one range as Arrow batches, and what is known of it to each share."""
        given = msgspec.json.decode(self._ranges[index], type=CaptureRange)
        reader = RangeReader(given, self._shares, self._by_hosts, self._max_ratio)
        rows: list[_Row] = []
        number = index + 1
        for row in _placed(reader.pieces(), number):
            rows.append(row)
            if len(rows) == _BATCH_PIECES:
                yield _batch(rows)
                rows = []
        yield _batch([*rows, *_summaries(reader.summary(), number, self._shares)])


def _placed(pieces: Iterator[Piece], number: int) -> Iterator[_Row]:
    first = number << PIECE_SHIFT
    for place, (share, data) in enumerate(pieces):
        yield share, first + place, data


def _summaries(summary: RangeSummary, number: int, shares: int) -> list[_Row]:
    """Return a summary for each share: the first one's has the findings."""
    first = _text_of(summary)
    summary.findings = []
    other = _text_of(summary)
    return [(share, number, other if share else first) for share in range(shares)]


def _text_of(summary: RangeSummary) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(summary), 1)


def summary_of(data: bytes) -> RangeSummary:
    """Return what is known of a range, as a row has it."""
    return _SUMMARY.decode(zlib.decompress(data))


def _batch(rows: list[_Row]) -> pyarrow.RecordBatch:
    import pyarrow

    shares, places, data = zip(*rows, strict=True)
    arrays: list[Arrays] = [
        pyarrow.array(shares, pyarrow.int32()),
        pyarrow.array(places, pyarrow.int64()),
        pyarrow.array(data, pyarrow.binary()),
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, names=[SHARE, PLACE, DATA])
