"""Rows of a run as they are asked for: filtered, encoded, with what tells where they belong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from ..rows.encoded import Columns, EncodedRows, Lines, RowForm
from ..rows.line_ends import ends_of
from ..rows.parquet import (
    RowTable,
    batches_of,
    exchange_table,
    merged_columns,
    packed_columns,
)
from ..rows.record import ExchangeRecord
from ..rows.tables import csv_of, jsonl_of
from ..times import UTC_ZONE, zone_named
from .merging import merged_lines, merged_places, places_at, runs_of
from .task import Encoded, Packed, RowRequest

if TYPE_CHECKING:
    from ..decode.exchange_forms import ExchangeColumns
    from ..rows.json_rows import Encode
    from ..rows.message_record import MessageRecord
    from ..where.filter import Test


def filter_of(request: RowRequest) -> Test | None:
    """Return the filter; None: all rows are wanted."""
    if not request.where.strip():
        return None
    from ..where.fields import exchange_fields
    from ..where.filter import compile_where

    return compile_where(request.where, exchange_fields(), zone_named(request.zone) or UTC_ZONE)


class RowEncoder:
    """Encodes rows of one kind, and puts together what several processes encoded."""

    def __init__(self, form: RowTable | Encode) -> None:
        self._form = form
        self._rows: list[object] = []
        self._lines: list[bytes] = []
        self._runs: list[bytes] = []
        self._columns: ExchangeColumns | None = None

    def add(self, rows: Sequence[object], places: bytes) -> None:
        """Take rows; `places` says of each which packet gave it out, and where there.

        Lines are made at once: later the rows would have left the cache of the processor.
        """
        ends = b""
        if isinstance(self._form, RowTable):
            self._rows += rows
        else:
            lines = self._form(rows)
            self._lines.append(lines)
            ends = ends_of(lines)
        self._runs.append(runs_of(places, ends))

    def add_lines(self, places: bytes, lines: bytes, ends: bytes) -> None:
        """Take rows that are lines already; `ends`: where each of them ends."""
        self._lines.append(lines)
        self._runs.append(runs_of(places, ends))

    def add_runs(self, runs: bytes, lines: bytes) -> None:
        """Take rows that are lines already, and whose runs are known."""
        self._lines.append(lines)
        self._runs.append(runs)

    def add_columns(self, places: bytes, columns: ExchangeColumns) -> None:
        """Take rows that wait in `columns`, the same ones for all rows."""
        self._columns = columns
        self._runs.append(runs_of(places, b""))

    def take(self) -> tuple[Sequence[bytes | memoryview], bytes]:
        """Return the rows since the last call, in parts that follow each other, and their runs."""
        parts: Sequence[bytes | memoryview] = self._lines
        if isinstance(self._form, RowTable):
            if self._columns is not None and self._columns.sink.waiting:
                taken = self._columns.sink.take()
                parts = [packed_columns(batches_of(taken, self._form.schema))]
            elif self._rows:
                parts = [packed_columns([self._form.batch_of(self._rows)])]
        runs = b"".join(self._runs)
        self._rows, self._lines, self._runs = [], [], []
        return parts, runs

    def whole(self, rows: Sequence[object]) -> EncodedRows:
        """Return the rows of one chunk of a run by one process."""
        if isinstance(self._form, RowTable):
            return Columns(self._form.batch_of(rows), [len(rows)])
        return Lines([self._form(rows)], [len(rows)])

    def merged(self, parts: Sequence[Encoded], counts: list[int]) -> EncodedRows:
        """Return the rows of all processes in the order of one; `counts` are those by chunk."""
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
    from ..decode.decoded_log import JSONL, PARQUET, form_of_rows
    from ..rows.message_record import MESSAGE_COLUMNS, MessageRecord

    types = [(column.name, column.type) for column in MESSAGE_COLUMNS]
    return RowEncoder(
        form_of_rows(PARQUET if form is RowForm.arrow else JSONL, types, MessageRecord)
    )


class PendingRows:
    """The rows of some chunks that wait to be encoded."""

    def __init__(self, request: RowRequest, with_messages: bool) -> None:
        self._exchanges = exchange_encoder(request.form)
        self._messages = message_encoder(request.form) if with_messages else None
        self._test: Callable[[object], bool] | None = filter_of(request)

    def add(
        self,
        places: bytes,
        rows: list[ExchangeRecord],
        messages: Sequence[tuple[int, list[MessageRecord]]],
    ) -> tuple[int, int]:
        """Take the rows of a chunk, and messages with the place of their exchange in them.

        Return how many exchanges and how many messages the filter left.
        """
        chosen = None if self._test is None else [self._test(row) for row in rows]
        if messages and self._messages is not None:
            kept = [one for one in messages if chosen is None or chosen[one[0]]]
            found = [row for _, of in kept for row in of]
            self._messages.add(found, places_at(places, [at for at, of in kept for _ in of]))
            message_rows = len(found)
        else:
            message_rows = 0
        if chosen is not None:
            kept_rows = [at for at, is_chosen in enumerate(chosen) if is_chosen]
            places, rows = places_at(places, kept_rows), [rows[at] for at in kept_rows]
        if rows:
            self._exchanges.add(rows, places)
        return len(rows), message_rows

    def add_lines(self, places: bytes, lines: bytes, ends: bytes) -> None:
        """Take the exchanges of a chunk as lines of JSON."""
        if places:
            self._exchanges.add_lines(places, lines, ends)

    def add_messages(self, runs: bytes, lines: bytes) -> None:
        """Take the messages of a chunk as lines of JSON."""
        if runs:
            assert self._messages is not None
            self._messages.add_runs(runs, lines)

    def add_columns(self, places: bytes, columns: ExchangeColumns) -> None:
        """Take the exchanges of a chunk, which wait in `columns`."""
        if places:
            self._exchanges.add_columns(places, columns)

    def take(self) -> tuple[list[bytes | memoryview], Packed, Packed | None]:
        """Return the exchanges and the messages since the last call: their bytes, in parts, and
        what is said of both.
        """
        parts, runs = self._exchanges.take()
        exchanges = Packed(sum(map(len, parts)), runs)
        if self._messages is None:
            return [*parts], exchanges, None
        more, runs = self._messages.take()
        return [*parts, *more], exchanges, Packed(sum(map(len, more)), runs)
