"""Messages as columns of Arrow, most of their values copied from the bytes of records and headers.

The values are those that `MessageLines` writes; what is odd or not plain becomes a row, whose
values are added. Tests hold both ways to the same values, and the columns to `MessageRecord`. What
waits is bounded: offsets in a column of texts have 31 bits.
"""

from __future__ import annotations

import zlib
from typing import Final, final

from librt.strings import BytesWriter, read_i32_be, read_i64_be
from msgspec.structs import astuple
from mypy_extensions import i64

from ..json_bytes import put_hex
from ..remoting.messages.record_layout import CRC_MASK, FIELD_ENDS, FIELD_STARTS
from ..rows.column_bytes import (
    PER_US,
    ColumnBytes,
    ColumnWriter,
    FlagWriter,
    NumberWriter,
    TextWriter,
    writer_of,
)
from ..rows.message_record import MESSAGE_COLUMNS, STORED, MessageRecord
from .message_form import MessageForm
from .plain_record import PlainRecord
from .plain_send import SUCCESS, PlainSend
from .seen_exchange import LAST_MS, MILLI, Facts, SeenExchange, row_of
from .whole_records import facts_at

_CRC: Final[i64] = FIELD_STARTS["body_crc"]
_QUEUE_OFFSET: Final[i64] = FIELD_STARTS["queue_offset"]
_OFFSET: Final[i64] = FIELD_STARTS["physical_offset"]
_BORN: Final[i64] = FIELD_STARTS["born_timestamp"]
_STORED_AT: Final[i64] = FIELD_STARTS["store_timestamp"]
_STORE_HOST: Final[i64] = FIELD_STARTS["store_address"]
_RECONSUMED: Final[i64] = FIELD_STARTS["reconsume_times"]
_BODY: Final[i64] = FIELD_ENDS[0][-1]
_MASK: Final[i64] = CRC_MASK
_LAST: Final[i64] = LAST_MS
_US_A_MS: Final[i64] = MILLI // PER_US
_STORED: Final = STORED.encode()
_SUCCESS: Final = SUCCESS.encode()
_SHARED: Final = len(MESSAGE_COLUMNS) - len(Facts._fields)
"""columns of what the messages of one exchange share, `place` among them"""
_PLACE: Final = [column.name for column in MESSAGE_COLUMNS].index("place")
_WIDEST: Final = 4
"""bytes of a character at most"""
_MOST_BYTES: Final = 64 * 1024 * 1024
"""bytes of texts after which columns are ended"""
_LEAST: Final = 512
"""bytes of texts of a send that are not in its headers, about"""


