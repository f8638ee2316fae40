"""Rows of one kind from captures to output, with the parts common to all kinds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from dissectors.decode.pipeline import Decode
from dissectors.processes.choice import encoded_rows_of
from dissectors.rows.encoded import EncodedBatch, EncodedRows, RowForm
from dissectors.rows.tables import csv_lines_of, json_lines_of
from dissectors.times import Moment

from ..api.tables.table import ArrowColumn, Table, UnknownColumnError
from ..ui.columns import CORE_RANK, LineColumn, LineTable
from ..ui.common_options import RowFormat
from ..ui.console import Terminal, one_line, terminal_of_output
from ..ui.figures import clock, duration, moment
from ..ui.json_array import rows_output
from ..ui.option_values import usage_error, where_option
from ..ui.output import Output
from .options import DecodeRequest, View
from .sinks import EncodedSink, LinesSink, ParquetSink, Sink

if TYPE_CHECKING:
    from dissectors.where.conditions import Test
    from dissectors.where.fields import FieldSet

Row = TypeVar("Row")


class RowSource(NamedTuple, Generic[Row]):
    """Rows of one kind, with their source, filter, and output."""

    batches: Callable[[], Iterator[Sequence[Row]]]
    """starts the run"""
    test: Test | None
    """the filter; None: all"""
    time: Callable[[Row], int | None]
    """time of a row, for --since and --until"""
    sink: Callable[[], Sink[Row]]
    """opens the output"""
    noun: str
    """plural noun of a row"""
    encoded: Callable[[], Iterable[EncodedRows]] | None = None
    """all rows in encoded form; None: only as objects"""
    log: Callable[[], Iterator[EncodedBatch]] | None = None
    """encoded rows with the messages of exchanges"""


def rows_of_table(
    table: Table[Row], request: DecodeRequest, decode: Decode, sink: Callable[[], Sink[Row]]
) -> RowSource[Row]:
    """Return the rows of a table with the requested filter; `sink` opens the output."""
    return RowSource(
        lambda: table.batches(decode),
        compiled(request, lambda: table.fields(decode.sources)),
        table.time,
        sink,
        table.name,
    )


def compiled(request: DecodeRequest, fields: Callable[[], FieldSet]) -> Test | None:
    """Return the filter of `--where`, or None without one; raise CommandError if it is invalid."""
    return where_option("--where", request.where, fields, request.zone)


def parquet_sink(
    request: DecodeRequest,
    columns: Iterable[ArrowColumn],
    noun: str,
    form: RowForm = RowForm.records,
) -> Sink[Row]:
    """Return a sink that writes these columns as one Parquet file; `noun` names a row.

    `form`: how it takes the rows of several processes.
    """
    from dissectors.rows.parquet import load_pyarrow

    load_pyarrow()  # a missing library is an error before the output is opened
    if request.output == "-" and sys.stdout.isatty():
        raise usage_error("--format parquet", "is binary; use -o FILE.parquet or -o FOLDER")
    output = Output(request.output, private=True, force=request.force)
    return ParquetSink(output, columns, noun, form)


def chosen_sink(
    request: DecodeRequest,
    table: Table[Row],
    names: Sequence[str],
    lines: Callable[[Terminal, int, bool, Choose[Row]], LineTable[Row]],
    nested: Mapping[str, Callable[[Any], object]] = MappingProxyType({}),
) -> Sink[Row]:
    """Return a sink for the requested columns, in any format.

    `names` are the captures, by index. `lines` makes the table for people, from the terminal, the
    number of captures, whether the input is live, and the choice of columns. `nested` has the
    getters of columns with JSON values, which are text in all formats but JSON.
    """
    if not request.format.is_json:
        nested = {name: _text(get) for name, get in nested.items()}
    try:
        columns = [
            ArrowColumn(name, "string", nested[name])
            if name in nested
            else table.chosen_columns([name], names)[0]
            for name in request.columns
        ]
    except UnknownColumnError as error:
        raise usage_error("--columns", str(error)) from None
    if request.format is RowFormat.parquet:
        return parquet_sink(request, columns, table.name.removesuffix("s"))
    output = output_of(request)
    terminal = output_terminal(request)
    if request.format.is_json:
        return EncodedSink(output, json_lines_of(columns), to_screen=terminal.is_terminal)
    if request.format is RowFormat.csv:
        head, encode = csv_lines_of(columns)
        return EncodedSink(output, encode, head)

    def choose(usual: Sequence[LineColumn[Row]]) -> list[LineColumn[Row]]:
        flat = [column for column in usual if column.title.lower() not in nested]
        return chosen_lines(columns, flat, terminal.is_terminal)

    return LinesSink(output, lines(terminal, len(names), is_live(request), choose))


def _text(get: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a getter of values as JSON text."""
    from ..ui.json_text import encoded_json  # loads slowly

    def text(row: object) -> object:
        value = get(row)
        return None if value is None else encoded_json(value).decode()

    return text


