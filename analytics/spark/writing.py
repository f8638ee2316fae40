"""Write report tables with Spark's tasks, each into a folder of any file system.

Rules: rows are in the order of the table, over several files for large tables. CSV is one file, by
the writer of `rmqtool report` (`table_files`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

from ..report import ReportTable, conforming
from ..sql.engine import SqlEngine
from ..sql.relation import Relation
from ..table_files import csv_line

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from .engine import SparkEngine

_FILES_BY_SIZE: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}
"""Settings for output files of moderate size, whatever the table is sorted from."""


def write_table(
    engine: SqlEngine, relation: Relation, table: ReportTable, path: str, form: str, force: bool
) -> None:
    """Write a table of a report as `form`: parquet, csv, or json.

    `force`: replace existing output; otherwise Spark raises an error.
    """
    on_spark = cast("SparkEngine", engine)
    rows = conforming(relation, table)
    if rows.is_here:  # sorted here: Spark would sort few rows with as many tasks as for all rows
        rows = engine.hold(engine.rows(rows))
    frame = on_spark.frame(rows)
    mode = "overwrite" if force else "error"
    with _set(frame.sparkSession, _FILES_BY_SIZE):
        # Spark's own writer refuses lists, and its files would differ from those of `rmqtool
        # report`.
        if form == "csv":
            write_csv(frame, path, mode)
        else:
            frame.write.mode(mode).format(form).save(path)


@contextmanager
def _set(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: session.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def write_csv(frame: DataFrame, path: str, mode: str) -> None:
    """Write a frame as one CSV file with a header, by a single task."""
    lines = frame.coalesce(1).mapInArrow(_lines_of(frame.columns), "line string")
    # Spark adds nothing to the lines: they contain none of these characters
    plain = {"header": "false", "sep": "\x01", "quote": "\0", "escape": "\0", "comment": "\x02"}
    spaces = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
    lines.write.mode(mode).options(**plain, **spaces).csv(path)
    session = frame.sparkSession
    if session.read.text(path).isEmpty():  # no row, no task, no header
        head = session.createDataFrame([(csv_line(frame.columns),)], "line string")
        head.coalesce(1).write.mode("overwrite").options(**plain, **spaces).csv(path)


def _lines_of(
    names: Sequence[str],
) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """Return the function that a task applies to the single partition."""

    def lines(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        head = [csv_line(names)]
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array(head)], ["line"])
        for batch in batches:
            text = [csv_line([row[name] for name in names]) for row in batch.to_pylist()]
            array = pyarrow.array(text, pyarrow.string())
            yield pyarrow.RecordBatch.from_arrays([array], ["line"])

    return lines
