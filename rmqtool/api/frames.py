"""Rows as Arrow tables and pandas DataFrames: the columns of the tables, with their types.

Rules: numbers are 64 bits and may be missing, times are UTC in microseconds, as in the decoded log.
In pandas texts are strings, or categorical where asked for, and a missing value is `NA`.
Rows become Arrow columns batch by batch, so that no more than a batch is there as Python objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from dissectors.rows.parquet import REPETITIVE, MissingLibraryError, RowTable, load_pyarrow

from ..errors import ArgumentError, MissingExtraError
from .inputs import translated
from .tables.table import Table, UnknownColumnError

if TYPE_CHECKING:
    import pandas
    import pyarrow

BATCH_ROWS: Final = 8192
"""rows of an Arrow batch"""
FRAME_NAMES: Final = {
    "keys": "message_keys",
    "count": "occurrences",
    "filter": "wireshark_filter",
}
"""column -> its name in a DataFrame, which has an attribute of the column's own name"""
_LATENCY: Final = "latency"
_LATENCY_US: Final = "latency_us"


def form_of(table: Table[Any], columns: Sequence[str] | None = None) -> RowTable:
    """Return a function that converts rows of a table to Arrow columns.

    `columns`: these alone, in this order, each once. Raise MissingExtraError, and
    ArgumentError for a column that there is not.
    """
    chosen = table.arrow_columns()
    if columns is not None:
        known = {column.name: column for column in chosen}
        try:
            chosen = [
                known[name] if name in known or table.shown else table.chosen_columns([name])[0]
                for name in dict.fromkeys(columns)
            ]
        except KeyError as error:
            raise ArgumentError(f"columns: unknown column {error}") from None
        except UnknownColumnError as error:
            raise ArgumentError(f"columns: {error}") from None
    with translated():
        return RowTable(chosen)


def arrow_batches(
    form: RowTable, batches: Iterable[Sequence[object]]
) -> Iterator[pyarrow.RecordBatch]:
    """Yield rows as Arrow batches of a suitable size."""
    waiting: list[object] = []
    for rows in batches:
        waiting += rows
        while len(waiting) >= BATCH_ROWS:
            yield form.batch_of(waiting[:BATCH_ROWS])
            del waiting[:BATCH_ROWS]
    if waiting:
        yield form.batch_of(waiting)


def arrow_table(form: RowTable, batches: Iterable[Sequence[object]]) -> pyarrow.Table:
    """Return all rows as one Arrow table."""
    import pyarrow

    return pyarrow.Table.from_batches(list(arrow_batches(form, batches)), form.schema)


def load_pandas() -> None:
    """Import pandas; raise MissingExtraError if it is not installed."""
    try:
        load_pyarrow()
        import pandas  # noqa: F401
    except (ImportError, MissingLibraryError) as error:
        raise MissingExtraError(
            "a DataFrame needs pandas and pyarrow, which are not both installed",
            hint="pip install 'rmqtool[pandas]'",
        ) from error


def data_frame(table: pyarrow.Table, categories: bool = False) -> pandas.DataFrame:
    """Return an Arrow table as a DataFrame.

    Args:
        table: rows; times in microseconds, UTC
        categories: texts that repeat are categorical, which saves memory

    A latency is there twice: as a number of microseconds, and as a timedelta.
    """
    import pandas
    import pyarrow

    texts = pyarrow.string()
    # Other texts differ in nearly each row: categories of them would save nothing.
    for index, field in enumerate(table.schema if categories else ()):
        if field.type == texts and field.name in REPETITIVE:
            encoded = table.column(index).dictionary_encode()
            table = table.set_column(index, field.name, encoded)
    types = {
        pyarrow.int64(): pandas.Int64Dtype(),
        pyarrow.bool_(): pandas.BooleanDtype(),
        texts: pandas.StringDtype("pyarrow"),
    }
    frame = table.to_pandas(types_mapper=types.get)
    for field in table.schema:
        if pyarrow.types.is_list(field.type):  # pandas would have numpy arrays
            frame[field.name] = table.column(field.name).to_pylist()
    if _LATENCY in frame.columns:  # asked for by this name
        frame[_LATENCY] = pandas.to_timedelta(frame[_LATENCY], unit="us")
    elif _LATENCY_US in frame.columns:
        latency = pandas.to_timedelta(frame[_LATENCY_US], unit="us")
        frame.insert(list(frame.columns).index(_LATENCY_US) + 1, _LATENCY, latency)
    return frame.rename(columns=FRAME_NAMES)
