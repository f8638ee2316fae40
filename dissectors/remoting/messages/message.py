"""Stored messages, V1 and V2: the records of pull, pop, query, view and check bodies.

Every record that is whole is decoded; of one that is cut, what is there. The order of the bytes is
spelled once, in `record_layout`: decode, encode and the reading of cut records all follow it. What
is odd about a record is a problem with its offset, never an exception; decoding stops where the
chain of sizes breaks, and the rest is handed out as it is.
RocketMQ: MessageDecoder, MessageVersion, MessageExtEncoder, CommitLog.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ...budget import Budget
from ..ids.message_ids import encode_offset_id
from ..sysflag import HOST_BITS, SysFlag, compression_of, transaction_of
from .compression import DEFAULT_LIMIT, DecompressedBody, decompress
from .counting import (
    MAGIC_FILLER,
    MAGIC_V1,
    MAGIC_V2,
    MIN_FILLER_SIZE,
    MIN_RECORD_SIZE,
    RECORD_MAGICS,
    count_batch,
    count_messages,
)
from .record_layout import (
    BORN_PORT,
    CRC_DIGITS,
    CRC_MASK,
    CRC_PROPERTY,
    FIELD_ENDS,
    FIXED,
    SIZE_AND_MAGIC,
    STORE_PORT,
    SYS_FLAG,
    SYS_FLAG_AT,
    V1_TOPIC_LIMIT,
    address_of,
    crc_digits,
    encode_properties_bytes,
    host_of,
    properties_crc_ok_of,
    properties_of,
)

__all__ = [
    "MAGIC_V1",
    "MAGIC_V2",
    "MessageList",
    "StoredMessage",
    "count_batch",
    "count_messages",
    "decode_messages",
    "encode_message",
]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One record as a broker stores and delivers it; names and units are RocketMQ's.

    Equality leaves out where the record was found and how its properties were spelled.
    """

    topic: str
    """Topic that it was read from; retried and scheduled messages name theirs in a property."""
    body: bytes = b""
    """The body as stored: compressed when `sys_flag` says so."""
    properties: dict[str, str] = field(default_factory=dict)
    """All properties, in the order written."""
    total_size: int = 0
    """Bytes of the record, as it says itself."""
    magic: int = MAGIC_V1
    """`MAGIC_V1` or `MAGIC_V2`."""
    body_crc: int = 0
    """CRC-32 of the stored body, top bit cleared, as the record says."""
    queue_id: int = 0
    """Queue of the topic."""
    flag: int = 0
    """The application's flag; RocketMQ does not look at it."""
    queue_offset: int = 0
    """Place in the queue; 0 in prepared and rollback records."""
    physical_offset: int = 0
    """Byte offset in the commit log."""
    sys_flag: int = 0
    """Bits of `SysFlag`, and the transaction and compression types."""
    born_timestamp: int = 0
    """When the producer sent it, ms since the epoch."""
    born_host: str = "0.0.0.0:0"
    """The producer's address, `ip:port`, IPv6 in brackets; empty when not read."""
    store_timestamp: int = 0
    """When the broker stored it, ms since the epoch."""
    store_host: str = "0.0.0.0:0"
    """The broker's address, as `born_host`."""
    reconsume_times: int = 0
    """How often it was given back by consumers."""
    prepared_transaction_offset: int = 0
    """Commit log offset of the half message that this record ends; 0 for others."""
    offset: int = field(default=0, compare=False)
    """Where the record starts in the body that it came from, bytes."""
    missing: int = field(default=0, compare=False)
    """Bytes of the record that are not there; fields that could not be read have their defaults."""
    raw_properties: bytes | None = field(default=None, compare=False, repr=False)
    """The properties as the bytes say them; None for a message that was not decoded."""
    properties_crc_ok: bool | None = field(default=None, compare=False)
    """Whether the property `__CRC32#` fits the record; None where there is none."""

    @property
    def version(self) -> int:
        """1 or 2, by the magic."""
        return 2 if self.magic == MAGIC_V2 else 1

    @property
    def crc_ok(self) -> bool | None:
        """Whether the body has its CRC; None for a cut record and where no CRC was filled in."""
        if self.missing or (self.body_crc == 0 and self.body):
            return None
        return zlib.crc32(self.body) & CRC_MASK == self.body_crc

    @property
    def offset_msg_id(self) -> str | None:
        """The id made of store host and commit log offset; None when the host was not read."""
        return encode_offset_id(self.store_host, self.physical_offset)

    @property
    def unique_key(self) -> str | None:
        """The id that the producer gave to the message (property UNIQ_KEY)."""
        return self.properties.get("UNIQ_KEY")

    @property
    def tags(self) -> str | None:
        """Property TAGS: one tag, by RocketMQ's rules."""
        return self.properties.get("TAGS")

    @property
    def keys(self) -> tuple[str, ...]:
        """The business keys of property KEYS."""
        return tuple(self.properties.get("KEYS", "").split())

    @property
    def transaction(self) -> str:
        """ "none", "prepared" (a half message), "commit" or "rollback"."""
        return transaction_of(self.sys_flag)

    @property
    def compression(self) -> str | None:
        """How the body is compressed; None when it is not."""
        return compression_of(self.sys_flag)

    def decompressed(
        self, limit: int = DEFAULT_LIMIT, budget: Budget | None = None
    ) -> DecompressedBody:
        """Return the body as the application sees it, at most `limit` bytes of it.

        Of a compressed body no more than `budget` has room for.
        """
        kind = compression_of(self.sys_flag)
        if kind is not None:
            if budget is None:
                return decompress(self.body, kind, limit)
            output = decompress(self.body, kind, min(limit, budget.room))
            budget.spend(len(output.data))
            return output
        return DecompressedBody(self.body[:limit], truncated=len(self.body) > limit)

    def sealed(self) -> StoredMessage:
        """Return the same message with what follows from its parts: size, CRCs, version,
        host bits.
        """
        sys_flag = self.sys_flag & ~HOST_BITS
        sys_flag |= SysFlag.BORNHOST_V6 if "[" in self.born_host else 0
        sys_flag |= SysFlag.STOREHOST_V6 if "[" in self.store_host else 0
        long_topic = len(self.topic.encode()) > V1_TOPIC_LIMIT
        properties = dict(self.properties)
        if properties.pop(CRC_PROPERTY, None) is not None:
            properties[CRC_PROPERTY] = "0" * CRC_DIGITS
        message = replace(
            self,
            properties=properties,
            magic=MAGIC_V2 if long_topic else self.magic,
            body_crc=zlib.crc32(self.body) & CRC_MASK,
            sys_flag=int(sys_flag),
            missing=0,
        )
        record = encode_message(message)
        if CRC_PROPERTY in properties:
            properties[CRC_PROPERTY] = crc_digits(record)
            message = replace(message, raw_properties=None, properties_crc_ok=True)
        return replace(message, total_size=len(record))


