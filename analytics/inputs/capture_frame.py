"""Captures as DataFrames of Spark that its tasks decode, each row once.

Small captures are decoded by one task, each time that a frame is computed; large ones on Spark's
shuffle, at once, and kept. Neither goes through a data source: where Java was started by somebody
else, Spark looks for those in a Python that imports from the current directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.tcp.decompression import MOST_TIMES
from dissectors.tcp.source import expand_sources
from dissectors.times import Moment

from ..schema import SOURCE
from ..spark.engine import SparkEngine
from ..spark.frames import spark_input
from ..spark.session import safe_workers
from ..spark.workers import serve_modules
from .capture_source import CaptureTaskReader
from .filters import chosen
from .row_batches import (
    ALL,
    CONVERSATION,
    EXCHANGES,
    KIND,
    MESSAGES,
    OTHER,
    schema_of_table,
)
from .shuffle import ShuffleTask, shuffled_rows

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession


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

    `where`, `since` and `until` (nanoseconds since the epoch) are for exchanges; `tls_keylog` is a
    file with secrets of TLS; `max_ratio` is how many bytes each byte of a compressed capture may
    become.
    """
    serve_modules(spark)
    # a worker, and what plans its tasks, may be in another folder than this process
    names = {os.path.abspath(path): path for path in expand_sources(paths)}
    keylog = os.path.abspath(tls_keylog) if tls_keylog else ""
    task = ShuffleTask(
        tuple(names),
        "",
        frozenset(decode_as),
        messages=table == MESSAGES,
        tls_keylog=keylog,
        max_ratio=max_ratio,
    )
    with safe_workers(spark):
        if task.is_small:
            frame = one_task_rows(spark, task, table)
        else:
            frame = table_in(shuffled_rows(spark, task), table)
        frame = frame.drop(SOURCE)
        others = {whole: name for whole, name in names.items() if whole != name}
        if others:
            frame = frame.replace(others, subset=["capture"])
        if not where and since is None and until is None:
            return frame
        given = spark_input(frame.withColumn(SOURCE, F.lit("")))
        found = chosen(given, where, moment_at(since), moment_at(until)).exchanges
        return SparkEngine(spark).frame(found.without(SOURCE))


def decoded_rows(spark: SparkSession, task: ShuffleTask) -> DataFrame:
    """Return the table `all` of captures, which is decoded once and kept."""
    if task.is_small:
        return one_task_rows(spark, task, ALL).persist()
    return shuffled_rows(spark, task)


def one_task_rows(spark: SparkSession, task: ShuffleTask, table: str) -> DataFrame:
    """Return a table of captures that one task decodes."""
    reader = CaptureTaskReader(
        *(list(task.captures), table, False, task.decode_as),
        *(task.messages, task.tls_keylog, task.max_ratio),
    )
    (one,) = reader.partitions()

    def decode(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for _ in batches:
            yield from reader.read(one)

    rows = spark.range(1).coalesce(1).mapInArrow(decode, schema_of_table(table))
    return rows.withColumn(SOURCE, F.lit(task.source))


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
    """Return a time in nanoseconds since the epoch as a moment."""
    return None if ns is None else Moment(ns, True)
