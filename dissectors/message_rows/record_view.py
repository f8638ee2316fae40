"""View of a stored record for rows: its numbers, and the positions of its texts.

A complete record is read in place. Any other one (truncated, or from a batch) is filled from the
decoded message, with its properties encoded again, so that all readers see the same layout. Byte
order as in `record_layout`.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from ..remoting.messages.message import StoredMessage
from ..remoting.messages.properties import encode_properties
from ..remoting.messages.whole_record import OFFSET_AT, RIGHT, UNKNOWN, WRONG, WholeRecord
from ..remoting.topic_names import names_itself, original_topic_of
from .seen_exchange import deliver_time_of, number_of, popped_topic_of

_KEYS: Final[i64] = int.from_bytes(b"KEYS", "big")
_TAGS: Final[i64] = int.from_bytes(b"TAGS", "big")
_UNIQ_KEY: Final[i64] = int.from_bytes(b"UNIQ_KEY", "big")
_OTHERS: Final = frozenset(
    (
        *(b"DELAY", b"TIMER_OUT_MS", b"TIMER_DELIVER_MS", b"__STARTDELIVERTIME"),
        *(b"RETRY_TOPIC", b"DLQ_ORIGIN_TOPIC", b"REAL_TOPIC"),
    )
)
"""properties that rows interpret"""
_OTHER_SIZES: Final = frozenset(map(len, _OTHERS))


@final
class RecordView:
    """The current record. A text is the range from its position to its stop; empty if equal."""

    __slots__ = (
        "_checkpoint", "_checkpoint_stop", "_group", "_is_shared", "_name", "_others", "body_crc",
        "body_length", "born_ms", "crc", "data", "host_at", "host_stop", "keys", "keys_stop",
        "offset", "offset_msg_id", "original_topic", "producers", "producers_stop", "queue",
        "queue_id", "queue_offset", "reconsume_times", "stored_ms", "tags", "tags_stop", "topic",
        "transaction", "transaction_stop", "unique", "unique_stop", "whole",
    )  # fmt: skip

    def __init__(self) -> None:
        self.whole = WholeRecord()
        """positions of the parts of a complete record"""
        self.data = b""
        """bytes that the positions refer to"""
        self.topic: str | None = None
        """topic of its queue"""
        self.original_topic: str | None = None
        """original topic"""
        self.queue: i64 = 0
        """changes whenever the topic or the number of the queue changes"""
        self.queue_id: i64 = -1
        self.queue_offset: i64 = 0
        self.offset: i64 = 0
        """byte offset in the commit log"""
        self.host_at: i64 = 0
        """position of the storing host and its port"""
        self.host_stop: i64 = 0
        self.offset_msg_id: str | None = None
        """broker's message id of a decoded message"""
        self.born_ms: i64 = 0
        self.stored_ms: i64 = 0
        self.reconsume_times: i64 = 0
        self.body_length: i64 = 0
        self.body_crc: i64 = 0
        self.crc: i64 = UNKNOWN
        """RIGHT, WRONG or UNKNOWN"""
        self._name = b""
        self._group: str | None = None
        self._is_shared = False
        self._others: dict[str, str] | None = None
        self._forget()

    def begin(self, group: str | None) -> None:
        """Start with records that are delivered to a group."""
        self._group = group
        self._is_shared = False

    def find(self, body: bytes, at: i64) -> bool:
        """Read the record at an offset of a body; return False if there is no complete one."""
        whole = self.whole
        if not whole.find(body, at):
            return False
        self._forget()
        self.data = body
        whole.read(body)
        self.queue_offset = whole.queue_offset
        self.offset = whole.offset
        self.born_ms = whole.born_ms
        self.stored_ms = whole.stored_ms
        self.host_at = whole.store_host_at
        self.host_stop = whole.store_host_stop
        self.offset_msg_id = None
        self.reconsume_times = whole.reconsume_times
        self.body_length = whole.body_length
        self.body_crc = whole.body_crc
        self.crc = whole.crc_of(body[whole.body_at : whole.body_at + whole.body_length])
        self._find_properties(body, whole.properties_at, whole.stop)
        self._find_topic(body[whole.topic_at : whole.topic_stop], whole.queue_id)
        return True

    def take(self, message: StoredMessage) -> None:
        """Fill the values from a decoded message."""
        self._forget()
        self.data = encode_properties(message.properties).encode("utf-8", "replace")
        self.queue_offset = message.queue_offset
        self.offset = message.physical_offset
        self.born_ms = message.born_timestamp
        self.stored_ms = message.store_timestamp
        self.host_at = self.host_stop = 0
        self.offset_msg_id = message.offset_msg_id if message.store_host else None
        self.reconsume_times = message.reconsume_times
        self.body_length = len(message.body)
        self.body_crc = message.body_crc
        self.crc = UNKNOWN
        if message.crc_ok is not None:
            self.crc = WRONG
            if message.crc_ok:
                self.crc = RIGHT
        # Encoded again, the properties of a decoded message have the layout of a record.
        self._find_properties(self.data, 0, len(self.data))
        self._find_topic(message.topic.encode("utf-8", "replace"), message.queue_id)

    @property
    def deliver_time(self) -> int | None:
        """Earliest delivery time from a property, ns since the epoch, or None."""
        return deliver_time_of(self._others) if self._others is not None else None

    @property
    def delay_level(self) -> int | None:
        """Delay level from a property, or None."""
        return number_of(self._others.get("DELAY")) if self._others is not None else None

    @property
    def offset_id(self) -> str | None:
        """The broker's message id: storing host and offset."""
        if self.host_at == self.host_stop:
            return self.offset_msg_id
        at: i64 = self.whole.at + OFFSET_AT
        return (self.data[self.host_at : self.host_stop] + self.data[at : at + 8]).hex().upper()

    def _forget(self) -> None:
        self.keys = self.keys_stop = 0
        self.tags = self.tags_stop = 0
        self.unique = self.unique_stop = 0
        self.producers = self.producers_stop = 0
        self.transaction = self.transaction_stop = 0
        self._checkpoint = self._checkpoint_stop = 0
        self._others = None

    def _find_properties(self, data: bytes, start: i64, stop: i64) -> None:
        """Record the positions of property values."""
        at: i64 = start
        while at < stop:
            name_at: i64 = at
            byte: i64 = 0
            while at < stop:
                byte = i64(data[at])
                if byte == 1 or byte == 2:
                    break
                at += 1
            size: i64 = at - name_at
            if at < stop and byte == 1:
                at += 1
                value_at: i64 = at
                while at < stop and i64(data[at]) != 2:
                    at += 1
                if size > 0 and at > value_at:
                    self._note(data, name_at, size, at)
            at += 1

    def _note(self, data: bytes, name_at: i64, size: i64, stop: i64) -> None:
        """Record the position of a property's value; the last of duplicate names counts."""
        start: i64 = name_at + size + 1
        # By the length of the name: no object is made for most properties.
        if size == 4:
            word: i64 = i64(read_i32_be(data, name_at))
            if word == _KEYS:
                self.keys, self.keys_stop = start, stop
            elif word == _TAGS:
                self.tags, self.tags_stop = start, stop
        elif size == 8:
            if read_i64_be(data, name_at) == _UNIQ_KEY:
                self.unique, self.unique_stop = start, stop
        elif size == 6:
            name = data[name_at : name_at + size]
            if name == b"POP_CK":
                self._checkpoint, self._checkpoint_stop = start, stop
            elif name == b"PGROUP":
                self.producers, self.producers_stop = start, stop
        elif size == 17:
            if data[name_at : name_at + size] == b"__transactionId__":
                self.transaction, self.transaction_stop = start, stop
        elif int(size) in _OTHER_SIZES:
            name = data[name_at : name_at + size]
            if name in _OTHERS:
                if self._others is None:
                    self._others = {}
                self._others[name.decode()] = data[start:stop].decode("utf-8", "replace")

    def _find_topic(self, name: bytes, queue_id: i64) -> None:
        """Find the topic of its queue."""
        is_explicit = self._checkpoint_stop > 0 or self._others is not None
        # Records of one response are mostly of one queue, whose topics are then known.
        if self._is_shared and not is_explicit and queue_id == self.queue_id and name == self._name:
            return
        topic = name.decode("utf-8", "replace")
        checkpoint: str | None = None
        if self._checkpoint_stop:
            receipt = self.data[self._checkpoint : self._checkpoint_stop]
            checkpoint = receipt.decode("utf-8", "replace")
        self.topic = popped_topic_of(topic, checkpoint, self._group)
        self.original_topic = topic or None
        if not names_itself(topic):
            self.original_topic = original_topic_of(topic, self._others or {})
        self.queue_id = queue_id
        self.queue += 1
        self._name = name
        self._is_shared = not is_explicit  # topics from receipts or properties are not shared
