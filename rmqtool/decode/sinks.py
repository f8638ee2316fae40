"""Sinks of decoded rows: lines, encoded rows, a Parquet file, a decoded log.

A sink receives rows and findings as they arrive; at the end it is finished once, or discarded. Its
notes go to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Generic, TypeVar

from dissectors.budget import Budget
from dissectors.findings import Finding
from dissectors.quantities import counted
from dissectors.rows.encoded import EncodedRows, Lines, RowForm
from dissectors.rows.record import ExchangeRecord

from ..ui.columns import LineTable
from ..ui.console import Terminal
from ..ui.figures import size
from ..ui.output import Output, naming
from ..ui.sorting import Key, SortedRows
from ..version import VERSION

if TYPE_CHECKING:
    from dissectors.decode.partition import Partition
    from dissectors.decode.pipeline import Decode
    from dissectors.rows.conversation_record import ConversationRecord
    from dissectors.rows.message_record import MessageRecord

    from ..api.tables.table import ArrowColumn

Row = TypeVar("Row")


class Sink(Generic[Row]):
    """Receives rows."""

    wants_findings = False
    """whether it receives findings; otherwise they are only counted"""
    form = RowForm.records
    """form of exchanges from worker processes"""

    def write(self, rows: Sequence[Row]) -> None:
        """Add rows; they may be buffered."""
        raise NotImplementedError

    def write_encoded(self, exchanges: EncodedRows, messages: EncodedRows | None) -> None:
        """Add exchanges in the sink's form, and their messages."""
        raise NotImplementedError

    @property
    def hidden(self) -> Sequence[str]:
        """Non-empty columns without space."""
        return ()

    def idle(self) -> None:
        """Show buffered rows while the input is idle."""

    def write_findings(self, findings: Sequence[Finding]) -> None:
        """Add findings."""

    def write_conversations(self, rows: Sequence[ConversationRecord]) -> None:
        """Add TCP connections, if the run provides them."""

    def write_messages(self, rows: Sequence[MessageRecord]) -> None:
        """Add messages of the written rows, if the run provides them."""

    def finish(self, decode: Decode) -> str:
        """Finish the output; return a note on it, empty if the user can see it."""
        raise NotImplementedError

    def discard(self) -> None:
        """Discard unfinished output after an aborted run."""


class TextSink(Sink[Row]):
    """Writes text lines."""

    def __init__(self, output: Output, rest: Callable[[], list[str]]) -> None:
        self._output = output
        self._rest = rest
        # A terminal may have another encoding; files are UTF-8.
        encoding = sys.stdout.encoding if output.path is None else None
        self._encoding = encoding or "utf-8"

    def write_lines(self, lines: Sequence[str]) -> None:
        """Write printable lines."""
        if lines:
            self._output.write(self.encoded(lines))

    def encoded(self, lines: Sequence[str]) -> bytes:
        """Return lines in encoded form."""
        # A terminal that lacks a character must not end the run.
        return ("\n".join(lines) + "\n").encode(self._encoding, "replace")

    def idle(self) -> None:
        self.write_lines(self._rest())
        self._output.flush()

    def finish(self, decode: Decode) -> str:  # noqa: ARG002
        self.write_lines(self._rest())
        self._output.finish()
        return written(self._output)

    def discard(self) -> None:
        self._output.discard()


class LinesSink(TextSink[Row]):
    """Writes a line per row."""

    def __init__(self, output: Output, table: LineTable[Row]) -> None:
        super().__init__(output, table.rest)
        self._table = table

    def write(self, rows: Sequence[Row]) -> None:
        self.write_lines(self._table.lines_of(rows))

    @property
    def hidden(self) -> Sequence[str]:
        return self._table.hidden


class SortedSink(Sink[Row]):
    """Sorts rows for another sink and writes them at the end."""

    def __init__(self, sink: Sink[Row], key: Callable[[Row], Key]) -> None:
        self._sink = sink
        self._rows = SortedRows(key)

    def write(self, rows: Sequence[Row]) -> None:
        self._rows.add(rows)

    @property
    def hidden(self) -> Sequence[str]:
        return self._sink.hidden

    def finish(self, decode: Decode) -> str:
        with self._rows:
            for batch in self._rows.batches():
                self._sink.write(batch)
        return self._sink.finish(decode)

    def discard(self) -> None:
        self._rows.close()
        self._sink.discard()


class EncodedSink(Sink[Row]):
    """Writes rows as JSON lines or CSV."""

    def __init__(
        self,
        output: Output,
        encode: Callable[[Sequence[Row]], bytes],
        head: bytes = b"",
        to_screen: bool = False,
        form: RowForm = RowForm.records,
    ) -> None:
        """`to_screen`: a person sees the bytes, so what could steer a terminal is escaped.

        `form`: what `encode` makes, where the rows are exchanges.
        """
        self.form = form
        self._output = output
        self._encode = encode
        self._head = head
        self._to_screen = to_screen

    def write(self, rows: Sequence[Row]) -> None:
        self._write_data(self._encode(rows))

    def write_encoded(self, exchanges: EncodedRows, messages: EncodedRows | None) -> None:  # noqa: ARG002
        assert isinstance(exchanges, Lines)  # `form` asks for text
        if self._to_screen:
            self._write_data(exchanges.data)
        else:
            self._write_head()
            self._output.write_pieces(exchanges.pieces)

    def idle(self) -> None:
        self._output.flush()

    def finish(self, decode: Decode) -> str:  # noqa: ARG002
        self._write_head()  # CSV without rows has a header, too
        self._output.finish()
        return written(self._output)

    def discard(self) -> None:
        self._output.discard()

    def _write_data(self, data: bytes) -> None:
        self._write_head()
        if self._to_screen:
            from ..ui.json_text import visible_json

            data = visible_json(data)
        self._output.write(data)

    def _write_head(self) -> None:
        if self._head:
            self._output.write(self._head)
            self._head = b""


