"""A table of captures as a DataFrame that Spark's tasks decode."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dissectors.times import Moment

from ..report import ReportInput
from ..schema import SOURCE
from .capture_source import NAME, CaptureSource
from .filters import chosen

if TYPE_CHECKING:
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
) -> DataFrame:
    """Return one table of `capture_source` with its own columns.

    `where`, `since` and `until` (nanoseconds since the epoch) are for exchanges; `tls_keylog` is a
    file with secrets of TLS.
    """
    spark.dataSource.register(CaptureSource)
    tasks = max(1, spark.sparkContext.defaultParallelism)
    reader = spark.read.format(NAME).options(
        table=table,
        tasks=str(tasks),
        decode_as=",".join(map(str, decode_as)),
        tls_keylog=os.path.abspath(tls_keylog) if tls_keylog else "",
    )
    # a worker, and what plans its tasks, may be in another folder than this process
    names = {os.path.abspath(path): path for path in paths}
    frame = reader.load(list(names)).drop(SOURCE)
    others = {whole: name for whole, name in names.items() if whole != name}
    if others:
        frame = frame.replace(others, subset=["capture"])
    if not where and since is None and until is None:
        return frame
    given = ReportInput(frame)
    return chosen(given, where, moment_at(since), moment_at(until)).exchanges


def moment_at(ns: int | None) -> Moment | None:
    """Return a time in nanoseconds since the epoch as a moment."""
    return None if ns is None else Moment(ns, True)
