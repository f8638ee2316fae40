"""Exchanges in file formats, chunk by chunk: JSON lines and Arrow columns.

Messages of the exchanges are added to the message table on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import i64

from ..findings import Finding
from ..rows.column_bytes import ArrowSink
from ..rows.encoded import BATCH_ROWS, Columns, EncodedBatch, Lines, parts_by_chunk
from ..rows.record import COLUMNS
from ..rows.row_sink import JsonSink
from ..tcp.capture import CAPTURE_SHIFT
from .exchange import Exchange
from .exchange_row import ExchangeRecords, ExchangeWriter, settled_by

if TYPE_CHECKING:
    from ..message_rows.message_table import MessageTable

_MOST_MESSAGES: Final = 4 * BATCH_ROWS
"""maximum buffered message rows, besides those of one more chunk"""


@final
class ExchangeLines:
    """Buffered JSON lines of exchanges."""

    __slots__ = ("_sink", "_writer")

    def __init__(
        self, captures: list[str], findings: list[Finding], with_ends: bool = False
    ) -> None:
        """Collect findings about rows in `findings`; `captures` are names by index.

        `with_ends`: `take_ends` will be called.
        """
        self._sink = JsonSink(COLUMNS, with_ends)
        self._writer = ExchangeWriter(self._sink, captures, findings)

    def lines_of(self, exchanges: list[Exchange]) -> bytes:
        """Return the lines of exchanges."""
        for exchange in exchanges:
            self._writer.write(exchange)
        return self._sink.take()

    def take_ends(self) -> bytes:
        """Return the end offset of each line since the last call, as 64-bit integers."""
        return self._sink.take_ends()


@final
class ExchangeColumns:
    """Buffered columns of exchanges."""

    __slots__ = ("_messages", "_writer", "sink")

    def __init__(self, captures: list[str], findings: list[Finding]) -> None:
        """Collect findings about rows in `findings`; `captures` are names by index."""
        self._messages = MessageCollector(captures, findings)
        self.sink = ArrowSink(COLUMNS)
        """the buffer"""
        self._writer = ExchangeWriter(self.sink, captures, findings)

    @property
    def is_full(self) -> bool:
        """Whether the buffered columns should be taken."""
        return self.sink.is_full or self.sink.waiting >= BATCH_ROWS

    def add(self, exchanges: list[Exchange], table: MessageTable | None = None) -> None:
        """Add exchanges; `table`, if given, gets their messages."""
        for exchange in exchanges:
            self._writer.write(exchange)
            if table is not None:
                self._messages.give(exchange, table)


@final
class MessageCollector:
    """Adds messages of exchanges to a table in encoded form.

    Rows of exchanges are built only if the table needs them.
    """

    __slots__ = ("_captures", "_findings", "_records")

    def __init__(self, captures: list[str], findings: list[Finding]) -> None:
        """Collect findings about rows in `findings`; `captures` are names by index."""
        self._captures = captures
        self._findings = findings
        self._records = ExchangeRecords(captures, findings)

    def give(self, exchange: Exchange, table: MessageTable) -> None:
        """Add the messages of an exchange to a table."""
        request, response = exchange.request, exchange.response
        if not table.is_of_messages(request, response):
            return
        if request is not None:
            capture = self._captures[settled_by(exchange) >> CAPTURE_SHIFT]
            if table.took_send(request, response, capture, self._findings):
                return
        (row,) = self._records.of([exchange])
        table.take_exchange(request, response, row, self._findings)

    def give_counted(
        self,
        exchanges: list[Exchange],
        table: MessageTable,
        lines: JsonSink,
        counts: BytesWriter,
    ) -> None:
        """Add the messages of exchanges to a table.

        `counts` gets three 64-bit integers per exchange with messages: its index among the
        exchanges, the number of rows, and the end offset of the last one in `lines`.
        """
        waiting: i64 = 0
        for place, exchange in enumerate(exchanges):
            self.give(exchange, table)
            made: i64 = lines.waiting - waiting
            if made:
                waiting += made
                write_i64_le(counts, place)
                write_i64_le(counts, made)
                write_i64_le(counts, lines.size)


def lines_of(
    captures: list[str],
    chunks: Iterator[list[Exchange]],
    add_findings: Callable[[list[Finding]], None],
) -> Iterator[Lines]:
    """Yield exchanges as JSON lines, chunk by chunk.

    `captures` are names by index; findings about rows go to `add_findings`.
    """
    findings: list[Finding] = []
    lines = ExchangeLines(captures, findings)
    for batch in chunks:
        data = lines.lines_of(batch)
        if findings:
            add_findings(findings)
            findings.clear()
        yield Lines([data], [len(batch)])


def columns_of(
    captures: list[str],
    chunks: Iterator[list[Exchange]],
    add_findings: Callable[[list[Finding]], None],
) -> Iterator[Columns]:
    """Yield exchanges as columns, several chunks at once; arguments as for `lines_of`.

    Raise MissingLibraryError if pyarrow is not installed.
    """
    for batch in log_of(captures, chunks, add_findings, None):
        if isinstance(batch.rows, Columns):
            yield batch.rows


def log_of(
    captures: list[str],
    chunks: Iterator[list[Exchange]],
    add_findings: Callable[[list[Finding]], None],
    table: MessageTable | None,
) -> Iterator[EncodedBatch]:
    """Yield exchanges and the messages in `table` as columns, several chunks at once.

    After each chunk an empty batch is yielded; otherwise the same as `columns_of`.
    """
    from ..rows.parquet import batches_of, exchange_table, message_table  # not for JSON lines

    findings: list[Finding] = []
    counts: list[int] = []
    message_counts: list[int] = []
    columns = ExchangeColumns(captures, findings)
    messages = None if table is None else table.as_columns()
    schema, message_schema = exchange_table().schema, message_table().schema
    is_over = False
    while not is_over:
        batch = next(chunks, None)
        is_over = batch is None
        if batch is not None:
            before = 0 if messages is None else messages.waiting
            columns.add(batch, table)
            counts.append(len(batch))
            message_counts.append(0 if messages is None else messages.waiting - before)
            if findings:
                add_findings(findings)
                findings.clear()
            yield EncodedBatch(len(batch), None, None)  # the caller takes findings now
            is_full = columns.is_full
            if messages is not None:
                is_full = is_full or messages.is_full or messages.waiting >= _MOST_MESSAGES
            if not is_full:
                continue
        # Also reached once after the last chunk, for what is still buffered.
        rows = parts_by_chunk(batches_of(columns.sink.take(), schema), counts)
        parts: list[Columns] = []
        if messages is not None:
            message_columns = messages.take()
            if message_columns:
                parts = parts_by_chunk(batches_of(message_columns, message_schema), message_counts)
        # Messages may take more parts than their exchanges, or fewer: the other part is empty.
        for place in range(max(len(rows), len(parts))):
            yield EncodedBatch(
                0,
                rows[place] if place < len(rows) else Columns(rows[0].data.slice(0, 0), [0]),
                parts[place] if place < len(parts) else None,
            )
        counts, message_counts = [], []
