"""Schemas of the decoded log and of the report tables, each from its one description.

Rules: a type is one of the words in `TYPES`, as in `dissectors.rows.column.Column`; numbers are 64
bits and times UTC timestamps of microseconds, as Parquet has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from dissectors.decode.decoded_log import FINDING_COLUMNS
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS
from dissectors.rows.message_record import MESSAGE_COLUMNS
from dissectors.rows.record import COLUMNS

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

TYPES: dict[str, str] = {
    "string": "string",
    "int": "bigint",
    "float": "double",
    "bool": "boolean",
    "time": "timestamp",
    "list": "array<string>",
}
"""Word in a column's description -> type in SQL."""

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
SOURCE = "source"
"""Column that every row of the input has besides: the input that it came from. The number of a
conversation is unique within it: join exchanges and conversations by (`source`, `conversation`)."""


class Described(Protocol):
    """What has a column's name and type: `dissectors.rows.column.Column`, `TableColumn`."""

    @property
    def name(self) -> str:
        """Name of the column."""

    @property
    def type(self) -> str:
        """A key of `TYPES`."""


def schema_of(columns: Iterable[Described]) -> StructType:
    """Return the Spark schema of described columns; everything may be null."""
    from pyspark.sql.types import (
        ArrayType,
        BooleanType,
        DataType,
        DoubleType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    types: dict[str, DataType] = {
        "string": StringType(),
        "int": LongType(),
        "float": DoubleType(),
        "bool": BooleanType(),
        "time": TimestampType(),
        "list": ArrayType(StringType(), containsNull=True),
    }
    return StructType([StructField(column.name, types[column.type]) for column in columns])


def arrow_schema_of(columns: Iterable[Described]) -> pyarrow.Schema:
    """Return the Arrow schema of described columns, which Spark takes for `schema_of` them."""
    import pyarrow

    types: dict[str, pyarrow.DataType] = {
        "string": pyarrow.string(),
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "time": pyarrow.timestamp("us", tz="UTC"),
        "list": pyarrow.list_(pyarrow.field("element", pyarrow.string())),
    }
    return pyarrow.schema([(column.name, types[column.type]) for column in columns])


def arrow_rows(rows: Sequence[Mapping[str, object]], columns: Iterable[Described]) -> pyarrow.Table:
    """Return rows as an Arrow table; times are µs since the epoch in them.

    A number of more than 64 bits is absent: a peer may send offsets that make no sense.
    """
    import pyarrow

    schema = arrow_schema_of(columns)
    try:
        return pyarrow.Table.from_pylist(rows, schema=schema)
    except OverflowError:
        kept = [{name: value for name, value in row.items() if _fits(value)} for row in rows]
        return pyarrow.Table.from_pylist(kept, schema=schema)


def _fits(value: object) -> bool:
    return not isinstance(value, int) or _LEAST <= value <= _MOST


def exchange_schema() -> StructType:
    """Return the schema of the exchanges as the log has them, without `source`."""
    return schema_of(COLUMNS)


def conversation_schema() -> StructType:
    """Return the schema of the TCP connections, without `source`."""
    return schema_of(CONVERSATION_COLUMNS)


def finding_schema() -> StructType:
    """Return the schema of the findings, without `source`."""
    return schema_of(FINDING_COLUMNS)


def message_schema() -> StructType:
    """Return the schema of the messages, without `source`."""
    return schema_of(MESSAGE_COLUMNS)
