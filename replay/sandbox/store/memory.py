"""Messages of one broker, in memory: a commit log, queues, and a key index.

Rules: a record has the bytes that a pull delivers, so reading only joins them. Commit log offsets
are those of one endless file. The key index is built on demand, not per message. State that must
survive a crash also goes to a `BrokerJournal`.
RocketMQ: CommitLog, ConsumeQueue, IndexService, DefaultMessageStore.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from dissectors.remoting.ids.message_ids import encode_offset_id
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.properties import encode_properties
from dissectors.remoting.messages.record_layout import (
    CRC_MASK,
    MAGIC_V1,
    MAGIC_V2,
    V1_TOPIC_LIMIT,
    address_of,
)
from dissectors.remoting.sysflag import HOST_BITS, SysFlag

from ..room import Room, weight_of
from .shelf import Shelf, StoredQueue, StoredRecord, physical_offset_of
from .sqlite import BrokerJournal

_HEADS: Final = tuple(
    struct.Struct(f">iIiiiqqiq{born}siq{store}siiqi")
    for born, store in ((4, 4), (16, 4), (4, 16), (16, 16))
)
"""Fixed part of a record, by the host bits: the layout of `record_layout`, in one call."""
_QUEUE: Final = 500
"""bytes of a queue without records, beside an entry"""
_KEY: Final = 140
"""bytes of a key in the index beside its text"""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to store."""

    topic: str
    """topic to store it under"""
    queue_id: int
    body: bytes
    """body, compressed where `sys_flag` says so"""
    properties: Mapping[str, str]
    flag: int = 0
    """the application's flag"""
    sys_flag: int = 0
    """compression and transaction bits; the host bits follow from the hosts"""
    born_timestamp: int = 0
    """when the client made it, ms since the epoch"""
    born_host: str = "0.0.0.0:0"
    """the client, `ip:port`"""
    reconsume_times: int = 0
    """how often it was returned"""
    prepared_transaction_offset: int = 0
    """commit log offset of the half message that it ends"""

    @classmethod
    def of_stored(
        cls, stored: StoredMessage, topic: str, queue_id: int, properties: Mapping[str, str]
    ) -> NewMessage:
        """Return a copy of a stored message for another topic."""
        return cls(
            topic,
            queue_id,
            stored.body,
            properties,
            stored.flag,
            stored.sys_flag,
            stored.born_timestamp,
            stored.born_host,
            stored.reconsume_times,
        )

    @classmethod
    def again(
        cls, stored: StoredMessage, topic: str, queue_id: int, properties: Mapping[str, str]
    ) -> NewMessage:
        """Return a copy of a stored message for redelivery from another topic."""
        copy = cls.of_stored(stored, topic, queue_id, properties)
        return replace(copy, reconsume_times=stored.reconsume_times + 1)


class StoreFull(Exception):
    """The store is full and may not evict messages."""


