"""Inputs of a report, detected by content: decoded logs, files with exchanges, captures.

Independent of Spark, so that invalid inputs are reported before Java starts. A Parquet file is
checked by its footer and a JSON file by its first line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import msgspec

from dissectors.decode.decoded_log import (
    FINDING_COLUMNS,
    FORMS,
    MANIFEST,
    PARQUET,
    DecodedLogError,
    Manifest,
    file_in,
    parts_there,
    read_manifest,
)
from dissectors.decode.log_parts import CONVERSATIONS, FINDINGS, SCHEMA_VERSION, PartEntry
from dissectors.foreign import Unreadable, integer_of, json_of
from dissectors.rows.column import NAMES, RENAMED
from dissectors.rows.parquet import load_pyarrow
from dissectors.rows.tables import encodable
from dissectors.tcp.formats import JSON_ARRAY, TO_JSON_LINES
from dissectors.tcp.source import CaptureError, expand_sources, is_capture_name

from ..cells import is_cells
from ..errors import ReportError
from .window import TimeWindow

_LEAST_COLUMNS = frozenset(("client_address", "server_address", "status", "opaque"))
"""Columns without which a row is not an exchange."""
TABLE = "table:"
"""Prefix of an input that is a table of a Spark catalog."""
_VERSION_KEY = b"rmqtool.schema_version"


class InputError(ReportError):
    """An unreadable input, with the reason and a remedy."""


class InputKind(StrEnum):
    """Kind of an input."""

    log = "decoded log"
    parquet = "Parquet file"
    jsonl = "JSON lines"
    captures = "captures"
    cells = "cells"
    remote = "remote"
    table = "table of Spark"


@dataclass(frozen=True, slots=True)
class Input:
    """One input."""

    name: str
    """name as the user wrote it; the column `source`"""
    kind: InputKind
    """what it is"""
    exchanges: tuple[str, ...]
    """files with exchanges; for captures, the captures in order"""
    conversations: tuple[str, ...] | None = None
    """files with the TCP connections; None: absent"""
    findings: tuple[str, ...] | None = None
    """files with the findings; None: absent"""
    manifest: Manifest | None = None
    """manifest of a decoded log"""
    rows: int | None = None
    """number of exchanges; None: unknown"""
    bytes: int = 0
    """total size of its files"""
    messages: tuple[str, ...] | None = None
    """files with the messages; None: absent"""


_ALWAYS = TimeWindow()


def inputs_of(names: Sequence[str], window: TimeWindow = _ALWAYS) -> list[Input]:
    """Return the inputs with these names; all captures form one input, which comes last.

    Parts of decoded logs without rows in `window` are skipped.
    """
    inputs: list[Input] = []
    captures: list[str] = []
    seen: set[str] = set()
    for name in (given.removeprefix("file://") for given in names):
        place = name if is_elsewhere(name) else os.path.realpath(name)
        if place in seen:
            continue  # two names of one input: its rows would count twice
        seen.add(place)
        entry = _input_of(name, window)
        if entry is None:
            captures.append(name)
        else:
            inputs.append(entry)
    if captures:
        inputs.append(_captures(captures))
    rows = next((entry.name for entry in inputs if entry.kind is not InputKind.cells), None)
    cells = next((entry.name for entry in inputs if entry.kind is InputKind.cells), None)
    if rows is not None and cells is not None:
        raise InputError(
            f"{cells} has cells, {rows} has rows",
            "write cells of all inputs first: rmqtool report INPUT --cells FOLDER",
        )
    if not inputs:
        raise InputError("no input", "name captures, a decoded log, or a file of its rows")
    return [  # Arrow takes only UTF-8; a folder of cells is opened by its name, and has no rows
        entry if entry.kind is InputKind.cells else replace(entry, name=encodable(entry.name))
        for entry in inputs
    ]


def is_elsewhere(name: str) -> bool:
    """Return whether only Spark can read an input: remote, or a table of a catalog."""
    return name.startswith(TABLE) or ("://" in name and not name.startswith("file://"))


def about_repeated(inputs: Sequence[Input]) -> list[str]:
    """Return notes about captures in several decoded logs: their exchanges count twice."""
    logs: dict[tuple[str, int, str | None], list[str]] = {}
    for entry in inputs:
        for capture in entry.manifest.captures if entry.manifest is not None else ():
            key = (os.path.basename(capture.name), capture.packets, capture.first_time)
            logs.setdefault(key, []).append(entry.name)
    return [
        f"{' and '.join(names)} both have {capture}: its exchanges are counted more than once"
        for (capture, packets, _), names in logs.items()
        if len(names) > 1 and packets
    ]


def _input_of(name: str, window: TimeWindow) -> Input | None:
    """Return the input with that name, or None for captures."""
    if name.startswith(TABLE):
        return Input(name, InputKind.table, (name.removeprefix(TABLE),))
    if "://" in name:
        return Input(name, InputKind.remote, (name,))
    if name == "-":
        raise InputError(
            "standard input can be read only once", "decode it first: rmqtool decode pcap - -o log/"
        )
    path = Path(name)
    if not path.exists():
        raise InputError(f"{name}: no such file or folder")
    if path.is_dir():
        return _folder(name, path, window)
    head = _head_of(path)
    if head.startswith(b"PAR1"):
        return _parquet_file(name, path)
    if head[:1] == b"{":
        return _jsonl_file(name, path)
    if head[:1] == b"[":
        raise array_error(name)
    return None


def array_error(name: str) -> InputError:
    """Return the error about a file that is one JSON array."""
    return InputError(f"{name} is {JSON_ARRAY}", TO_JSON_LINES)


def _folder(name: str, path: Path, window: TimeWindow) -> Input | None:
    if os.path.lexists(path / MANIFEST):
        return _log(name, path, window)
    if is_cells(path):
        return Input(name, InputKind.cells, (), rows=0)
    files = sorted(str(file) for file in path.iterdir() if file.is_file())
    parquet = [file for file in files if file.endswith(".parquet")]
    jsonl = [file for file in files if file.endswith((".jsonl", ".ndjson"))]
    if parquet or jsonl:  # as written by Spark and others, or attempts logged by producers
        check = _check_parquet if parquet else _check_jsonl
        chosen = parquet or jsonl
        for file in chosen:
            check(file)
        kind = InputKind.parquet if parquet else InputKind.jsonl
        return Input(name, kind, tuple(chosen), bytes=size_of(chosen))
    arrays = [file for file in files if file.endswith(".json") and _head_of(Path(file))[:1] == b"["]
    # Beside captures, such a file may be anything; alone, it was meant as the input.
    if arrays and not any(map(is_capture_name, map(Path, files))):
        raise array_error(arrays[0])
    return None


def _log(name: str, path: Path, window: TimeWindow) -> Input:
    _require_utf8(name)
    try:
        manifest = read_manifest(path)
    except DecodedLogError as error:
        raise InputError(str(error), "decode the captures again") from None

    def files_of(parts: Sequence[PartEntry]) -> tuple[str, ...]:
        return tuple(_file_in(path, part.file) for part in _in_window(path, parts, window))

    parts = _in_window(path, manifest.parts, window)
    files = tuple(_file_in(path, part.file) for part in parts)
    form = manifest.parts[0].file.rpartition(".")[2] if manifest.parts else PARQUET
    if form not in FORMS:
        first = path / manifest.parts[0].file
        raise InputError(f"{first} is neither Parquet nor JSON lines", "decode again")

    def beside(table_name: str, divided: Sequence[PartEntry]) -> tuple[str, ...] | None:
        if manifest.partition is not None:
            return files_of(divided)
        names = (f"{candidate}.{form}" for candidate in NAMES.get(table_name, (table_name,)))
        file = next((candidate for candidate in names if os.path.lexists(path / candidate)), None)
        return None if file is None else (_file_in(path, file),)

    conversations = beside(CONVERSATIONS, manifest.conversation_parts)
    findings = beside(FINDINGS, manifest.finding_parts)
    if form == PARQUET:
        # an interrupted copy of a log lacks rows, or has a file of another run
        for file, part in zip(files, parts, strict=True):
            rows = _check_parquet(file)
            if rows != part.rows:
                raise InputError(
                    f"{file} has {rows:,} rows, but the manifest says {part.rows:,}",
                    "decode again",
                )
        for file in (*(conversations or ()), *(findings or ())):
            _footer_of(file)
    return Input(
        name,
        InputKind.log,
        files,
        conversations,
        findings,
        manifest,
        sum(part.rows for part in parts),
        size_of(files),
        None if manifest.messages is None else files_of(manifest.message_parts),
    )


def _in_window(path: Path, parts: Sequence[PartEntry], window: TimeWindow) -> list[PartEntry]:
    return [part for part in parts_there(path, parts) if window.takes(part)]


def _file_in(path: Path, name: str) -> str:
    """Return a file of a log; raise InputError if it is missing or outside the log."""
    try:
        return str(file_in(path, name))
    except DecodedLogError as error:
        raise InputError(str(error), "decode the captures again") from None
    except OSError:
        raise InputError(f"{path / name} is missing from the decoded log", "decode again") from None


def _parquet_file(name: str, path: Path) -> Input:
    rows = _check_parquet(str(path))
    return Input(name, InputKind.parquet, (str(path),), rows=rows, bytes=size_of([str(path)]))


def _jsonl_file(name: str, path: Path) -> Input:
    _check_jsonl(str(path))
    return Input(name, InputKind.jsonl, (str(path),), bytes=size_of([str(path)]))


def _captures(names: Sequence[str]) -> Input:
    try:
        captures = expand_sources(names)
    except CaptureError as error:
        raise InputError(f"{error.path}: {error.reason}", error.hint) from None
    for capture in captures:
        with open(capture, "rb"):  # report unreadable files now
            pass
    return Input(names[0], InputKind.captures, tuple(captures), bytes=size_of(captures))


def _require_utf8(name: str) -> None:
    """Raise InputError for a name that is not UTF-8: Arrow and DuckDB open no such file."""
    if encodable(name) != name:
        raise InputError(
            f"{name}: the name is not UTF-8", "rename it; only captures may have such a name"
        )


def _check_parquet(file: str) -> int:
    """Return the number of exchanges in a file; raise InputError if it has other rows."""
    _require_utf8(file)
    names, version, rows = _footer_of(file)
    if version is not None and version > SCHEMA_VERSION:
        raise InputError(
            f"{file} was written by a newer rmqtool: its schema version is {version}, this rmqtool"
            f" reads up to {SCHEMA_VERSION}",
            "use that rmqtool, or decode again with this one",
        )
    refuse_others(file, names)
    return rows


def _footer_of(file: str) -> tuple[set[str], int | None, int]:
    """Return (columns, schema version, rows) of a Parquet file."""
    load_pyarrow()
    import pyarrow
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_metadata(file)
        names = set(metadata.schema.to_arrow_schema().names)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition(".")[0] or type(error).__name__
        raise InputError(
            f"{file} is a damaged or unfinished Parquet file: {reason}", "write it again"
        ) from None
    version = (metadata.metadata or {}).get(_VERSION_KEY, b"")
    return names, integer_of(version.decode("ascii", "replace")), metadata.num_rows


def _check_jsonl(file: str) -> None:
    _require_utf8(file)
    with open(file, "rb") as stream:
        line = stream.readline(1 << 24)  # a file of another kind may have no line end
    if not line.strip():
        return
    try:
        first = json_of(_JSON, line)
    except Unreadable as problem:
        if line[:1] == b"[":
            raise array_error(file) from None
        raise InputError(
            f"{file}: its first line is not a JSON object: {problem}",
            "JSON lines have one object per line: rmqtool decode pcap … -T jsonl",
        ) from None
    names = set(first) if isinstance(first, dict) else set()
    refuse_others(file, names)


_JSON = msgspec.json.Decoder()
_HINT = "reports need exchanges: rmqtool decode pcap CAPTURE… -T parquet -o log/"


def refuse_others(name: str, columns: Iterable[str]) -> None:
    """Raise InputError if rows with these columns are not exchanges."""
    present = set(columns)
    if not {RENAMED.get(column, column) for column in present} >= _LEAST_COLUMNS:
        raise InputError(f"{name} {_no_exchanges(present)}", _HINT)


def _no_exchanges(names: Iterable[str]) -> str:
    """Return a description of rows that are not exchanges, by their columns."""
    present = set(names)
    if "flag" in present:
        return "has commands (--commands), not exchanges"
    if present >= {column.name for column in FINDING_COLUMNS}:
        return "has findings, not exchanges; name the folder it is in"
    if "directions" in present:
        return "has TCP connections, not exchanges; name the folder it is in"
    return "has no exchanges"


def _head_of(path: Path) -> bytes:
    if not path.is_file():
        raise InputError(
            f"{path} is not a capture or log: it is neither a file nor a folder",
            "for a pipe, decode it first: rmqtool decode pcap - -o log/",
        )
    with path.open("rb") as stream:
        return stream.read(8)


def identity_of(entry: Input) -> str:
    """Return an identity that differs between inputs with the same name on different days."""
    captures = entry.manifest.captures if entry.manifest is not None else []
    return f"{entry.name} {captures[0].name} {captures[0].first_time}" if captures else entry.name


def size_of(files: Iterable[str]) -> int:
    """Return the total stored size of files in bytes."""
    return sum(os.path.getsize(file) for file in files)


def at_whole_paths(entry: Input) -> Input:
    """Return an input with absolute paths for use in other processes; `name` is unchanged."""

    def whole(files: Iterable[str]) -> tuple[str, ...]:
        return tuple(file if "://" in file else os.path.abspath(file) for file in files)

    beside = (entry.conversations, entry.findings, entry.messages)
    conversations, findings, messages = (
        None if files is None else whole(files) for files in beside
    )
    if entry.kind is InputKind.table:
        return entry
    return replace(
        entry,
        exchanges=whole(entry.exchanges),
        conversations=conversations,
        findings=findings,
        messages=messages,
    )


SMALL_ROWS = 100_000
"""Most exchanges of an input that is read completely into memory."""
_ROW_BYTES = {
    InputKind.log: 40,
    InputKind.parquet: 40,
    InputKind.jsonl: 600,
    InputKind.captures: 600,
}
"""Approximate bytes of an exchange."""
LOCAL_ROWS = 10_000_000
"""Most exchanges for the local engine unless Spark is requested."""


def rows_in(inputs: Iterable[Input]) -> int | None:
    """Return the approximate number of exchanges of some inputs, or None if unknown."""
    entries = list(inputs)
    if any(entry.kind in (InputKind.remote, InputKind.table) for entry in entries):
        return None
    return sum(
        entry.rows if entry.rows is not None else entry.bytes // _ROW_BYTES[entry.kind]
        for entry in entries
    )


def is_for_spark(inputs: Iterable[Input]) -> bool:
    """Return whether Spark is the default engine: for remote or very large inputs."""
    rows = rows_in(inputs)
    return rows is None or rows > LOCAL_ROWS


def is_small(inputs: Iterable[Input]) -> bool:
    """Return whether this process reads an input completely into memory."""
    rows = rows_in(inputs)
    return rows is not None and rows <= SMALL_ROWS
