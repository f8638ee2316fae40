"""Rows of one kind on their way from the captures to the output, and what all kinds share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from dissectors.decode.pipeline import Decode
from dissectors.processes.choice import encoded_rows_of
from dissectors.rows.encoded import EncodedBatch, EncodedRows, RowForm
from dissectors.rows.tables import csv_lines_of, json_lines_of
from dissectors.times import Moment

from ..api.tables.table import ArrowColumn, Table, UnknownColumnError
from ..ui.columns import CORE_RANK, LineColumn, LineTable
from ..ui.common_options import RowFormat
from ..ui.console import UNLIMITED, Terminal, When, one_line, terminal_of
from ..ui.figures import clock, duration, moment
from ..ui.json_array import rows_output
from ..ui.option_values import usage_error
from ..ui.output import Output
from ..ui.status import CommandError, ExitStatus
from .options import DecodeRequest, View
from .sinks import EncodedSink, LinesSink, ParquetSink, Sink

if TYPE_CHECKING:
    from dissectors.where.fields import FieldSet
    from dissectors.where.filter import Test

Row = TypeVar("Row")


class RowSource(NamedTuple, Generic[Row]):
    """Rows of one kind: where they come from and what can be asked of them."""

    batches: Callable[[], Iterator[Sequence[Row]]]
    """starts to read"""
    test: Test | None
    """the filter; None: all"""
    time: Callable[[Row], int | None]
    """when a row was, for --since and --until"""
    sink: Callable[[], Sink[Row]]
    """opens the output"""
    noun: str
    """what a row is, in the plural"""
    encoded: Callable[[], Iterable[EncodedRows]] | None = None
    """all rows as they are written; None: only as they are"""
    log: Callable[[], Iterator[EncodedBatch]] | None = None
    """the same with the messages of exchanges"""


def rows_of_table(
    table: Table[Row], request: DecodeRequest, decode: Decode, sink: Callable[[], Sink[Row]]
) -> RowSource[Row]:
    """Return the rows of a table with the filter that was asked for; `sink` opens the output."""
    return RowSource(
        lambda: table.batches(decode),
        compiled(request, lambda: table.fields(decode.sources)),
        table.time,
        sink,
        table.name,
    )


def compiled(request: DecodeRequest, fields: Callable[[], FieldSet]) -> Test | None:
    """Return the filter; an error in it becomes a usage error that points at the place."""
    if not request.where.strip():
        return None
    from dissectors.where.filter import WhereError, compile_where

    try:
        return compile_where(request.where, fields(), request.zone)
    except WhereError as error:
        raise CommandError(f"--where: {error.reason}", error.pointed(), ExitStatus.USAGE) from None


def parquet_sink(
    request: DecodeRequest,
    columns: Iterable[ArrowColumn],
    noun: str,
    form: RowForm = RowForm.records,
) -> Sink[Row]:
    """Return what writes rows with these columns as one Parquet file; `noun` is what one is.

    `form`: how it takes the rows of several processes.
    """
    from dissectors.rows.parquet import load_pyarrow

    load_pyarrow()
    if request.output == "-" and sys.stdout.isatty():
        raise usage_error("--format parquet", "is binary; use -o FILE.parquet or -o FOLDER")
    output = Output(request.output, private=True, force=request.force)
    return ParquetSink(output, columns, noun, form)


def chosen_sink(
    request: DecodeRequest,
    table: Table[Row],
    names: Sequence[str],
    lines: Callable[[Terminal, Choose[Row]], LineTable[Row]],
) -> Sink[Row]:
    """Return what writes the columns that were asked for, in any format.

    `names` are the captures, by index; `lines` makes the table for people.
    """
    try:
        columns = table.chosen_columns(request.columns, names)
    except UnknownColumnError as error:
        raise usage_error("--columns", str(error)) from None
    if request.format is RowFormat.parquet:
        return parquet_sink(request, columns, table.name.removesuffix("s"))
    output = output_of(request)
    terminal = output_terminal(request, output)
    if request.format.is_json:
        return EncodedSink(output, json_lines_of(columns), to_screen=terminal.is_terminal)
    if request.format is RowFormat.csv:
        head, encode = csv_lines_of(columns)
        return EncodedSink(output, encode, head)
    return LinesSink(
        output, lines(terminal, lambda usual: chosen_lines(columns, usual, terminal.is_terminal))
    )


Choose = Callable[[Sequence[LineColumn[Row]]], list[LineColumn[Row]]]
"""the usual columns of a table for people → those that it has"""


def chosen_lines(
    columns: Sequence[ArrowColumn], usual: Sequence[LineColumn[Row]], on_terminal: bool
) -> list[LineColumn[Row]]:
    """Return columns as lines show them: those of the same head as usual, others by their type."""
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
    """Return where text and rows of JSON and CSV go; an array of JSON where that is asked for."""
    as_array = request.format is RowFormat.json and request.view is not View.summary
    return rows_output(request.output, as_array, request.follow, True, request.force)


def is_live(request: DecodeRequest) -> bool:
    """Return whether rows come as they happen, so that none should wait for others."""
    return request.follow or "-" in request.sources


def output_terminal(request: DecodeRequest, output: Output) -> Terminal:
    """Return what the output can show; a file shows no colour unless that is asked for."""
    if output.path is None:
        return terminal_of(sys.stdout, request.colour)
    return Terminal(False, UNLIMITED, request.colour is When.always)


def time_of_day(moment: Moment | None) -> Moment | None:
    """Return a time of day; None for a date, which the core filters."""
    return None if moment is None or moment.has_date else moment


def has_times_of_day(request: DecodeRequest) -> bool:
    """Return whether a bound has no date: it is of the day of the first packet."""
    return any(map(time_of_day, (request.since, request.until)))


def encoded_rows_for(
    request: DecodeRequest, decode: Decode, rows: RowSource[Row], form: RowForm
) -> Iterator[EncodedBatch] | None:
    """Return the rows as they are written; None: they are needed as they are."""
    looked_at = request.sort or request.fail_on or request.watched or has_times_of_day(request)
    if form is RowForm.records or looked_at or request.limit is not None:
        return None
    all_at_once = rows.test is None and not is_live(request)
    if rows.log is not None:
        return rows.log() if all_at_once else None
    if rows.encoded is not None:
        return batches_of(rows.encoded()) if all_at_once else None
    return encoded_rows_of(decode, form, request.where, request.zone.name)


def batches_of(rows: Iterable[EncodedRows]) -> Iterator[EncodedBatch]:
    """Give all rows of a run, which are encoded, as batches."""
    for one in rows:
        count = sum(one.counts)
        yield EncodedBatch(count, one if count else None, None)