class MessageStore:
    """The messages of one broker."""

    def __init__(
        self, store_host: str, limit: int, drop_oldest: bool = False, room: Room | None = None
    ) -> None:
        """`store_host` is the broker's `ip:port`; `limit` bounds messages and their index. Queues,
        which outlive their messages, use `room`.
        """
        self.store_host = store_host
        self.journal: BrokerJournal | None = None
        """journal that also stores messages"""
        self.end_offset = 0
        """commit log offset of the next record"""
        self.held_bytes = 0
        """bytes that the records and their index take"""
        self.last_store_ms = 0
        """when the last record was stored"""
        self.on_forget: list[Callable[[StoredRecord], None]] = []
        """called for each record evicted because the store is full"""
        self._limit = limit
        self._drop_oldest = drop_oldest
        self._room = room or Room()
        self._store_address = address_of(store_host)
        self._dropped = False
        self._log = Shelf()
        self._queues: dict[tuple[str, int], StoredQueue] = {}
        self._indexed_to = 0
        self.index: dict[str, dict[str, list[StoredRecord] | StoredRecord]] = {}
        """topic → key → its record, or its records, oldest first"""

    # -- writing --------------------------------------------------------------------------------

    def put(self, message: NewMessage, now_ms: int) -> StoredRecord:
        """Store a message; return its record. Raises as `put_all`."""
        return self.put_all((message,), now_ms)[0]

    def put_all(self, messages: Sequence[NewMessage], now_ms: int) -> list[StoredRecord]:
        """Store messages of one queue, all or none; return their records.

        Raises StoreFull, or ValueError if one is invalid.
        """
        topic, queue_id = messages[0].topic, messages[0].queue_id
        queue_offset, end = self.queue(topic, queue_id).max_offset, self.end_offset
        records = []
        for message in messages:
            data = self._encode(message, queue_offset, end, now_ms)
            tags = message.properties.get("TAGS", "")
            records.append(StoredRecord(data, topic, queue_id, queue_offset, end, now_ms, tags))
            queue_offset += 1
            end += len(data)
        self._make_room(sum([record.size for record in records]))
        # only now: a message that is refused must not leave an empty queue
        queue = self._made_queue(topic, queue_id)
        for record in records:
            self._add(record, queue)
            if self.journal is not None:
                self.journal.put_message(record)
        return records

    def restore(self, record: StoredRecord) -> bool:
        """Restore a record from the journal; called in order.

        Return False if its commit log or queue offset is already used. Raises StoreFull.
        """
        queue = self._made_queue(record.topic, record.queue_id)
        # the first record may be below the end that `restore_end` has set
        if len(self._log) and record.physical_offset < self.end_offset:
            return False
        if not len(queue.records):
            queue.min_offset = record.queue_offset
        elif record.queue_offset < queue.max_offset:
            return False
        elif record.queue_offset > queue.max_offset:
            queue.has_holes = True
        self._make_room(record.size)
        self._add(record, queue)
        return True

    def _made_queue(self, topic: str, queue_id: int) -> StoredQueue:
        """Return a queue, created if missing. Raise StoreFull if that fails."""
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            if not self._room.take(_QUEUE + weight_of(topic)):
                raise StoreFull
            queue = self._queues[(topic, queue_id)] = StoredQueue()
        return queue

    def go_on_with(self, journal: BrokerJournal) -> None:
        """Start writing to a journal, and remove messages evicted during the restore."""
        self.journal = journal
        if self._dropped:
            journal.drop_messages(self.begin_offset)
            journal.put_end("", 0, self.end_offset)
            for (topic, queue_id), queue in self._queues.items():
                if not len(queue.records):
                    journal.put_end(topic, queue_id, queue.min_offset)

    def restore_end(self, topic: str, queue_id: int, offset: int) -> None:
        """Continue at an offset left by evicted messages; call before any `restore`.

        Raise StoreFull if there are too many queues.
        """
        if not topic:
            self.end_offset = offset
            return
        self._made_queue(topic, queue_id).min_offset = offset

    def _add(self, record: StoredRecord, queue: StoredQueue) -> None:
        queue.records.append(record)
        self._log.append(record)
        self.end_offset = record.physical_offset + len(record.data)
        self.held_bytes += record.size
        self.last_store_ms = record.store_ms

    def _make_room(self, size: int) -> None:
        if self.held_bytes + size <= self._limit:
            return
        # a record larger than the whole store would evict everything, and still not fit
        if not self._drop_oldest or size > self._limit:
            raise StoreFull
        # Evict somewhat more than needed, so this does not run for each message.
        wanted = self._limit - size - self._limit // 64
        while len(self._log) and self.held_bytes > wanted:
            self._forget(self._log.drop_first())
            self._dropped = True
        if self.journal is not None:
            self.journal.drop_messages(self.begin_offset)
            self.journal.put_end("", 0, self.end_offset)

    def _forget(self, record: StoredRecord) -> None:
        self.held_bytes -= record.size
        for listener in self.on_forget:
            listener(record)
        if record.physical_offset < self._indexed_to:
            self._forget_keys(record)
        queue = self._queues.get((record.topic, record.queue_id))
        if queue is not None and len(queue.records) and queue.records[0] is record:
            queue.records.drop_first()
            queue.min_offset = record.queue_offset + 1
            if not len(queue.records) and self.journal is not None:
                self.journal.put_end(record.topic, record.queue_id, queue.min_offset)

    def _forget_keys(self, record: StoredRecord) -> None:
        index = self.index.get(record.topic, {})
        for key in _keys_of(record.message()):
            entries = index.get(key)
            # records leave in order: it is the first of its key
            if isinstance(entries, list) and entries[0] is record:
                del entries[0]
                if len(entries) == 1:
                    index[key] = entries[0]
            elif entries is record:
                del index[key]
            else:
                continue
            self.held_bytes -= _weight_of_key(key)
        if not index:
            self.index.pop(record.topic, None)

    def _encode(
        self, message: NewMessage, queue_offset: int, physical_offset: int, now_ms: int
    ) -> bytes:
        topic = _utf8(message.topic)
        properties = encode_properties(message.properties).encode("utf-8", "replace")
        born_address, born_port = _host(message.born_host)
        store_address, store_port = self._store_address
        # The two sysFlag bits of IPv6 hosts are adjacent.
        hosts = (len(born_address) == 16) + 2 * (len(store_address) == 16)
        sys_flag = message.sys_flag & ~HOST_BITS | hosts * SysFlag.BORNHOST_V6
        long_topic = len(topic) > V1_TOPIC_LIMIT
        width = 2 if long_topic else 1
        head = _HEADS[hosts]
        body = message.body
        try:
            fixed = head.pack(
                head.size + len(body) + width + len(topic) + 2 + len(properties),
                MAGIC_V2 if long_topic else MAGIC_V1,
                zlib.crc32(body) & CRC_MASK,
                message.queue_id,
                message.flag,
                queue_offset,
                physical_offset,
                sys_flag,
                message.born_timestamp,
                born_address,
                born_port,
                now_ms,
                store_address,
                store_port,
                message.reconsume_times,
                message.prepared_transaction_offset,
                len(body),
            )
            topic_size = len(topic).to_bytes(width, "big")
            properties_size = len(properties).to_bytes(2, "big")
        except (struct.error, OverflowError) as error:
            raise ValueError(str(error)) from None
        return b"".join((fixed, body, topic_size, topic, properties_size, properties))

    def drop_topic(self, topic: str) -> None:
        """Forget the queues of a topic; its records stay in the commit log."""
        if self.journal is not None:
            # the last records may go with the topic, but no offset is used again after a restart
            self.journal.put_end("", 0, self.end_offset)
        for key in [key for key in self._queues if key[0] == topic]:
            del self._queues[key]
            self._room.take(-_QUEUE - weight_of(topic))

    # -- reading --------------------------------------------------------------------------------

    def queue(self, topic: str, queue_id: int) -> StoredQueue:
        """Return a queue, or an empty one if nothing was stored."""
        return self._queues.get((topic, queue_id)) or StoredQueue()

    @property
    def begin_offset(self) -> int:
        """Commit log offset of the oldest record."""
        return self._log[0].physical_offset if len(self._log) else self.end_offset

    @property
    def first_ms(self) -> int | None:
        """Store time of the oldest record, or None."""
        return self._log[0].store_ms if len(self._log) else None

    @property
    def filled(self) -> float:
        """Fill ratio, 0 to 1."""
        return self.held_bytes / self._limit if self._limit else 1.0

    def at(self, physical_offset: int) -> StoredRecord | None:
        """Return the record that begins at a commit log offset, or None."""
        place = self._log.place_of(physical_offset, physical_offset_of)
        if place < len(self._log) and self._log[place].physical_offset == physical_offset:
            return self._log[place]
        return None

    def offset_id(self, record: StoredRecord) -> str:
        """Return the offset message id of a record, upper-case hex."""
        return encode_offset_id(self.store_host, record.physical_offset) or ""

    def find(
        self, topic: str, key: str, limit: int, begin_ms: int, end_ms: int
    ) -> list[StoredRecord]:
        """Return the latest `limit` records of a topic with that key or UNIQ_KEY, oldest first.

        Raise StoreFull if the index does not fit beside the messages.
        """
        self._catch_up()
        indexed = self.index.get(topic, {}).get(key, [])
        matches = [
            record
            for record in (indexed if isinstance(indexed, list) else [indexed])
            if begin_ms <= record.store_ms <= end_ms
        ]
        return matches[-limit:] if limit > 0 else []

    def __len__(self) -> int:
        return len(self._log)

    def _catch_up(self) -> None:
        """Index the records added since the last query."""
        while self._indexed_to < self.end_offset:
            place = self._log.place_of(self._indexed_to, physical_offset_of)
            if place == len(self._log):
                break
            record = self._log[place]
            keys = _keys_of(record.message())
            weight = sum(map(_weight_of_key, keys))
            self._make_room(weight)
            if record.physical_offset < self.begin_offset:
                continue  # it was the oldest one and has been evicted
            self.held_bytes += weight
            for key in keys:
                self._index_key(record, key)
            self._indexed_to = record.physical_offset + len(record.data)
        self._indexed_to = self.end_offset

    def _index_key(self, record: StoredRecord, key: str) -> None:
        index = self.index.setdefault(record.topic, {})
        entries = index.get(key)
        if entries is None:
            index[key] = record
        elif isinstance(entries, list):
            entries.append(record)
        else:
            index[key] = [entries, record]


def _weight_of_key(key: str) -> int:
    return _KEY + sys.getsizeof(key)


def _keys_of(message: StoredMessage) -> set[str]:
    keys = set(message.keys)
    if message.unique_key:
        keys.add(message.unique_key)
    return keys


@lru_cache(maxsize=4096)
def _utf8(topic: str) -> bytes:
    return topic.encode("utf-8", "replace")


_host = lru_cache(maxsize=4096)(address_of)
