"""Messages as lines of JSON: those of whole stored records are written straight from their bytes.

What all lines of one body share is encoded once, and no value of a record becomes an object of its
own. A body in which anything is odd is left to the makers of rows, and so is a record with a
property that a row does not simply repeat; tests hold both ways to the same lines. The order of the
bytes is that of `record_layout`, the order of the fields that of `MessageRecord`.
"""

from __future__ import annotations

import zlib
from typing import Final, final

import msgspec
from librt.strings import BytesWriter, read_i32_be, read_i64_be
from mypy_extensions import i64

from ..json_bytes import put_hex, put_integer, put_number
from ..remoting.messages.record_layout import CRC_MASK, FIELD_ENDS, FIELD_STARTS
from ..remoting.messages.whole_record import WholeRecord
from ..rows.json_rows import struct_encoder
from ..rows.message_record import MESSAGE_COLUMNS, MessageRecord
from ..rows.timed_rows import TimeTexts
from .seen_exchange import (
    LAST_MS,
    MILLI,
    Facts,
    SeenExchange,
    names_itself,
    original_topic_of,
    popped_topic_of,
    row_of,
)
from .whole_records import facts_at

_CRC: Final[i64] = FIELD_STARTS["body_crc"]
_QUEUE_ID: Final[i64] = FIELD_STARTS["queue_id"]
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

_KEYS: Final[i64] = int.from_bytes(b"KEYS", "big")
_TAGS: Final[i64] = int.from_bytes(b"TAGS", "big")
_UNIQ_KEY: Final[i64] = int.from_bytes(b"UNIQ_KEY", "big")
_OTHERS: Final = frozenset((b"DELAY", b"TIMER_OUT_MS", b"TIMER_DELIVER_MS", b"__STARTDELIVERTIME"))
"""properties that are read by who makes rows"""
_OTHER_SIZES: Final = frozenset(map(len, _OTHERS))

_PLACE: Final = b'"place":0,'
_TOPIC: Final = b'"topic":null,'
_ENCODER: Final = msgspec.json.Encoder()


