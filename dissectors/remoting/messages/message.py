"""Stored messages, V1 and V2: fields and encoding.

The byte order is defined once, in `record_layout`; `records` decodes it. RocketMQ: MessageVersion,
MessageExtEncoder, CommitLog.
"""

from __future__ import annotations

import zlib
from typing import Final

import msgspec
from msgspec.structs import replace

from ...budget import Budget
from ..ids.message_ids import encode_offset_id
from ..sysflag import HOST_BITS, SysFlag, compression_of, transaction_of
from .compression import DEFAULT_LIMIT, DecompressedBody, decompress
from .record_layout import (
    CRC_DIGITS,
    CRC_MASK,
    CRC_PROPERTY,
    FIXED,
    MAGIC_V1,
    MAGIC_V2,
    V1_TOPIC_LIMIT,
    address_of,
    crc_digits,
    encode_properties_bytes,
)


class StoredMessage(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A record as a broker stores and delivers it; names and units are RocketMQ's.

    Equality ignores the place of the record and the spelling of its properties.
    """

    topic: str
    """Stored topic; retried and scheduled messages have the original topic in a property."""
    body: bytes = b""
    """The body as stored: compressed when `sys_flag` says so."""
    properties: dict[str, str] = {}
    """All properties, in the order written."""
    total_size: int = 0
    """Size of the record, by its size field."""
    magic: int = MAGIC_V1
    """`MAGIC_V1` or `MAGIC_V2`."""
    body_crc: int = 0
    """CRC-32 of the stored body in the record, top bit cleared."""
    queue_id: int = 0
    """Queue of the topic."""
    flag: int = 0
    """The application's flag; RocketMQ does not look at it."""
    queue_offset: int = 0
    """Offset in the queue; 0 in prepared and rollback records."""
    physical_offset: int = 0
    """Byte offset in the commit log."""
    sys_flag: int = 0
    """Bits of `SysFlag`, and the transaction and compression types."""
    born_timestamp: int = 0
    """When the producer sent it, ms since the epoch."""
    born_host: str = "0.0.0.0:0"
    """The producer's address, `ip:port`, IPv6 in brackets; empty if unknown."""
    store_timestamp: int = 0
    """When the broker stored it, ms since the epoch."""
    store_host: str = "0.0.0.0:0"
    """The broker's address, like `born_host`."""
    reconsume_times: int = 0
    """Number of returns by consumers."""
    prepared_transaction_offset: int = 0
    """Commit log offset of the half message that this record ends; 0 for others."""
    offset: int = 0
    """Byte offset of the record in its body."""
    missing: int = 0
    """Bytes of the record that were not captured; unread fields have their defaults."""
    raw_properties: bytes | None = None
    """The properties as bytes; None for a message that was not decoded."""
    properties_crc_ok: bool | None = None
    """Whether the property `__CRC32#` matches the record, or None if absent."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredMessage):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in COMPARED)

    @property
    def version(self) -> int:
        """1 or 2, by the magic."""
        return 2 if self.magic == MAGIC_V2 else 1

    @property
    def crc_ok(self) -> bool | None:
        """Whether the body matches its CRC; None for a truncated record or without a CRC."""
        # Producers leave the CRC of batch items 0.
        if self.missing or (self.body_crc == 0 and self.body):
            return None
        return zlib.crc32(self.body) & CRC_MASK == self.body_crc

    @property
    def offset_msg_id(self) -> str | None:
        """Message id from store host and commit log offset, or None if the host is unknown."""
        return encode_offset_id(self.store_host, self.physical_offset)

    @property
    def unique_key(self) -> str | None:
        """Message id assigned by the producer (property UNIQ_KEY)."""
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
        """Compression of the body, or None."""
        return compression_of(self.sys_flag)

    def decompressed(
        self, limit: int = DEFAULT_LIMIT, budget: Budget | None = None
    ) -> DecompressedBody:
        """Return the body as the application sees it, up to `limit` bytes.

        Decompression is limited by `budget`.
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
        """Return the message with updated derived fields: size, CRCs, version, host bits."""
        sys_flag = self.sys_flag & ~HOST_BITS
        sys_flag |= SysFlag.BORNHOST_V6 if "[" in self.born_host else 0
        sys_flag |= SysFlag.STOREHOST_V6 if "[" in self.store_host else 0
        long_topic = len(self.topic.encode()) > V1_TOPIC_LIMIT  # as a broker decides it
        properties = dict(self.properties)
        # The CRC of a record covers everything before its entry, which is therefore the last one.
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


_NOT_COMPARED: Final = {"offset", "missing", "raw_properties", "properties_crc_ok"}
COMPARED: Final = tuple(n for n in StoredMessage.__struct_fields__ if n not in _NOT_COMPARED)
"""Fields compared for equality."""


def encode_message(message: StoredMessage) -> bytes:
    """Encode the record of a message, with a computed size and all other fields unchanged.

    Raise ValueError if it is invalid: a part is truncated or too long, or a host does not fit the
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
