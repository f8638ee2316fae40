"""Exchanges as columns of Arrow, most of their values copied from the bytes of their headers.

An exchange of which both headers were read where they stand becomes values where `ExchangeLines`
writes it as a line; any other one becomes a row, whose values are added. Tests hold both ways to
the same values, and the columns to `ExchangeRecord`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from ..conversations.conversation import Direction, Pdu
from ..conversations.handshake import round_trip_of
from ..conversations.scanned_header import SENT, ScannedHeader
from ..expert import ExpertInfo
from ..json_bytes import ABSENT, NOTHING
from ..remoting.code_names import REQUEST_NAMES
from ..remoting.versions import VERSIONS
from ..rows.column_bytes import (
    PER_US,
    ColumnBytes,
    ColumnWriter,
    ListWriter,
    NumberWriter,
    TextWriter,
    writer_of,
)
from ..rows.encoded import Columns, EncodedBatch, parts_by_chunk
from ..rows.outcome import OK
from ..rows.parquet import BATCH_ROWS, exchange_table, message_table, record_batch_of
from ..rows.record import ANSWERED, COLUMNS, ONEWAY, ExchangeRecord
from ..tcp.capture import CAPTURE_SHIFT
from .exchange import SUCCESS, Exchange
from .exchange_lines import PlainExchange, is_plain
from .exchange_row import COUNTED, facts, records_of, settled_by

if TYPE_CHECKING:
    from ..message_rows.message_table import MessageTable

_MOST_MESSAGES: Final = 4 * BATCH_ROWS
"""rows of messages that wait at most, and those of one chunk more"""
_MOST_BYTES: Final = 256 * 1024 * 1024
"""bytes of frames that wait at most: offsets in a column of texts have 31 bits"""
_NUMBER_MASK: Final[i64] = (1 << CAPTURE_SHIFT) - 1
_SUCCESS: Final = SUCCESS.encode()
_ANSWERED: Final = ANSWERED.encode()
_ONEWAY: Final = ONEWAY.encode()
_OK: Final = OK.encode()
_JSON: Final = b"JSON"


@final
class ExchangeColumns:
    """Columns of exchanges that wait to be taken."""

    def __init__(self, captures: list[str], experts: list[ExpertInfo]) -> None:
        """Take the names of the run's captures, and where findings about rows go."""
        self._captures = captures
        self._experts = experts
        self._plain = PlainExchange()
        self._codes: dict[int, bytes] = {}
        self._versions = [name.encode() for name in VERSIONS]
        self.rows = 0
        """exchanges that wait"""
        self.frame_bytes: i64 = 0
        """bytes of their frames, of which all their texts come"""
        columns = {column.name: writer_of(column.type) for column in COLUMNS}
        self._all = list(columns.items())
        self._name_numbers(columns)
        self._name_texts(columns)

    def _name_numbers(self, columns: dict[str, ColumnWriter]) -> None:
        """Give each column of numbers its name here."""

        def number(name: str) -> NumberWriter:
            found = columns[name]
            assert isinstance(found, NumberWriter)
            return found

        self._conversation = number("conversation")
        self._request_packet = number("request_packet")
        self._response_packet = number("response_packet")
        self._request_time = number("request_time")
        self._response_time = number("response_time")
        self._latency_us = number("latency_us")
        self._opaque = number("opaque")
        self._request_code = number("request_code")
        self._response_code = number("response_code")
        self._version = number("version")
        self._queue_id = number("queue_id")
        self._body_bytes = number("body_bytes")
        self._request_bytes = number("request_bytes")
        self._response_bytes = number("response_bytes")
        self._missing_bytes = number("missing_bytes")
        self._message_count = number("message_count")
        self._queue_offset = number("queue_offset")
        self._rtt_us = number("rtt_us")
        self._max_reconsume_times = number("max_reconsume_times")

    def _name_texts(self, columns: dict[str, ColumnWriter]) -> None:
        """Give each column of texts, and of lists of them, its name here."""

        def text(name: str) -> TextWriter:
            found = columns[name]
            assert isinstance(found, TextWriter)
            return found

        def texts(name: str) -> ListWriter:
            found = columns[name]
            assert isinstance(found, ListWriter)
            return found

        self._capture = text("capture")
        self._requester = text("requester")
        self._responder = text("responder")
        self._status = text("status")
        self._request_name = text("request_name")
        self._response_name = text("response_name")
        self._remark = text("remark")
        self._language = text("language")
        self._version_name = text("version_name")
        self._serialize_type = text("serialize_type")
        self._topic = text("topic")
        self._group = text("group")
        self._broker_name = text("broker_name")
        self._unique_key = text("unique_key")
        self._keys = text("keys")
        self._tags = text("tags")
        self._offset_msg_id = text("offset_msg_id")
        self._end = text("end")
        self._outcome_class = text("outcome_class")
        self._expert = texts("expert")
        self._brokers = texts("brokers")
        self._facts = texts("facts")

    def add(self, exchanges: list[Exchange], table: MessageTable | None = None) -> None:
        """Add exchanges; a table, whose rows have a form, takes their messages."""
        for exchange in exchanges:
            for pdu in (exchange.request, exchange.response):
                if pdu is not None:
                    self.frame_bytes += pdu.frame_bytes
            row: ExchangeRecord | None = None
            if not is_plain(exchange) or not self._add_plain(exchange):
                row = self._add_row(exchange)
            if table is not None:
                self._give_messages(exchange, row, table)
        self.rows += len(exchanges)

    def take(self) -> list[ColumnBytes]:
        """Return the columns of the exchanges since the last call, in their order."""
        self.rows = 0
        self.frame_bytes = 0
        return [column.take() for _, column in self._all]

    def _add_row(self, exchange: Exchange) -> ExchangeRecord:
        """Add the values of an exchange's row, and return it."""
        (row,) = records_of([exchange], self._captures, self._experts)
        for name, column in self._all:
            column.add_value(getattr(row, name))
        return row

    def _give_messages(
        self, exchange: Exchange, row: ExchangeRecord | None, table: MessageTable
    ) -> None:
        """Give the messages of an exchange to a table; `row`: its row, where there is one."""
        request, response = exchange.request, exchange.response
        if request is not None:
            capture = self._captures[settled_by(exchange) >> CAPTURE_SHIFT]
            packet = request.packet & _NUMBER_MASK
            if table.took_send(request, response, capture, packet):
                return
        if table.is_of_messages(request, response):
            if row is None:
                (row,) = records_of([exchange], self._captures, self._experts)
            table.rows_of(request, response, row, self._experts)

    def _add_plain(self, exchange: Exchange) -> bool:
        """Add the values of a plain exchange; False, and nothing added, where it is odd."""
        request, response = exchange.request, exchange.response
        assert request is not None
        plain = self._plain
        if not plain.read(request, response):
            return False
        asked, answer = plain.asked, plain.answer
        code = self._codes.get(asked.code) or self._new_code(asked.code)
        if not code:
            return False
        said = facts(request, response)
        capture = self._captures[settled_by(exchange) >> CAPTURE_SHIFT]
        self._add_ends(capture, request.direction)
        self._add_times(request, response)
        self._request_code.add(asked.code)
        self._request_name.add(code)
        self._add_answer(asked, answer)
        self._version.add(asked.version)
        self._version_name.add(self._versions[asked.version])
        self._serialize_type.add(_JSON)
        self._add_message(request, asked)
        self._add_sizes(request, response, asked)
        self._end.add_null()
        self._expert.add([])
        self._max_reconsume_times.add_null()
        self._brokers.add(response.brokers or [] if response is not None else [])
        self._facts.add(said)
        return True

    def _add_ends(self, capture: str, direction: Direction) -> None:
        """Add where the exchange was seen, and between whom."""
        self._capture.add(capture.encode("utf-8", "replace"))
        self._conversation.add(direction.conversation.number)
        self._requester.add(direction.src.encode("utf-8", "replace"))
        self._responder.add(direction.peer.src.encode("utf-8", "replace"))
        rtt: i64 = round_trip_of(direction.conversation)
        if rtt >= 0:
            self._rtt_us.add(rtt // PER_US)
        else:
            self._rtt_us.add_null()

    def _add_times(self, request: Pdu, response: Pdu | None) -> None:
        """Add how the exchange ended and when it was seen."""
        self._request_packet.add(request.packet & _NUMBER_MASK)
        self._request_time.add(request.ts // PER_US)
        self._opaque.add(request.opaque)
        if response is None:
            self._status.add(_ONEWAY)
            self._outcome_class.add(_ONEWAY)
            self._response_packet.add_null()
            self._response_time.add_null()
            self._latency_us.add_null()
        else:
            self._status.add(_ANSWERED)
            self._outcome_class.add(_OK)
            self._response_packet.add(response.packet & _NUMBER_MASK)
            self._response_time.add(response.ts // PER_US)
            self._latency_us.add((response.ts - request.ts) // PER_US)

    def _add_answer(self, asked: ScannedHeader, answer: ScannedHeader | None) -> None:
        """Add what the response is, and the language."""
        remark = asked.remark
        if answer is None:
            self._response_code.add_null()
            self._response_name.add_null()
            self._offset_msg_id.add_null()
        else:
            self._response_code.add(0)
            self._response_name.add(_SUCCESS)
            self._offset_msg_id.add_place(answer.header, answer.msg_id)
            remark = answer.remark or remark
        self._remark.add_value(remark or None)
        self._language.add_value(asked.language or None)

    def _add_message(self, request: Pdu, asked: ScannedHeader) -> None:
        """Add which queue and which message the exchange is about."""
        header = asked.header
        self._topic.add_place(header, asked.topic)
        if request.groups is None or asked.group != ABSENT:
            self._group.add_place(header, asked.group)
        else:
            self._group.add_value(request.groups)
        self._queue_id.add_known(self._plain.queue_id)
        self._queue_offset.add_known(self._plain.queue_offset)
        self._broker_name.add_place(header, asked.broker_name)
        self._unique_key.add_property(header, asked.unique_key)
        self._keys.add_property(header, asked.keys)
        self._tags.add_property(header, asked.tags)

    def _add_sizes(self, request: Pdu, response: Pdu | None, asked: ScannedHeader) -> None:
        """Add how large the exchange is."""
        body: i64 = request.body_length
        missing: i64 = request.missing
        count: i64 = NOTHING
        if response is not None:
            missing += response.missing
            if body == 0:
                body = response.body_length
        if asked.kind == SENT:
            count = 1
            if asked.code == COUNTED:
                count = request.message_count
        elif response is not None:
            count = response.message_count
        self._body_bytes.add(body)
        self._request_bytes.add(request.frame_bytes)
        if response is None:
            self._response_bytes.add_null()
        else:
            self._response_bytes.add(response.frame_bytes)
        self._missing_bytes.add(missing)
        if count >= 0:
            self._message_count.add(count)
        else:
            self._message_count.add_null()

    def _new_code(self, code: int) -> bytes:
        """Return the name of a request's code; empty where it has none."""
        name = REQUEST_NAMES.get(code)
        if name is None:
            return b""
        self._codes[code] = name.encode()
        return self._codes[code]


def columns_of(
    captures: list[str],
    chunks: Iterator[list[Exchange]],
    add_experts: Callable[[list[ExpertInfo]], None],
) -> Iterator[Columns]:
    """Yield the rows of exchanges as columns, some chunks at once; arguments of
    `exchange_lines.lines_of`.

    Raise MissingLibraryError where pyarrow is not installed.
    """
    found: list[ExpertInfo] = []
    counts: list[int] = []
    columns = ExchangeColumns(captures, found)
    schema = exchange_table().schema
    for batch in chunks:
        columns.add(batch)
        counts.append(len(batch))
        if found:
            add_experts(found)
            found.clear()
        if columns.rows >= BATCH_ROWS or columns.frame_bytes >= _MOST_BYTES:
            yield Columns(record_batch_of(columns.take(), schema), counts)
            counts = []
    yield Columns(record_batch_of(columns.take(), schema), counts)


def log_of(
    captures: list[str],
    chunks: Iterator[list[Exchange]],
    add_experts: Callable[[list[ExpertInfo]], None],
    table: MessageTable | None,
) -> Iterator[EncodedBatch]:
    """Yield the rows of exchanges, and those of their messages from `table` where there is one, as
    columns, some chunks at once, and behind each chunk nothing; the rest is as in `columns_of`.
    """
    found: list[ExpertInfo] = []
    counts: list[int] = []
    message_counts: list[int] = []
    columns = ExchangeColumns(captures, found)
    messages = None if table is None else table.as_columns()
    schema, message_schema = exchange_table().schema, message_table().schema
    is_over = False
    while not is_over:
        batch = next(chunks, None)
        is_over = batch is None
        if batch is not None:
            before = 0 if messages is None else messages.waiting
            columns.add(batch, table)
            counts.append(len(batch))
            message_counts.append(0 if messages is None else messages.waiting - before)
            if found:
                add_experts(found)
                found.clear()
            yield EncodedBatch(len(batch), None, None)  # what else the chunk gave is taken now
            is_full = columns.rows >= BATCH_ROWS or columns.frame_bytes >= _MOST_BYTES
            if messages is not None:
                is_full = is_full or messages.is_full or messages.waiting >= _MOST_MESSAGES
            if not is_full:
                continue
        rows = Columns(record_batch_of(columns.take(), schema), counts)
        taken = [] if messages is None else messages.take()
        parts = [record_batch_of(part, message_schema) for part in taken]
        given = parts_by_chunk(parts, message_counts)
        yield EncodedBatch(0, rows, given[0] if given else None)
        for part in given[1:]:
            yield EncodedBatch(0, Columns(rows.data.slice(0, 0), [0]), part)
        counts, message_counts = [], []
