"""Inputs of all kinds as relations with one schema: `read_inputs` and `read_here`.

Every table has the columns of this program, in order; a column missing in an older log is derived
from others (`DERIVED`) or null. Captures are decoded in Spark tasks; for the local engine they are
decoded before (`captures`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dissectors.rows.conversation_record import RENAMED_ENDS
from dissectors.rows.record import COLUMNS
from dissectors.tcp.decompression import MOST_TIMES

from ..cells import CellTable, merged_cells
from ..errors import ReportError
from ..kept import Kept
from ..report import ReportInput
from ..schema import INPUT_TABLES, SOURCE, Described
from ..sql.expressions import text
from ..sql.relation import Relation
from .inputs import Input, InputKind, about_repeated
from .reader import LineRows, Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..spark.engine import SparkEngine


@dataclass(slots=True)
class Tables:
    """Tables of the inputs, and notes from reading them."""

    given: ReportInput
    """the tables"""
    notes: list[str] = field(default_factory=list)
    """caveats about the input for the reader of the report"""


@dataclass(slots=True)
class _Parts:
    exchanges: list[Relation] = field(default_factory=list)
    conversations: list[Relation] = field(default_factory=list)
    findings: list[Relation] = field(default_factory=list)
    messages: list[Relation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    """inputs without connections"""
    without_messages: list[str] = field(default_factory=list)
    """inputs without messages"""


def read_inputs(
    spark: SparkSession,
    inputs: Sequence[Input],
    decode_as: Sequence[int] = (),
    messages: bool = False,
    tls_keylog: str = "",
    max_ratio: int = MOST_TIMES,
) -> Tables:
    """Return the tables of all inputs together, for Spark.

    Raise ReportError if an input cannot be read.

    The result has connections only if every input has them, because partial knowledge would look
    complete. The same holds for messages, which are read only if requested. `tls_keylog` is a TLS
    key log file, at the same path for all tasks; `max_ratio` is the maximum number of decompressed
    bytes per byte of a compressed capture.
    """
    from dissectors.decode.pipeline import DecodeOptions

    from .remote import opened
    from .spark_reader import SparkReader

    inputs = opened(spark, inputs)
    options = DecodeOptions(
        frozenset(decode_as),
        messages=messages,
        tls_keylog=os.path.abspath(tls_keylog) if tls_keylog else "",
        max_ratio=max_ratio,
    )
    return _read(SparkReader(spark, inputs, options), inputs, messages)


def read_here(inputs: Sequence[Input], messages: bool = False) -> Tables:
    """Return the tables of `read_inputs` for the local engine; captures must be decoded already."""
    from .local_reader import LocalReader

    return _read(LocalReader(inputs), inputs, messages)


def read_cells(inputs: Sequence[Input], tables: Sequence[CellTable]) -> Tables:
    """Return cell folders, merged, as an input without rows; raise ReportError on failure."""
    from ..sql.local import LocalEngine
    from .rows_here import parquet_here

    engine = LocalEngine()
    # no rows, but their columns, which reports name before they know that there are none
    report_input = ReportInput(engine.hold(parquet_here((), COLUMNS, "")), Kept(engine))
    counted = merged_cells(engine, tables, [Path(entry.name) for entry in inputs])
    report_input.kept.counted = counted
    notes = [note for part in counted.parts for note in part.notes]
    return Tables(report_input, list(dict.fromkeys(notes)))


def _read(reader: Reader, inputs: Sequence[Input], messages: bool) -> Tables:
    parts = _Parts()
    for entry in inputs:
        if entry.kind is InputKind.captures:
            for name, table in reader.captures(entry).items():
                getattr(parts, name).append(table)
        else:
            _add_files(reader, entry, parts, messages)
    parts.notes += about_repeated(inputs)
    if parts.without and parts.conversations:
        parts.notes.append(
            f"{', '.join(parts.without)}: has no TCP connections, so those of the other inputs are"
            " ignored, too"
        )
    if parts.without_messages and parts.messages:
        parts.notes.append(
            f"{', '.join(parts.without_messages)}: has no table of messages, so those of the other"
            " inputs are ignored, too"
        )
    # connections of some inputs only would look like those of all
    have_connections = not parts.without
    have_messages = not parts.without_messages
    return Tables(
        ReportInput(
            _together(parts.exchanges),
            Kept(reader.engine),
            _together(parts.conversations) if have_connections and parts.conversations else None,
            _together(parts.findings) if have_connections and parts.findings else None,
            _together(parts.messages) if have_messages and parts.messages else None,
        ),
        parts.notes,
    )


def _renamed_ends(connections: Relation) -> Relation:
    """Return connections with the current values of `end`, whatever program wrote them."""
    rows = connections.rows
    if rows is not None and not RENAMED_ENDS.keys() & rows.column("end").unique().to_pylist():
        return connections  # in memory, and nothing to rename
    end = "`end`"
    for old, new in RENAMED_ENDS.items():
        end = f"if(`end` = {text(old)}, {text(new)}, {end})"
    names = connections.columns
    return connections.select(*(f"{end} as `end`" if name == "end" else name for name in names))


def _together(relations: Sequence[Relation]) -> Relation:
    return reduce(lambda left, right: left.union(right), relations)


def _add_files(reader: Reader, entry: Input, parts: _Parts, messages: bool) -> None:
    # A log of JSON lines may have no exchanges; its findings then show the form.
    is_lines = entry.kind is InputKind.jsonl or any(
        paths and paths[0].endswith(("json", "jsonl"))
        for paths in (entry.exchanges, entry.findings)
    )
    files = {
        "exchanges": entry.exchanges,
        "conversations": entry.conversations,
        "findings": entry.findings,
        "messages": entry.messages if messages else None,
    }
    for name, columns in INPUT_TABLES.items():
        of_table = files[name]
        if of_table is not None:
            if entry.kind is InputKind.table:
                table = reader.table(of_table[0], columns, entry.name)
            else:
                table = _file_rows(reader, entry.name, of_table, columns, is_lines, parts)
            getattr(parts, name).append(_renamed_ends(table) if name == "conversations" else table)
    if entry.conversations is None:
        parts.without.append(entry.name)
    if messages and entry.messages is None:
        parts.without_messages.append(entry.name)
    if entry.manifest is not None and entry.manifest.options:
        chosen = ", ".join(f"{name} {value}" for name, value in entry.manifest.options.items())
        parts.notes.append(f"{entry.name} contains only selected rows: {chosen}")


def _file_rows(
    reader: Reader,
    source: str,
    files: Sequence[str],
    columns: Sequence[Described],
    is_lines: bool,
    parts: _Parts,
) -> Relation:
    if is_lines:
        lines = reader.json_lines(files, columns, source)
        if lines.broken:
            parts.notes.append(_about(lines, source))
        return lines.rows
    return reader.parquet(files, columns, source)


def _about(lines: LineRows, source: str) -> str:
    return (
        f"{source}: {lines.broken:,} lines are not exchanges and were skipped; the first starts"
        f" with {lines.example[:40]!r}"
    )


def _has_rows(report_input: ReportInput) -> bool:
    return bool(report_input.kept.rows(report_input.exchanges.select("status").limited(1)).num_rows)


def count_of(tables: Tables) -> int:
    """Return the number of exchanges of inputs; Parquet files are not read for it."""
    counted = tables.given.exchanges.grouped((), {"exchanges": "count(*)"})
    return int(tables.given.kept.rows(counted).column(0)[0].as_py())


def refuse_nothing(tables: Tables, chosen: str = "") -> None:
    """Raise ReportError if there are no exchanges; `chosen` names the filter."""
    if tables.given.kept.has_rows and not _has_rows(tables.given):
        if chosen:
            raise ReportError(f"no exchange {chosen}", "change --where, --since, or --until")
        raise ReportError(
            "no exchanges in the input",
            "to see what a capture contains: rmqtool decode pcap CAPTURE --summary",
        )


def log_frame(
    spark: SparkSession,
    logs: Sequence[Input],
    table: str,
    where: str = "",
    since: int | None = None,
    until: int | None = None,
) -> DataFrame | None:
    """Return a table of `ReportInput` with its own columns, or None if the logs lack it.

    `where`, `since` and `until` (nanoseconds since the epoch) apply to exchanges.
    """
    from ..spark.session import safe_workers
    from .capture_frame import moment_at
    from .filters import chosen

    with safe_workers(spark):
        report_input = read_inputs(spark, logs, messages=table == "messages").given
        if where or since is not None or until is not None:
            report_input = chosen(report_input, where, moment_at(since), moment_at(until))
        relation: Relation | None = getattr(report_input, table)
        if relation is None:
            return None
        return cast("SparkEngine", report_input.kept.engine).frame(relation.without(SOURCE))
