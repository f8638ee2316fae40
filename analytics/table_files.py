"""Report tables as CSV and Parquet files, for `rmqtool report` and the Spark job.

CSV is for spreadsheets and people. A text is printable and never a formula, a list is one
text, times are ISO 8601 in UTC, absent values are empty cells; a row is one line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dissectors.rows.tables import encodable, safe_cell
from dissectors.times import text_of_time

if TYPE_CHECKING:
    from .result import TableResult


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def csv_of_table(result: TableResult) -> bytes:
    """Return a table as CSV with a header."""
    names = [column.name for column in result.table.columns]
    lines = [csv_line(names)]
    lines += (csv_line([row.get(name) for name in names]) for row in result.each_row())
    return "".join(f"{line}\n" for line in lines).encode()


def csv_line(values: Sequence[object]) -> str:
    """Return a row without the line end."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow(map(_cell, values))
    return encodable(out.getvalue()[:-1])


def plain_value(value: object) -> object:
    """Return a value for JSON and CSV: times become text in UTC."""
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


def parquet_bytes(result: TableResult) -> bytes:
    """Return a table as a Parquet file: numbers 64 bits, times UTC microseconds."""
    import pyarrow.parquet

    described = {column.name: column for column in result.table.columns}
    fields = [
        field.with_metadata(
            {"unit": described[field.name].unit, "meaning": described[field.name].meaning}
        )
        for field in result.data.schema
    ]
    about: dict[bytes | str, bytes | str] = {
        "rmqtool.table": result.table.name,
        "rmqtool.meaning": result.table.meaning,
    }
    schema = pyarrow.schema(fields, metadata=about)
    out = io.BytesIO()
    pyarrow.parquet.write_table(result.data.cast(schema), out, compression="zstd")
    return out.getvalue()
