"""Report tables as CSV: the shared writer of `rmqtool report` and the Spark job.

Rules: CSV is for spreadsheets and people. A text is printable and never a formula, a list is one
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
