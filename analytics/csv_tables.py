"""Report tables as CSV: the one writer of `rmqtool report` and of the Spark job.

Rules: CSV is for spreadsheets and eyes. A text is printable and never a formula, a list is one
text, times are ISO 8601 in UTC, what is absent is an empty cell; a row is one line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dissectors.rows.tables import encodable, safe_cell
from dissectors.times import text_of_time

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from .result import TableResult

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def csv_of_table(result: TableResult) -> bytes:
    """Return a table as CSV with a head."""
    names = [column.name for column in result.table.columns]
    rows = ([row.get(name) for name in names] for row in result.rows())
    lines = [csv_line(names), *map(csv_line, rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def write_csv(frame: DataFrame, path: str, mode: str) -> None:
    """Write a frame as one CSV file with a head into a folder of any file system, by a task."""
    lines = frame.coalesce(1).mapInArrow(_lines_of(frame.columns), "line string")
    # Spark adds nothing to the lines: no character of them is one of these.
    plain = {"header": "false", "sep": "\x01", "quote": "\0", "escape": "\0", "comment": "\x02"}
    spaces = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
    lines.write.mode(mode).options(**plain, **spaces).csv(path)
    session = frame.sparkSession
    if session.read.text(path).isEmpty():  # no row, no task, no head
        head = session.createDataFrame([(csv_line(frame.columns),)], "line string")
        head.coalesce(1).write.mode("overwrite").options(**plain, **spaces).csv(path)


def csv_line(values: Sequence[object]) -> str:
    """Return a row without its line end."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow(map(_cell, values))
    return encodable(out.getvalue()[:-1])


def plain_value(value: object) -> object:
    """Return a value as JSON and CSV have it: a time as text in UTC."""
    if isinstance(value, datetime):
        return text_of_time((value - _EPOCH) // timedelta(microseconds=1) * 1000)
    return value


def _cell(value: object) -> object:
    if isinstance(value, list):
        return safe_cell(" ".join(map(str, value)))
    if isinstance(value, bool):
        return "true" if value else "false"
    plain = plain_value(value)
    return safe_cell(plain) if isinstance(plain, str) else plain


def _lines_of(
    names: Sequence[str],
) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """Return what a task does with the rows of the one partition."""

    def lines(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        head = [csv_line(names)]
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array(head)], ["line"])
        for batch in batches:
            found = [csv_line([row[name] for name in names]) for row in batch.to_pylist()]
            array = pyarrow.array(found, pyarrow.string())
            yield pyarrow.RecordBatch.from_arrays([array], ["line"])

    return lines
