"""Part files of a decoded log: rows of one table, numbered, and optionally by day or hour.

Rules: with a partition, a row is in the folder of its time in UTC, in Hive's naming:
``date=2026-11-20/hour=10``; without a time, in ``date=__HIVE_DEFAULT_PARTITION__``. A part has the
time range of its rows, so that readers can skip others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from ..rows.encoded import Columns, EncodedRows, chunks_up_to
from ..rows.parquet import ParquetRows, RowTable, columns_by_time, span_of_columns
from ..rows.row_times import RowTimes, Span
from ..rows.tables import Encode, JsonRows
from ..times import text_of_time
from .partition import Partition

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION: Final = 2
"""incremented when a column changes its meaning or is removed, not for a new column"""
FOOTER: Final = {"rmqtool.schema_version": str(SCHEMA_VERSION)}
"""metadata in the footer of each Parquet file"""
PART_ROWS: Final = 1_048_576
"""rows of a part file: about 40 MB, one Spark task"""
MOST_OPEN: Final = 8
"""maximum open parts of a table, each with a row group in memory"""
MOST_PARTS: Final = 10_000
"""maximum parts of a table per run, against a file per packet if a capture's clock jumps"""
RowForm = RowTable | Encode
"""encoder of rows as Parquet columns or JSON lines"""


class PartEntry(msgspec.Struct):
    """A file with rows of a table."""

    file: str
    """path inside the log"""
    rows: int
    """rows in it"""
    first_time: str | None = None
    """when its first row happened; null: unknown, or rows without a time are in it"""
    last_time: str | None = None
    """when its last row happened"""


EXCHANGES, MESSAGES, CONVERSATIONS = "exchanges", "messages", "conversations"
FINDINGS = "findings"
"""Names of the tables of a log."""
_TIMES: Final = {
    EXCHANGES: RowTimes(("request_time", "response_time")),
    MESSAGES: RowTimes(("time",), took="latency_us"),  # since the begin of its exchange
    CONVERSATIONS: RowTimes(("end_time",), since="start_time"),
    FINDINGS: RowTimes(("time",)),
}
"""time columns of each table; the folder is that of the end"""


class _Open:
    """A part being written."""

    __slots__ = ("entry", "file", "first", "has_unknown", "last")

    def __init__(self, entry: PartEntry, file: ParquetRows | JsonRows) -> None:
        self.entry = entry
        self.file = file
        self.first: int | None = None
        self.last: int | None = None
        self.has_unknown = False
        """contains a row without a time"""

    def note(self, span: Span) -> None:
        """Extend the time range of the rows, ns since the epoch."""
        first, last = span
        if first is None or last is None:
            self.has_unknown = True
            return
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)

    def finish(self) -> None:
        """Write the remaining rows."""
        self.file.finish()
        self.entry.rows = self.file.rows
        if not self.has_unknown and self.first is not None and self.last is not None:
            self.entry.first_time = text_of_time(self.first)
            self.entry.last_time = text_of_time(self.last)


class LogParts:
    """A table in part files being written, in its own folder."""

    def __init__(
        self,
        log: Path,
        name: str,
        form: str,
        rows: RowForm,
        partition: Partition | None = None,
        number: int = 0,
    ) -> None:
        """`name` is the table, `form` the file extension, `rows` the row encoder.

        `partition`: parts are in folders by time; otherwise there is at least one part. `number` is
        the number of the first part.
        """
        self._log = log
        self._name = name
        self._form = form
        self._rows = rows
        self._partition = partition
        self._number = number
        self._times = _TIMES[name]
        self._parts: list[PartEntry] = []
        self._open: dict[str, _Open] = {}
        (log / name).mkdir()
        if partition is None:
            self._open[""] = self._opened("")

    def write(self, rows: Sequence[object]) -> None:
        """Add rows."""
        spans = list(map(self._times.of_row, rows))
        by_place: dict[int | None, list[int]] = {}
        if self._partition is None:
            if rows:
                self._write("", rows, spans)
            return
        length = self._partition.length_us * 1000
        for number, (_, last) in enumerate(spans):
            by_place.setdefault(None if last is None else last // length, []).append(number)
        for place, some in by_place.items():
            folder = self._partition.folder_of(place)
            self._write(folder, [rows[index] for index in some], [spans[index] for index in some])

    def _write(self, folder: str, rows: Sequence[object], spans: Iterable[Span]) -> None:
        part = self._part_in(folder)
        for span in spans:
            part.note(span)
        part.file.write(rows)

    def write_encoded(self, rows: EncodedRows) -> None:
        """Add encoded rows; with a partition, they must be columns."""
        if self._partition is not None:
            assert isinstance(rows, Columns)
            for place, data in columns_by_time(rows.data, self._times, self._partition.length_us):
                part = self._part_in(self._partition.folder_of(place))
                part.note(span_of_columns(data, self._times))
                part.file.write_encoded(Columns(data, [data.num_rows]))
            return
        while any(rows.counts):
            part = self._part_in("")
            head, rows = rows.split(chunks_up_to(rows.counts, PART_ROWS - part.file.rows))
            if isinstance(head, Columns):
                part.note(span_of_columns(head.data, self._times))
            else:
                # The lines would have to be parsed for their times.
                part.note((None, None))
            part.file.write_encoded(head)

    def finish(self) -> list[PartEntry]:
        """Write the remaining rows; return all parts."""
        for part in self._open.values():
            part.finish()
        self._open.clear()
        return self._parts

    def close(self) -> None:
        """Close all open files; without a preceding `finish`, rows may be missing."""
        for part in self._open.values():
            part.file.close()

    def _part_in(self, folder: str) -> _Open:
        """Return the open part of a folder."""
        part = self._open.pop(folder, None)  # and back at the end: the order is that of use
        if part is not None and part.file.rows >= PART_ROWS:
            part.finish()
            part = None
        if part is None and self._partition is not None and len(self._parts) >= MOST_PARTS:
            folder = self._partition.folder_of(None)
            part = self._open.pop(folder, None)
        if part is None:
            if len(self._open) >= MOST_OPEN:  # the least recently written one
                self._open.pop(next(iter(self._open))).finish()
            part = self._opened(folder)
        self._open[folder] = part
        return part

    def _opened(self, folder: str) -> _Open:
        within = f"{self._name}/{folder}" if folder else self._name
        (self._log / within).mkdir(parents=True, exist_ok=True)
        entry = PartEntry(f"{within}/part-{self._number + len(self._parts):05d}.{self._form}", 0)
        self._parts.append(entry)
        return _Open(entry, opened_rows(self._log / entry.file, self._rows))


def opened_rows(path: Path, form: RowForm) -> ParquetRows | JsonRows:
    """Open a file of a log for writing."""
    if isinstance(form, RowTable):
        return ParquetRows(str(path), form, FOOTER)
    return JsonRows(str(path), form)