Choose = Callable[[Sequence[LineColumn[Row]]], list[LineColumn[Row]]]
"""default columns of a text table → available columns"""


def chosen_lines(
    columns: Sequence[ArrowColumn], usual: Sequence[LineColumn[Row]], on_terminal: bool
) -> list[LineColumn[Row]]:
    """Return columns of lines: those with a default heading as usual, others by type."""
    # Ranks in the requested order, all within the core: none yields its cells to another one.
    by_name = {column.title.lower(): column for column in usual}
    return [
        (by_name.get(column.name) or _line_column(column, on_terminal))._replace(
            rank=min(rank, CORE_RANK)
        )
        for rank, column in enumerate(columns, 1)
    ]


def _line_column(column: ArrowColumn, on_terminal: bool) -> LineColumn[Any]:
    name, type_, get = column
    show: Callable[[Any], str] = cell_of
    if type_ == "time":
        show = clock if on_terminal else moment
    elif name.endswith("_us"):
        show = duration
    right = type_ in ("int", "time")
    return LineColumn(
        name.upper(), lambda row: show(get(row)), 1, max(len(name), 6), 40, right=right
    )


def cell_of(value: object) -> str:
    """Return any value of a column as printable text."""
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return one_line(" ".join(map(str, value)))
    return one_line(str(value))


def output_of(request: DecodeRequest) -> Output:
    """Return the output of text, JSON, and CSV rows; a JSON array if requested."""
    as_array = request.format is RowFormat.json and request.view is not View.summary
    return rows_output(request.output, as_array, request.follow, True, request.force)


def is_live(request: DecodeRequest) -> bool:
    """Return whether the input is live, so that rows are shown at once."""
    return request.follow or "-" in request.sources


def output_terminal(request: DecodeRequest) -> Terminal:
    """Return the terminal of the output; files have no colour unless requested."""
    return terminal_of_output(request.output, request.colour)


def in_core(moment: Moment | None, request: DecodeRequest) -> bool:
    """Return whether the core compares times with this bound, or there is none.

    It does not know the day of a time of day, and knows only the times of commands, not of rows of
    messages.
    """
    return moment is None or (moment.has_date and request.view is not View.list_messages)


def has_window(request: DecodeRequest) -> bool:
    """Return whether rows are compared with a bound that the core does not know."""
    return not all(in_core(moment, request) for moment in (request.since, request.until))


def encoded_rows_for(
    request: DecodeRequest, decode: Decode, rows: RowSource[Row], form: RowForm
) -> Iterator[EncodedBatch] | None:
    """Return the encoded rows, or None if they are needed as objects."""
    # All of these look at single rows; encoded ones can only be written.
    looked_at = request.sort or request.fail_on or request.watched or has_window(request)
    if form is RowForm.records or looked_at or request.limit is not None:
        return None
    all_at_once = rows.test is None and not is_live(request)
    if rows.log is not None:
        return rows.log() if all_at_once else None
    if rows.encoded is not None:
        return batches_of(rows.encoded()) if all_at_once else None
    return encoded_rows_of(decode, form, request.where, request.zone.name)


def batches_of(rows: Iterable[EncodedRows]) -> Iterator[EncodedBatch]:
    """Yield all encoded rows of a run in batches."""
    for encoded in rows:
        count = sum(encoded.counts)
        yield EncodedBatch(count, encoded if count else None, None)
