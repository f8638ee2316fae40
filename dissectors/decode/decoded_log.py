"""The decoded log: a folder with the exchanges of a run, its findings and what it covers.

Layout: ``exchanges/part-00000.parquet`` … (one row per exchange), ``conversations.parquet`` (one
row per TCP connection), ``expert.parquet`` (one row per finding), ``messages/part-00000.parquet`` …
(one row per message and exchange, unless switched off) and ``manifest.json``; or as JSON lines
(``.jsonl``), for which pyarrow is not needed. Rules: what has the name is whole; a log is only ever
replaced by a log, and only where that was asked for (`owned_folder`).
``docs/decoded-log.md`` documents every column.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, NamedTuple, cast

import msgspec

from ..expert import ExpertInfo
from ..foreign import Unreadable, json_of
from ..owned_folder import FolderRefused, OwnedFolder, is_inside
from ..replication.progress import Replication
from ..rows.column import Description, columns_of
from ..rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from ..rows.encoded import EncodedRows, chunks_up_to
from ..rows.json_rows import Encode, JsonRows, row_encoder, struct_encoder
from ..rows.message_record import MESSAGE_COLUMNS, MessageRecord
from ..rows.parquet import ParquetRows, RowTable, exchange_table
from ..rows.record import ExchangeRecord
from ..rows.tables import encodable, jsonl_of
from ..tcp.capture import capture_index, packet_number
from ..times import text_of_time
from .totals import TOTALS, CaptureStats, DecodeStats

FORMAT = "rmqtool-decoded-log"
SCHEMA_VERSION = 1
"""Raised when a column changes its meaning or goes; a new column does not raise it."""
KIND = "decoded log"
MANIFEST = "manifest.json"
EXCHANGES = "exchanges"
CONVERSATIONS = "conversations"
EXPERT = "expert"
MESSAGES = "messages"
PARQUET = "parquet"
JSONL = "jsonl"
FORMS = (PARQUET, JSONL)
"""How the rows of a log can be written, which is also how their files' names end."""
FOOTER = {"rmqtool.schema_version": str(SCHEMA_VERSION)}
"""What the footer of each Parquet file says."""
PART_ROWS = 1_048_576
"""Rows of a part file: some 40 MB, one task's worth for Spark."""


class DecodedLogError(Exception):
    """A folder cannot be read or written as a decoded log; the text says why and what to do."""


class CaptureEntry(msgspec.Struct, kw_only=True):
    """A capture that went into the log."""

    name: str
    """file name as given; `-` is standard input"""
    format: str
    """pcap or pcapng"""
    compression: str | None
    """gzip, zstd, lz4 or xz"""
    packets: int
    """packets in the file"""
    bytes: int
    """bytes read of the file as it is stored"""
    first_time: str | None
    """time of the first packet"""
    last_time: str | None
    """time of the last packet"""
    skipped: dict[str, int]
    """packets that were not decoded, by reason"""


class PartEntry(msgspec.Struct):
    """A file with exchanges, or with messages."""

    file: str
    """path inside the log"""
    rows: int
    """rows in it"""


class Manifest(msgspec.Struct, kw_only=True):
    """What a decoded log holds and covers."""

    format: str = FORMAT
    """always `rmqtool-decoded-log`"""
    schema_version: int = SCHEMA_VERSION
    """version of the columns"""
    rmqtool: str
    """version of rmqtool that wrote it"""
    created: str
    """when it was written"""
    options: dict[str, object]
    """what restricted the rows: `where`, `since`, `until`, `limit`; empty: everything is there"""
    captures: list[CaptureEntry]
    """captures that were read"""
    exchanges: int = 0
    """rows in all parts"""
    parts: list[PartEntry] = []
    """files with exchanges"""
    messages: int | None = None
    """rows about messages; null: they were not asked for"""
    message_parts: list[PartEntry] = []
    """files with them"""
    conversations: int
    """TCP connections seen"""
    rocketmq_conversations: int
    """those that were decoded"""
    not_decoded: dict[str, int]
    """those that were not, by protocol"""
    replication_conversations: int = 0
    """those between a slave and its master, of which the commit log is not decoded"""
    replications: list[Replication] = []
    """what they transferred, times in nanoseconds since the epoch; at most 4096 are listed"""
    frames: int
    """frames found"""
    commands: int
    """commands decoded"""
    gaps: int
    """holes in the streams"""
    gap_bytes: int
    """bytes that the captures do not have"""
    expert: dict[str, int]
    """findings by kind; the most frequent ones are counted here and not all listed"""


def manifest_of(
    stats: DecodeStats, rmqtool: str, created: int, options: Mapping[str, object]
) -> Manifest:
    """Return the manifest for a run with `stats`; `created` is nanoseconds since the epoch."""
    return Manifest(
        rmqtool=rmqtool,
        created=text_of_time(created),
        options=dict(options),
        captures=[capture_entry(capture) for capture in stats.captures],
        **{name: getattr(stats, name) for name in TOTALS},
        expert={kind.name: count for kind, count in stats.expert_counts.items()},
    )


