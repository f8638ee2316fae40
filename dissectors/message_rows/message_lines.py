"""Messages as lines of JSON: plain ones are written straight from the bytes of records and headers.

What all lines of one body, or of the sends of one client, share is encoded once, and most values
become no object of their own. A body in which anything is odd is left to the makers of rows, and so
are a record and a send that are not plain; tests hold both ways to the same lines. The order of the
bytes is that of `record_layout`, the order of the fields that of `MessageRecord`.
"""

from __future__ import annotations

import zlib
from typing import Final, final

import msgspec
from librt.strings import BytesWriter, read_i32_be, read_i64_be
from mypy_extensions import i64

from ..conversations.conversation import Direction
from ..json_bytes import copy_range, put_hex, put_integer, put_number, put_place, put_property
from ..plain_json import QUOTE
from ..remoting.messages.record_layout import CRC_MASK, FIELD_ENDS, FIELD_STARTS
from ..rows.json_rows import struct_encoder
from ..rows.message_record import MESSAGE_COLUMNS, STORED, MessageRecord
from ..rows.timed_rows import TimeWriter
from .message_form import MessageForm
from .plain_record import PlainRecord
from .plain_send import SUCCESS, PlainSend
from .seen_exchange import LAST_MS, MILLI, Facts, SeenExchange, row_of
from .whole_records import facts_at

_CRC: Final[i64] = FIELD_STARTS["body_crc"]
_QUEUE_OFFSET: Final[i64] = FIELD_STARTS["queue_offset"]
_OFFSET: Final[i64] = FIELD_STARTS["physical_offset"]
_BORN: Final[i64] = FIELD_STARTS["born_timestamp"]
_STORED: Final[i64] = FIELD_STARTS["store_timestamp"]
_STORE_HOST: Final[i64] = FIELD_STARTS["store_address"]
_RECONSUMED: Final[i64] = FIELD_STARTS["reconsume_times"]
_BODY: Final[i64] = FIELD_ENDS[0][-1]
_MASK: Final[i64] = CRC_MASK
_LAST: Final[i64] = LAST_MS
_PER_MS: Final[i64] = MILLI
_NULL: Final = b"null"

_PLACE: Final = b'"place":0,'
_TOPIC: Final = b'"topic":null,'
_ENCODER: Final = msgspec.json.Encoder()
_MOST_ENDS: Final = 4096
"""directions of which it is known how lines begin"""


@final
class _Ends:
    """What the lines of sends in one direction share."""

    __slots__ = ("capture", "client", "conversation", "start", "who")

    def __init__(self, capture: str, direction: Direction, client: str | None) -> None:
        self.capture = capture
        self.client = client
        self.conversation: i64 = direction.conversation.number
        self.start = b'{"capture":%b,"conversation":%d,"packet":' % (
            _ENCODER.encode(capture),
            int(self.conversation),
        )
        """up to the packet"""
        self.who = b',"end":null,"client_address":%b,"client_id":%b,"broker_address":%b' % (
            _ENCODER.encode(direction.src),
            _ENCODER.encode(client),
            _ENCODER.encode(direction.peer.src),
        )
        """behind the latency, up to the broker's address"""


