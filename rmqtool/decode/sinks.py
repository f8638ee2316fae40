"""Where decoded rows end: lines, encoded rows, a Parquet file, a decoded log.

A sink takes rows and findings as they come; in the end it is finished once, or discarded. What it
has to say about itself then is for standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Generic, TypeVar

from dissectors.budget import Budget
from dissectors.expert import ExpertInfo
from dissectors.rows.encoded import EncodedRows, Lines, RowForm
from dissectors.rows.record import ExchangeRecord

from ..ui.columns import LineTable
from ..ui.console import Terminal
from ..ui.figures import counted, size
from ..ui.output import Output, naming
from ..ui.sorting import Key, SortedRows
from ..version import VERSION

if TYPE_CHECKING:
    from dissectors.decode.pipeline import Decode
    from dissectors.rows.conversation_record import ConversationRecord
    from dissectors.rows.message_record import MessageRecord

    from ..api.tables.table import ArrowColumn

Row = TypeVar("Row")


class Sink(Generic[Row]):
    """Takes rows."""

    wants_findings = False
    """it takes findings; else they are only counted"""
    form = RowForm.records
    """how it takes exchanges of several processes"""

    def write(self, rows: Sequence[Row]) -> None:
        """Take rows; they may be kept until later."""
        raise NotImplementedError

    def write_encoded(self, exchanges: EncodedRows, messages: EncodedRows | None) -> None:
        """Take exchanges in its form, and their messages."""
        raise NotImplementedError

    @property
    def hidden(self) -> Sequence[str]:
        """Columns that had something to show and no room."""
        return ()

    def idle(self) -> None:
        """Show what is there, as nothing comes at the moment."""

    def write_findings(self, findings: Sequence[ExpertInfo]) -> None:
        """Take findings."""

    def write_conversations(self, rows: Sequence[ConversationRecord]) -> None:
        """Take TCP connections, where the run was asked for them."""

    def write_messages(self, rows: Sequence[MessageRecord]) -> None:
        """Take messages of the rows that were written, where the run was asked for them."""

    def finish(self, decode: Decode) -> str:
        """End the run; return what was written, empty where that can be seen."""
        raise NotImplementedError

    def discard(self) -> None:
        """Clean up after a run that was stopped: leave nothing unfinished."""


class TextSink(Sink[Row]):
    """Text lines to an output."""

    def __init__(self, output: Output, rest: Callable[[], list[str]]) -> None:
        self._output = output
        self._rest = rest
        encoding = sys.stdout.encoding if output.path is None else None
        self._encoding = encoding or "utf-8"

    def write_lines(self, lines: Sequence[str]) -> None:
        """Write lines that are printable already."""
        if lines:
            self._output.write(self.encoded(lines))

    def encoded(self, lines: Sequence[str]) -> bytes:
        """Return lines as they are written."""
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
    """One line per row."""

    def __init__(self, output: Output, table: LineTable[Row]) -> None:
        super().__init__(output, table.rest)
        self._table = table

    def write(self, rows: Sequence[Row]) -> None:
        self.write_lines(self._table.lines_of(rows))

    @property
    def hidden(self) -> Sequence[str]:
        return self._table.hidden


class SortedSink(Sink[Row]):
    """Rows of another sink in order: they are written in the end."""

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
    """Rows as JSON lines or CSV."""

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
        if not isinstance(exchanges, Lines):
            return
        if self._to_screen:
            self._write_data(exchanges.data)
        else:
            self._write_head()
            self._output.write_pieces(exchanges.pieces)

    def idle(self) -> None:
        self._output.flush()

    def finish(self, decode: Decode) -> str:  # noqa: ARG002
        self._write_head()
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
    """Rows in one Parquet file."""

    def __init__(
        self, output: Output, columns: Iterable[ArrowColumn], noun: str, form: RowForm
    ) -> None:
        """`noun` says what a row is."""
        from dissectors.decode.decoded_log import FOOTER
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
    """A decoded log: exchanges, findings, manifest."""

    wants_findings = True

    def __init__(
        self,
        folder: Path,
        force: bool,
        options: Mapping[str, object],
        names: Sequence[str],
        form: str,
        messages: bool,
    ) -> None:
        """`options` restrict the rows, for the manifest; `names` are the captures, by index.

        `form` is how the rows are written, one of `dissectors.decode.decoded_log.FORMS`.
        `messages`: the log has the table of messages.
        """
        from dissectors.decode.decoded_log import PARQUET, DecodedLogWriter

        self.form = RowForm.arrow if form == PARQUET else RowForm.jsonl
        self._name = str(folder)
        with naming(self._name):
            self._log = DecodedLogWriter(folder, force, form, names, messages)
        self._options = options
        self._names = names

    def write(self, rows: Sequence[ExchangeRecord]) -> None:
        with naming(self._name):
            self._log.write(rows)

    def write_encoded(self, exchanges: EncodedRows, messages: EncodedRows | None) -> None:
        with naming(self._name):
            self._log.write_encoded(exchanges, messages)

    def write_findings(self, findings: Sequence[ExpertInfo]) -> None:
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
    """Return what was written to a file; nothing for standard output, which is seen."""
    return f"{size(output.written)} → {output.path}" if output.path is not None else ""


def with_cut(written: str, budget: Budget) -> str:
    """Return what was written, and what was cut because it was too much."""
    if not budget.ended:
        return written
    cut = (
        f"{counted(budget.ended, 'compressed message')} cut, first in {budget.first}: "
        f"{size(budget.made)} were made of what was captured; --max-output SIZE allows more"
    )
    return f"{written}; {cut}" if written else cut


class SummarySink(TextSink[ExchangeRecord]):
    """No rows, but what they come to."""

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

        `diagnosed`: the summary begins with what is wrong, which rows that a filter left do not
        say.
        """
        from ..api.summarised import SummaryFold

        super().__init__(output, list)
        self._fold = SummaryFold(diagnosed)
        self._as_json = as_json
        self._terminal = terminal
        self._names = names

    def write(self, rows: Sequence[ExchangeRecord]) -> None:
        self._fold.add(rows)

    def write_findings(self, findings: Sequence[ExpertInfo]) -> None:
        self._fold.add_findings(findings)

    def write_conversations(self, rows: Sequence[ConversationRecord]) -> None:
        self._fold.add_connections(rows)

    def finish(self, decode: Decode) -> str:
        summary, found = self._fold.summary, self._fold.diagnosis()
        if self._as_json:
            from ..summary.summary_json import summary_json
            from ..ui.json_text import visible_json

            data = summary_json(summary, decode.stats, found)
            self._output.write(visible_json(data) if self._terminal.is_terminal else data)
        else:
            from ..summary.summary_text import summary_lines

            lines = summary_lines(summary, decode.stats, self._names, self._terminal, found)
            self.write_lines(lines)
        return super().finish(decode)