@dataclass(frozen=True, slots=True)
class MessageList:
    """The records of a body, and what is wrong with it."""

    messages: tuple[StoredMessage, ...]
    """The records in order; the last one may be cut (`missing`)."""
    problems: tuple[tuple[int, str], ...] = ()
    """(offset in the body, what is wrong there)."""
    rest: bytes = b""
    """What follows the place where decoding had to stop."""


def decode_messages(body: bytes) -> MessageList:
    """All records of a body made of stored messages; never raises."""
    messages: list[StoredMessage] = []
    problems: list[tuple[int, str]] = []
    at = 0
    while at < len(body):
        step = _decode_at(body, at, messages, problems)
        if step == 0:
            break
        at += step
    return MessageList(tuple(messages), tuple(problems), body[at:])


def _decode_at(
    body: bytes, at: int, messages: list[StoredMessage], problems: list[tuple[int, str]]
) -> int:
    """Bytes that were taken at `at`; 0 where decoding has to stop."""
    left = len(body) - at
    if left < MIN_FILLER_SIZE:
        problems.append((at, f"{left} bytes are too few for a record"))
        return 0
    size: int
    size, magic = SIZE_AND_MAGIC.unpack_from(body, at)
    if magic == MAGIC_FILLER:
        problems.append((at, f"file end filler of {size} bytes"))
        return min(size, left) if size >= MIN_FILLER_SIZE else 0
    if magic not in RECORD_MAGICS:
        problems.append((at, f"magic {magic:#010x} marks no message"))
        return 0
    if size < MIN_RECORD_SIZE:
        problems.append((at, f"size {size} is too small for a record"))
        return 0
    message, problem = _decode_record(body, at, min(size, left), max(size - left, 0))
    messages.append(message)
    if size > left:
        problems.append((at, f"record of {size} bytes is cut after {left}"))
    elif problem is not None:
        problems.append((at, problem))
    return min(size, left)


class _Tail(NamedTuple):
    """What follows the fixed part of a record."""

    body: bytes = b""
    topic: str = ""
    raw_properties: bytes | None = None
    end: int = 0
    problem: str | None = None


