"""Large captures as the table `all`, decoded on Spark's own shuffle: every byte is read once.

Tasks read ranges and give packets by share of the connections; Spark shuffles the shares and sorts
them; each is decoded as one process decodes. The numbers of connections are those of one process:
they are counted when all are known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import functions as F

from dissectors.decode.pipeline import DecodeOptions
from dissectors.shares.ranges import RANGE_BYTES
from dissectors.shares.share_decode import RangeBytes, ShareDecode, joined
from dissectors.shares.summary import RangeSummary, RunLayout
from dissectors.tcp.decompression import MOST_TIMES

from .inputs import size_of
from .packet_source import DATA, PIECE_SHIFT, PLACE, SHARE, PacketReader, summary_of
from .row_batches import (
    ALL,
    CONVERSATION,
    CONVERSATIONS,
    KIND,
    OTHER,
    RowBatches,
    batches_of,
    schema_of_table,
)

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

SHUFFLED_BYTES = 256 * 1024 * 1024
"""captures below this size, together, are decoded by one task in seconds: a shuffle takes nearly
three times the CPU"""
SHARE_BYTES = 32 * 1024 * 1024
"""bytes of captures for each share, about"""
MAX_SHARES = 256
"""shares: each is told when one process would sweep, some bytes a chunk"""
READS = "reads"
"""Kind of the rows that say what was read: one a range."""
_FIRST, _NUMBER = "_first_packet", "_number"


class Read(msgspec.Struct):
    """What a task has read."""

    capture: int
    """index of the capture"""
    start: int
    """offset of its range"""
    bytes: int
    """bytes that it has read"""
    is_split_wrongly: bool
    """secrets of TLS were found behind the first packets: shares must be of hosts"""


@dataclass(frozen=True)
class ShuffleTask:
    """What is decoded, and how."""

    captures: tuple[str, ...]
    """in order, as they were given"""
    source: str
    """what the column `source` says"""
    decode_as: frozenset[int] = frozenset()
    """ports that are RocketMQ"""
    messages: bool = False
    """with rows of messages"""
    tls_keylog: str = ""
    """file with secrets of TLS, as a whole path"""
    max_ratio: int = MOST_TIMES
    """bytes that each byte of a compressed capture may become"""
    range_bytes: int = RANGE_BYTES
    """bytes of a range, about"""
    by_hosts: bool = False
    """shares are of hosts: sessions of TLS go on between the same two"""

    @property
    def is_small(self) -> bool:
        """Whether one task decodes the captures sooner."""
        return size_of(self.captures) < SHUFFLED_BYTES

    @property
    def shares(self) -> int:
        """How many shares there are."""
        return max(1, min(MAX_SHARES, size_of(self.captures) // min(SHARE_BYTES, self.range_bytes)))


def shuffled_rows(spark: SparkSession, task: ShuffleTask) -> DataFrame:
    """Return the table `all`, which is decoded now and kept, with rows of the kind `READS`."""
    rows = decoded(packets_of(spark, task), task).persist()
    known = rows.where(F.col(KIND).isin(CONVERSATIONS, READS)).select(
        KIND, CONVERSATION, F.when(F.col(KIND) == READS, F.col(OTHER)).alias(OTHER)
    )
    table = known.toArrow()
    if any(read.is_split_wrongly for read in _reads_in(table)):
        rows.unpersist()
        return shuffled_rows(spark, replace(task, by_hosts=True))
    return _numbered(spark, rows, table)


def packets_of(spark: SparkSession, task: ShuffleTask) -> DataFrame:
    """Return the pieces of all shares' streams, as the tasks read them."""
    paths = [os.path.abspath(capture) for capture in task.captures]
    by_hosts = task.by_hosts or bool(task.tls_keylog)
    reader = PacketReader(paths, task.range_bytes, task.shares, by_hosts, task.max_ratio)
    return reader.frame(spark)


