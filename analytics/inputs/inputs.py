"""What a report is given: decoded logs, exchanges in single files, captures; told apart by content.

Rules: nothing of Spark here, so that what is wrong with an input is said before Java is started. A
Parquet file is looked at by its footer and a JSON file by its first line: what is not a log,
damaged, or newer than this program is an `InputError` that names the file and says what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import msgspec

from dissectors.decode.decoded_log import (
    CONVERSATIONS,
    EXPERT,
    FINDING_COLUMNS,
    FORMS,
    MANIFEST,
    PARQUET,
    SCHEMA_VERSION,
    DecodedLogError,
    Manifest,
    PartEntry,
    file_in,
    read_manifest,
)
from dissectors.foreign import Unreadable, integer_of, json_of
from dissectors.rows.parquet import load_pyarrow
from dissectors.tcp.no_capture import JSON_ARRAY, TO_JSON_LINES
from dissectors.tcp.source import CaptureError, expand_sources, is_capture_name

from ..errors import ReportError

_LEAST_COLUMNS = frozenset(("requester", "responder", "status", "opaque"))
"""Columns without which a row is not an exchange."""
_PATTERN = frozenset("*?[]{}")
"""Characters that Spark takes for a pattern of names."""
_VERSION_KEY = b"rmqtool.schema_version"


class InputError(ReportError):
    """An input cannot be read: which, why, and the way out."""


class InputKind(StrEnum):
    """What an input is."""

    log = "decoded log"
    parquet = "Parquet file"
    jsonl = "JSON lines"
    captures = "captures"
    remote = "remote"


@dataclass(frozen=True, slots=True)
class Input:
    """One input."""

    name: str
    """as it was given; the column `source`"""
    kind: InputKind
    """what it is"""
    exchanges: tuple[str, ...]
    """files with exchanges; of captures, the captures in order"""
    conversations: str | None = None
    """file with the TCP connections; None: it has none"""
    findings: str | None = None
    """file with the findings; None: it has none"""
    manifest: Manifest | None = None
    """of a decoded log"""
    rows: int | None = None
    """exchanges in it; None: unknown"""
    bytes: int = 0
    """of all its files"""
    messages: tuple[str, ...] | None = None
    """files with the messages; None: it has no such table"""


def inputs_of(names: Sequence[str]) -> list[Input]:
    """Return the inputs that the names stand for; all captures together are one, and come last."""
    inputs: list[Input] = []
    captures: list[str] = []
    seen: set[str] = set()
    for name in names:
        place = name if "://" in name else os.path.realpath(name)
        if place in seen:
            continue
        seen.add(place)
        one = _input_of(name)
        if one is None:
            captures.append(name)
        else:
            inputs.append(one)
    if captures:
        inputs.append(_captures(captures))
    if not inputs:
        raise InputError("no input", "name captures, a decoded log, or a file of its rows")
    return inputs


def about_repeated(inputs: Sequence[Input]) -> list[str]:
    """Return remarks about captures that several decoded logs have: their exchanges count twice."""
    logs: dict[tuple[str, int, str | None], list[str]] = {}
    for one in inputs:
        for capture in one.manifest.captures if one.manifest is not None else ():
            key = (os.path.basename(capture.name), capture.packets, capture.first_time)
            logs.setdefault(key, []).append(one.name)
    return [
        f"{' and '.join(names)} both have {capture}: its exchanges are counted more than once"
        for (capture, packets, _), names in logs.items()
        if len(names) > 1 and packets
    ]


def _input_of(name: str) -> Input | None:
    """Return the input of that name, None for captures."""
    if name.startswith("file://"):
        name = name.removeprefix("file://")
    if "://" in name:
        if name.endswith(".json"):
            raise _array_error(name)
        if not _PATTERN.isdisjoint(name):
            raise InputError(
                f"{name} is a pattern: connections of several logs would have the same numbers",
                "name each log",
            )
        return Input(name, InputKind.remote, (name,))
    if name == "-":
        raise InputError(
            "standard input can be read once only", "decode it first: rmqtool decode pcap - -o log/"
        )
    path = Path(name)
    if not path.exists():
        raise InputError(f"{name}: no such file or folder")
    if path.is_dir():
        return _folder(name, path)
    head = _head_of(path)
    if head.startswith(b"PAR1"):
        return _parquet_file(name, path)
    if head[:1] == b"{":
        return _jsonl_file(name, path)
    if head[:1] == b"[":
        raise _array_error(name)
    return None


def _array_error(name: str) -> InputError:
    return InputError(f"{name} is {JSON_ARRAY}", TO_JSON_LINES)


def _folder(name: str, path: Path) -> Input | None:
    if os.path.lexists(path / MANIFEST):
        return _log(name, path)
    files = sorted(str(file) for file in path.iterdir() if file.is_file())
    parquet = [file for file in files if file.endswith(".parquet")]
    jsonl = [file for file in files if file.endswith((".jsonl", ".ndjson"))]
    if parquet or jsonl:  # as Spark and others write them, or attempts that producers logged
        check = _check_parquet if parquet else _check_jsonl
        chosen = parquet or jsonl
        for file in chosen:
            check(file)
        kind = InputKind.parquet if parquet else InputKind.jsonl
        return Input(name, kind, tuple(chosen), bytes=size_of(chosen))
    arrays = [file for file in files if file.endswith(".json") and _head_of(Path(file))[:1] == b"["]
    if arrays and not any(map(is_capture_name, map(Path, files))):
        raise _array_error(arrays[0])
    return None


def _log(name: str, path: Path) -> Input:
    try:
        manifest = read_manifest(path)
    except DecodedLogError as error:
        raise InputError(str(error), "decode the captures again") from None
    files = _parts_of(path, manifest.parts)
    form = files[0].rpartition(".")[2] if files else PARQUET
    if form not in FORMS:
        raise InputError(f"{files[0]} is neither Parquet nor JSON lines", "decode again")
    if form == PARQUET:
        for file, part in zip(files, manifest.parts, strict=True):
            rows = _check_parquet(file)
            if rows != part.rows:
                raise InputError(
                    f"{file} has {rows:,} rows, the manifest says {part.rows:,}", "decode again"
                )
    beside = {what: f"{what}.{form}" for what in (CONVERSATIONS, EXPERT)}
    there = {
        what: _file_in(path, file) for what, file in beside.items() if os.path.lexists(path / file)
    }
    if form == PARQUET:
        for file in there.values():
            _footer_of(file)
    return Input(
        name,
        InputKind.log,
        files,
        there.get(CONVERSATIONS),
        there.get(EXPERT),
        manifest,
        manifest.exchanges,
        size_of(files),
        None if manifest.messages is None else _parts_of(path, manifest.message_parts),
    )


def _parts_of(path: Path, parts: Sequence[PartEntry]) -> tuple[str, ...]:
    return tuple(_file_in(path, part.file) for part in parts)


def _file_in(path: Path, name: str) -> str:
    """Return a file of a log; raise InputError where it is not there, or not a file inside."""
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
        with open(capture, "rb"):  # what may not be read is said now
            pass
    return Input(names[0], InputKind.captures, tuple(captures), bytes=size_of(captures))


def _check_parquet(file: str) -> int:
    """Return how many exchanges a file has; raise InputError where it has something else."""
    names, version, rows = _footer_of(file)
    if version is not None and version > SCHEMA_VERSION:
        raise InputError(
            f"{file} was written by a newer rmqtool: its columns are of schema {version}, those"
            f" known here of {SCHEMA_VERSION}",
            "use that rmqtool, or decode again with this one",
        )
    if not names >= _LEAST_COLUMNS:
        raise InputError(f"{file} {_no_exchanges(names)}", _HINT)
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
    with open(file, "rb") as stream:
        line = stream.readline(1 << 24)
    if not line.strip():
        return
    try:
        first = json_of(_JSON, line)
    except Unreadable as problem:
        if line[:1] == b"[":
            raise _array_error(file) from None
        raise InputError(
            f"{file}: its first line is not a JSON object: {problem}",
            "JSON lines have one object per line: rmqtool decode pcap … -T jsonl",
        ) from None
    names = set(first) if isinstance(first, dict) else set()
    if not names >= _LEAST_COLUMNS:
        raise InputError(f"{file} {_no_exchanges(names)}", _HINT)


_JSON = msgspec.json.Decoder()
_HINT = "reports need exchanges: rmqtool decode pcap CAPTURE… -T parquet -o log/"


def _no_exchanges(names: Iterable[str]) -> str:
    """Return what rows with such columns are."""
    found = set(names)
    if found >= {"src", "dst", "flag"}:
        return "has commands (--commands), not exchanges"
    if found >= {column.name for column in FINDING_COLUMNS}:
        return "has findings, not exchanges; name the folder it is in"
    if found >= {"client", "server", "directions"}:
        return "has TCP connections, not exchanges; name the folder it is in"
    return "has no exchanges"


def _head_of(path: Path) -> bytes:
    if not path.is_file():
        raise InputError(f"{path} is neither a file nor a folder")
    with path.open("rb") as stream:
        return stream.read(8)


def size_of(files: Iterable[str]) -> int:
    """Return the bytes of files as they are stored."""
    return sum(os.path.getsize(file) for file in files)


def at_whole_paths(one: Input) -> Input:
    """Return an input whose files another process finds, whatever its folder; `name` stays."""

    def whole(files: Iterable[str]) -> tuple[str, ...]:
        return tuple(file if "://" in file else os.path.abspath(file) for file in files)

    beside = (one.conversations, one.findings)
    conversations, findings = (None if file is None else whole([file])[0] for file in beside)
    return replace(
        one,
        exchanges=whole(one.exchanges),
        conversations=conversations,
        findings=findings,
        messages=None if one.messages is None else whole(one.messages),
    )


SMALL_ROWS = 100_000
"""Exchanges up to which an input is read at once, as a whole."""
_ROW_BYTES = {
    InputKind.log: 40,
    InputKind.parquet: 40,
    InputKind.jsonl: 600,
    InputKind.captures: 600,
}
"""Bytes of an exchange, about."""
LOCAL_ROWS = 5_000_000
"""Exchanges up to which the local engine computes unless Spark is asked for."""


def rows_in(inputs: Iterable[Input]) -> int | None:
    """Return about how many exchanges some inputs have together; None: it is not known."""
    each = list(inputs)
    if any(one.kind is InputKind.remote for one in each):
        return None
    return sum(
        one.rows if one.rows is not None else one.bytes // _ROW_BYTES[one.kind] for one in each
    )


def is_for_spark(inputs: Iterable[Input]) -> bool:
    """Return whether Spark computes unless it is said otherwise: remote or very large inputs."""
    rows = rows_in(inputs)
    return rows is None or rows > LOCAL_ROWS


def is_small(inputs: Iterable[Input]) -> bool:
    """Return whether this process reads an input at once, as a whole."""
    rows = rows_in(inputs)
    return rows is not None and rows <= SMALL_ROWS
