"""Inputs as DataFrames with one schema, whatever they are: `read_inputs`.

Rules: every table has the columns of this program, in order; a column that an older log does not
have is null. `source` says which input a row is from, and numbers of conversations are unique
within it. Captures are one ordered list, as in `rmqtool decode pcap`, and are decoded by
Spark's tasks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from ..derived import OUTCOME_CLASS
from ..errors import ReportError
from ..kept import Kept
from ..report import ReportInput
from ..schema import (
    SOURCE,
    conversation_schema,
    exchange_schema,
    finding_schema,
    message_schema,
)
from ..spark.connect import is_connect
from ..spark.expressions import text
from ..spark.workers import serve_modules
from .capture_frame import decoded_rows, table_in
from .inputs import Input, InputError, InputKind, is_small
from .row_batches import CONVERSATIONS, EXCHANGES, FINDINGS, MESSAGES
from .rows_here import json_lines_here, parquet_here
from .shuffle import ShuffleTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BROKEN = "_broken_line"
OUTCOME = "outcome_class"
"""column that older logs lack"""


@dataclass(slots=True)
class Tables:
    """What inputs have, and what there is to say about reading them."""

    given: ReportInput
    """the tables"""
    remarks: list[str] = field(default_factory=list)
    """what a reader of the report must know about the input"""


@dataclass(slots=True)
class _Parts:
    exchanges: list[DataFrame] = field(default_factory=list)
    conversations: list[DataFrame] = field(default_factory=list)
    findings: list[DataFrame] = field(default_factory=list)
    messages: list[DataFrame] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)
    """what rows this process has"""
    without: list[str] = field(default_factory=list)
    """inputs that have no connections"""
    with_messages: bool = False
    """messages are wanted"""
    tls_keylog: str = ""
    """file with secrets of TLS; empty: none"""
    without_messages: list[str] = field(default_factory=list)
    """inputs that have none"""
    here: bool = False
    """lines of JSON are read by this process: Spark is elsewhere and may not see them"""


def read_inputs(
    spark: SparkSession,
    inputs: Sequence[Input],
    decode_as: Sequence[int] = (),
    messages: bool = False,
    tls_keylog: str = "",
) -> Tables:
    """Return the tables of all inputs together; raise ReportError where one cannot be read.

    Connections are given only if every input has them: what is known of half the rows would look
    like knowledge of all. So are messages, and only if they are wanted. `tls_keylog` is a file
    with secrets of TLS, which tasks must see under the same path.
    """
    small = is_small(inputs)
    here = small and is_connect(spark)
    parts = _Parts(with_messages=messages, tls_keylog=tls_keylog, kept=Kept(small), here=here)
    for one in inputs:
        if one.kind is InputKind.captures:
            _add_captures(spark, one, decode_as, parts)
        elif one.kind is InputKind.remote:
            _add_remote(spark, one, parts)
        else:
            _add_files(spark, one, parts)
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
            _together(parts.conversations) if known and parts.conversations else None,
            _together(parts.findings) if known and parts.findings else None,
            _together(parts.messages) if every and parts.messages else None,
            parts.kept,
        ),
        parts.remarks,
    )


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)


def _add_files(spark: SparkSession, one: Input, parts: _Parts) -> None:
    form = "jsonl" if one.exchanges and one.exchanges[0].endswith(("json", "jsonl")) else None
    if one.kind is InputKind.jsonl:
        form = "jsonl"
    read: Callable[..., DataFrame] = _read_jsonl if form == "jsonl" else _read_parquet
    parts.exchanges.append(read(spark, one.exchanges, exchange_schema(), one.name, parts))
    if one.conversations is None:
        parts.without.append(one.name)
    else:
        parts.conversations.append(
            read(spark, [one.conversations], conversation_schema(), one.name, parts)
        )
    if one.findings is not None:
        parts.findings.append(read(spark, [one.findings], finding_schema(), one.name, parts))
    if parts.with_messages:
        if one.messages is None:
            parts.without_messages.append(one.name)
        else:
            parts.messages.append(read(spark, one.messages, message_schema(), one.name, parts))
    if one.manifest is not None and one.manifest.options:
        chosen = ", ".join(f"{name} {value}" for name, value in one.manifest.options.items())
        parts.remarks.append(f"{one.name} has only what was chosen when it was decoded: {chosen}")


def _read_parquet(
    spark: SparkSession,
    files: Sequence[str],
    schema: StructType,
    source: str,
    parts: _Parts,
) -> DataFrame:
    if not files:
        return spark.createDataFrame([], schema).withColumn(SOURCE, F.lit(source))
    if parts.kept.small:  # Spark takes longer, and this process needs them
        rows = parquet_here(files, schema, source)
        return parts.kept.put(spark, rows, StructType([*schema, StructField(SOURCE, StringType())]))
    frame = spark.read.schema(schema).parquet(*map(_uri, files))
    return _with_outcome_class(frame).selectExpr("*", f"{text(source)} as {SOURCE}")


def _with_outcome_class(frame: DataFrame) -> DataFrame:
    """Return exchanges with the column that older logs lack; other tables as they are."""
    if OUTCOME not in frame.columns:
        return frame
    return frame.withColumn(OUTCOME, F.expr(f"coalesce({OUTCOME}, {OUTCOME_CLASS})"))


def _read_jsonl(
    spark: SparkSession, files: Sequence[str], schema: StructType, source: str, parts: _Parts
) -> DataFrame:
    if parts.here:
        frame = json_lines_here(spark, files, schema, _BROKEN)
    else:
        reader = spark.read.schema(schema.add(_BROKEN, "string")).options(
            mode="PERMISSIVE", columnNameOfCorruptRecord=_BROKEN
        )
        frame = reader.json([_uri(file) for file in files])
    frame = frame.cache()
    broken = frame.where(F.col(_BROKEN).isNotNull())
    count = broken.count()
    if count:
        example = broken.select(_BROKEN).first()
        start = str(example[0])[:40] if example is not None else ""
        parts.remarks.append(
            f"{source}: {count:,} lines are not exchanges and were left out, the first begins"
            f" with {start!r}"
        )
    whole = _with_outcome_class(frame.where(F.col(_BROKEN).isNull()).drop(_BROKEN))
    return whole.withColumn(SOURCE, F.lit(source))


def _add_remote(spark: SparkSession, one: Input, parts: _Parts) -> None:
    """Describe a log on a file system that Spark reads: its folder, or a file."""
    base = one.name.rstrip("/")
    single = base.endswith((".parquet", ".jsonl", ".ndjson"))
    form = "jsonl" if base.endswith(("jsonl", "ndjson")) else "parquet"
    read: Callable[..., DataFrame] = _read_jsonl if form == "jsonl" else _read_parquet
    files = [base] if single else [f"{base}/{EXCHANGES}"]
    parts.exchanges.append(read(spark, files, exchange_schema(), one.name, parts))
    if single:
        parts.without.append(one.name)
        parts.without_messages.append(one.name)
        return
    if parts.with_messages:
        try:
            folder = f"{base}/{MESSAGES}"
            parts.messages.append(read(spark, [folder], message_schema(), one.name, parts))
        except Exception:
            parts.without_messages.append(one.name)
    conversations = f"{base}/conversations.{form}"
    try:
        parts.conversations.append(
            read(spark, [conversations], conversation_schema(), one.name, parts)
        )
    except Exception:
        parts.without.append(one.name)


def _uri(file: str) -> str:
    """Return a path so that Spark takes none of its characters for a pattern."""
    if "://" in file:
        return file
    for char in "\\{}[]*?":
        file = file.replace(char, "\\" + char)
    return file


def _add_captures(spark: SparkSession, one: Input, decode_as: Sequence[int], parts: _Parts) -> None:
    serve_modules(spark)
    task = ShuffleTask(
        one.exchanges,
        one.name,
        frozenset(decode_as),
        parts.with_messages,
        os.path.abspath(parts.tls_keylog) if parts.tls_keylog else "",
    )
    rows = decoded_rows(spark, task)
    parts.exchanges.append(table_in(rows, EXCHANGES))
    parts.conversations.append(table_in(rows, CONVERSATIONS))
    parts.findings.append(table_in(rows, FINDINGS))
    if parts.with_messages:
        parts.messages.append(table_in(rows, MESSAGES))


def _has_rows(given: ReportInput) -> bool:
    if given.small:
        return bool(given.kept.rows(given.exchanges).num_rows)
    return bool(given.exchanges.limit(1).count())


def refuse_nothing(tables: Tables) -> None:
    """Raise ReportError where there is not one exchange."""
    if not _has_rows(tables.given):
        raise ReportError(
            "no exchange in the input",
            "rmqtool decode pcap CAPTURE --summary says what a capture has",
        )


__all__ = ["InputError", "Tables", "read_inputs", "refuse_nothing"]
