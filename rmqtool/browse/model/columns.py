"""Columns of a list: those of the command line, and any other column by name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from dissectors.rows.column import Column
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from dissectors.rows.message_record import MESSAGE_COLUMNS
from dissectors.rows.outcome import ALARMING, is_notable
from dissectors.rows.record import COLUMNS

from ...api.tables.exchanges import time_of_exchange
from ...api.tables.named import CONNECTIONS, EXCHANGES, MESSAGES, table_named
from ...api.tables.table import ArrowColumn, UnknownColumnError
from ...decode.exchange_lines import exchange_columns
from ...decode.message_lines import message_columns
from ...decode.row_run import chosen_lines
from ...ui.columns import LineColumn
from ...ui.console import Style, Terminal, one_line
from ...ui.figures import clock, duration, size
from .listing import TimelineOf

SCREEN: Final = Terminal(True, 200, True)
"""the terminal for which cells are made; its width is read later"""
_FIELDS: Final = {
    EXCHANGES: {
        "LATENCY": "latency_us",
        "REQUEST": "request_name",
        "QUEUE": "queue_id",
        "CLIENT": "client_address",
        "SERVER": "server_address",
        "BODY": "body_bytes",
        "NOTE": "remark",
    },
    MESSAGES: {
        "MESSAGE": "unique_key",
        "QUEUE": "queue_id",
        "OFFSET": "queue_offset",
        "CLIENT": "client_address",
        "LATENCY": "latency_us",
        "NOTE": "remark",
    },
    CONNECTIONS: {
        "TIME": "start_time",
        "NUMBER": "conversation",
        "CLIENT": "client_address",
        "SERVER": "server_address",
        "RTT": "rtt_us",
        "SENT": "client_bytes",
        "GOT": "server_bytes",
        "REPEATED": "client_retransmissions",
    },
}
"""table → column heading → filter field, if that is another name"""
_SORTED: Final = {
    EXCHANGES: {"time": "request_time", "latency": "latency_us", "size": "body_bytes"},
    MESSAGES: {"time": "time", "latency": "latency_us", "size": "body_bytes"},
    CONNECTIONS: {"time": "start_time", "latency": "rtt_us", "size": "client_bytes"},
}
"""table → sort order → column"""
_BAD_ENDS: Final = ("reset", "refused", "no_response")
COLUMNS_OF: Final[dict[str, Sequence[Column]]] = {
    EXCHANGES: COLUMNS,
    MESSAGES: MESSAGE_COLUMNS,
    CONNECTIONS: CONVERSATION_COLUMNS,
}


def line_columns(table: str, chosen: Sequence[str] = ()) -> list[LineColumn[Any]]:
    """Return the columns of a list; `chosen`: only these, by heading or column name."""
    usual = _usual(table)
    heads = {column.title.lower() for column in usual}
    columns = []
    for name in map(str.lower, chosen):  # settings may have columns of another version
        if name in heads:
            columns.append(ArrowColumn(name, "string", str))
        else:
            with suppress(UnknownColumnError):
                columns += table_named(table).chosen_columns([name])
    return chosen_lines(columns, usual, True) or usual


def heads_of(table: str) -> list[str]:
    """Return the names of all available columns, defaults first."""
    return [c.title for c in _usual(table)] + [column.name for column in COLUMNS_OF[table]]


def field_of(table: str, title: str) -> str:
    """Return the filter field of a column."""
    return _FIELDS[table].get(title, title.lower())


def sort_column(table: str, what: str) -> str:
    """Return the sort column of `time`, `latency`, `size`, or a heading."""
    column = _SORTED[table].get(what) or field_of(table, what)
    # Filters have these aliases, rows do not.
    return {"outcome": "response_name", "packet": "request_packet"}.get(column, column)


def _usual(table: str) -> list[LineColumn[Any]]:
    if table == EXCHANGES:
        return list(exchange_columns(SCREEN, 1))
    if table == MESSAGES:
        return list(message_columns(SCREEN, 1))
    return list(_connection_columns())


def _end_style(row: ConversationRecord) -> str:
    return Style.RED if row.end in _BAD_ENDS else ""


def _connection_columns() -> list[LineColumn[ConversationRecord]]:
    return [
        LineColumn("TIME", lambda r: clock(r.start_time), 1, 12, 12, style=lambda _: Style.DIM),
        LineColumn("NUMBER", lambda r: str(r.conversation), 2, 6, 7, True),
        LineColumn(
            "PROTOCOL", lambda r: one_line(r.protocol), 3, 9, 14, style=lambda _: Style.CYAN
        ),
        LineColumn("CLIENT", lambda r: r.client_address, 4, 15, 47, keep_end=True),
        LineColumn("SERVER", lambda r: r.server_address, 5, 15, 47, keep_end=True),
        LineColumn("END", lambda r: r.end, 6, 6, 9, style=_end_style),
        LineColumn("RTT", lambda r: duration(r.rtt_us), 8, 7, 11, True),
        LineColumn("COMMANDS", lambda r: str(r.commands), 7, 8, 9, True),
        LineColumn("SENT", lambda r: size(r.client_bytes), 9, 7, 9, True),
        LineColumn("GOT", lambda r: size(r.server_bytes), 10, 7, 9, True),
        LineColumn(
            "REPEATED",
            lambda r: str(r.client_retransmissions + r.server_retransmissions),
            11, 8, 8, True,
        ),
        LineColumn("GAPS", lambda r: str(r.gaps), 12, 4, 6, True),
    ]  # fmt: skip


TIMELINES: Final = {
    EXCHANGES: TimelineOf(
        time_of_exchange, lambda row: row.outcome_class in ALARMING, lambda row: row.latency_us
    ),
    MESSAGES: TimelineOf(
        lambda row: row.time,
        lambda row: is_notable(row.response_name),
        lambda row: row.latency_us,
    ),
    CONNECTIONS: TimelineOf(
        lambda row: row.start_time, lambda row: row.end in _BAD_ENDS, lambda row: row.rtt_us
    ),
}
"""table → what the timeline needs of its rows"""