def _decode_record(
    data: bytes, at: int, size: int, missing: int
) -> tuple[StoredMessage, str | None]:
    """Return the record of which `size` bytes are at `at`, and `missing` more are not there."""
    hosts = _hosts_of(data, at, size)
    fixed, ends = FIXED[hosts], FIELD_ENDS[hosts]
    stop = at + size
    if size >= fixed.size:
        readable = fixed.size
        values = fixed.unpack_from(data, at)
        tail = _decode_tail(data, at + fixed.size, stop, missing, values[16], values[1])
    else:
        readable = ends[bisect_right(ends, size) - 1]
        values = fixed.unpack(data[at : at + readable].ljust(fixed.size, b"\0"))
        tail = _Tail(end=stop, problem="the record ends inside its fixed part")
    raw = tail.raw_properties
    message = StoredMessage(
        tail.topic,
        tail.body,
        properties_of(raw, cut=tail.end > stop) if raw else {},
        values[0],
        values[1],
        values[2],
        values[3],
        values[4],
        values[5],
        values[6],
        values[7],
        values[8],
        host_of(values[9], values[10]) if readable >= ends[BORN_PORT] else "",
        values[11],
        host_of(values[12], values[13]) if readable >= ends[STORE_PORT] else "",
        values[14],
        values[15],
        at,
        missing,
        raw,
        properties_crc_ok_of(data[at:stop], raw) if raw and not (missing or tail.problem) else None,
    )
    return message, tail.problem


def _hosts_of(data: bytes, at: int, size: int) -> int:
    """Which hosts are IPv6, as `FIXED` counts them; 0 when the record ends before it says so."""
    if size < SYS_FLAG_AT + 4:
        return 0
    sys_flag: int = SYS_FLAG.unpack_from(data, at + SYS_FLAG_AT)[0]
    return sys_flag >> 4 & 3


def _decode_tail(
    data: bytes, at: int, stop: int, missing: int, body_length: int, magic: int
) -> _Tail:
    """Body, topic and properties from `at`; each is given only when its length can be true.

    `end` is where the properties end, beyond `stop` when they are cut.
    """
    topic_at = at + body_length
    if body_length < 0 or topic_at > stop + missing:
        return _Tail(end=stop, problem=f"body length {body_length} does not fit the record")
    body = data[at : min(topic_at, stop)]
    width = 2 if magic == MAGIC_V2 else 1
    if topic_at + width > stop:
        return _Tail(body, "", None, stop, "the record ends before its topic")
    topic_length = int.from_bytes(data[topic_at : topic_at + width], "big")
    size_at = topic_at + width + topic_length
    if size_at > stop + missing:
        return _Tail(body, "", None, stop, f"topic length {topic_length} does not fit the record")
    if size_at + 2 > stop:
        known = data[topic_at + width : size_at] if size_at <= stop else b""
        topic = known.decode("utf-8", "replace")
        return _Tail(body, topic, None, stop, "the record ends before its properties")
    topic = data[topic_at + width : size_at].decode("utf-8", "replace")
    properties_length = int.from_bytes(data[size_at : size_at + 2], "big")
    end = size_at + 2 + properties_length
    if end > stop + missing:
        problem = f"properties length {properties_length} does not fit the record"
        return _Tail(body, topic, None, stop, problem)
    slack = f"{stop - end} bytes follow the properties inside the record" if end < stop else None
    return _Tail(body, topic, data[size_at + 2 : min(end, stop)], end, slack)


def encode_message(message: StoredMessage) -> bytes:
    """Return the record of a message, with its size computed and all else as the message says.

    ValueError when it cannot be a record: a part is cut or too long, or a host does not fit the
    host bits of `sys_flag` (`StoredMessage.sealed` sets them).
    """
    if message.missing:
        raise ValueError(f"{message.missing} bytes of the message are missing")
    topic = message.topic.encode()
    properties = encode_properties_bytes(message.properties, message.raw_properties)
    width = 2 if message.magic == MAGIC_V2 else 1
    if len(topic) >= 1 << 8 * width or len(properties) >= 1 << 16:
        raise ValueError("the topic or the properties are too long for a record")
    born, store = address_of(message.born_host), address_of(message.store_host)
    hosts = (len(born[0]) == 16) + 2 * (len(store[0]) == 16)
    if hosts != message.sys_flag >> 4 & 3:
        raise ValueError("the host bits of sys_flag do not fit the hosts")
    fixed = FIXED[hosts]
    tail = len(message.body) + width + len(topic) + 2 + len(properties)
    head = fixed.pack(
        fixed.size + tail,
        message.magic,
        message.body_crc,
        message.queue_id,
        message.flag,
        message.queue_offset,
        message.physical_offset,
        message.sys_flag,
        message.born_timestamp,
        *born,
        message.store_timestamp,
        *store,
        message.reconsume_times,
        message.prepared_transaction_offset,
        len(message.body),
    )
    topic_part = len(topic).to_bytes(width, "big") + topic
    return head + message.body + topic_part + len(properties).to_bytes(2, "big") + properties
