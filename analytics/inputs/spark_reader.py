"""Reads inputs by Spark.

Rules: files and captures are read by its tasks. The rows of a small input are taken to this process
at once, because each query of Spark takes a third of a second of CPU, however few rows there are.
A Spark Connect server, which may not see files of this machine, is spared small inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from .inputs import Input, is_small
from .reader import LineRows
from .row_batches import CONVERSATIONS, EXCHANGES, FINDINGS, MESSAGES
from .rows_here import json_lines_here, parquet_here, rows_of_lines
from .shuffle import ShuffleTask

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator["pyarrow.RecordBatch"]
_BROKEN = "_broken_line"


class SparkReader:
    """Reads inputs into a session of Spark."""

    def __init__(
        self,
        spark: SparkSession,
        inputs: Sequence[Input],
        decode_as: Sequence[int] = (),
        messages: bool = False,
        tls_keylog: str = "",
        max_ratio: int = MOST_TIMES,
    ) -> None:
        """Take all inputs that it is asked to read; the others are about captures."""
        self.engine = SparkEngine(spark)
        self._is_small = is_small(inputs)
        self._reads_here = self._is_small and is_connect(spark)
        if not self._reads_here:
            serve_modules(spark)
        self._spark = spark
        self._decode_as = decode_as
        self._messages = messages
        self._tls_keylog = tls_keylog
        self._max_ratio = max_ratio

    def parquet(self, files: Sequence[str], columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of Parquet files; a column that they do not have is null."""
        schema = schema_of(columns)
        if self._reads_here or not files:
            return self.engine.hold(parquet_here(files, columns, source))
        frame = self._spark.read.schema(schema).parquet(*map(_uri, files))
        return self._given(frame.selectExpr("*", f"{text(source)} as {SOURCE}"))

    def json_lines(
        self, files: Sequence[str], columns: Sequence[Described], source: str
    ) -> LineRows:
        """Return the rows of JSON lines."""
        if self._reads_here:
            rows, broken = json_lines_here(files, columns, source)
            return LineRows(self.engine.hold(rows), len(broken), broken[0] if broken else "")
        lines = self._spark.read.option("lineSep", "\n").text([_uri(file) for file in files])
        schema = schema_of(columns).add(_BROKEN, "string")
        rows = lines.selectExpr("cast(value as binary) as line").mapInArrow(_parse(columns), schema)
        frame = rows.cache()
        broken_lines = frame.where(F.col(_BROKEN).isNotNull())
        count = broken_lines.count()
        example = broken_lines.select(_BROKEN).first() if count else None
        good = frame.where(F.col(_BROKEN).isNull()).drop(_BROKEN).withColumn(SOURCE, F.lit(source))
        return LineRows(self._given(good), count, str(example[0]) if example is not None else "")

    def captures(self, captures: Input) -> Mapping[str, Relation]:
        """Return the tables of captures, by name of a field of `ReportInput`."""
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
        return {name: self._given(table_in(rows, table)) for name, table in tables.items()}

    def _given(self, frame: DataFrame) -> Relation:
        """Return a frame as a relation; of a small input, this process takes the rows."""
        return self.engine.hold(frame.toArrow()) if self._is_small else self.engine.given(frame)


def _parse(columns: Sequence[Described]) -> Callable[[Batches], Batches]:
    """Return what makes rows of lines; a line that is none is all that its row has."""

    def parse(batches: Batches) -> Batches:
        import pyarrow

        text = pyarrow.string()
        for batch in batches:
            lines = filter(None, batch.column(0).to_pylist())
            rows, broken = rows_of_lines(lines, columns)
            yield from rows.append_column(_BROKEN, pyarrow.nulls(len(rows), text)).to_batches()
            if broken:
                nulls = [pyarrow.nulls(len(broken), field.type) for field in rows.schema]
                names = [*rows.column_names, _BROKEN]
                yield pyarrow.RecordBatch.from_arrays([*nulls, pyarrow.array(broken, text)], names)

    return parse


def _uri(file: str) -> str:
    """Return a path so that Spark takes none of its characters for a pattern."""
    if "://" in file:
        return file
    for char in "\\{}[]*?":
        file = file.replace(char, "\\" + char)
    return file
