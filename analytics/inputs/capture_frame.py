"""Captures as Spark DataFrames decoded by tasks, each row once.

Small captures are decoded by one task, each time a frame is computed; large ones by several tasks,
once, and cached.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.decode.pipeline import DecodeOptions
from dissectors.tcp.decompression import MOST_TIMES
from dissectors.tcp.source import CaptureError, expand_sources
from dissectors.times import Moment

from ..schema import SOURCE
from ..spark.engine import SparkEngine
from ..spark.frames import spark_input
from ..spark.places import number_of, numbers_of, uri_of
from ..spark.session import safe_workers
from ..spark.workers import serve_modules
from .capture_source import CaptureTask, CaptureTaskReader
from .filters import chosen
from .inputs import size_of
from .row_batches import (
    CONVERSATION,
    EXCHANGES,
    KIND,
    MESSAGES,
    OTHER,
    schema_of_table,
)

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

LARGE_BYTES = 256 * 1024 * 1024
"""total size of captures from which several tasks decode them: one task takes seconds for less"""
TASK_BYTES = 64 * 1024 * 1024
"""minimum bytes of captures per task"""
MOST_TASKS = 32
"""most tasks: with more, each one mostly skips packets of others"""


@dataclass(frozen=True)
class CaptureRows:
    """Captures and decoding options."""

    captures: tuple[str, ...]
    """paths in input order"""
    source: str
    """value of the column `source`"""
    options: DecodeOptions = field(default_factory=DecodeOptions)
    """how to decode them; the TLS key log file is an absolute path"""
    bytes: int | None = None
    """total size of the captures; None: they are local files"""

    @property
    def size(self) -> int:
        """Return the total size of the captures."""
        return size_of(self.captures) if self.bytes is None else self.bytes

    @property
    def is_large(self) -> bool:
        """Whether several tasks decode the captures faster."""
        return self.size >= LARGE_BYTES

    def kept(self, spark: SparkSession, table: str) -> DataFrame:
        """Return a table that is decoded once and cached."""
        return self.decoded(spark, table).persist()

    def decoded(self, spark: SparkSession, table: str) -> DataFrame:
        """Return a table; for large captures, decoding again is expensive."""
        if not self.is_large:
            return self.by_tasks(spark, table, 1)
        most = min(MOST_TASKS, self.size // TASK_BYTES, _tasks_at_once(spark))
        return self.by_tasks(spark, table, max(2, most))

    def by_tasks(self, spark: SparkSession, table: str, count: int) -> DataFrame:
        """Return a table decoded by this number of tasks."""
        reader = self._reader(table)
        (whole,) = reader.partitions()
        assert isinstance(whole, CaptureTask)

        def decode(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for batch in batches:
                for shard in map(int, batch.column(0).to_numpy()):
                    yield from reader.read(replace(whole, shard=shard, shards=count))

        # Each task reads all packets, which takes a seventeenth of their decoding time, and decodes
        # its share of the connections: nothing is shuffled, and all numbers equal those of a single
        # process. No data source: if another program started Java, Spark looks for data sources in
        # a Python that imports from the current directory.
        rows = spark.range(0, count, 1, count).mapInArrow(decode, schema_of_table(table))
        return rows.withColumn(SOURCE, F.lit(self.source))

    def _reader(self, table: str) -> CaptureTaskReader:
        return CaptureTaskReader(list(self.captures), table, False, self.options)


@dataclass(frozen=True)
class RemoteCaptureRows(CaptureRows):
    """Captures on another file system: Spark reads each as one value of a row."""

    def kept(self, spark: SparkSession, table: str) -> DataFrame:
        """Return a table that is decoded once, now."""
        before = spark.conf.get(_BATCH_ROWS, None)
        spark.conf.set(_BATCH_ROWS, "1")  # a worker gets one capture at a time
        try:
            frame = super().kept(spark, table)
            frame.count()  # now, while the setting is in force
            return frame
        finally:
            if before is None:
                spark.conf.unset(_BATCH_ROWS)
            else:
                spark.conf.set(_BATCH_ROWS, before)

    def by_tasks(self, spark: SparkSession, table: str, count: int) -> DataFrame:
        """Return a table decoded by this number of tasks; each reads all captures."""
        files = spark.read.format("binaryFile").load([*map(uri_of, self.captures)])
        # One partition: a connection may go on in the next capture, so each task needs all of them.
        whole = files.select("path", "content").coalesce(1)
        schema = schema_of_table(table)
        parts = [
            whole.mapInArrow(self._decoding(table, shard, count), schema) for shard in range(count)
        ]
        rows = reduce(lambda left, right: left.union(right), parts)
        return rows.withColumn(SOURCE, F.lit(self.source))

    def _decoding(self, table: str, shard: int, count: int) -> Callable[[_Batches], _Batches]:
        reader, captures = self._reader(table), self.captures
        # rows come in any order, but captures form one ordered list
        numbers = numbers_of(captures)

        def decode(batches: _Batches) -> _Batches:
            with tempfile.TemporaryDirectory(prefix="rmqtool-capture-") as folder:
                files = [os.path.join(folder, str(number)) for number in range(len(captures))]
                for batch in batches:
                    for path, content in zip(*batch.columns, strict=True):
                        with open(files[number_of(numbers, path.as_py())], "wb") as file:
                            file.write(content.as_buffer())
                try:
                    yield from reader.read(CaptureTask(files, [*captures], shard, count))
                except CaptureError as error:
                    name = dict(zip(files, captures, strict=True)).get(error.path, error.path)
                    raise CaptureError(name, error.reason, hint=error.hint) from None

        return decode


_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_Batches = Iterator["pyarrow.RecordBatch"]


def _tasks_at_once(spark: SparkSession) -> int:
    """Return the number of parallel tasks, in a way that also works with Spark Connect."""
    return int(spark.range(1 << 16).select(F.spark_partition_id()).distinct().count())


def capture_frame(
    spark: SparkSession,
    paths: Sequence[str],
    table: str,
    decode_as: Sequence[int] = (),
    where: str = "",
    since: int | None = None,
    until: int | None = None,
    tls_keylog: str = "",
    max_ratio: int = MOST_TIMES,
) -> DataFrame:
    """Return one table of `capture_source` with its own columns.

    `where`, `since` and `until` (nanoseconds since the epoch) apply to exchanges; `tls_keylog` is a
    TLS key log file; `max_ratio` is the maximum number of decompressed bytes per byte of a
    compressed capture.
    """
    serve_modules(spark)
    # workers and the task planner may run in another folder than this process
    names = {os.path.abspath(path): path for path in expand_sources(paths)}
    rows = CaptureRows(
        tuple(names),
        "",
        DecodeOptions(
            frozenset(decode_as),
            messages=table == MESSAGES,
            tls_keylog=os.path.abspath(tls_keylog) if tls_keylog else "",
            max_ratio=max_ratio,
        ),
    )
    with safe_workers(spark):
        frame = rows.decoded(spark, table)
        if rows.is_large:
            frame = frame.persist()
        frame = frame.drop(SOURCE)
        others = {whole: name for whole, name in names.items() if whole != name}
        if others:
            frame = frame.replace(others, subset=["capture"])
        if not where and since is None and until is None:
            return frame
        report_input = spark_input(frame.withColumn(SOURCE, F.lit("")))
        filtered = chosen(report_input, where, moment_at(since), moment_at(until)).exchanges
        return SparkEngine(spark).frame(filtered.without(SOURCE))


def table_in(rows: DataFrame, table: str) -> DataFrame:
    """Return one table of the table `all`."""
    chosen = rows.where(F.col(KIND) == table)
    names = schema_of_table(table).fieldNames()
    if table != EXCHANGES:
        parsed = F.from_json(OTHER, schema_of_table(table)).alias("row")
        chosen = chosen.select(parsed, CONVERSATION, SOURCE)
        names = [name if name in (CONVERSATION, SOURCE) else f"row.{name}" for name in names]
    return chosen.select(*names)


def moment_at(ns: int | None) -> Moment | None:
    """Return a time in nanoseconds since the epoch as a datetime."""
    return None if ns is None else Moment(ns, True)
