"""One line per exchange, with columns in the order in which operators look.

Time, latency, request, outcome, topic, broker; then client, group, and the rest, within the width
of the terminal. On a terminal a change of date or capture is a separate line; elsewhere they are
columns, because every line must stand alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeVar

from dissectors.rows.outcome import ALARMING, LONG_POLLS, OK, is_notable
from dissectors.rows.record import ANSWERED, ORPHAN, ExchangeRecord

from ..api.tables.exchanges import time_of_exchange
from ..ui.columns import LineColumn, LineTable
from ..ui.console import Style, Terminal, one_line
from ..ui.figures import clock, day, duration, moment, zone_name
from ..ui.remark import cause_of

SLOW_US = 1_000_000
"""Latency from which it is highlighted, except for requests that wait on purpose."""
SAMPLE = 500
"""Rows that determine the column widths."""
_NO_TEXT = "-"
Row = TypeVar("Row")


def _packet(row: ExchangeRecord) -> str:
    return str(row.request_packet if row.request_packet is not None else row.response_packet)


def _request(row: ExchangeRecord) -> str:
    return one_line(row.request_name) or "?"


def _outcome(row: ExchangeRecord) -> str:
    if row.status == ANSWERED:
        return one_line(row.response_name)
    if row.status == ORPHAN:
        return f"{ORPHAN} {one_line(row.response_name)}"
    return row.status


def _note(row: ExchangeRecord) -> str:
    parts = [f"[{' '.join(row.findings)}]"] if row.findings else []
    if row.missing_bytes:
        parts.append(f"[{row.missing_bytes} bytes missing]")
    if row.remark and (row.status != ANSWERED or is_notable(row.response_name)):
        parts.append(cause_of(row.remark))
    return " ".join(parts)


def _outcome_style(row: ExchangeRecord) -> str:
    if row.outcome_class in ALARMING:
        return Style.RED
    return Style.GREEN if row.outcome_class == OK else Style.DIM


def _latency_style(row: ExchangeRecord) -> str:
    slow = row.latency_us is not None and row.latency_us >= SLOW_US
    return Style.YELLOW if slow and row.request_name not in LONG_POLLS else ""


def dim(_: object) -> str:
    """Return the style of a column of minor interest."""
    return Style.DIM


def cyan(_: object) -> str:
    """Return the style of topics."""
    return Style.CYAN


def number_text(value: int | None) -> str:
    """Return a number as a cell."""
    return _NO_TEXT if value is None else str(value)


_capture = attrgetter("capture")


def exchange_columns(terminal: Terminal, captures: int) -> list[LineColumn[ExchangeRecord]]:
    """Return the columns of exchanges; `captures` is how many are read."""
    # Heading, cell, rank, least and most width: columns of the highest ranks are dropped first.
    columns: list[LineColumn[ExchangeRecord]] = [
        LineColumn("PACKET", _packet, 7, 6, 9, right=True, style=dim),
        LineColumn("LATENCY", lambda r: duration(r.latency_us), 2, 7, 11, True, _latency_style),
        LineColumn("REQUEST", _request, 3, 12, 32),
        LineColumn("OUTCOME", _outcome, 4, 10, 28, style=_outcome_style),
        LineColumn("TOPIC", lambda r: one_line(r.topic) or _NO_TEXT, 6, 10, 32, style=cyan),
        LineColumn("CLIENT", lambda r: r.client_address, 5, 15, 47, style=dim, keep_end=True),
        LineColumn("SERVER", lambda r: r.server_address, 5, 15, 47, keep_end=True),
        LineColumn("GROUP", lambda r: one_line(r.group) or _NO_TEXT, 10, 12, 36),
        LineColumn("QUEUE", lambda r: number_text(r.queue_id), 11, 5, 5, True),
        LineColumn("BODY", lambda r: str(r.body_bytes), 12, 5, 8, True, dim),
        LineColumn("NOTE", _note, 8, 15, 1000, style=_outcome_style, wraps=True),
    ]
    return with_origin(columns, terminal, captures, time_of_exchange, _capture)


def exchange_lines(
    terminal: Terminal,
    captures: int,
    live: bool,
    choose: Callable[[list[LineColumn[ExchangeRecord]]], list[LineColumn[ExchangeRecord]]] = list,
) -> LineTable[ExchangeRecord]:
    """Return the table of exchanges; `live`: rows come slowly, so the first is shown at once.

    `choose` picks its columns.
    """
    columns = choose(exchange_columns(terminal, captures))
    return line_table(columns, terminal, captures, live, time_of_exchange, _capture)


def with_origin(
    columns: Sequence[LineColumn[Row]],
    terminal: Terminal,
    captures: int,
    time: Callable[[Row], int | None],
    capture: Callable[[Row], str],
) -> list[LineColumn[Row]]:
    """Return the columns with TIME behind the first of them, and CAPTURE in front if needed.

    On a terminal, `line_table` shows date and capture on lines of their own.
    """
    packet, *others = columns
    if terminal.is_terminal:
        timed = LineColumn[Row]("TIME", lambda row: clock(time(row)), 1, 12, 12, style=dim)
        return [packet, timed, *others]
    timed = LineColumn[Row]("TIME", lambda row: moment(time(row)), 1, 27, 32, style=dim)
    if captures < 2:
        return [packet, timed, *others]
    named = LineColumn[Row]("CAPTURE", lambda row: one_line(capture(row)), 0, 7, 60)
    return [named, packet, timed, *others]


def line_table(
    columns: Sequence[LineColumn[Row]],
    terminal: Terminal,
    captures: int,
    live: bool,
    time: Callable[[Row], int | None],
    capture: Callable[[Row], str],
) -> LineTable[Row]:
    """Return a table of columns that `with_origin` returned."""

    def section(row: Row) -> str:
        at = time(row)
        date = "" if at is None else f"{day(at)} {zone_name()}"
        name = f"  {one_line(capture(row))}" if captures > 1 else ""
        return f"-- {date}{name} --"

    sections = section if terminal.is_terminal else None
    return LineTable(columns, terminal, 1 if live else SAMPLE, sections)
