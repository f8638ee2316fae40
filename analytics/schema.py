"""Schemas of the decoded log and of the report tables, each from one description.

Rules: a type is one of the names in `TYPES`, as in `dissectors.rows.column.Column`; integers have
64 bits and times are UTC timestamps in microseconds, as in Parquet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from dissectors.decode.decoded_log import FINDING_COLUMNS
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS
from dissectors.rows.message_record import MESSAGE_COLUMNS
from dissectors.rows.record import COLUMNS, DERIVED

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
"""Type in a column's description -> type in SQL."""
INPUT_TABLES: dict[str, Sequence[Described]] = {
    "exchanges": COLUMNS,
    "conversations": CONVERSATION_COLUMNS,
    "findings": FINDING_COLUMNS,
    "messages": MESSAGE_COLUMNS,
}
"""Table of `ReportInput` -> its columns in the log, without `source`."""

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
SOURCE = "source"
"""Additional column of all input rows: the name of their input. Conversation numbers are unique
within it: join exchanges and conversations by (`source`, `conversation`).
"""


class Described(Protocol):
    """Anything with a column's name and type: `dissectors.rows.column.Column`, `TableColumn`."""

    @property
    def name(self) -> str:
        """Name of the column."""

    @property
    def type(self) -> str:
        """A key of `TYPES`."""


def schema_of(columns: Iterable[Described]) -> StructType:
    """Return the Spark schema of described columns; all are nullable."""
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
    """Return the Arrow schema of described columns, which Spark accepts for their `schema_of`."""
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
    """Return rows as an Arrow table; their times are in µs since the epoch.

    An integer of more than 64 bits becomes null: a peer may send invalid offsets.
    """
    import pyarrow

    schema = arrow_schema_of(columns)
    try:
        return pyarrow.Table.from_pylist(rows, schema=schema)
    except OverflowError:
        # checked only now: a look at each value would cost more than the table
        kept = [{name: value for name, value in row.items() if _fits(value)} for row in rows]
        return pyarrow.Table.from_pylist(kept, schema=schema)


def _fits(value: object) -> bool:
    return not isinstance(value, int) or _LEAST <= value <= _MOST


def absent_derived(names: Collection[str]) -> list[str]:
    """Return the missing columns that can be derived from the present ones."""
    return [name for name, (_, of) in DERIVED.items() if name not in names and {*of} <= {*names}]


def derived_column(name: str, arrays: Iterable[Any]) -> pyarrow.Array[Any]:
    """Return a derived column of exchanges from the arrays of its source columns."""
    import pyarrow

    make, of = DERIVED[name]
    schema = arrow_schema_of(COLUMNS)
    values = [
        array.cast(schema.field(source).type).cast(pyarrow.int64()).to_pylist()
        if pyarrow.types.is_timestamp(schema.field(source).type)
        else array.to_pylist()
        for source, array in zip(of, arrays, strict=True)
    ]
    column: pyarrow.Array[Any] = pyarrow.array(list(map(make, *values)), schema.field(name).type)
    return column