def capture_entry(capture: CaptureStats) -> CaptureEntry:
    """Return a capture as a log tells of it."""
    return CaptureEntry(
        name=encodable(capture.name),
        format=capture.format,
        compression=capture.compression,
        packets=capture.packets,
        bytes=capture.bytes,
        first_time=None if capture.first_ts is None else text_of_time(capture.first_ts),
        last_time=None if capture.last_ts is None else text_of_time(capture.last_ts),
        skipped=dict(capture.skipped),
    )


class Finding(NamedTuple):
    """A row of ``expert.parquet``."""

    capture: Annotated[
        str | None,
        Description("name of the capture file; absent: the finding is about no packet"),
    ]
    packet: Annotated[int | None, Description("number of the packet in it")]
    time: Annotated[int | None, Description("time of that packet", type="time")]
    conversation: Annotated[
        int | None, Description("number of the TCP connection, as in the exchanges")
    ]
    kind: Annotated[str, Description("ExpertKind")]
    severity: Annotated[str, Description("`chat`, `note`, `warning` or `error`")]
    detail: Annotated[str, Description("what exactly; quotes the input")]
    offset: Annotated[
        int | None,
        Description("offset in the stream, or in the file where the finding is about the file"),
    ]


def finding_of(info: ExpertInfo, captures: Sequence[str]) -> Finding:
    """Return the row of a finding; `captures` are the names by index."""
    index = capture_index(info.packet)
    has_packet = info.packet != 0
    return Finding(
        captures[index] if has_packet and index < len(captures) else None,
        packet_number(info.packet) if has_packet else None,
        info.ts or None,
        info.conversation if info.conversation >= 0 else None,
        info.kind.name,
        info.kind.severity.name.lower(),
        info.detail,
        info.offset if info.offset >= 0 else None,
    )


FINDING_COLUMNS: Final = columns_of(Finding)

_FINDING_TYPES = [(column.name, column.type) for column in FINDING_COLUMNS]
_CONVERSATION_TYPES = [(column.name, column.type) for column in CONVERSATION_COLUMNS]
_MESSAGE_TYPES = [(column.name, column.type) for column in MESSAGE_COLUMNS]
RowForm = RowTable | Encode
"""What makes Parquet columns, or JSON lines, of rows."""


def form_of_rows(
    form: str, columns: Sequence[tuple[str, str]], row: type[msgspec.Struct] | None = None
) -> RowForm:
    """Return what writes rows with these (name, type); raise MissingLibraryError.

    `row`: the class of the rows, where they are structs with just these columns.
    """
    if form == JSONL:
        return row_encoder(columns) if row is None else struct_encoder(row, columns)
    return RowTable((name, kind, attrgetter(name)) for name, kind in columns)


def form_of_exchanges(form: str) -> RowForm:
    """Return what writes `ExchangeRecord`; raise MissingLibraryError."""
    return _jsonl_of if form == JSONL else exchange_table()


def _jsonl_of(rows: Sequence[object]) -> bytes:
    return jsonl_of(cast("Sequence[ExchangeRecord]", rows))


