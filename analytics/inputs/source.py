"""Inputs as relations with one schema, whatever they are: `read_inputs`, and `read_here`.

Rules: every table has the columns of this program, in order; a column that an older log does not
have is null. `source` says which input a row is from, and numbers of conversations are unique
within it. Captures are one ordered list, as in `rmqtool decode pcap`, and are decoded by
Spark's tasks; for the local engine they are decoded before (`captures`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from dissectors.decode.decoded_log import FINDING_COLUMNS
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS
from dissectors.rows.message_record import MESSAGE_COLUMNS
from dissectors.rows.record import COLUMNS
from dissectors.tcp.decompression import MOST_TIMES

from ..derived import OUTCOME, OUTCOME_CLASS
from ..errors import ReportError
from ..kept import Kept
from ..report import ReportInput
from ..schema import Described
from ..sql.relation import Relation
from .inputs import Input, InputError, InputKind, about_repeated
from .reader import LineRows, Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES: tuple[tuple[str, Sequence[Described]], ...] = (
    ("exchanges", COLUMNS),
    ("conversations", CONVERSATION_COLUMNS),
    ("findings", FINDING_COLUMNS),
    ("messages", MESSAGE_COLUMNS),
)


@dataclass(slots=True)
class Tables:
    """What inputs have, and what there is to say about reading them."""

    given: ReportInput
    """the tables"""
    remarks: list[str] = field(default_factory=list)
    """what a reader of the report must know about the input"""


@dataclass(slots=True)
class _Parts:
    exchanges: list[Relation] = field(default_factory=list)
    conversations: list[Relation] = field(default_factory=list)
    findings: list[Relation] = field(default_factory=list)
    messages: list[Relation] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    """inputs that have no connections"""
    without_messages: list[str] = field(default_factory=list)
    """inputs that have none"""


def read_inputs(
    spark: SparkSession,
    inputs: Sequence[Input],
    decode_as: Sequence[int] = (),
    messages: bool = False,
    tls_keylog: str = "",
    max_ratio: int = MOST_TIMES,
) -> Tables:
    """Return the tables of all inputs together, for Spark.

    Raise ReportError where one cannot be read.

    Connections are given only if every input has them: what is known of half the rows would look
    like knowledge of all. So are messages, and only if they are wanted. `tls_keylog` is a file
    with secrets of TLS, which tasks must see under the same path; `max_ratio` is how many bytes
    each byte of a compressed capture may become.
    """
    from .spark_reader import SparkReader

    reader = SparkReader(spark, inputs, decode_as, messages, tls_keylog, max_ratio)
    return _read(reader, inputs, messages)


def read_here(inputs: Sequence[Input], messages: bool = False) -> Tables:
    """Return what `read_inputs` does, for the local engine; captures are decoded already."""
    from .local_reader import LocalReader

    return _read(LocalReader(inputs), inputs, messages)


def _read(reader: Reader, inputs: Sequence[Input], messages: bool) -> Tables:
    parts = _Parts()
    for one in inputs:
        if one.kind is InputKind.captures:
            for name, table in reader.captures(one).items():
                getattr(parts, name).append(table)
        elif one.kind is InputKind.remote:
            _add_remote(reader, one, parts, messages)
        else:
            _add_files(reader, one, parts, messages)
    parts.remarks += about_repeated(inputs)
    if parts.without and parts.conversations:
        parts.remarks.append(
            f"{', '.join(parts.without)}: no TCP connections in it, so nothing is said about those"
            " of the other inputs either"
        )
    if parts.without_messages and parts.messages:
        parts.remarks.append(
            f"{', '.join(parts.without_messages)}: no table of messages in it, so nothing is said"
            " about those of the other inputs either"
        )
    known = not parts.without
    every = not parts.without_messages
    return Tables(
        ReportInput(
            _together(parts.exchanges),
            Kept(reader.engine),
            _together(parts.conversations) if known and parts.conversations else None,
            _together(parts.findings) if known and parts.findings else None,
            _together(parts.messages) if every and parts.messages else None,
        ),
        parts.remarks,
    )


def _together(relations: Sequence[Relation]) -> Relation:
    return reduce(lambda one, other: one.union(other), relations)


def _add_files(reader: Reader, one: Input, parts: _Parts, messages: bool) -> None:
    is_lines = one.kind is InputKind.jsonl or bool(
        one.exchanges and one.exchanges[0].endswith(("json", "jsonl"))
    )
    files = {
        "exchanges": one.exchanges,
        "conversations": None if one.conversations is None else (one.conversations,),
        "findings": None if one.findings is None else (one.findings,),
        "messages": one.messages if messages else None,
    }
    for name, columns in _TABLES:
        of_table = files[name]
        if of_table is not None:
            table = _file_rows(reader, one.name, of_table, columns, is_lines, parts)
            getattr(parts, name).append(table)
    if one.conversations is None:
        parts.without.append(one.name)
    if messages and one.messages is None:
        parts.without_messages.append(one.name)
    if one.manifest is not None and one.manifest.options:
        chosen = ", ".join(f"{name} {value}" for name, value in one.manifest.options.items())
        parts.remarks.append(f"{one.name} has only what was chosen when it was decoded: {chosen}")


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
            parts.remarks.append(_about(lines, source))
        rows = lines.rows
    else:
        rows = reader.parquet(files, columns, source)
    if rows.rows is None and OUTCOME in rows.columns:
        return rows.adding({OUTCOME: f"coalesce({OUTCOME}, {OUTCOME_CLASS})"})  # of an older log
    return rows


def _about(lines: LineRows, source: str) -> str:
    return (
        f"{source}: {lines.broken:,} lines are not exchanges and were left out, the first begins"
        f" with {lines.example[:40]!r}"
    )


def _add_remote(reader: Reader, one: Input, parts: _Parts, messages: bool) -> None:
    """Describe a log on a file system that Spark reads: its folder, or a file."""
    base = one.name.rstrip("/")
    is_single = base.endswith((".parquet", ".jsonl", ".ndjson"))
    is_lines = base.endswith(("jsonl", "ndjson"))
    form = "jsonl" if is_lines else "parquet"
    exchanges = base if is_single else f"{base}/exchanges"
    parts.exchanges.append(_file_rows(reader, one.name, [exchanges], COLUMNS, is_lines, parts))
    if is_single:
        parts.without.append(one.name)
        parts.without_messages.append(one.name)
        return
    if messages:
        try:
            folder = [f"{base}/messages"]
            table = _file_rows(reader, one.name, folder, MESSAGE_COLUMNS, is_lines, parts)
            parts.messages.append(table)
        except Exception:
            parts.without_messages.append(one.name)
    try:
        file = [f"{base}/conversations.{form}"]
        table = _file_rows(reader, one.name, file, CONVERSATION_COLUMNS, is_lines, parts)
        parts.conversations.append(table)
    except Exception:
        parts.without.append(one.name)


def _has_rows(given: ReportInput) -> bool:
    return bool(given.kept.rows(given.exchanges.limited(1)).num_rows)


def refuse_nothing(tables: Tables) -> None:
    """Raise ReportError where there is not one exchange."""
    if not _has_rows(tables.given):
        raise ReportError(
            "no exchange in the input",
            "rmqtool decode pcap CAPTURE --summary says what a capture has",
        )


__all__ = ["InputError", "Tables", "read_here", "read_inputs", "refuse_nothing"]
