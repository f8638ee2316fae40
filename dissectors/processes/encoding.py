"""Filtering and encoding of rows, with the places needed to merge them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from librt.strings import BytesWriter, write_i64_le

from ..rows.encoded import Columns, EncodedRows, Lines, RowForm
from ..rows.parquet import RowTable, exchange_table, merged_columns, packed_columns
from ..rows.record import ExchangeRecord
from ..rows.tables import csv_of, jsonl_of
from ..times import UTC_ZONE, zone_named
from .merging import merged_lines, merged_places, runs_of
from .task import Encoded, RowRequest

if TYPE_CHECKING:
    from ..rows.tables import Encode
    from ..where.conditions import Test


def ends_of(lines: bytes) -> bytes:
    """Return the end offset of each line, a 64-bit integer each."""
    ends = BytesWriter()
    at = lines.find(b"\n")
    while at >= 0:
        write_i64_le(ends, at + 1)
        at = lines.find(b"\n", at + 1)
    return ends.getvalue()


def filter_of(request: RowRequest) -> Test | None:
    """Return the filter of a request, or None if it selects all rows."""
    if not request.where.strip():
        return None
    from ..where.fields import exchange_fields
    from ..where.filter import compile_where

    return compile_where(request.where, exchange_fields(), zone_named(request.zone) or UTC_ZONE)


class RowEncoder:
    """Encodes rows of one kind, and merges rows encoded by several processes."""

    def __init__(self, form: RowTable | Encode) -> None:
        self._form = form
        self._rows: list[object] = []
        self._lines: list[bytes] = []
        self._runs: list[bytes] = []

    def add(self, rows: Sequence[object], places: bytes) -> None:
        """Add rows; `places` has the packet and place that emitted each row.

        Lines are encoded at once, while the rows are still in the processor cache.
        """
        ends = b""
        if isinstance(self._form, RowTable):
            self._rows += rows
        else:
            lines = self._form(rows)
            self._lines.append(lines)
            ends = ends_of(lines)
        self._runs.append(runs_of(places, ends))

    def add_lines(self, runs: bytes, lines: bytes) -> None:
        """Add rows already encoded as lines, with their runs."""
        self._lines.append(lines)
        self._runs.append(runs)

    def take(self) -> tuple[Sequence[bytes | memoryview], bytes]:
        """Return the rows since the last call, in consecutive parts, and their runs."""
        parts: Sequence[bytes | memoryview] = self._lines
        if self._rows and isinstance(self._form, RowTable):
            parts = [packed_columns([self._form.batch_of(self._rows)])]
        runs = b"".join(self._runs)
        self._rows, self._lines, self._runs = [], [], []
        return parts, runs

    def whole(self, rows: Sequence[object]) -> EncodedRows:
        """Return the encoded rows of one chunk of a single-process run."""
        if isinstance(self._form, RowTable):
            return Columns(self._form.batch_of(rows), [len(rows)])
        return Lines([self._form(rows)], [len(rows)])

    def merged(self, parts: Sequence[Encoded], counts: list[int]) -> EncodedRows:
        """Return the rows of all processes in single-process order; `counts` are the rows per
        chunk.
        """
        if not isinstance(self._form, RowTable):
            lines, _ = merged_lines([part.data for part in parts], [part.runs for part in parts])
            return Lines(lines, counts)
        order = merged_places([part.runs for part in parts])
        filled = [part.data for part in parts if part.data]
        return Columns(merged_columns(filled, order, self._form.schema), counts)


def exchange_encoder(form: RowForm) -> RowEncoder:
    """Return the encoder of exchanges; raise MissingLibraryError."""
    if form is RowForm.arrow:
        return RowEncoder(exchange_table())
    text_of = csv_of if form is RowForm.csv else jsonl_of
    return RowEncoder(lambda rows: text_of(cast("Sequence[ExchangeRecord]", rows)))


def message_encoder(form: RowForm) -> RowEncoder:
    """Return the encoder of messages; raise MissingLibraryError."""
    from ..decode.decoded_log import JSONL, PARQUET
    from ..decode.log_writer import form_of_rows
    from ..rows.message_record import MESSAGE_COLUMNS, MessageRecord

    types = [(column.name, column.type) for column in MESSAGE_COLUMNS]
    return RowEncoder(
        form_of_rows(PARQUET if form is RowForm.arrow else JSONL, types, MessageRecord)
    )
