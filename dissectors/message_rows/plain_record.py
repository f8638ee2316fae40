"""Where the values of a stored record stand that a row simply repeats.

A record is plain if no property tells of a delay, its topic is where it was sent to and its hosts
are IPv4; any other one is left to `whole_records`. The order of the bytes is that of
`record_layout`.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from ..remoting.messages.record_layout import FIELD_STARTS
from ..remoting.messages.whole_record import WholeRecord
from .seen_exchange import names_itself, original_topic_of, popped_topic_of

_QUEUE_ID: Final[i64] = FIELD_STARTS["queue_id"]
_KEYS: Final[i64] = int.from_bytes(b"KEYS", "big")
_TAGS: Final[i64] = int.from_bytes(b"TAGS", "big")
_UNIQ_KEY: Final[i64] = int.from_bytes(b"UNIQ_KEY", "big")
_OTHERS: Final = frozenset((b"DELAY", b"TIMER_OUT_MS", b"TIMER_DELIVER_MS", b"__STARTDELIVERTIME"))
"""properties that are read by who makes rows"""
_OTHER_SIZES: Final = frozenset(map(len, _OTHERS))


@final
class PlainRecord:
    """One record after another. A value is from its place up to its stop; equal: there is none."""

    __slots__ = (
        "_checkpoint", "_checkpoint_stop", "_group", "_is_shared", "_name", "is_plain", "keys",
        "keys_stop", "original_topic", "producers", "producers_stop", "queue", "queue_id", "tags",
        "tags_stop", "topic", "transaction", "transaction_stop", "unique", "unique_stop", "whole",
    )  # fmt: skip

    def __init__(self) -> None:
        self.whole = WholeRecord()
        """where its parts are"""
        self.is_plain = False
        """a row repeats what stands in it"""
        self.topic: str | None = None
        """topic that its queue is of"""
        self.original_topic: str | None = None
        """topic that it was sent to"""
        self.queue_id: i64 = 0
        self.queue: i64 = 0
        """counts the queues: another one than before is of another topic, or has another number"""
        self._name = b""
        self._group: str | None = None
        self._is_shared = False
        self._forget()

    def begin(self, group: str | None) -> None:
        """Begin with the records that are delivered to a group."""
        self._group = group

    def find(self, body: bytes, at: i64) -> bool:
        """Find the record at a place of a body; False: there is none, or an odd one."""
        whole = self.whole
        if not whole.find(body, at):
            return False
        self._forget()
        self.is_plain = (
            not whole.hosts
            and self._find_properties(body, whole.properties_at, whole.stop)
            and self._find_topic(
                body,
                body[whole.topic_at : whole.topic_stop],
                i64(read_i32_be(body, at + _QUEUE_ID)),
            )
        )
        return True

    def _forget(self) -> None:
        self.keys = self.keys_stop = 0
        self.tags = self.tags_stop = 0
        self.unique = self.unique_stop = 0
        self.producers = self.producers_stop = 0
        self.transaction = self.transaction_stop = 0
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
                self.keys, self.keys_stop = start, stop
            elif word == _TAGS:
                self.tags, self.tags_stop = start, stop
        elif size == 8:
            if read_i64_be(body, name_at) == _UNIQ_KEY:
                self.unique, self.unique_stop = start, stop
        elif size == 6:
            name = body[name_at : name_at + size]
            if name == b"POP_CK":
                self._checkpoint, self._checkpoint_stop = start, stop
            elif name == b"PGROUP":
                self.producers, self.producers_stop = start, stop
        elif size == 17:
            if body[name_at : name_at + size] == b"__transactionId__":
                self.transaction, self.transaction_stop = start, stop
        elif int(size) in _OTHER_SIZES:
            return body[name_at : name_at + size] not in _OTHERS
        return True

    def _find_topic(self, body: bytes, name: bytes, queue_id: i64) -> bool:
        """Find the topic that its queue is of; False: properties say it."""
        is_shared = self._is_shared and not self._checkpoint
        if is_shared and queue_id == self.queue_id and name == self._name:
            return True
        topic = name.decode("utf-8", "replace")
        if topic and not names_itself(topic):
            return False
        checkpoint: str | None = None
        if self._checkpoint:
            checkpoint = body[self._checkpoint : self._checkpoint_stop].decode("utf-8", "replace")
        self.topic = popped_topic_of(topic, checkpoint, self._group)
        self.original_topic = original_topic_of(topic, {})
        self.queue_id = queue_id
        self.queue += 1
        self._name = name
        self._is_shared = not self._checkpoint  # a receipt is of its record alone
        return True
