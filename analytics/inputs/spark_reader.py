"""Reads inputs by Spark: files and captures by its tasks, small Parquet files by this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.tcp.decompression import MOST_TIMES

from ..schema import SOURCE, Described, schema_of
from ..spark.connect import is_connect
from ..spark.engine import SparkEngine
from ..spark.workers import serve_modules
from ..sql.expressions import text
from ..sql.relation import Relation
from .capture_frame import decoded_rows, table_in
from .inputs import Input
from .reader import LineRows
from .row_batches import CONVERSATIONS, EXCHANGES, FINDINGS, MESSAGES
from .rows_here import json_lines_here, parquet_here
from .shuffle import ShuffleTask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BROKEN = "_broken_line"


class SparkReader:
    """Reads inputs into a session of Spark."""

    def __init__(
        self,
        spark: SparkSession,
        small: bool,
        decode_as: Sequence[int] = (),
        messages: bool = False,
        tls_keylog: str = "",
        max_ratio: int = MOST_TIMES,
    ) -> None:
        """`small`: this process has the rows; the others are about captures."""
        self.engine = SparkEngine(spark, small)
        self._spark = spark
        self._decode_as = decode_as
        self._messages = messages
        self._tls_keylog = tls_keylog
        self._max_ratio = max_ratio

    def parquet(self, files: Sequence[str], columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of Parquet files; a column that they do not have is null."""
        schema = schema_of(columns)
        if self.engine.small or not files:  # Spark takes longer, and this process needs them
            return self.engine.hold(parquet_here(files, columns, source), _with_source(columns))
        frame = self._spark.read.schema(schema).parquet(*map(_uri, files))
        return self.engine.given(frame.selectExpr("*", f"{text(source)} as {SOURCE}"))

    def json_lines(
        self, files: Sequence[str], columns: Sequence[Described], source: str
    ) -> LineRows:
        """Return the rows of JSON lines."""
        if self.engine.small and is_connect(self._spark):  # it may not see the files
            rows, broken = json_lines_here(files, columns, source)
            held = self.engine.hold(rows, _with_source(columns))
            return LineRows(held, len(broken), broken[0] if broken else "")
        reader = self._spark.read.schema(schema_of(columns).add(_BROKEN, "string")).options(
            mode="PERMISSIVE", columnNameOfCorruptRecord=_BROKEN
        )
        frame = reader.json([_uri(file) for file in files]).cache()
        broken_lines = frame.where(F.col(_BROKEN).isNotNull())
        count = broken_lines.count()
        example = broken_lines.select(_BROKEN).first() if count else None
        good = frame.where(F.col(_BROKEN).isNull()).drop(_BROKEN).withColumn(SOURCE, F.lit(source))
        return LineRows(
            self.engine.given(good), count, str(example[0]) if example is not None else ""
        )

    def captures(self, captures: Input) -> Mapping[str, Relation]:
        """Return the tables of captures, by name of a field of `ReportInput`."""
        serve_modules(self._spark)
        task = ShuffleTask(
            captures.exchanges,
            captures.name,
            frozenset(self._decode_as),
            self._messages,
            os.path.abspath(self._tls_keylog) if self._tls_keylog else "",
            self._max_ratio,
        )
        rows = decoded_rows(self._spark, task)
        tables = {
            "exchanges": EXCHANGES,
            "conversations": CONVERSATIONS,
            "findings": FINDINGS,
            **({"messages": MESSAGES} if self._messages else {}),
        }
        return {name: self.engine.given(table_in(rows, table)) for name, table in tables.items()}


def _with_source(columns: Sequence[Described]) -> Sequence[Described]:
    from ..report import TableColumn

    return (*columns, TableColumn(SOURCE, "string", "", ""))


def _uri(file: str) -> str:
    """Return a path so that Spark takes none of its characters for a pattern."""
    if "://" in file:
        return file
    for char in "\\{}[]*?":
        file = file.replace(char, "\\" + char)
    return file
