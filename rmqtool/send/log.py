"""Attempts to a file, as rows of a decoded log: what reports read of captures, they read of these.

Rules: JSON lines are written as they come, so that a run that is killed leaves what was sent; a
Parquet file is whole or is not there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dissectors.rows.record import ExchangeRecord
from dissectors.rows.tables import jsonl_of
from replay.message import Attempt, Message
from replay.sending.attempt_record import record_of_attempt

from ..ui.figures import counted, size
from ..ui.option_values import usage_error
from ..ui.output import Output, naming

_AT_ONCE: Final = 512
"""rows that are written together"""


class AttemptLog:
    """A file of attempts."""

    def __init__(self, path: str, force: bool = False) -> None:
        """Raise CommandError where the file cannot be written, or has no name of a known form.

        `force`: one that exists is replaced.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in (".jsonl", ".parquet"):
            raise usage_error("--log", f"{path!r}: the file name must end in .jsonl or .parquet")
        self._rows: list[ExchangeRecord] = []
        self._count = 0
        self._parquet = None
        if suffix == ".parquet":
            from dissectors.decode.decoded_log import FOOTER
            from dissectors.rows.parquet import ParquetRows, exchange_table, load_pyarrow

            load_pyarrow()
            self._output = Output(path, private=True, force=force)
            self._parquet = ParquetRows(self._output.stream, exchange_table(), FOOTER)
        else:
            self._output = Output(path, direct=True, private=True, force=force)

    def add(self, message: Message, attempt: Attempt) -> None:
        """Take an attempt."""
        self._rows.append(record_of_attempt(message, attempt))
        if len(self._rows) >= _AT_ONCE:
            self._write()

    def _write(self) -> None:
        rows, self._rows = self._rows, []
        self._count += len(rows)
        if self._parquet is None:
            self._output.write(jsonl_of(rows))
            self._output.flush()
        else:
            with naming(self._output.name):
                self._parquet.write(rows)

    def finish(self) -> str:
        """End the log and return what was written where."""
        self._write()
        if self._parquet is not None:
            with naming(self._output.name):
                self._parquet.finish()
        self._output.finish()
        path = self._output.path
        written = size(path.stat().st_size) if path is not None else ""
        return f"{counted(self._count, 'attempt')} → {path} ({written})"

    def discard(self) -> None:
        """Clean up after a failed run: JSON lines stay as far as they go, a Parquet file
        does not.
        """
        self._output.discard()
