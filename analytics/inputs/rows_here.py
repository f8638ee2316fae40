"""Files of rows read by this process as Arrow tables; JSON lines also in Spark tasks.

Rules: a column missing in a file is null; a line that is not a JSON object is skipped. A value of
another type is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dissectors.foreign import Unreadable, json_of
from dissectors.rows.column import stored_name
from dissectors.rows.record import DERIVED
from dissectors.times import moment_of

from ..errors import damaged_parquet
from ..schema import (
    SOURCE,
    Described,
    absent_derived,
    arrow_rows,
    arrow_schema_of,
    derived_column,
)
from .rows import BATCH, lines_of, refuse_expanding

if TYPE_CHECKING:
    import pyarrow


def parquet_here(files: Sequence[str], columns: Sequence[Described], source: str) -> pyarrow.Table:
    """Return the rows of Parquet files with some columns and `SOURCE`."""
    import pyarrow
    import pyarrow.parquet

    wanted = arrow_schema_of(columns)
    tables = [wanted.empty_table()]  # without files there is no row, but a schema
    for file in files:
        try:
            with pyarrow.parquet.ParquetFile(file) as opened:
                there = set(opened.schema_arrow.names)
                stored = {name: stored_name(name, there) for name in wanted.names}
                refuse_expanding(file, opened.metadata, set(stored.values()))
                table = opened.read(columns=[name for name in stored.values() if name in there])
            arrays = [
                _cast(table.column(stored[field.name]), field.type)
                if stored[field.name] in there
                else _absent(field, table)
                for field in wanted
            ]
        except (pyarrow.ArrowException, OSError, LookupError) as error:
            raise damaged_parquet(file) from error
        tables.append(pyarrow.Table.from_arrays(arrays, schema=wanted))
    return _with_source(pyarrow.concat_tables(tables), source)


def read_schema(file: str) -> pyarrow.Schema:
    """Return the schema of a Parquet file; raise ReportError if it is damaged."""
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged_parquet(file) from error


def _cast(values: pyarrow.ChunkedArray[Any], to: Any) -> Any:
    """Return a column in the wanted type; one of another type is absent."""
    import pyarrow

    # Other programs write nanoseconds, of which the last three digits are dropped.
    is_safe = not pyarrow.types.is_timestamp(values.type)
    try:
        return values.cast(to, safe=is_safe)
    except pyarrow.ArrowException:
        return pyarrow.nulls(len(values), to)


def _absent(field: pyarrow.Field[Any], table: pyarrow.Table) -> pyarrow.Array[Any]:
    """Return a column missing in an older log: derived from its rows if possible, else null."""
    import pyarrow

    if field.name in absent_derived(table.column_names):
        of = DERIVED[field.name][1]
        return derived_column(field.name, map(table.column, of)).cast(field.type)
    nulls: pyarrow.Array[Any] = pyarrow.nulls(table.num_rows, field.type)
    return nulls


def json_lines_here(
    files: Sequence[str], columns: Sequence[Described], source: str
) -> tuple[pyarrow.Table, int, str]:
    """Return (rows with some columns and `SOURCE`, number of invalid lines, the first of them)."""
    import pyarrow

    tables = [arrow_schema_of(columns).empty_table()]
    broken, first = 0, ""
    for file in files:
        for lines in batched(lines_of(file)):
            rows, others = rows_of_lines(lines, columns)
            tables.append(rows)
            first = first or next(iter(others), "")
            broken += len(others)
    return _with_source(pyarrow.concat_tables(tables), source), broken, first


def batched(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield some thousand lines at a time."""
    left = iter(lines)
    while batch := list(islice(left, BATCH)):
        yield batch


def rows_of_lines(
    lines: Iterable[bytes], columns: Sequence[Described]
) -> tuple[pyarrow.Table, list[str]]:
    """Return the rows of JSON lines with some columns, and the invalid lines."""
    rows: list[dict[str, object]] = []
    broken: list[str] = []
    types = {column.name: column.type for column in columns}
    derived = {name: made for name, made in DERIVED.items() if name in types}
    for line in lines:
        if not line.strip():
            continue
        # Bytes that are not UTF-8 spoil one text, not the whole row.
        text = line.decode("utf-8", "replace")
        try:
            values = json_of(_OBJECT, text)
        except Unreadable:
            broken.append(text)
            continue
        row = {
            name: _value_of(values.get(stored_name(name, values)), kind)
            for name, kind in types.items()
        }
        for name, (make, of) in derived.items():
            if name not in values:
                row[name] = make(*map(row.get, of))
        rows.append(row)
    return arrow_rows(rows, columns), broken


_PYTHON: Final[dict[str, type]] = {"string": str, "int": int, "float": float, "bool": bool}
_OBJECT: Final = msgspec.json.Decoder(dict[str, object])


def _value_of(value: object, kind: str) -> object:
    """Return the value of a column (times in µs since the epoch), or None for another type."""
    if kind == "time":
        moment = moment_of(value) if isinstance(value, str) else None
        return None if moment is None else moment.ns // 1000
    if kind == "list":
        if not isinstance(value, list):
            return None
        return [item if isinstance(item, str) else None for item in value]
    if isinstance(value, bool):  # before int, of which it is a subclass
        return value if kind == "bool" else None
    return value if isinstance(value, _PYTHON[kind]) else None


def _with_source(rows: pyarrow.Table, source: str) -> pyarrow.Table:
    import pyarrow

    return rows.append_column(SOURCE, pyarrow.repeat(source, rows.num_rows))