@final
class MessageLines(MessageForm):
    """Lines of messages that wait to be taken."""

    __slots__ = (
        "_born", "_count", "_encode", "_ends", "_group", "_group_text", "_head", "_names", "_out",
        "_place_text", "_queue", "_record", "_rest", "_rows", "_sent", "_stored",
    )  # fmt: skip

    def __init__(self) -> None:
        self._count = 0
        self._out = BytesWriter()
        self._record = PlainRecord()
        columns = [(column.name, column.type) for column in MESSAGE_COLUMNS]
        self._encode = struct_encoder(MessageRecord, columns, kept=False)
        self._rows: list[MessageRecord] = []
        self._head = self._rest = self._group_text = b""
        self._group: str | None = None
        self._place_text = b""
        self._queue: i64 = 0
        self._born, self._stored, self._sent = TimeWriter(), TimeWriter(), TimeWriter()
        self._ends: dict[bytes, _Ends] = {}
        self._names: dict[str, bytes] = {}

    @property
    def waiting(self) -> int:
        return self._count + len(self._rows)

    def take(self) -> tuple[int, bytes]:
        """Return how many lines there are since the last call, and the lines."""
        self._write_rows()
        taken = self._count, self._out.getvalue()
        self._out.truncate(0)
        self._count = 0
        return taken

    def written(self) -> int:
        """Return how many bytes the lines have since the last `take`."""
        self._write_rows()
        return len(self._out)

    def add(self, rows: list[MessageRecord]) -> None:
        self._rows.extend(rows)

    def _write_rows(self) -> None:
        """Write the rows that wait: together they take less than one by one."""
        if self._rows:
            self._out.write(self._encode(self._rows))
            self._count += len(self._rows)
            self._rows = []

    def add_whole(self, seen: SeenExchange, event: str, body: bytes, group: str | None) -> bool:
        self._write_rows()
        shared = self._encode([row_of(seen, event, 0, Facts())])
        place_at = shared.index(_PLACE)
        self._head = shared[: place_at + len(_PLACE) - 2]
        self._rest = shared[place_at + len(_PLACE) - 1 : shared.index(_TOPIC, place_at)]
        self._group = group
        self._group_text = _ENCODER.encode(group)
        self._record.begin(group)
        start = len(self._out)
        place: i64 = 0
        at: i64 = 0
        end: i64 = len(body)
        try:
            while at < end:
                size: i64 = self._add_record(seen, event, body, at, place)
                if size == 0:
                    break
                at += size
                place += 1
        finally:
            if at < end:
                self._out.truncate(start)
        if at < end:
            return False
        self._count += int(place)
        return True

    def _add_record(self, seen: SeenExchange, event: str, body: bytes, at: i64, place: i64) -> i64:
        """Add the line of a record; return the record's size, 0 for an odd one."""
        record, out = self._record, self._out
        if not record.find(body, at):
            return 0
        whole = record.whole
        if not record.is_plain:
            facts = facts_at(body, whole, self._group)
            out.write(self._encode([row_of(seen, event, int(place), facts)]))
            return whole.stop - at
        if record.queue != self._queue:
            self._queue = record.queue
            self._place_text = b'"topic":%b,"original_topic":%b,"queue_id":%d,"queue_offset":' % (
                _ENCODER.encode(record.topic),
                _ENCODER.encode(record.original_topic),
                int(record.queue_id),
            )
        out.write(self._head)
        put_number(out, place)
        out.write(self._rest)
        out.write(self._place_text)
        self._add_values(body, at, whole.body_length)
        return whole.stop - at

    def _add_values(self, body: bytes, at: i64, length: i64) -> None:
        """Add what comes behind the queue."""
        out, record = self._out, self._record
        put_integer(out, read_i64_be(body, at + _QUEUE_OFFSET))
        out.write(b',"covers":null,"producer_group":')
        self._add_text(body, record.producers, record.producers_stop)
        out.write(b',"consumer_group":')
        out.write(self._group_text)
        out.write(b',"unique_key":')
        self._add_text(body, record.unique, record.unique_stop)
        out.write(b',"offset_msg_id":"')
        put_hex(out, body, at + _STORE_HOST)
        put_hex(out, body, at + _OFFSET)
        out.write(b'","commit_log_offset":')
        put_integer(out, read_i64_be(body, at + _OFFSET))
        out.write(b',"keys":')
        self._add_text(body, record.keys, record.keys_stop)
        out.write(b',"tags":')
        self._add_text(body, record.tags, record.tags_stop)
        out.write(b',"transaction_id":')
        self._add_text(body, record.transaction, record.transaction_stop)
        out.write(b',"born_time":')
        _put_ms(out, self._born, read_i64_be(body, at + _BORN))
        out.write(b',"store_time":')
        _put_ms(out, self._stored, read_i64_be(body, at + _STORED))
        out.write(b',"deliver_time":null,"reconsume_times":')
        put_number(out, i64(read_i32_be(body, at + _RECONSUMED)))
        out.write(b',"max_reconsume_times":null,"delay_level":null,"body_bytes":')
        put_number(out, length)
        out.write(b',"body_crc":')
        crc: i64 = i64(read_i32_be(body, at + _CRC))
        put_number(out, crc)
        out.write(b',"crc_ok":')
        if crc == 0 and length > 0:
            out.write(_NULL)
        elif i64(zlib.crc32(body[at + _BODY : at + _BODY + length])) & _MASK == crc:
            out.write(b"true")
        else:
            out.write(b"false")
        out.write(b',"body_form":null,"body":null}\n')

    def add_send(self, send: PlainSend) -> bool:
        request, response = send.request, send.response
        try:
            ends = self._ends_of(request.direction, send.capture, send.client)
        except UnicodeEncodeError:  # half a surrogate pair
            return False
        self._write_rows()
        out = self._out
        out.write(ends.start)
        put_number(out, send.packet)
        out.write(b',"time":')
        self._sent.put(out, request.ts)
        out.write(b',"request_packet":')
        put_number(out, send.packet)
        out.write(self._names.get(send.name) or self._new_name(send.name))
        remark = send.answer.remark or send.asked.remark
        out.write(_ENCODER.encode(remark) if remark else _NULL)
        out.write(b',"latency_us":')
        put_number(out, (response.ts - request.ts) // 1000)
        out.write(ends.who)
        self._add_message(send)
        self._add_sizes(send)
        self._count += 1
        return True

    def _add_message(self, send: PlainSend) -> None:
        """Add where the message of a send is, and which it is."""
        out, asked, answer = self._out, send.asked, send.answer
        header = asked.header
        out.write(b',"broker_name":')
        put_place(out, header, asked.broker_name)
        out.write(b',"topic":')
        put_place(out, header, asked.topic)
        out.write(b',"original_topic":')
        put_place(out, header, asked.topic)
        out.write(b',"queue_id":')
        put_number(out, send.queue_id)
        out.write(b',"queue_offset":')
        put_number(out, send.queue_offset)
        out.write(b',"covers":null,"producer_group":')
        put_place(out, header, asked.group)
        out.write(b',"consumer_group":null,"unique_key":')
        put_property(out, header, asked.unique_key)
        out.write(b',"offset_msg_id":')
        put_place(out, answer.header, answer.msg_id)
        out.write(b',"commit_log_offset":')
        put_number(out, send.commit_log_offset)
        out.write(b',"keys":')
        put_property(out, header, asked.keys)
        out.write(b',"tags":')
        put_property(out, header, asked.tags)

    def _add_sizes(self, send: PlainSend) -> None:
        """Add what comes behind the properties of a send."""
        out = self._out
        out.write(b',"transaction_id":null,"born_time":')
        _put_ms(out, self._born, send.born_ms)
        out.write(b',"store_time":null,"deliver_time":null,"reconsume_times":')
        put_number(out, send.reconsume_times)
        out.write(b',"max_reconsume_times":')
        put_number(out, send.max_reconsume_times)
        out.write(b',"delay_level":null,"body_bytes":')
        put_number(out, send.request.body_length)
        out.write(b',"body_crc":null,"crc_ok":null,"body_form":null,"body":null}\n')

    def _ends_of(self, direction: Direction, capture: str, client: str | None) -> _Ends:
        """Return what lines of sends in a direction share."""
        ends = self._ends.get(direction.key)
        if (
            ends is None
            or ends.conversation != direction.conversation.number
            or ends.capture is not capture
            or ends.client is not client
        ):
            if len(self._ends) >= _MOST_ENDS:
                self._ends.clear()
            ends = self._ends[direction.key] = _Ends(capture, direction, client)
        return ends

    def _new_name(self, name: str) -> bytes:
        """Return what stands between the packet of the request and the remark."""
        text = b',"place":0,"event":%b,"request_name":%b,"response_code":0,"response_name":%b' % (
            _ENCODER.encode(STORED),
            _ENCODER.encode(name),
            _ENCODER.encode(SUCCESS),
        )
        self._names[name] = text = text + b',"remark":'
        return text

    def _add_text(self, body: bytes, start: i64, stop: i64) -> None:
        """Add a text; null where there is none."""
        if start == stop:
            self._out.write(_NULL)
            return
        at: i64 = start
        while at < stop:
            byte: i64 = i64(body[at])
            if byte < 0x20 or byte >= 0x7F or byte == 0x22 or byte == 0x5C:
                text = body[start:stop].decode("utf-8", "replace")
                self._out.write(_ENCODER.encode(text))
                return
            at += 1
        self._out.append(QUOTE)
        copy_range(self._out, body, start, stop)
        self._out.append(QUOTE)


def _put_ms(out: BytesWriter, times: TimeWriter, ms: i64) -> None:
    """Write a time in milliseconds; null for what no clock shows."""
    if ms <= 0 or ms > _LAST:
        out.write(_NULL)
    else:
        times.put(out, ms * _PER_MS)
