"""Watch a folder for new files with Spark Structured Streaming, on any of its file systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_FILE: Final = "path string, modificationTime timestamp, length long, content binary"


def arrivals(
    spark: SparkSession,
    folder: str,
    checkpoint: str,
    take: Callable[[Sequence[str]], None],
    seconds: float,
) -> StreamingQuery:
    """Start a stream that passes new files to `take` in batches.

    After a crash the files of an unfinished batch are passed again: `take` must recognize them.
    `checkpoint` is where the stream stores its progress; `seconds` is the time between batches.
    """

    def batch(frame: DataFrame, number: int) -> None:  # noqa: ARG001
        take([str(row.path) for row in frame.collect()])

    # Spark infers no schema for a stream of files.
    reader = spark.readStream.format("binaryFile").schema(_FILE)
    files = reader.option("recursiveFileLookup", "true").load(folder)
    stream = files.select("path").writeStream.foreachBatch(batch)  # the content is not read
    stream = stream.option("checkpointLocation", checkpoint)
    return stream.trigger(processingTime=f"{round(seconds * 1000)} milliseconds").start()
