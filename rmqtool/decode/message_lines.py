"""One line per observed message: time, message, outcome, client, and server."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from dissectors.broker_store.store_decode import StoreDecode
from dissectors.decode.pipeline import Decode
from dissectors.rows.encoded import RowForm
from dissectors.rows.message_record import (
    COMMITTED,
    DEAD,
    DELIVERED,
    MESSAGE_COLUMNS,
    REFUSED,
    RETURNED,
    ROLLED_BACK,
    SENT,
    STORED,
    MessageRecord,
)
from dissectors.rows.tables import csv_lines_of, struct_encoder

from ..api.tables.messages import MESSAGES
from ..ui.columns import LineColumn, LineTable
from ..ui.common_options import RowFormat
from ..ui.console import Style, Terminal, one_line
from ..ui.figures import duration
from ..ui.remark import cause_of
from .exchange_lines import cyan, dim, line_table, number_text, with_origin
from .options import DecodeRequest
from .row_run import (
    Choose,
    RowSource,
    chosen_sink,
    is_live,
    output_of,
    output_terminal,
    parquet_sink,
    rows_of_table,
)
from .sinks import EncodedSink, LinesSink, Sink

_TYPES = [(column.name, column.type) for column in MESSAGE_COLUMNS]
_STYLES = {
    STORED: Style.GREEN,
    DELIVERED: Style.GREEN,
    COMMITTED: Style.GREEN,
    SENT: Style.YELLOW,
    RETURNED: Style.YELLOW,
    ROLLED_BACK: Style.YELLOW,
    REFUSED: Style.RED,
    DEAD: Style.RED,
}


def listed_messages(request: DecodeRequest, decode: Decode) -> RowSource[MessageRecord]:
    """Return messages that become lines, JSON, CSV or Parquet."""

    plain = request.format.is_json and not request.body_limit
    encoded = decode.message_lines if plain and not request.columns else None
    form = RowForm.records if encoded is None else RowForm.jsonl
    rows = rows_of_table(MESSAGES, request, decode, lambda: _sink(request, decode.sources, form))
    return rows._replace(encoded=encoded)


def stored_messages(request: DecodeRequest, store: StoreDecode) -> RowSource[MessageRecord]:
    """Return the messages of a broker's store, in the same forms."""
    names = store.sources
    rows = rows_of_table(MESSAGES, request, store, lambda: _sink(request, names, RowForm.records))
    return rows._replace(batches=store.message_rows)


def _sink(request: DecodeRequest, names: Sequence[str], form: RowForm) -> Sink[MessageRecord]:
    if request.columns:
        return chosen_sink(request, MESSAGES, names, _lines)
    if request.format is RowFormat.parquet:
        return parquet_sink(request, MESSAGES.arrow_columns(), "message")
    output = output_of(request)
    terminal = output_terminal(request)
    if request.format.is_json:
        encode = struct_encoder(MessageRecord, _TYPES)
        return EncodedSink(output, encode, to_screen=terminal.is_terminal, form=form)
    if request.format is RowFormat.csv:
        head, encode = csv_lines_of(MESSAGES.arrow_columns())
        return EncodedSink(output, encode, head)
    return LinesSink(output, _lines(terminal, len(names), is_live(request)))


def _id(row: MessageRecord) -> str:
    if row.unique_key or row.offset_msg_id:
        return one_line(row.unique_key or row.offset_msg_id)
    # A committed offset is about all messages before it.
    return f"before {row.queue_offset}" if row.covers == "before" else "-"


def _group(row: MessageRecord) -> str:
    return one_line(row.consumer_group or row.producer_group) or "-"


def _client(row: MessageRecord) -> str:
    return one_line(row.client_id) or row.client_address


def _broker(row: MessageRecord) -> str:
    return one_line(row.broker_name) or row.server_address


def _note(row: MessageRecord) -> str:
    parts = []
    if row.crc_ok is False:
        parts.append("[CRC mismatch]")
    if row.original_topic and row.original_topic != row.topic:
        parts.append(f"of {one_line(row.original_topic)}")
    if row.reconsume_times:
        parts.append(f"returned {row.reconsume_times}×")
    if row.event == SENT and row.end is not None:
        parts.append(f"no response, connection {row.end}")
    if row.event == REFUSED:
        parts.append(f"{one_line(row.response_name)} {cause_of(row.remark or '')}".strip())
    return " ".join(parts)


def _event_style(row: MessageRecord) -> str:
    return _STYLES.get(row.event, "")


_time, _capture = attrgetter("time"), attrgetter("capture")


def message_columns(terminal: Terminal, captures: int) -> list[LineColumn[MessageRecord]]:
    """Return the columns of messages; `captures` is how many are read."""
    columns: list[LineColumn[MessageRecord]] = [
        LineColumn("PACKET", lambda r: number_text(r.packet), 1, 6, 9, True, dim),
        LineColumn("EVENT", lambda r: r.event, 2, 12, 12, style=_event_style),
        LineColumn("MESSAGE", _id, 3, 32, 56, keep_end=True),
        LineColumn("TOPIC", lambda r: one_line(r.topic) or "-", 4, 10, 32, style=cyan),
        LineColumn("QUEUE", lambda r: number_text(r.queue_id), 7, 5, 5, True),
        LineColumn("OFFSET", lambda r: number_text(r.queue_offset), 6, 6, 12, True),
        LineColumn("GROUP", _group, 5, 12, 36),
        LineColumn("CLIENT", _client, 8, 15, 47, style=dim, keep_end=True),
        LineColumn("BROKER", _broker, 9, 8, 47, keep_end=True),
        LineColumn("KEYS", lambda r: one_line(r.keys) or "-", 10, 6, 24),
        LineColumn("LATENCY", lambda r: duration(r.latency_us), 12, 7, 11, True),
        LineColumn("NOTE", _note, 11, 12, 1000, style=_event_style, wraps=True),
    ]
    return with_origin(columns, terminal, captures, _time, _capture)


def _lines(
    terminal: Terminal, captures: int, live: bool, choose: Choose[MessageRecord] = list
) -> LineTable[MessageRecord]:
    """Return the table; `live`: rows come slowly, so the first is shown at once.

    `choose` picks its columns.
    """
    columns = choose(message_columns(terminal, captures))
    return line_table(columns, terminal, captures, live, _time, _capture)
