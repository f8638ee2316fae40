"""POP receipts and lists: what a broker hands out with popped messages and wants back.

Texts of another form give None, entries of a list that make no sense are left out and counted;
nothing raises.
RocketMQ: ExtraInfoUtil, PopCheckPoint, BatchAck, PopMessageProcessor.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

from ...foreign import base64_of, integer_of
from ..topic_names import RETRY_PREFIX

TOPIC_KINDS: Final = {"0": "normal", "1": "retry V1", "2": "retry V2"}
"""Which topic the message came from: its own, or the group's POP retry topic in two spellings."""

ORDER_REVIVE_QUEUE: Final = 999
"""Revive queue id of an ordered pop, which has no check point."""

_ENTRY_SEPARATOR: Final = ";"
_FIELD_SEPARATOR: Final = " "
_LEAST_FIELDS: Final = 7
"""Fields of a receipt of a whole range."""
_MOST_FIELDS: Final = 9
"""Fields of a receipt that a proxy completed."""
_ORDER_OFFSET_PREFIX: Final = "qo"
_MOST_BIT_TEXT: Final = 10924
"""Base64 characters read of a batch ack, 65544 bits: more than the messages of any pop."""


@dataclass(frozen=True, slots=True)
class PopReceipt:
    """A receipt: property POP_CK of a popped message, header extraInfo of its ack."""

    check_point_offset: int
    """Queue offset at which the popped range starts."""
    pop_time: int
    """When it was popped, ms since the epoch."""
    invisible_time: int
    """How long nobody else gets it, ms."""
    revive_queue_id: int
    """Queue of the revive topic; `ORDER_REVIVE_QUEUE` for ordered pop."""
    topic_kind: str
    """Key of `TOPIC_KINDS`."""
    broker_name: str
    """Broker that has to get the ack."""
    queue_id: int
    """Queue of the message."""
    queue_offset: int | None = None
    """Offset of the message; None on receipts of a whole range."""
    commit_log_offset: int | None = None
    """Offset of the message in the commit log, which proxies add; None where it is not said."""

    def retry_topic(self, group: str, topic: str) -> str:
        """Return the topic that the ack has to name for a message of `topic` consumed by
        `group`.
        """
        return retry_topic_of(self.topic_kind, group, topic)


def retry_topic_of(topic_kind: str, group: str, topic: str) -> str:
    """Return the topic of a message of that kind (key of `TOPIC_KINDS`), popped from `topic`."""
    if topic_kind == "1":
        return f"{RETRY_PREFIX}{group}_{topic}"
    return f"{RETRY_PREFIX}{group}+{topic}" if topic_kind == "2" else topic


def decode_pop_receipt(text: str) -> PopReceipt | None:
    """Return a receipt taken apart; None when it has fewer than seven fields, or one of the wrong
    kind. Fields behind the ninth are ignored, as by Java.
    """
    fields = text.rstrip(_FIELD_SEPARATOR).split(_FIELD_SEPARATOR, _MOST_FIELDS)[:_MOST_FIELDS]
    if len(fields) < _LEAST_FIELDS:
        return None
    kind, broker_name = fields[4:6]
    numbers = [integer_of(field) for field in (*fields[:4], *fields[6:])]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    offset, pop_time, invisible_time, revive_queue_id, queue_id, *rest = known
    return PopReceipt(
        offset, pop_time, invisible_time, revive_queue_id, kind, broker_name, queue_id, *rest
    )


def encode_pop_receipt(receipt: PopReceipt) -> str:
    """Return the text of a receipt."""
    fields: list[object] = [
        receipt.check_point_offset,
        receipt.pop_time,
        receipt.invisible_time,
        receipt.revive_queue_id,
        receipt.topic_kind,
        receipt.broker_name,
        receipt.queue_id,
    ]
    if receipt.queue_offset is not None:
        fields.append(receipt.queue_offset)
        if receipt.commit_log_offset is not None:
            fields.append(receipt.commit_log_offset)
    return _FIELD_SEPARATOR.join(map(str, fields))


@dataclass(frozen=True, slots=True)
class PopEntry:
    """One entry of a POP response's lists: a queue of a topic kind, and its numbers."""

    topic_kind: str
    """Key of `TOPIC_KINDS`."""
    queue_id: int
    """Queue that the numbers belong to."""
    numbers: tuple[int, ...]
    """startOffsetInfo: the start; msgOffsetInfo: the offsets; orderCountInfo: the count."""
    queue_offset: int | None = None
    """The message that a count belongs to; None for counts of a queue and in other lists."""


@dataclass(frozen=True, slots=True)
class PopList:
    """A list of a POP response (startOffsetInfo, msgOffsetInfo, orderCountInfo)."""

    entries: tuple[PopEntry, ...]
    """Entries in order."""
    unreadable: int = 0
    """Entries that make no sense."""


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
    """Return the text of a POP response's list."""
    return _ENTRY_SEPARATOR.join(
        f"{entry.topic_kind} {_queue_of(entry)} {','.join(map(str, entry.numbers))}"
        for entry in entries
    )


def _queue_of(entry: PopEntry) -> str:
    if entry.queue_offset is None:
        return str(entry.queue_id)
    return f"{_ORDER_OFFSET_PREFIX}{entry.queue_id}%{entry.queue_offset}"


def decode_bit_set(text: str) -> tuple[int, ...] | None:
    """Return the places of the bits that a batch ack sets; None when the text is not base64.

    The bytes are little-endian: bit i stands for the message at start offset + i. Of
    longer texts the first 65544 bits are read.
    """
    data = base64_of(text[:_MOST_BIT_TEXT])
    if data is None:
        return None
    places: list[int] = []
    for byte_at, byte in enumerate(data):
        places += [byte_at * 8 + bit for bit in range(8) if byte >> bit & 1]
    return tuple(places)


def encode_bit_set(places: tuple[int, ...]) -> str:
    """Return the base64 text of the bits at `places`, as Java's BitSet writes them; ValueError
    beyond.
    """
    if min(places, default=0) < 0 or max(places, default=0) >= _MOST_BIT_TEXT * 6:
        raise ValueError("a batch ack has no bit at such a place")
    data = bytearray(max(places, default=-1) // 8 + 1)
    for place in places:
        data[place // 8] |= 1 << place % 8
    return base64.b64encode(bytes(data)).decode()


@dataclass(frozen=True, slots=True)
class PopRecordId:
    """The UNIQ_KEY of a broker's own POP record in the revive topic."""

    kind: str
    """`ck` (check point), `ack` or `bAck`."""
    topic: str
    """Topic that was popped."""
    queue_id: int
    """Its queue."""
    offset: str
    """Start offset, acked offset or the list of acked offsets."""
    group: str
    """Consumer group."""
    pop_time: int
    """When it was popped, ms since the epoch."""
    broker_name: str | None = None
    """Broker of the queue; absent for `bAck`."""


def decode_pop_record_id(text: str) -> PopRecordId | None:
    """Return the parts of such an id, which are joined by `@`; None for any other text."""
    kind = text.rpartition("@")[2]
    count = {"ck": 7, "ack": 7, "bAck": 6}.get(kind)
    # A topic has no "@" in it, a group or broker neither; what has more parts is something else.
    fields = text.split("@")
    if count is None or len(fields) != count:
        return None
    queue_id, pop_time = integer_of(fields[1]), integer_of(fields[4])
    if queue_id is None or pop_time is None:
        return None
    broker_name = fields[5] if count == 7 else None
    return PopRecordId(kind, fields[0], queue_id, fields[2], fields[3], pop_time, broker_name)
