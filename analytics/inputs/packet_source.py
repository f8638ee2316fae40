"""The packets of captures as a Spark data source: each task reads one range, and nothing twice.

A row is a piece of a share's stream. `place` orders the rows of a share: first what is known of
every range, then the pieces, range by range.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from dissectors.shares.range_reader import Piece, RangeReader
from dissectors.shares.ranges import CaptureRange, plan_of
from dissectors.shares.summary import RangeSummary

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

    from .row_batches import Arrays

NAME = "rocketmq_packets"
SHARE, PLACE, DATA = "share", "place", "data"
SCHEMA = f"{SHARE} int, {PLACE} long, {DATA} binary"
PIECE_SHIFT: Final = 40
"""a piece's place is the number of its range, from 1, shifted by this, plus its own"""
_BATCH_PIECES = 128
"""pieces of an Arrow batch: one megabyte"""
_SUMMARY = msgspec.msgpack.Decoder(RangeSummary)
_PATHS = msgspec.json.Decoder(list[str])
_Row = tuple[int, int, bytes]


@dataclass
class RangeTask(InputPartition):  # type: ignore[misc, unused-ignore]
    """What one task reads."""

    number: int
    """of the range, from 1"""
    text: bytes
    """the `CaptureRange`, as JSON"""
    by_hosts: bool
    """shares are of hosts"""


class PacketSource(DataSource):  # type: ignore[misc, unused-ignore]
    """The data source; its options are those of `PacketReader`."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format`` is given."""
        return NAME

    def schema(self) -> str:
        """Return the columns."""
        return SCHEMA

    def reader(self, schema: StructType) -> PacketReader:  # noqa: ARG002
        """Return the reader."""
        options = self.options
        return PacketReader(
            _PATHS.decode(options["paths"]),
            int(options["range_bytes"]),
            int(options["shares"]),
            options["by_hosts"] == "true",
        )


class PacketReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """Plans the ranges, and reads one in each task."""

    def __init__(self, paths: list[str], range_bytes: int, shares: int, by_hosts: bool) -> None:
        self.paths = paths
        self.range_bytes = range_bytes
        self.shares = shares
        self.by_hosts = by_hosts

    def partitions(self) -> list[InputPartition]:
        """Return the tasks; raise CaptureError where a capture is not there."""
        plan = plan_of(self.paths, self.range_bytes)
        by_hosts = self.by_hosts or plan.by_hosts
        return [
            RangeTask(number, msgspec.json.encode(one), by_hosts)
            for number, one in enumerate(plan.ranges, 1)
        ]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Give the pieces of one range as Arrow batches, and what is known of it to each share."""
        assert isinstance(partition, RangeTask)
        given = msgspec.json.decode(partition.text, type=CaptureRange)
        reader = RangeReader(given, self.shares, partition.by_hosts)
        rows: list[_Row] = []
        for row in _placed(reader.pieces(), partition.number):
            rows.append(row)
            if len(rows) == _BATCH_PIECES:
                yield _batch(rows)
                rows = []
        yield _batch([*rows, *_summaries(reader.summary(), partition.number, self.shares)])


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