class ParquetSink(Sink[Row]):
    """Writes rows to one Parquet file."""

    def __init__(
        self, output: Output, columns: Iterable[ArrowColumn], noun: str, form: RowForm
    ) -> None:
        """`noun` names a row."""
        from dissectors.decode.log_parts import FOOTER
        from dissectors.rows.parquet import ParquetRows, RowTable

        self.form = form
        self._output = output
        self._noun = noun
        self._rows = ParquetRows(output.stream, RowTable(columns), FOOTER)

    def write(self, rows: Sequence[Row]) -> None:
        with naming(self._output.name):
            self._rows.write(rows)

    def write_encoded(self, exchanges: EncodedRows, messages: EncodedRows | None) -> None:  # noqa: ARG002
        with naming(self._output.name):
            self._rows.write_encoded(exchanges)

    def finish(self, decode: Decode) -> str:  # noqa: ARG002
        with naming(self._output.name):
            self._rows.finish()
        path = self._output.path
        self._output.finish()
        if path is None:
            return ""
        return f"{counted(self._rows.rows, self._noun)} → {path} ({size(path.stat().st_size)})"

    def discard(self) -> None:
        with suppress(OSError):
            self._rows.close()
        self._output.discard()


class DecodedLogSink(Sink[ExchangeRecord]):
    """Writes a decoded log: exchanges, findings, manifest."""

    wants_findings = True

    def __init__(
        self,
        folder: Path,
        force: bool,
        options: Mapping[str, object],
        names: Sequence[str],
        form: str,
        messages: bool,
        partition: Partition | None = None,
    ) -> None:
        """`options` restrict the rows, for the manifest; `names` are the captures, by index.

        `form` is how the rows are written, one of `dissectors.decode.decoded_log.FORMS`.
        `messages`: the log has the table of messages. `partition`: it is added to.
        """
        from dissectors.decode.decoded_log import PARQUET
        from dissectors.decode.log_writer import DecodedLogWriter

        # A partition sorts rows by time, which columns have and lines do not show.
        as_lines = RowForm.jsonl if partition is None else RowForm.records
        self.form = RowForm.arrow if form == PARQUET else as_lines
        self._name = str(folder)
        with naming(self._name):
            self._log = DecodedLogWriter(folder, force, form, names, messages, partition)
        self._options = options
        self._names = names

    def write(self, rows: Sequence[ExchangeRecord]) -> None:
        with naming(self._name):
            self._log.write(rows)

    def write_encoded(self, exchanges: EncodedRows, messages: EncodedRows | None) -> None:
        with naming(self._name):
            self._log.write_encoded(exchanges, messages)

    def write_findings(self, findings: Sequence[Finding]) -> None:
        from dissectors.decode.decoded_log import finding_of

        with naming(self._name):
            self._log.write_findings([finding_of(info, self._names) for info in findings])

    def write_conversations(self, rows: Sequence[ConversationRecord]) -> None:
        with naming(self._name):
            self._log.write_conversations(rows)

    def write_messages(self, rows: Sequence[MessageRecord]) -> None:
        with naming(self._name):
            self._log.write_messages(rows)

    def finish(self, decode: Decode) -> str:
        from dissectors.decode.decoded_log import manifest_of

        manifest = manifest_of(decode.stats, VERSION, time_ns(), self._options)
        with naming(self._name):
            self._log.finish(manifest)
        return f"{counted(manifest.exchanges, 'exchange')} → {self._log.folder}/"

    def discard(self) -> None:
        self._log.discard()


def written(output: Output) -> str:
    """Return a note on the file written, or an empty text for standard output."""
    return f"{size(output.written)} → {output.path}" if output.path is not None else ""


def with_cut(written: str, budget: Budget) -> str:
    """Return a note on what was written and what was cut."""
    if not budget.ended:
        return written
    cut = (
        f"{counted(budget.ended, 'compressed message')} cut, first in {budget.first}: "
        f"{size(budget.made)} were decompressed; raise the limit with --max-output SIZE"
    )
    return f"{written}; {cut}" if written else cut


class SummarySink(TextSink[ExchangeRecord]):
    """Writes a summary of the rows."""

    wants_findings = True

    def __init__(
        self,
        output: Output,
        terminal: Terminal,
        names: Sequence[str],
        as_json: bool,
        diagnosed: bool,
    ) -> None:
        """`names` are the captures, by index.

        `diagnosed`: the summary begins with the diagnosis, which needs unfiltered rows.
        """
        from ..api.summarised import SummaryFold

        super().__init__(output, list)
        self._fold = SummaryFold(diagnosed)
        self._as_json = as_json
        self._terminal = terminal
        self._names = names

    def write(self, rows: Sequence[ExchangeRecord]) -> None:
        self._fold.add(rows)

    def write_findings(self, findings: Sequence[Finding]) -> None:
        self._fold.add_findings(findings)

    def write_conversations(self, rows: Sequence[ConversationRecord]) -> None:
        self._fold.add_connections(rows)

    def finish(self, decode: Decode) -> str:
        summary, diagnosis = self._fold.summary, self._fold.diagnosis()
        if self._as_json:
            from ..summary.summary_json import summary_json
            from ..ui.json_text import visible_json

            data = summary_json(summary, decode.stats, diagnosis)
            self._output.write(visible_json(data) if self._terminal.is_terminal else data)
        else:
            from ..summary.summary_text import summary_lines

            lines = summary_lines(summary, decode.stats, self._names, self._terminal, diagnosis)
            self.write_lines(lines)
        return super().finish(decode)
