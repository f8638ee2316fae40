"""Inputs on other file systems, which Spark lists: logs, files of rows, captures.

Files are classified by name, a decoded log by its manifest. Captures form one ordered list, as for
local files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dissectors.decode.decoded_log import (
    MANIFEST,
    PARQUET,
    DecodedLogError,
    Manifest,
    manifest_in,
)
from dissectors.decode.log_parts import CONVERSATIONS, EXCHANGES, FINDINGS, MESSAGES, PartEntry
from dissectors.owned_folder import is_inside
from dissectors.rows.column import NAMES
from dissectors.tcp.source import has_capture_name, natural_order

from ..cells import MANIFEST as CELLS
from ..spark.places import parts_of, uri_of
from .inputs import Input, InputError, InputKind, array_error, refuse_others
from .window import TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATTERN = frozenset("*?[]{}")
"""Characters with a special meaning in Hadoop patterns."""
_CONNECTIONS = "connections"
"""Names of the conversations table in various programs."""
_LARGEST = (1 << 31) - 1
"""Most bytes of a file that Spark reads as one value."""
_LINES = (".jsonl", ".ndjson")


@dataclass(slots=True)
class _Root:
    """The files of one name, or of one match of a pattern."""

    name: str
    """name in rows"""
    files: dict[str, int] = field(default_factory=dict)
    """path inside it (empty for a file itself) -> bytes"""

    def at(self, path: str) -> str:
        """Return the full name of a file."""
        return f"{self.name}/{path}" if path else self.name

    def all_that(self, suffixes: str | tuple[str, ...], under: str = "") -> list[str]:
        """Return the files with some suffix, sorted."""
        return sorted(
            path
            for path in self.files
            if path.startswith(under) and self.at(path).endswith(suffixes)
        )

    def size(self, paths: Iterable[str]) -> int:
        """Return the total size of some files in bytes."""
        return sum(self.files[path] for path in paths)


def opened(
    spark: SparkSession, inputs: Sequence[Input], window: TimeWindow | None = None
) -> list[Input]:
    """Return inputs with remote names resolved; other inputs are unchanged, captures come last.

    Parts of decoded logs without rows in `window` are skipped. Raise InputError if an input does
    not exist or is invalid.
    """
    result: list[Input] = []
    captures: list[Input] = []
    for entry in inputs:
        if entry.kind is InputKind.table:
            result.append(_with_siblings(spark, entry))
        elif entry.kind is not InputKind.remote:
            result.append(entry)
        else:
            for root in _roots(spark, entry.name):
                each = _input_of(spark, root, window or TimeWindow())
                (captures if each.kind is InputKind.captures else result).append(each)
    if captures:
        result.append(_together(captures))
    return result


def _with_siblings(spark: SparkSession, entry: Input) -> Input:
    """Return a table `….exchanges` with the other tables of its log in the same place."""
    (name,) = entry.exchanges
    refuse_others(entry.name, spark.table(name).columns)
    before, _, last = name.rpartition(".")
    if last.strip("`").lower() != EXCHANGES:
        return entry

    def beside(*names: str) -> tuple[str, ...] | None:
        paths = (f"{before}.{table}" if before else table for table in names)
        return next(((path,) for path in paths if spark.catalog.tableExists(path)), None)

    return replace(
        entry,
        conversations=beside(_CONNECTIONS, CONVERSATIONS),
        findings=beside(FINDINGS),
        messages=beside(MESSAGES),
    )


def _roots(spark: SparkSession, name: str) -> list[_Root]:
    """Return the roots of a name or pattern, with all their files."""
    _, path = parts_of(name)
    # matches are told apart by the number of folders in the pattern
    if "/" in "".join(part.partition("}")[0] for part in path.split("{")[1:]):
        raise InputError(f"{name}: a pattern in braces cannot name folders", "name each folder")
    parts = path.count("/")
    listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(name)
    roots: dict[str, _Root] = {}
    for row in listed.select("path", "length").toArrow().to_pylist():
        place, whole = parts_of(row["path"])
        pieces = whole.split("/")
        # each match of a pattern is an input of its own: connections are numbered within a log
        root = place + "/".join(pieces[: parts + 1])
        if _PATTERN.isdisjoint(name):
            root = name.rstrip("/")
        inside = "/".join(pieces[parts + 1 :])
        roots.setdefault(root, _Root(root)).files[inside] = row["length"]
    if not roots:
        raise InputError(
            f"{name}: no files in it", "name captures, a decoded log, or files of rows"
        )
    return [roots[name] for name in sorted(roots, key=natural_order)]


def _input_of(spark: SparkSession, root: _Root, window: TimeWindow) -> Input:
    if MANIFEST in root.files:
        return _log(spark, root, window)
    if CELLS in root.files:
        raise InputError(f"{root.name} has cells", "copy them to this machine first")
    divided = f"{EXCHANGES}/" if root.all_that("", f"{EXCHANGES}/") else ""
    if parquet := root.all_that(".parquet", divided):
        refuse_others(root.name, spark.read.parquet(uri_of(root.at(parquet[0]))).columns)
        return _rows(root, parquet, InputKind.parquet)
    if lines := root.all_that(_LINES, divided):
        return _rows(root, lines, InputKind.jsonl)
    captures = [path for path in root.files if not path or has_capture_name(path)]
    # A single file may be a capture whatever its name, except one that is called JSON.
    if not captures or root.name.endswith(".json"):
        arrays = root.all_that(".json")
        raise (
            array_error(root.at(arrays[0]))
            if arrays
            else InputError(
                f"{root.name}: no capture and no rows in it",
                "rows are in .parquet and .jsonl files, captures in .pcap and .pcapng files",
            )
        )
    names = [root.at(path) for path in sorted(captures, key=natural_order)]
    for path in captures:
        if root.files[path] > _LARGEST:
            raise InputError(
                f"{root.at(path)} is larger than 2 GiB, Spark's limit for one capture",
                "decode it first: rmqtool decode pcap CAPTURE -o log/; or split it",
            )
    return Input(root.name, InputKind.captures, tuple(names), bytes=root.size(captures))


def _rows(root: _Root, paths: Sequence[str], kind: InputKind) -> Input:
    return Input(root.name, kind, tuple(map(root.at, paths)), bytes=root.size(paths))


def _log(spark: SparkSession, root: _Root, window: TimeWindow) -> Input:
    file = spark.read.format("binaryFile").load(uri_of(root.at(MANIFEST))).select("content")
    (content,) = file.toArrow().column(0).to_pylist()
    try:
        manifest = manifest_in(content, root.name)
    except DecodedLogError as error:
        raise InputError(str(error), "decode the captures again") from None
    parts = _parts(root, manifest.parts, window)
    form = manifest.parts[0].file.rpartition(".")[2] if manifest.parts else PARQUET

    def files(entries: Sequence[PartEntry]) -> tuple[str, ...]:
        return tuple(root.at(part.file) for part in entries)

    def beside(table_name: str, divided: Sequence[PartEntry]) -> tuple[str, ...] | None:
        if manifest.partition is not None:
            return files(_parts(root, divided, window))
        names = (f"{candidate}.{form}" for candidate in NAMES.get(table_name, (table_name,)))
        name = next((candidate for candidate in names if candidate in root.files), None)
        return None if name is None else (root.at(name),)

    return Input(
        root.name,
        InputKind.log,
        files(parts),
        beside(CONVERSATIONS, manifest.conversation_parts),
        beside(FINDINGS, manifest.finding_parts),
        manifest,
        sum(part.rows for part in parts),
        root.size(part.file for part in parts),
        _messages(root, manifest, window),
    )


def _messages(root: _Root, manifest: Manifest, window: TimeWindow) -> tuple[str, ...] | None:
    if manifest.messages is None:
        return None
    return tuple(root.at(part.file) for part in _parts(root, manifest.message_parts, window))


def _parts(root: _Root, parts: Sequence[PartEntry], window: TimeWindow) -> list[PartEntry]:
    """Return the parts in a window, without those of removed days."""
    folders = {path.rpartition("/")[0] for path in root.files}
    selected = []
    for part in parts:
        place = part.file.rpartition("/")[0]
        if not is_inside(part.file):
            raise InputError(
                f"{root.name}/{MANIFEST} names {part.file!r}, which is not a file of the log",
                "decode the captures again",
            )
        if "/date=" in place and place not in folders:
            continue  # the user removed a day
        if part.file not in root.files:
            raise InputError(
                f"{root.at(part.file)} is missing from the decoded log", "decode again"
            )
        if window.takes(part):
            selected.append(part)
    return selected


def _together(captures: Sequence[Input]) -> Input:
    """Return all captures as one ordered list."""
    first = captures[0]
    names = tuple(name for capture in captures for name in capture.exchanges)
    return replace(first, exchanges=names, bytes=sum(capture.bytes for capture in captures))
