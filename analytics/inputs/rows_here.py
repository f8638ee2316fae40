"""Files of a small input that this process reads: Spark takes longer to begin, or may not see them.

Rules: the same rows and types as Spark reads (`source`): a column that a file does not have is
null, a line that is no JSON object is kept as text. A time in JSON that is none is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pyspark.sql import functions as F

from dissectors.foreign import Unreadable, json_of
from dissectors.rows.outcome import outcome_class_of

from ..errors import damaged_parquet
from ..schema import SOURCE

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def parquet_here(files: Sequence[str], schema: StructType, source: str) -> pyarrow.Table:
    """Return the rows of Parquet files with the columns of `schema`, and `SOURCE`."""
    import pyarrow
    import pyarrow.parquet
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(schema)
    tables = []
    for file in files:
        try:
            with pyarrow.parquet.ParquetFile(file) as opened:
                there = set(opened.schema_arrow.names)
                table = opened.read(columns=[name for name in wanted.names if name in there])
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged_parquet(file) from error
        columns = [
            table.column(field.name).cast(field.type)
            if field.name in there
            else _absent(field, table)
            for field in wanted
        ]
        tables.append(pyarrow.Table.from_arrays(columns, schema=wanted))
    every = pyarrow.concat_tables(tables)
    return every.append_column(SOURCE, pyarrow.repeat(source, every.num_rows))


def _absent(field: pyarrow.Field[Any], table: pyarrow.Table) -> pyarrow.Array[Any]:
    """Return a column that an older log lacks: computed where its rows say it, else null."""
    import pyarrow

    if field.name != "outcome_class" or not {*_OUTCOME_OF} <= {*table.column_names}:
        nulls: pyarrow.Array[Any] = pyarrow.nulls(table.num_rows, field.type)
        return nulls
    values = [table.column(name).to_pylist() for name in _OUTCOME_OF]
    classes = [outcome_class_of(*row) for row in zip(*values, strict=True)]
    column: pyarrow.Array[Any] = pyarrow.array(classes, field.type)
    return column


def json_lines_here(
    spark: SparkSession, files: Sequence[str], schema: StructType, broken: str
) -> DataFrame:
    """Return the rows of JSON lines with one more column, `broken`: a line that is no object."""
    import pyarrow
    from pyspark.sql.types import StringType, StructField, StructType, TimestampType

    times = {field.name for field in schema if isinstance(field.dataType, TimestampType)}
    texts = [
        StructField(field.name, StringType() if field.name in times else field.dataType)
        for field in schema
    ]
    good, bad = _lines_of(files)
    lines = pyarrow.table(
        {
            "value": pyarrow.array([*good, *[None] * len(bad)], pyarrow.string()),
            broken: pyarrow.array([*[None] * len(good), *bad], pyarrow.string()),
        }
    )
    if not lines.num_rows:
        return spark.createDataFrame([], StructType([*schema, StructField(broken, StringType())]))
    parsed = spark.createDataFrame(lines).select(
        F.from_json("value", StructType(texts)).alias("row"), broken
    )
    columns = (
        f"try_cast(row.`{field.name}` as timestamp) as `{field.name}`"
        if field.name in times
        else f"row.`{field.name}`"
        for field in schema
    )
    return parsed.selectExpr(*columns, broken)


_OUTCOME_OF: Final = ("status", "request_name", "response_name", "topic")
"""arguments of `outcome_class_of`"""
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _lines_of(files: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the lines that are JSON objects, and those that are not; blank ones are neither."""
    good, bad = [], []
    for file in files:
        for line in Path(file).read_bytes().decode("utf-8", "replace").split("\n"):
            if not line.strip():
                continue
            try:
                json_of(_OBJECT, line)
            except Unreadable:
                bad.append(line)
            else:
                good.append(line)
    return good, bad