def decoded(packets: DataFrame, task: ShuffleTask) -> DataFrame:
    """Return the rows of all shares; a connection's number is still the id of its first packet."""
    shares = task.shares
    shuffled = packets.repartitionById(shares, F.col(SHARE)).sortWithinPartitions(PLACE)

    def decode(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return _decode(batches, task, shares)

    return shuffled.mapInArrow(decode, schema_of_table(ALL))


def _decode(
    batches: Iterable[pyarrow.RecordBatch], task: ShuffleTask, shares: int
) -> Iterator[pyarrow.RecordBatch]:
    """Decode one share."""
    stream = _Stream(batches)
    summaries = stream.summaries()
    if not summaries:
        return
    layout = RunLayout(summaries)
    if stream.share == 0:
        form = RowBatches(ALL, task.source)
        for one in summaries:
            read = Read(one.capture, one.start, one.bytes, layout.is_split_wrongly)
            yield from form.other(READS, msgspec.json.encode(read).decode())
    if layout.is_split_wrongly:
        return
    options = DecodeOptions(
        decode_as=task.decode_as,
        tls_keylog=task.tls_keylog,
        conversations=True,
        messages=task.messages,
    )
    pieces = joined(stream.pieces())
    decode = ShareDecode(task.captures, options, layout, stream.share, shares, pieces)
    yield from batches_of(decode, ALL, task.source, {})


class _Stream:
    """The rows of one share, in order."""

    def __init__(self, batches: Iterable[pyarrow.RecordBatch]) -> None:
        self.share = 0
        """which it is, when the summaries were read"""
        self._rows = _rows_of(batches)
        self._places: list[tuple[int, int]] = []
        self._first: tuple[int, int, bytes] | None = None

    def summaries(self) -> list[RangeSummary]:
        """Return what is known of every range; it comes first."""
        found = []
        for row in self._rows:
            self.share = row[0]
            if row[1] >> PIECE_SHIFT:
                self._first = row
                break
            found.append(summary_of(row[2]))
        self._places = [(one.capture, one.start) for one in found]
        return found

    def pieces(self) -> Iterator[RangeBytes]:
        """Yield the pieces."""
        if self._first is not None:
            yield self._piece_of(self._first)
        for row in self._rows:
            yield self._piece_of(row)

    def _piece_of(self, row: tuple[int, int, bytes]) -> RangeBytes:
        return self._places[(row[1] >> PIECE_SHIFT) - 1], row[2]


def _rows_of(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[tuple[int, int, bytes]]:
    for batch in batches:
        columns = [batch.column(name) for name in (SHARE, PLACE, DATA)]
        for share, place, data in zip(*columns, strict=True):
            yield share.as_py(), place.as_py(), data.as_py()


_READ = msgspec.json.Decoder(Read)


def _reads_in(table: pyarrow.Table) -> list[Read]:
    return [_READ.decode(text) for text in table[OTHER].to_pylist() if text is not None]


def reads_of(rows: DataFrame) -> list[Read]:
    """Return what the tasks have read for the table `all`."""
    return _reads_in(rows.where(F.col(KIND) == READS).select(OTHER).toArrow())


def _numbered(spark: SparkSession, rows: DataFrame, known: pyarrow.Table) -> DataFrame:
    """Return the rows with the numbers that one process gives: by the order of first packets."""
    import pyarrow

    firsts = pyarrow.array(known[CONVERSATION].drop_null().to_numpy()).sort()
    counted = pyarrow.array(range(len(firsts)), pyarrow.int64())
    numbers = spark.createDataFrame(pyarrow.table({_FIRST: firsts, _NUMBER: counted}))
    number = F.col(_NUMBER).alias(CONVERSATION)
    columns = [number if name == CONVERSATION else F.col(name) for name in rows.columns]
    of_first = F.col(CONVERSATION) == F.col(_FIRST)
    return rows.join(F.broadcast(numbers), of_first, "left").select(columns)
