"""Files of rows that this process reads, as Arrow tables; lines of JSON also by Spark's tasks.

Rules: a column that a file does not have is null, a line that is no JSON object is left out. A
value of another type is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dissectors.foreign import Unreadable, json_of
from dissectors.rows.outcome import outcome_class_of
from dissectors.times import moment_of

from ..derived import OUTCOME
from ..errors import damaged_parquet
from ..schema import SOURCE, Described, arrow_rows, arrow_schema_of
from .rows import BATCH, lines_of

if TYPE_CHECKING:
    import pyarrow


def parquet_here(files: Sequence[str], columns: Sequence[Described], source: str) -> pyarrow.Table:
    """Return the rows of Parquet files with some columns, and `SOURCE`."""
    import pyarrow
    import pyarrow.parquet

    wanted = arrow_schema_of(columns)
    tables = [wanted.empty_table()]
    for file in files:
        try:
            with pyarrow.parquet.ParquetFile(file) as opened:
                there = set(opened.schema_arrow.names)
                table = opened.read(columns=[name for name in wanted.names if name in there])
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged_parquet(file) from error
        arrays = [
            table.column(field.name).cast(field.type)
            if field.name in there
            else _absent(field, table)
            for field in wanted
        ]
        tables.append(pyarrow.Table.from_arrays(arrays, schema=wanted))
    return _with_source(pyarrow.concat_tables(tables), source)


def _absent(field: pyarrow.Field[Any], table: pyarrow.Table) -> pyarrow.Array[Any]:
    """Return a column that an older log lacks: computed where its rows say it, else null."""
    import pyarrow

    if field.name != OUTCOME or not {*_OUTCOME_OF} <= {*table.column_names}:
        nulls: pyarrow.Array[Any] = pyarrow.nulls(table.num_rows, field.type)
        return nulls
    values = [table.column(name).to_pylist() for name in _OUTCOME_OF]
    classes = [outcome_class_of(*row) for row in zip(*values, strict=True)]
    column: pyarrow.Array[Any] = pyarrow.array(classes, field.type)
    return column


def json_lines_here(
    files: Sequence[str], columns: Sequence[Described], source: str
) -> tuple[pyarrow.Table, list[str]]:
    """Return the rows of JSON lines with some columns and `SOURCE`, and the lines that are none."""
    import pyarrow

    tables = [arrow_schema_of(columns).empty_table()]
    broken: list[str] = []
    for file in files:
        for lines in batched(lines_of(file)):
            rows, others = rows_of_lines(lines, columns)
            tables.append(rows)
            broken += others
    return _with_source(pyarrow.concat_tables(tables), source), broken


def batched(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Give some thousand lines at a time."""
    left = iter(lines)
    while some := list(islice(left, BATCH)):
        yield some


def rows_of_lines(
    lines: Iterable[bytes], columns: Sequence[Described]
) -> tuple[pyarrow.Table, list[str]]:
    """Return the rows of JSON lines with some columns, and the lines that are none."""
    rows: list[dict[str, object]] = []
    broken: list[str] = []
    types = {column.name: column.type for column in columns}
    for line in lines:
        if not line.strip():
            continue
        text = line.decode("utf-8", "replace")
        try:
            values = json_of(_OBJECT, text)
        except Unreadable:
            broken.append(text)
            continue
        row = {name: _value_of(values.get(name), kind) for name, kind in types.items()}
        if OUTCOME in types and row[OUTCOME] is None:
            status, *texts = (_text_of(row[name]) for name in _OUTCOME_OF)
            row[OUTCOME] = outcome_class_of(status or "", *texts)
        rows.append(row)
    return arrow_rows(rows, columns), broken


_OUTCOME_OF: Final = ("status", "request_name", "response_name", "topic")
"""arguments of `outcome_class_of`"""
_PYTHON: Final[dict[str, type]] = {"string": str, "int": int, "float": float, "bool": bool}
_OBJECT: Final = msgspec.json.Decoder(dict[str, object])


def _value_of(value: object, kind: str) -> object:
    """Return the value of a column; a time is µs since the epoch; None: it is of another type."""
    if kind == "time":
        moment = moment_of(value) if isinstance(value, str) else None
        return None if moment is None else moment.ns // 1000
    if kind == "list":
        if not isinstance(value, list):
            return None
        return [one if isinstance(one, str) else None for one in value]
    if isinstance(value, bool):
        return value if kind == "bool" else None
    return value if isinstance(value, _PYTHON[kind]) else None


def _text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _with_source(rows: pyarrow.Table, source: str) -> pyarrow.Table:
    import pyarrow

    return rows.append_column(SOURCE, pyarrow.repeat(source, rows.num_rows))