@final
class MessageLines:
    """Lines of messages that wait to be taken."""

    __slots__ = (
        "_born", "_born_ms", "_born_text", "_checkpoint", "_checkpoint_stop", "_count",
        "_encode", "_group", "_group_text", "_head", "_is_shared", "_keys", "_keys_stop",
        "_out", "_place_text", "_producers", "_producers_stop", "_queue_id", "_record", "_rest",
        "_rows", "_stored", "_stored_ms", "_stored_text", "_tags", "_tags_stop", "_topic",
        "_transaction", "_transaction_stop", "_unique", "_unique_stop",
    )  # fmt: skip

    def __init__(self) -> None:
        self._count = 0
        self._out = BytesWriter()
        self._record = WholeRecord()
        columns = [(column.name, column.type) for column in MESSAGE_COLUMNS]
        self._encode = struct_encoder(MessageRecord, columns, kept=False)
        self._rows: list[MessageRecord] = []
        self._head = self._rest = self._group_text = b""
        self._group: str | None = None
        self._topic = self._place_text = b""
        self._queue_id: i64 = 0
        self._is_shared = False
        self._born, self._stored = TimeTexts(), TimeTexts()
        self._born_ms: i64 = -1
        self._stored_ms: i64 = -1
        self._born_text = self._stored_text = _NULL
        self._forget_properties()

    @property
    def waiting(self) -> int:
        """How many lines there are since the last call of `take`."""
        return self._count + len(self._rows)

    def take(self) -> tuple[int, bytes]:
        """Return how many lines there are since the last call, and the lines."""
        self._write_rows()
        taken = self._count, self._out.getvalue()
        self._out.truncate(0)
        self._count = 0
        return taken

    def add(self, rows: list[MessageRecord]) -> None:
        """Add rows that nobody needs afterwards."""
        self._rows.extend(rows)

    def _write_rows(self) -> None:
        """Write the rows that wait: together they take less than one by one."""
        if self._rows:
            self._out.write(self._encode(self._rows))
            self._count += len(self._rows)
            self._rows = []

    def add_whole(self, seen: SeenExchange, event: str, body: bytes, group: str | None) -> bool:
        """Add what the records of a body say, delivered to a group; False: nothing is added, as one
        is odd.
        """
        self._write_rows()
        shared = self._encode([row_of(seen, event, 0, Facts())])
        place_at = shared.index(_PLACE)
        self._head = shared[: place_at + len(_PLACE) - 2]
        self._rest = shared[place_at + len(_PLACE) - 1 : shared.index(_TOPIC, place_at)]
        self._group = group
        self._group_text = _ENCODER.encode(group)
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
        record = self._record
        if not record.find(body, at):
            return 0
        self._forget_properties()
        if (
            record.hosts
            or not self._find_properties(body, record.properties_at, record.stop)
            or not self._find_topic(
                body,
                body[record.topic_at : record.topic_stop],
                i64(read_i32_be(body, at + _QUEUE_ID)),
            )
        ):
            facts = facts_at(body, record, self._group)
            self._out.write(self._encode([row_of(seen, event, int(place), facts)]))
        else:
            self._out.write(self._head)
            put_number(self._out, place)
            self._out.write(self._rest)
            self._out.write(self._place_text)
            self._add_values(body, at, record.body_length)
        return record.stop - at

    def _add_values(self, body: bytes, at: i64, length: i64) -> None:
        """Add what comes behind the queue."""
        out = self._out
        put_integer(out, read_i64_be(body, at + _QUEUE_OFFSET))
        out.write(b',"covers":null,"producer_group":')
        self._add_text(body, self._producers, self._producers_stop)
        out.write(b',"consumer_group":')
        out.write(self._group_text)
        out.write(b',"unique_key":')
        self._add_text(body, self._unique, self._unique_stop)
        out.write(b',"offset_msg_id":"')
        put_hex(out, body, at + _STORE_HOST)
        put_hex(out, body, at + _OFFSET)
        out.write(b'","commit_log_offset":')
        put_integer(out, read_i64_be(body, at + _OFFSET))
        out.write(b',"keys":')
        self._add_text(body, self._keys, self._keys_stop)
        out.write(b',"tags":')
        self._add_text(body, self._tags, self._tags_stop)
        out.write(b',"transaction_id":')
        self._add_text(body, self._transaction, self._transaction_stop)
        out.write(b',"born_time":')
        born: i64 = read_i64_be(body, at + _BORN)
        if born != self._born_ms:
            self._born_ms, self._born_text = born, _time_text(self._born, born)
        out.write(self._born_text)
        out.write(b',"store_time":')
        stored: i64 = read_i64_be(body, at + _STORED)
        if stored != self._stored_ms:
            self._stored_ms, self._stored_text = stored, _time_text(self._stored, stored)
        out.write(self._stored_text)
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

    def _forget_properties(self) -> None:
        self._keys = self._keys_stop = 0
        self._tags = self._tags_stop = 0
        self._unique = self._unique_stop = 0
        self._producers = self._producers_stop = 0
        self._transaction = self._transaction_stop = 0
        self._checkpoint = self._checkpoint_stop = 0

    def _find_properties(self, body: bytes, start: i64, stop: i64) -> bool:
        """Note where the values of properties are; False: one is not simply repeated."""
        at: i64 = start
        while at < stop:
            name_at: i64 = at
            byte: i64 = 0
            while at < stop:
                byte = i64(body[at])
                if byte == 1 or byte == 2:
                    break
                at += 1
            size: i64 = at - name_at
            if at < stop and byte == 1:
                at += 1
                value_at: i64 = at
                while at < stop and i64(body[at]) != 2:
                    at += 1
                if size > 0 and at > value_at and not self._note(body, name_at, size, at):
                    return False
            at += 1
        return True

    def _note(self, body: bytes, name_at: i64, size: i64, stop: i64) -> bool:
        """Note where the value of a property is; False: it is not simply repeated."""
        start: i64 = name_at + size + 1
        if size == 4:
            word: i64 = i64(read_i32_be(body, name_at))
            if word == _KEYS:
                self._keys, self._keys_stop = start, stop
            elif word == _TAGS:
                self._tags, self._tags_stop = start, stop
        elif size == 8:
            if read_i64_be(body, name_at) == _UNIQ_KEY:
                self._unique, self._unique_stop = start, stop
        elif size == 6:
            name = body[name_at : name_at + size]
            if name == b"POP_CK":
                self._checkpoint, self._checkpoint_stop = start, stop
            elif name == b"PGROUP":
                self._producers, self._producers_stop = start, stop
        elif size == 17:
            if body[name_at : name_at + size] == b"__transactionId__":
                self._transaction, self._transaction_stop = start, stop
        elif int(size) in _OTHER_SIZES:
            return body[name_at : name_at + size] not in _OTHERS
        return True

    def _find_topic(self, body: bytes, name: bytes, queue_id: i64) -> bool:
        """Note the text that names the queue; False: properties say of which topic it is."""
        is_shared = self._is_shared and not self._checkpoint
        if is_shared and queue_id == self._queue_id and name == self._topic:
            return True
        topic = name.decode("utf-8", "replace")
        if topic and not names_itself(topic):
            return False
        checkpoint: str | None = None
        if self._checkpoint:
            checkpoint = body[self._checkpoint : self._checkpoint_stop].decode("utf-8", "replace")
        popped = _ENCODER.encode(popped_topic_of(topic, checkpoint, self._group))
        original = _ENCODER.encode(original_topic_of(topic, {}))
        self._place_text = b'"topic":%b,"original_topic":%b,"queue_id":%d,"queue_offset":' % (
            popped,
            original,
            int(queue_id),
        )
        self._topic, self._queue_id = name, queue_id
        self._is_shared = not self._checkpoint  # a receipt is of its record alone
        return True

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
        self._out.append(0x22)
        self._out.write(body[start:stop])
        self._out.append(0x22)


def _time_text(texts: TimeTexts, ms: i64) -> bytes:
    """Return a time as JSON."""
    if ms <= 0 or ms > _LAST:
        return _NULL
    return f'"{texts.of(int(ms * _PER_MS))}"'.encode()