def file_in(folder: Path, name: str) -> Path:
    """Return a file of a decoded log, which others may have made.

    Raise DecodedLogError where it is not a regular file inside the folder: a name that leads out
    of it, a link, a device or a pipe. Raise OSError where it is not there.
    """
    if not is_inside(name):
        raise DecodedLogError(f"{folder}/{MANIFEST} names {name!r}, which is not a file of the log")
    path = folder
    *_, last = parts = PurePosixPath(name).parts
    for part in parts:
        path /= part
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) if part is last else stat.S_ISDIR(mode)):
            raise DecodedLogError(f"{path} is not a regular file inside the decoded log")
    return path


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a decoded log; raise DecodedLogError where `folder` is none."""
    path = folder / MANIFEST
    try:
        manifest = json_of(msgspec.json.Decoder(Manifest), file_in(folder, MANIFEST).read_bytes())
    except FileNotFoundError:
        reason = "there is no such folder" if not folder.exists() else f"it has no {MANIFEST}"
        raise DecodedLogError(f"{folder} is not a decoded log: {reason}") from None
    except (OSError, Unreadable) as error:
        raise DecodedLogError(f"{path} cannot be read: {error}") from None
    if manifest.format != FORMAT:
        raise DecodedLogError(f"{folder} is not a decoded log: its format is {manifest.format!r}")
    if manifest.schema_version > SCHEMA_VERSION:
        raise DecodedLogError(
            f"{folder} was written by rmqtool {manifest.rmqtool}, whose columns (schema "
            f"{manifest.schema_version}) are newer than those known here ({SCHEMA_VERSION})"
        )
    return manifest


def is_decoded_log(folder: Path) -> bool:
    """Return whether `folder` is a decoded log that can be read."""
    try:
        read_manifest(folder)
    except DecodedLogError:
        return False
    return True


class DecodedLogWriter:
    """A decoded log that is being written: nothing has its name before `finish`."""

    def __init__(
        self,
        folder: Path,
        replace: bool = False,
        form: str = PARQUET,
        inputs: Sequence[str] = (),
        messages: bool = False,
    ) -> None:
        """`replace` allows to replace a decoded log, and nothing but a decoded log.

        `form` is one of FORMS; `inputs` are names of what is read, which is never replaced;
        `messages`: it has the table of messages. Raise DecodedLogError where `folder` may not be
        written, OSError where it cannot.
        """
        self.folder = folder
        """where the log will be"""
        self._form = form
        exchanges = form_of_exchanges(form)
        try:
            self._owned = OwnedFolder(folder, KIND, replace, inputs, private=True)
        except FolderRefused as refusal:
            raise DecodedLogError(str(refusal)) from None
        self._temporary = self._owned.path
        self._exchanges = _Parts(self._temporary, EXCHANGES, form, exchanges)
        self._messages: _Parts | None = None
        if messages:
            columns = form_of_rows(form, _MESSAGE_TYPES, MessageRecord)
            self._messages = _Parts(self._temporary, MESSAGES, form, columns)
        self._findings = self._rows_of(EXPERT, form_of_rows(form, _FINDING_TYPES))
        self._conversations = self._rows_of(CONVERSATIONS, form_of_rows(form, _CONVERSATION_TYPES))

    def write(self, records: Sequence[ExchangeRecord]) -> None:
        """Add exchanges."""
        self._exchanges.write(records)

    def write_encoded(self, rows: EncodedRows, messages: EncodedRows | None) -> None:
        """Add exchanges in the form of the log, and their messages."""
        self._exchanges.write_encoded(rows)
        if self._messages is not None and messages is not None:
            self._messages.write_encoded(messages)

    def write_messages(self, rows: Sequence[MessageRecord]) -> None:
        """Add messages; the log was opened for them."""
        if self._messages is not None:
            self._messages.write(rows)

    def write_conversations(self, rows: Sequence[ConversationRecord]) -> None:
        """Add TCP connections."""
        self._conversations.write(rows)

    def write_findings(self, findings: Iterable[Finding]) -> None:
        """Add findings."""
        self._findings.write(list(findings))

    def finish(self, manifest: Manifest) -> None:
        """Write what is left and `manifest` with the parts filled in, and give the log its name."""
        manifest.parts = self._exchanges.finish()
        manifest.exchanges = sum(part.rows for part in manifest.parts)
        if self._messages is not None:
            manifest.message_parts = self._messages.finish()
            manifest.messages = sum(part.rows for part in manifest.message_parts)
        self._findings.finish()
        self._conversations.finish()
        encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        (self._temporary / MANIFEST).write_bytes(encoded + b"\n")
        try:
            self._owned.finish()
        except FolderRefused as refusal:
            raise DecodedLogError(str(refusal)) from None

    def discard(self) -> None:
        """Remove what was written so far."""
        with suppress(OSError):  # what could not be written cannot be closed well either
            self._exchanges.close()
            if self._messages is not None:
                self._messages.close()
            self._findings.close()
            self._conversations.close()
        self._owned.discard()

    def _rows_of(self, name: str, form: RowForm) -> ParquetRows | JsonRows:
        return _opened(self._temporary / f"{name}.{self._form}", form)


def _opened(path: Path, form: RowForm) -> ParquetRows | JsonRows:
    if isinstance(form, RowTable):
        return ParquetRows(str(path), form, FOOTER)
    return JsonRows(str(path), form)


class _Parts:
    """A table in part files that are being written, in a folder of its own."""

    def __init__(self, log: Path, name: str, form: str, rows: RowForm) -> None:
        """`name` is that of the folder, `form` how file names end, `rows` what writes them."""
        self._log = log
        self._name = name
        self._form = form
        self._rows = rows
        self._parts: list[PartEntry] = []
        (log / name).mkdir()
        self._part = self._open()

    def write(self, rows: Sequence[object]) -> None:
        """Add rows."""
        if self._part.rows >= PART_ROWS:
            self._finish_part()
            self._part = self._open()
        self._part.write(rows)

    def write_encoded(self, rows: EncodedRows) -> None:
        """Add rows that have the form of the files."""
        while any(rows.counts):
            if self._part.rows >= PART_ROWS:
                self._finish_part()
                self._part = self._open()
            head, rows = rows.split(chunks_up_to(rows.counts, PART_ROWS - self._part.rows))
            self._part.write_encoded(head)

    def finish(self) -> list[PartEntry]:
        """Write what is left; return all parts."""
        self._finish_part()
        return self._parts

    def close(self) -> None:
        """Close the last part; without `finish` before it, rows may be missing."""
        self._part.close()

    def _open(self) -> ParquetRows | JsonRows:
        file = f"{self._name}/part-{len(self._parts):05d}.{self._form}"
        self._parts.append(PartEntry(file, 0))
        return _opened(self._log / file, self._rows)

    def _finish_part(self) -> None:
        self._part.finish()
        self._parts[-1].rows = self._part.rows
