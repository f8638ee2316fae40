"""Read inputs with Spark.

Files and captures are read by its tasks. The rows of a small input are collected at once, because
each Spark query takes a third of a second of CPU, however few its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.decode.pipeline import DecodeOptions
from dissectors.rows.column import NAMES
from dissectors.rows.record import DERIVED

from ..schema import INPUT_TABLES, SOURCE, Described, absent_derived, derived_column, schema_of
from ..spark.connect import is_connect
from ..spark.engine import SparkEngine
from ..spark.places import uri_of
from ..spark.workers import serve_modules
from ..sql.expressions import text
from ..sql.relation import Relation
from .capture_frame import CaptureRows, RemoteCaptureRows, table_in
from .inputs import Input, is_small
from .reader import LineRows
from .row_batches import ALL, MESSAGES
from .rows_here import json_lines_here, parquet_here, read_schema, rows_of_lines

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator["pyarrow.RecordBatch"]
_BROKEN = "_broken_line"
_JOBS = 16
"""number of footers read at a time"""


class SparkReader:
    """Reads inputs into a Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        inputs: Sequence[Input],
        options: DecodeOptions | None = None,
    ) -> None:
        """Initialize with all inputs to be read; `options` are those of captures."""
        self.engine = SparkEngine(spark)
        self._is_small = is_small(inputs)
        is_here = not any("://" in file for entry in inputs for file in entry.exchanges)
        # a Spark Connect server may not see the files of this machine
        self._reads_here = self._is_small and is_connect(spark) and is_here
        if not self._reads_here:
            serve_modules(spark)
        self._spark = spark
        self._options = options or DecodeOptions()

    def parquet(self, files: Sequence[str], columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of Parquet files; missing columns are null."""
        schema, stored = schema_of(columns), schema_of(columns)
        if self._reads_here or not files:
            return self.engine.hold(parquet_here(files, columns, source))
        # releases named some columns differently, and a log may have files of several
        old = {name: NAMES[name] for name in schema.names if name in NAMES}
        for name, names in old.items():
            for alias in names[1:]:
                stored.add(alias, schema[name].dataType)
        frame = self._spark.read.schema(stored).parquet(*map(uri_of, files))
        chosen = [  # date folders are not columns
            f"coalesce({', '.join(old[name])}) as {name}" if name in old else f"`{name}`"
            for name in schema.names
        ]
        frame = frame.selectExpr(*chosen)
        if DERIVED.keys() <= set(schema.names) and (lacking := self._lacking(files)):
            frame = _with_derived(frame, lacking)
        is_here = not any("://" in file for file in files)
        rows = sum(map(_rows_in, files)) if is_here else None
        return self._given(frame.selectExpr("*", f"{text(source)} as {SOURCE}"), rows)

    def table(self, name: str, columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of a table of a Spark catalog; missing columns are null.

        `source` is the default for rows without one.
        """
        frame, schema = self._spark.table(name), schema_of(columns)
        # catalogs may change the case of names
        known = {field.name.lower(): field.dataType for field in frame.schema}
        chosen = []
        for field in schema:
            names = [alias for alias in NAMES.get(field.name, (field.name,)) if alias in known]
            value = f"coalesce({', '.join(f'`{alias}`' for alias in names)})" if names else "null"
            is_plain = names == [field.name] and known[field.name] == field.dataType
            value = value if not is_plain else f"`{field.name}`"  # catalogs filter by this type
            kind = field.dataType.simpleString()
            chosen.append(f"{value if is_plain else f'cast({value} as {kind})'} as `{field.name}`")
        of_row = f"coalesce({SOURCE}, {text(source)})" if SOURCE in known else text(source)
        rows = frame.selectExpr(*chosen, f"{of_row} as {SOURCE}")
        if DERIVED.keys() <= set(schema.names) and (lacking := absent_derived(list(known))):
            rows = _with_derived(rows, lacking)
        return self.engine.given(rows)

    def json_lines(
        self, files: Sequence[str], columns: Sequence[Described], source: str
    ) -> LineRows:
        """Return the rows of JSON lines."""
        if self._reads_here:
            rows, broken, first = json_lines_here(files, columns, source)
            return LineRows(self.engine.hold(rows), broken, first)
        lines = self._spark.read.option("lineSep", "\n").text([uri_of(file) for file in files])
        schema = schema_of(columns).add(_BROKEN, "string")
        rows = lines.selectExpr("cast(value as binary) as line").mapInArrow(_parse(columns), schema)
        # Read twice: for the invalid lines and for the rows.
        frame = rows.cache()
        broken_lines = frame.where(F.col(_BROKEN).isNotNull())
        count = broken_lines.count()
        example = broken_lines.select(_BROKEN).first() if count else None
        good = frame.where(F.col(_BROKEN).isNull()).drop(_BROKEN).withColumn(SOURCE, F.lit(source))
        return LineRows(self._given(good), count, str(example[0]) if example is not None else "")

    def captures(self, captures: Input) -> Mapping[str, Relation]:
        """Return the tables of captures, by field name of `ReportInput`."""
        make = RemoteCaptureRows if "://" in captures.exchanges[0] else CaptureRows
        task = make(
            captures.exchanges,
            captures.name,
            self._options,
            captures.bytes,
        )
        rows = task.kept(self._spark, ALL)
        tables = (name for name in INPUT_TABLES if name != MESSAGES or self._options.messages)
        return {name: self._given(table_in(rows, name)) for name in tables}

    def _lacking(self, files: Sequence[str]) -> list[str]:
        """Return the `DERIVED` columns missing in the file of an older log."""

        def names_in(file: str) -> Sequence[str]:
            is_remote = "://" in file  # a Spark job reads the footer of such a file
            read = self._spark.read.parquet
            return read(uri_of(file)).columns if is_remote else read_schema(file).names

        # remote footers take a round trip each
        with ThreadPoolExecutor(_JOBS) as jobs:
            each = jobs.map(names_in, files)
            return sorted({lacking for names in each for lacking in absent_derived(names)})

    def _given(self, frame: DataFrame, rows: int | None = None) -> Relation:
        """Return a frame as a relation; rows of a small input are collected."""
        if self._is_small:
            return self.engine.hold(frame.toArrow())
        return self.engine.given(frame, rows)


def _rows_in(file: str) -> int:
    import pyarrow.parquet

    return pyarrow.parquet.read_metadata(file).num_rows


def _with_derived(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return rows with missing `DERIVED` columns, which are computed if a query needs them."""
    for name in names:
        made = F.arrow_udf(_deriving(name), frame.schema[name].dataType)(*DERIVED[name][1])
        frame = frame.withColumn(name, F.coalesce(F.col(name), made))
    return frame


def _deriving(name: str) -> Callable[..., object]:
    """Return the function of a `DERIVED` column, with the type hints that Spark reads."""
    import pyarrow

    def derived(*arrays: object) -> object:
        return derived_column(name, arrays)

    derived.__annotations__ = {"arrays": pyarrow.Array, "return": pyarrow.Array}
    return derived


def _parse(columns: Sequence[Described]) -> Callable[[Batches], Batches]:
    """Return a function that parses lines; an invalid line is the only value of its row."""

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