@final
class MessageColumns(MessageForm):
    """Columns of messages that wait to be taken."""

    def __init__(self) -> None:
        self._rows: i64 = 0
        self._taken: i64 = 0
        self._bytes: i64 = 0
        self._done: list[list[ColumnBytes]] = []
        self._record = PlainRecord()
        self._id = BytesWriter()
        columns = {column.name: writer_of(column.type) for column in MESSAGE_COLUMNS}
        self._all = list(columns.values())
        self._name_numbers(columns)
        self._name_texts(columns)
        crc_ok = columns["crc_ok"]
        assert isinstance(crc_ok, FlagWriter)
        self._crc_ok = crc_ok

    def _name_numbers(self, columns: dict[str, ColumnWriter]) -> None:
        """Give each column of numbers its name here."""

        def number(name: str) -> NumberWriter:
            found = columns[name]
            assert isinstance(found, NumberWriter)
            return found

        self._conversation = number("conversation")
        self._packet = number("packet")
        self._time = number("time")
        self._request_packet = number("request_packet")
        self._place = number("place")
        self._response_code = number("response_code")
        self._latency_us = number("latency_us")
        self._queue_id = number("queue_id")
        self._queue_offset = number("queue_offset")
        self._commit_log_offset = number("commit_log_offset")
        self._born_time = number("born_time")
        self._store_time = number("store_time")
        self._deliver_time = number("deliver_time")
        self._reconsume_times = number("reconsume_times")
        self._max_reconsume_times = number("max_reconsume_times")
        self._delay_level = number("delay_level")
        self._body_bytes = number("body_bytes")
        self._body_crc = number("body_crc")

    def _name_texts(self, columns: dict[str, ColumnWriter]) -> None:
        """Give each column of texts its name here."""

        def text(name: str) -> TextWriter:
            found = columns[name]
            assert isinstance(found, TextWriter)
            return found

        self._capture = text("capture")
        self._event = text("event")
        self._request_name = text("request_name")
        self._response_name = text("response_name")
        self._remark = text("remark")
        self._end = text("end")
        self._client_address = text("client_address")
        self._client_id = text("client_id")
        self._broker_address = text("broker_address")
        self._broker_name = text("broker_name")
        self._topic = text("topic")
        self._original_topic = text("original_topic")
        self._covers = text("covers")
        self._producer_group = text("producer_group")
        self._consumer_group = text("consumer_group")
        self._unique_key = text("unique_key")
        self._offset_msg_id = text("offset_msg_id")
        self._keys = text("keys")
        self._tags = text("tags")
        self._transaction_id = text("transaction_id")
        self._body_form = text("body_form")
        self._body = text("body")

    @property
    def waiting(self) -> int:
        return int(self._rows)

    @property
    def is_full(self) -> bool:
        """Whether it is time to take what waits."""
        return bool(self._done) or self._bytes >= _MOST_BYTES

    def take(self) -> list[list[ColumnBytes]]:
        """Return the columns of the rows since the last call, in parts of a bounded size."""
        self._end_part()
        taken, self._done = self._done, []
        self._rows = self._taken = 0
        return taken

    def _end_part(self) -> None:
        """End the columns, where they have rows."""
        if self._rows > self._taken:
            self._done.append([column.take() for column in self._all])
            self._taken = self._rows
        self._bytes = 0

    def _note(self, rows: i64, size: i64) -> None:
        """Note so many rows, with so many bytes of texts, that were added."""
        self._rows += rows
        self._bytes += size
        if self._bytes >= _MOST_BYTES:
            self._end_part()

    def add(self, rows: list[MessageRecord]) -> None:
        for row in rows:
            values = astuple(row)
            for at, column in enumerate(self._all):
                column.add_value(values[at])
            self._note(1, _size_of(values))

    def add_whole(self, seen: SeenExchange, event: str, body: bytes, group: str | None) -> bool:
        record = self._record
        whole = record.whole
        at: i64 = 0
        end: i64 = len(body)
        count: i64 = 0
        while at < end:
            if not whole.find(body, at):
                return False
            at = whole.stop
            count += 1
        shared = astuple(row_of(seen, event, 0, Facts(consumer_group=group)))
        size: i64 = end + count * _size_of(shared)
        if size >= _MOST_BYTES:
            return False
        for place in range(_SHARED):
            if place != _PLACE:
                self._all[place].add_times(shared[place], count)
        self._consumer_group.add_times(group, count)
        record.begin(group)
        at = 0
        number: i64 = 0
        while at < end:
            self._place.add(number)
            if record.find(body, at) and record.is_plain:
                self._add_values(body, at)
            else:
                self._add_facts(facts_at(body, whole, group))
            number += 1
            at = whole.stop
        self._note(count, size)
        return True

    def _add_facts(self, facts: Facts) -> None:
        """Add what a record says that is not plain."""
        for at, column in enumerate(self._all[_SHARED:]):
            if column is not self._consumer_group:
                column.add_value(facts[at])

    def _add_values(self, body: bytes, at: i64) -> None:
        """Add what a plain record says."""
        record = self._record
        self._topic.add_value(record.topic)
        self._original_topic.add_value(record.original_topic)
        self._queue_id.add(record.queue_id)
        self._queue_offset.add(read_i64_be(body, at + _QUEUE_OFFSET))
        self._covers.add_null()
        _add_range(self._producer_group, body, record.producers, record.producers_stop)
        _add_range(self._unique_key, body, record.unique, record.unique_stop)
        put_hex(self._id, body, at + _STORE_HOST)
        put_hex(self._id, body, at + _OFFSET)
        self._offset_msg_id.add(self._id.getvalue())
        self._id.truncate(0)
        self._commit_log_offset.add(read_i64_be(body, at + _OFFSET))
        _add_range(self._keys, body, record.keys, record.keys_stop)
        _add_range(self._tags, body, record.tags, record.tags_stop)
        _add_range(self._transaction_id, body, record.transaction, record.transaction_stop)
        _add_time(self._born_time, read_i64_be(body, at + _BORN))
        _add_time(self._store_time, read_i64_be(body, at + _STORED_AT))
        self._deliver_time.add_null()
        self._reconsume_times.add(i64(read_i32_be(body, at + _RECONSUMED)))
        self._max_reconsume_times.add_null()
        self._delay_level.add_null()
        length: i64 = record.whole.body_length
        self._body_bytes.add(length)
        crc: i64 = i64(read_i32_be(body, at + _CRC))
        self._body_crc.add(crc)
        if crc == 0 and length > 0:
            self._crc_ok.add_null()
        else:
            content = body[at + _BODY : at + _BODY + length]
            self._crc_ok.add(i64(zlib.crc32(content)) & _MASK == crc)
        self._body_form.add_null()
        self._body.add_null()

    def add_send(self, send: PlainSend) -> bool:
        request, response = send.request, send.response
        self._capture.add(send.capture.encode("utf-8", "replace"))
        self._conversation.add(request.conversation)
        self._packet.add(send.packet)
        self._time.add(request.ts // PER_US)
        self._request_packet.add(send.packet)
        self._place.add(0)
        self._event.add(_STORED)
        self._request_name.add_value(send.name)
        self._response_code.add(0)
        self._response_name.add(_SUCCESS)
        self._remark.add_value(send.answer.remark or send.asked.remark or None)
        self._latency_us.add((response.ts - request.ts) // PER_US)
        self._end.add_null()
        self._client_address.add_value(request.direction.src)
        self._client_id.add_value(send.client)
        self._broker_address.add_value(request.direction.peer.src)
        self._add_message(send)
        self._add_sizes(send)
        headers: i64 = request.header_length + response.header_length
        self._note(1, headers + _LEAST)
        return True

    def _add_message(self, send: PlainSend) -> None:
        """Add where the message of a send is, and which it is."""
        asked, answer = send.asked, send.answer
        header = asked.header
        self._broker_name.add_place(header, asked.broker_name)
        self._topic.add_place(header, asked.topic)
        self._original_topic.add_place(header, asked.topic)
        self._queue_id.add_known(send.queue_id)
        self._queue_offset.add_known(send.queue_offset)
        self._covers.add_null()
        self._producer_group.add_place(header, asked.group)
        self._consumer_group.add_null()
        self._unique_key.add_property(header, asked.unique_key)
        self._offset_msg_id.add_place(answer.header, answer.msg_id)
        self._commit_log_offset.add_known(send.commit_log_offset)
        self._keys.add_property(header, asked.keys)
        self._tags.add_property(header, asked.tags)

    def _add_sizes(self, send: PlainSend) -> None:
        """Add what comes behind the properties of a send."""
        self._transaction_id.add_null()
        _add_time(self._born_time, send.born_ms)
        self._store_time.add_null()
        self._deliver_time.add_null()
        self._reconsume_times.add_known(send.reconsume_times)
        self._max_reconsume_times.add_known(send.max_reconsume_times)
        self._delay_level.add_null()
        self._body_bytes.add(send.request.body_length)
        self._body_crc.add_null()
        self._crc_ok.add_null()
        self._body_form.add_null()
        self._body.add_null()


def _size_of(values: tuple[object, ...]) -> int:
    """Return about how many bytes the texts among some values have."""
    size = 0
    for value in values:
        if isinstance(value, str):
            size += len(value) * _WIDEST
    return size


def _add_range(column: TextWriter, body: bytes, start: i64, stop: i64) -> None:
    """Add a text of a record; what is no UTF-8 is replaced."""
    if start == stop:
        column.add_null()
        return
    at: i64 = start
    while at < stop:
        if i64(body[at]) >= 0x80:
            column.add(body[start:stop].decode("utf-8", "replace").encode())
            return
        at += 1
    column.add_range(body, start, stop)


def _add_time(column: NumberWriter, ms: i64) -> None:
    """Add a time, none for what no clock shows."""
    if ms <= 0 or ms > _LAST:
        column.add_null()
    else:
        column.add(ms * _US_A_MS)
