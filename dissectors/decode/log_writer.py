"""Writer of decoded logs: new ones, and growing ones.

Rules: nothing gets its final name before it is complete; a log only ever replaces a log, and only
on request (`owned_folder`). A log with a partition is never replaced (`growing_log`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import msgspec

from ..owned_folder import FolderRefused, OwnedFolder
from ..rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from ..rows.encoded import Columns, EncodedRows
from ..rows.message_record import MESSAGE_COLUMNS, MessageRecord
from ..rows.parquet import ParquetRows, RowTable, exchange_table, with_added
from ..rows.record import ExchangeRecord
from ..rows.tables import JsonRows, jsonl_of, row_encoder, struct_encoder
from .decoded_log import (
    FINDING_COLUMNS,
    JSONL,
    KIND,
    MANIFEST,
    PARQUET,
    DecodedLogError,
    FindingRecord,
    LogRefused,
    Manifest,
    read_manifest,
    write_manifest,
)
from .growing_log import PARTS, GrowingLog
from .log_parts import (
    CONVERSATIONS,
    EXCHANGES,
    FINDINGS,
    MESSAGES,
    LogParts,
    RowForm,
    opened_rows,
)
from .partition import Partition

_Numbered = TypeVar("_Numbered", ExchangeRecord, MessageRecord, ConversationRecord)

_FINDING_TYPES = [(column.name, column.type) for column in FINDING_COLUMNS]
_CONVERSATION_TYPES = [(column.name, column.type) for column in CONVERSATION_COLUMNS]
_MESSAGE_TYPES = [(column.name, column.type) for column in MESSAGE_COLUMNS]


def form_of_rows(
    form: str, columns: Sequence[tuple[str, str]], row: type[msgspec.Struct] | None = None
) -> RowForm:
    """Return a row encoder for columns of (name, type); raise MissingLibraryError.

    `row` is the row class, if its fields are exactly these columns.
    """
    if form == JSONL:
        return row_encoder(columns) if row is None else struct_encoder(row, columns)
    return RowTable((name, kind, attrgetter(name)) for name, kind in columns)


def form_of_exchanges(form: str) -> RowForm:
    """Return a row encoder for `ExchangeRecord`; raise MissingLibraryError."""
    return jsonl_of if form == JSONL else exchange_table()


class DecodedLogWriter:
    """A decoded log being written: nothing gets its final name before `finish`."""

    def __init__(
        self,
        folder: Path,
        replace: bool = False,
        form: str = PARQUET,
        inputs: Sequence[str] = (),
        messages: bool = False,
        partition: Partition | None = None,
    ) -> None:
        """`replace` allows replacing a decoded log, and nothing else.

        `form` is one of FORMS; `inputs` are names of input files, which are never replaced;
        `messages` adds the message table. `partition` appends to an existing log by days or hours.
        Raise DecodedLogError if `folder` must not be written, OSError if it cannot.
        """
        self.folder = folder
        """final folder of the log"""
        forms = {
            EXCHANGES: form_of_exchanges(form),
            FINDINGS: form_of_rows(form, _FINDING_TYPES),
            CONVERSATIONS: form_of_rows(form, _CONVERSATION_TYPES),
        }
        if messages:
            forms[MESSAGES] = form_of_rows(form, _MESSAGE_TYPES, MessageRecord)
        self._place: OwnedFolder | GrowingLog
        if partition is not None:
            self._place = GrowingLog(folder, partition, form, messages, inputs)
        else:
            try:
                self._place = OwnedFolder(folder, KIND, replace, inputs, private=True)
            except FolderRefused as refusal:
                raise LogRefused(_refusal_text(refusal, folder)) from None
        self._first = 0
        """number of the first connection"""
        self._tables: dict[str, LogParts | ParquetRows | JsonRows] = {}
        for name, rows in forms.items():
            path = self._place.path
            if isinstance(self._place, GrowingLog):
                self._first = self._place.conversations
                number = self._place.number(name)
                self._tables[name] = LogParts(path, name, form, rows, partition, number)
            elif name in (EXCHANGES, MESSAGES):
                self._tables[name] = LogParts(path, name, form, rows)
            else:
                self._tables[name] = opened_rows(path / f"{name}.{form}", rows)

    def write(self, records: Sequence[ExchangeRecord]) -> None:
        """Add exchanges, with their connection numbers converted to those of the log."""
        self._tables[EXCHANGES].write(self._numbered(records))

    def write_encoded(self, rows: EncodedRows, messages: EncodedRows | None) -> None:
        """Add encoded exchanges and their messages."""
        self._tables[EXCHANGES].write_encoded(self._with_numbers(rows))
        if MESSAGES in self._tables and messages is not None:
            self._tables[MESSAGES].write_encoded(self._with_numbers(messages))

    def write_messages(self, rows: Sequence[MessageRecord]) -> None:
        """Add messages, if the log has a message table."""
        if MESSAGES in self._tables:
            self._tables[MESSAGES].write(self._numbered(rows))

    def write_conversations(self, rows: Sequence[ConversationRecord]) -> None:
        """Add TCP connections."""
        self._tables[CONVERSATIONS].write(self._numbered(rows))

    def write_findings(self, findings: Iterable[FindingRecord]) -> None:
        """Add findings."""
        first = self._first
        numbered = [
            finding._replace(conversation=finding.conversation + first)
            if first and finding.conversation is not None
            else finding
            for finding in findings
        ]
        self._tables[FINDINGS].write(numbered)

    def _numbered(self, rows: Sequence[_Numbered]) -> Sequence[_Numbered]:
        if self._first:
            for row in rows:
                row.conversation += self._first
        return rows

    def _with_numbers(self, rows: EncodedRows) -> EncodedRows:
        # Only growing logs count on, and they get no lines, which cannot be renumbered.
        if not self._first or not isinstance(rows, Columns):
            return rows
        return rows._replace(data=with_added(rows.data, "conversation", self._first))

    def finish(self, manifest: Manifest) -> None:
        """Write the remaining rows and the completed manifest, and give the log its final name."""
        for name, table in self._tables.items():
            if isinstance(table, LogParts):
                setattr(manifest, PARTS[name], table.finish())
            else:
                table.finish()
        manifest.exchanges = sum(part.rows for part in manifest.parts)
        if MESSAGES in self._tables:
            manifest.messages = sum(part.rows for part in manifest.message_parts)
        if isinstance(self._place, GrowingLog):
            self._place.finish(manifest)
            return
        write_manifest(self._place.path / MANIFEST, manifest)
        try:
            self._place.finish()
        except FolderRefused as refusal:
            raise LogRefused(str(refusal)) from None

    def discard(self) -> None:
        """Remove the written files."""
        with suppress(OSError):  # after a failed write, closing fails as well
            for table in self._tables.values():
                table.close()
        self._place.discard()


def _refusal_text(refusal: FolderRefused, folder: Path) -> str:
    """Return why a folder is not replaced, which includes every growing log."""
    try:
        partition = read_manifest(folder).partition
    except DecodedLogError:
        return str(refusal)
    if partition is None:
        return str(refusal)
    return f"{folder} is a decoded log by {partition}; --partition {partition} adds to it"
