"""POP receipts and lists, which a broker sends with popped messages and expects back.

Other texts give None, invalid entries of a list are skipped and counted; nothing raises. RocketMQ:
ExtraInfoUtil, PopCheckPoint, BatchAck, PopMessageProcessor.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

import msgspec

from ...foreign import base64_of, integer_of
from ..topic_names import RETRY_PREFIX

TOPIC_KINDS: Final = {"0": "normal", "1": "retry V1", "2": "retry V2"}
"""Topic of a popped message: the original one, or the group's POP retry topic in two spellings."""

ORDER_REVIVE_QUEUE: Final = 999
"""Revive queue id of an ordered pop, which has no check point."""

_ENTRY_SEPARATOR: Final = ";"
_FIELD_SEPARATOR: Final = " "
_LEAST_FIELDS: Final = 7
"""Fields of a receipt for a whole range."""
_MOST_FIELDS: Final = 9
"""Fields of a receipt completed by a proxy."""
_ORDER_OFFSET_PREFIX: Final = "qo"
_MOST_BIT_TEXT: Final = 10924
"""Maximum base64 characters of a batch ack, 65544 bits: more than the messages of any pop."""


class PopReceipt(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A receipt: property POP_CK of a popped message, header extraInfo of its ack."""

    start_offset: int
    """First queue offset of the popped range."""
    pop_time: int
    """When it was popped, ms since the epoch."""
    invisible_time: int
    """How long the message is invisible to others, ms."""
    revive_qid: int
    """Queue of the revive topic; `ORDER_REVIVE_QUEUE` for ordered pop."""
    topic_kind: str
    """Key of `TOPIC_KINDS`."""
    broker_name: str
    """Broker for the ack."""
    queue_id: int
    """Queue of the message."""
    queue_offset: int | None = None
    """Offset of the message; None in receipts for a whole range."""
    commit_log_offset: int | None = None
    """Commit log offset of the message, which proxies add, or None."""

    def retry_topic(self, group: str, topic: str) -> str:
        """Return the topic for the ack of a message of `topic` consumed by `group`."""
        return retry_topic_of(self.topic_kind, group, topic)


def retry_topic_of(topic_kind: str, group: str, topic: str) -> str:
    """Return the topic of a message of that kind (key of `TOPIC_KINDS`), popped from `topic`."""
    # V2 joins with `+`, because both names may contain `_`.
    if topic_kind == "1":
        return f"{RETRY_PREFIX}{group}_{topic}"
    return f"{RETRY_PREFIX}{group}+{topic}" if topic_kind == "2" else topic


def decode_pop_receipt(text: str) -> PopReceipt | None:
    """Parse a receipt, or return None for fewer than seven fields or an invalid one.

    Fields after the ninth are ignored, as in Java.
    """
    # Java's split drops empty fields at the end.
    fields = text.rstrip(_FIELD_SEPARATOR).split(_FIELD_SEPARATOR, _MOST_FIELDS)[:_MOST_FIELDS]
    if len(fields) < _LEAST_FIELDS:
        return None
    kind, broker_name = fields[4:6]
    numbers = [integer_of(field) for field in (*fields[:4], *fields[6:])]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    offset, pop_time, invisible_time, revive_qid, queue_id, *rest = known
    return PopReceipt(
        offset, pop_time, invisible_time, revive_qid, kind, broker_name, queue_id, *rest
    )


@dataclass(frozen=True, slots=True)
class PopEntry:
    """An entry of a POP response list: a queue of a topic kind, and its numbers."""

    topic_kind: str
    """Key of `TOPIC_KINDS`."""
    queue_id: int
    """Queue of the numbers."""
    numbers: tuple[int, ...]
    """startOffsetInfo: the start; msgOffsetInfo: the offsets; orderCountInfo: the count."""
    queue_offset: int | None = None
    """Message of a count; None for counts of a queue and in other lists."""


@dataclass(frozen=True, slots=True)
class PopList:
    """A list of a POP response (startOffsetInfo, msgOffsetInfo, orderCountInfo)."""

    entries: tuple[PopEntry, ...]
    """Entries in order."""
    unreadable: int = 0
    """Number of invalid entries."""


def decode_pop_list(text: str) -> PopList:
    """Decode any of the three lists of a POP response."""
    entries: list[PopEntry] = []
    unreadable = 0
    for part in text.split(_ENTRY_SEPARATOR):
        entry = _decode_entry(part)
        if entry is not None:
            entries.append(entry)
        elif part:
            unreadable += 1
    return PopList(tuple(entries), unreadable)


def _decode_entry(part: str) -> PopEntry | None:
    fields = part.split(_FIELD_SEPARATOR)
    if len(fields) != 3:
        return None
    queue, queue_offset = fields[1], None
    if queue.startswith(_ORDER_OFFSET_PREFIX):
        queue, _, offset = queue.removeprefix(_ORDER_OFFSET_PREFIX).partition("%")
        queue_offset = integer_of(offset)
        if queue_offset is None:
            return None
    queue_id = integer_of(queue)
    numbers = [integer_of(number) for number in fields[2].split(",")]
    known = tuple(number for number in numbers if number is not None)
    if queue_id is None or len(known) < len(numbers):
        return None
    return PopEntry(fields[0], queue_id, known, queue_offset)


def encode_pop_list(entries: tuple[PopEntry, ...]) -> str:
    """Encode a POP response list."""
    return _ENTRY_SEPARATOR.join(
        f"{entry.topic_kind} {_queue_of(entry)} {','.join(map(str, entry.numbers))}"
        for entry in entries
    )


def _queue_of(entry: PopEntry) -> str:
    if entry.queue_offset is None:
        return str(entry.queue_id)
    return f"{_ORDER_OFFSET_PREFIX}{entry.queue_id}%{entry.queue_offset}"


def decode_bit_set(text: str) -> tuple[int, ...] | None:
    """Return the positions of set bits in a batch ack, or None if the text is not base64.

    The bytes are little-endian: bit i is the message at start offset + i. Of longer texts the first
    65544 bits are read.
    """
    data = base64_of(text[:_MOST_BIT_TEXT])
    if data is None:
        return None
    places: list[int] = []
    for byte_at, byte in enumerate(data):
        places += [byte_at * 8 + bit for bit in range(8) if byte >> bit & 1]
    return tuple(places)


def encode_bit_set(places: tuple[int, ...]) -> str:
    """Encode bits as base64, like Java's BitSet; raise ValueError for positions out of range."""
    if min(places, default=0) < 0 or max(places, default=0) >= _MOST_BIT_TEXT * 6:
        raise ValueError("a batch ack has no bit at such a place")
    data = bytearray(max(places, default=-1) // 8 + 1)
    for place in places:
        data[place // 8] |= 1 << place % 8
    return base64.b64encode(bytes(data)).decode()


class PopRecordId(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The UNIQ_KEY of a broker's own POP record in the revive topic."""

    kind: str
    """`ck` (check point), `ack` or `bAck`."""
    topic: str
    """Topic that was popped."""
    queue_id: int
    """Its queue."""
    offset: str
    """Start offset, acked offset or the list of acked offsets."""
    consumer_group: str
    """Consumer group."""
    pop_time: int
    """When it was popped, ms since the epoch."""
    broker_name: str | None = None
    """Broker of the queue; absent for `bAck`."""


def decode_pop_record_id(text: str) -> PopRecordId | None:
    """Parse such an id, whose parts are joined by `@`, or return None."""
    kind = text.rpartition("@")[2]
    count = {"ck": 7, "ack": 7, "bAck": 6}.get(kind)
    # Topics, groups, and brokers contain no "@"; a text with more parts is something else.
    fields = text.split("@")
    if count is None or len(fields) != count:
        return None
    queue_id, pop_time = integer_of(fields[1]), integer_of(fields[4])
    if queue_id is None or pop_time is None:
        return None
    broker_name = fields[5] if count == 7 else None
    return PopRecordId(kind, fields[0], queue_id, fields[2], fields[3], pop_time, broker_name)
