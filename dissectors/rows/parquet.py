"""Exchanges and findings as Parquet with pyarrow, which is imported for the first file.

Rules: numbers are 64-bit integers and times UTC timestamps in microseconds, which Spark, pandas,
and DuckDB read alike; columns with repeated texts are dictionary encoded. Rows become Arrow columns
in batches, so a row group is held in Arrow memory and never as Python objects. Values that do not
fit (over 64 bits, a lone surrogate) are clamped or replaced: no record content raises an error.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec.structs import astuple

from .column import DISTINCT_TEXTS
from .column_bytes import LAST_MICROSECOND, ColumnBytes
from .conversation_record import CONVERSATION_COLUMNS
from .encoded import BATCH_ROWS, Columns, EncodedRows, chunks_up_to
from .message_record import MESSAGE_COLUMNS
from .record import COLUMNS
from .row_times import RowTimes, Span
from .tables import encodable

if TYPE_CHECKING:
    import pyarrow

ROW_GROUP_ROWS = 32_768
"""rows per row group; about 10 MiB of Arrow memory with 35 columns"""
ROW_GROUP_BYTES = 64 * 1024 * 1024
"""maximum bytes of a row group, which then has fewer rows or is split"""
_INT64 = 2**63 - 1
_REPEATED: Final = (
    *("conversation", "request_code", "response_code", "version", "queue_id", "missing_bytes"),
    *("message_count", "syns", "max_reconsume_times", "reconsume_times", "delay_level"),
    *("kind", "severity", "detail", "name", "header_name"),
)
"""numbers that repeat, and texts of findings and commands"""
REPETITIVE: Final = frozenset(_REPEATED) | {
    column.name if column.type == "string" else f"{column.name}.list.element"
    for columns in (COLUMNS, MESSAGE_COLUMNS, CONVERSATION_COLUMNS)
    for column in columns
    if column.type in ("string", "list") and column.name not in DISTINCT_TEXTS
}
"""columns with repeated values, by their paths in Parquet"""


class MissingLibraryError(RuntimeError):
    """A library of an extra is missing; the message says how to install it."""

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(
            f"{what} needs {library}, which is not installed: pip install 'rmqtool[{extra}]'"
        )


def load_pyarrow() -> None:
    """Import pyarrow with Parquet; raise MissingLibraryError if it is not installed."""
    if "pyarrow.parquet" in sys.modules:
        return
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingLibraryError("Parquet", "pyarrow", "parquet") from error
    _look_for_pandas_in_vain()


class _NoPandas:
    """Import finder that hides pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _look_for_pandas_in_vain() -> None:
    """Make pyarrow cache that pandas is missing.

    For its first array it would import pandas, if installed, only to see that a list is not a
    Series: 0.4 seconds and 45 MiB. Conversions to and from pandas check again, so they still work.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pyarrow.array([])
    finally:
        sys.meta_path.remove(finder)


class RowTable:
    """The columns of one kind of row: their getters and Arrow types."""

    def __init__(self, columns: Iterable[tuple[str, str, Callable[[object], object]]]) -> None:
        """`columns` are (name, type as in `dissectors.rows.column.Column`, row -> value).

        Raise MissingLibraryError if pyarrow is not installed.
        """
        load_pyarrow()
        import pyarrow

        types: dict[str, pyarrow.DataType] = {
            "string": pyarrow.string(),
            "int": pyarrow.int64(),
            "bool": pyarrow.bool_(),
            "time": pyarrow.timestamp("us", tz="UTC"),
            "list": pyarrow.list_(pyarrow.string()),
        }
        chosen = list(columns)
        self._columns = [(get, kind, types[kind]) for _, kind, get in chosen]
        self._fields: tuple[str, ...] | None = tuple(name for name, _, _ in chosen)
        if any(not _takes(get, name) for name, _, get in chosen):
            self._fields = None
        self.schema = pyarrow.schema([(name, types[kind]) for name, kind, _ in chosen])
        """the Arrow schema"""

    def batch_of(self, rows: Sequence[object]) -> pyarrow.RecordBatch:
        """Return the rows as Arrow columns."""
        import pyarrow

        columns = zip(self._values_of(rows), self._columns, strict=True)
        arrays = [_array(values, kind, type_) for values, (_, kind, type_) in columns]
        return pyarrow.record_batch(arrays, schema=self.schema)

    def _values_of(self, rows: Sequence[object]) -> Iterable[Sequence[object]]:
        """Return the values of each column; a row whose fields are the columns needs no getters."""
        first = rows[0] if rows else None
        if isinstance(first, msgspec.Struct) and first.__struct_fields__ == self._fields:
            structs = cast(Sequence[msgspec.Struct], rows)
            return zip(*map(astuple, structs), strict=True)
        return (list(map(get, rows)) for get, _, _ in self._columns)


def _takes(get: Callable[[object], object], name: str) -> bool:
    """Return whether this is `attrgetter(name)`."""
    return isinstance(get, attrgetter) and get.__reduce__()[1] == (name,)


def _array(
    values: Sequence[object], kind: str, type_: pyarrow.DataType
) -> pyarrow.Array[pyarrow.Scalar[pyarrow.DataType]]:
    import pyarrow

    if kind == "list" and not any(values) and all(value is not None for value in values):
        starts = pyarrow.array([0] * (len(values) + 1), pyarrow.int32())
        return pyarrow.ListArray.from_arrays(starts, pyarrow.array([], pyarrow.string()))
    if kind == "time":
        values = [value // 1000 if isinstance(value, int) else None for value in values]
    try:
        return pyarrow.array(values, type_)
    except (OverflowError, ValueError):  # more than 64 bits, or a lone surrogate
        limit = LAST_MICROSECOND if kind == "time" else _INT64
        return pyarrow.array([_fitting(value, limit) for value in values], type_)


def _fitting(value: object, limit: int) -> object:
    if isinstance(value, int):
        return min(max(value, -limit), limit)
    if isinstance(value, list):
        return [_fitting(item, limit) for item in value]
    return encodable(value) if isinstance(value, str) else value


def record_batch_of(columns: Sequence[ColumnBytes], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Return columns in Arrow layout as a batch, without copying their bytes."""
    import pyarrow

    arrays = [_array_of(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
    return pyarrow.record_batch(arrays, schema=schema)


def batches_of(
    parts: Sequence[Sequence[ColumnBytes]], schema: pyarrow.Schema
) -> list[pyarrow.RecordBatch]:
    """Return the parts of columns as batches; at least one, which may be empty."""
    import pyarrow

    batches = [record_batch_of(part, schema) for part in parts]
    return batches or [pyarrow.RecordBatch.from_pylist([], schema=schema)]


def _array_of(
    column: ColumnBytes, type_: pyarrow.DataType
) -> pyarrow.Array[pyarrow.Scalar[pyarrow.DataType]]:
    import pyarrow

    buffers = [None if buffer is None else pyarrow.py_buffer(buffer) for buffer in column.buffers]
    children = None
    if column.child is not None:
        children = [_array_of(column.child, pyarrow.string())]
    return pyarrow.Array.from_buffers(type_, column.rows, buffers, column.nulls, 0, children)


def packed_columns(batches: Sequence[pyarrow.RecordBatch]) -> memoryview:
    """Return columns as bytes, for another process."""
    return memoryview(_joined(batches).serialize())


def merged_columns(
    parts: Sequence[bytes | memoryview], order: Sequence[int], schema: pyarrow.Schema
) -> pyarrow.RecordBatch:
    """Return the rows of several processes as columns.

    `parts` are results of `packed_columns`; `order` are row indexes through all parts.
    """
    import pyarrow

    batches = [pyarrow.ipc.read_record_batch(pyarrow.py_buffer(part), schema) for part in parts]
    return _joined(batches).take(pyarrow.array(order, pyarrow.int64()))


def columns_by_time(
    rows: pyarrow.RecordBatch, times: RowTimes, length_us: int
) -> Iterator[tuple[int | None, pyarrow.RecordBatch]]:
    """Yield columns by the partition of their end time, counted from the epoch; None: no time."""
    import pyarrow.compute

    places = pyarrow.compute.divide(_micros_of(rows, times)[1], length_us)
    for place in places.unique().to_pylist():
        chosen = places.is_null()
        if place is not None:
            chosen = pyarrow.compute.equal(places, place).fill_null(False)
        # Usually all rows are of one partition: then nothing is copied.
        yield place, rows if chosen.true_count == rows.num_rows else rows.filter(chosen)


def span_of_columns(rows: pyarrow.RecordBatch, times: RowTimes) -> Span:
    """Return the time range of columns; unknown if a row has no time."""
    import pyarrow.compute

    firsts, lasts = _micros_of(rows, times)
    if lasts.null_count or not rows.num_rows:
        return None, None
    first, last = pyarrow.compute.min(firsts).as_py(), pyarrow.compute.max(lasts).as_py()
    return first * 1000, last * 1000


def _micros_of(rows: pyarrow.RecordBatch, times: RowTimes) -> tuple[Any, Any]:
    """Return begin and end of the rows, µs since the epoch."""
    import pyarrow.compute

    def micros(name: str) -> Any:
        return rows.column(name).cast(pyarrow.int64())

    last: Any = pyarrow.compute.coalesce(*map(micros, times.until))
    if times.since is not None:
        return micros(times.since), last
    if times.took is None:
        return last, last
    took: Any = rows.column(times.took)
    zero = pyarrow.scalar(0, pyarrow.int64())
    return pyarrow.compute.subtract(last, pyarrow.compute.coalesce(took, zero)), last


def with_added(rows: pyarrow.RecordBatch, name: str, number: int) -> pyarrow.RecordBatch:
    """Return columns with a number added to one of them."""
    import pyarrow.compute

    place = rows.schema.get_field_index(name)
    column: Any = pyarrow.compute.add(rows.column(place), number)
    return rows.set_column(place, rows.schema.field(place), column)


def _joined(batches: Sequence[pyarrow.RecordBatch]) -> pyarrow.RecordBatch:
    """Return batches of one schema as one."""
    import pyarrow

    if len(batches) == 1:
        return batches[0]
    table = pyarrow.Table.from_batches(batches).combine_chunks()
    # A table without rows has no batch at all.
    return (table.to_batches() or batches)[0]


def exchange_table() -> RowTable:
    """Return the table of `ExchangeRecord`."""
    return RowTable((c.name, c.type, attrgetter(c.name)) for c in COLUMNS)


def message_table() -> RowTable:
    """Return the table of `MessageRecord`."""
    return RowTable((c.name, c.type, attrgetter(c.name)) for c in MESSAGE_COLUMNS)


class ParquetRows:
    """A Parquet file being written; call `close` after `finish`, or instead of it."""

    def __init__(
        self, out: str | IO[bytes], table: RowTable, metadata: Mapping[str, str] | None = None
    ) -> None:
        """`out` is a path or an open file; `metadata` goes into the footer."""
        import pyarrow.parquet

        names = {
            f"{field.name}.list.element" if pyarrow.types.is_list(field.type) else field.name
            for field in table.schema
        }
        self.rows = 0
        """rows written so far"""
        self._table = table
        self._pending: list[object] = []
        self._columns: list[pyarrow.RecordBatch] = []
        self._column_rows = 0
        self._column_bytes = 0
        self._batches: list[pyarrow.RecordBatch] = []
        self._batch_rows = 0
        self._batch_bytes = 0
        schema = table.schema.with_metadata(dict(metadata)) if metadata else table.schema
        self._writer: pyarrow.parquet.ParquetWriter | None = pyarrow.parquet.ParquetWriter(
            out,
            schema,
            compression="zstd",
            # the stubs know only True and False
            use_dictionary=sorted(names & REPETITIVE),  # type: ignore[arg-type, unused-ignore]
        )

    def write(self, rows: Sequence[object]) -> None:
        """Add rows; they are written when their row group is full."""
        self.rows += len(rows)
        if not self._pending and len(rows) >= BATCH_ROWS:
            self._add(rows)
            return
        self._pending += rows
        if len(self._pending) >= BATCH_ROWS:
            self._add(self._pending)
            self._pending = []

    def write_encoded(self, rows: EncodedRows) -> None:
        """Add rows in columns."""
        while isinstance(rows, Columns) and any(rows.counts):
            head, rows = rows.split(chunks_up_to(rows.counts, BATCH_ROWS - self._column_rows))
            self.rows += head.data.num_rows
            self._columns.append(head.data)
            self._column_rows += head.data.num_rows
            self._column_bytes += head.data.nbytes
            if self._column_rows >= BATCH_ROWS or self._column_bytes >= ROW_GROUP_BYTES:
                self._add_columns()

    def finish(self) -> None:
        """Write the remaining rows and the footer."""
        if self._pending:
            self._add(self._pending)
            self._pending = []
        self._add_columns()
        self._write_group()
        self.close()

    def close(self) -> None:
        """Close the file; without a preceding `finish`, rows are missing."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _add(self, rows: Sequence[object]) -> None:
        self._add_batch(self._table.batch_of(rows))

    def _add_columns(self) -> None:
        if self._column_rows:
            self._add_batch(_joined(self._columns))
        self._columns, self._column_rows, self._column_bytes = [], 0, 0

    def _add_batch(self, batch: pyarrow.RecordBatch) -> None:
        self._batches.append(batch)
        self._batch_rows += batch.num_rows
        self._batch_bytes += batch.nbytes
        if self._batch_rows >= ROW_GROUP_ROWS or self._batch_bytes >= ROW_GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        import pyarrow

        if self._batches and self._writer is not None:
            table = pyarrow.Table.from_batches(self._batches)
            pieces = self._batch_bytes // ROW_GROUP_BYTES + 1  # readers accept no larger columns
            self._writer.write_table(table, row_group_size=-(-table.num_rows // pieces))
        self._batches, self._batch_rows, self._batch_bytes = [], 0, 0
