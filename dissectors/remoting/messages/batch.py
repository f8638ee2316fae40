"""Batches: the body of a batch send, and the inner batches of stored messages.

A batch body is consecutive items, each with its own properties; everything else (topic, queue,
times) is shared and is in the send header or the enclosing record. RocketMQ:
MessageDecoder.encodeMessages, decodeMessages, decodeMessage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from ...budget import Budget
from ..sysflag import COMPRESSION_BITS, UNWRAP_BITS
from .compression import DEFAULT_LIMIT
from .message import StoredMessage
from .record_layout import (
    MIN_FILLER_SIZE,
    MIN_ITEM_SIZE,
    SIZE_AND_MAGIC,
    encode_properties_bytes,
    properties_of,
)

ITEM_HEAD: Final = struct.Struct(">iIiii")
"""Size, magic, body CRC, flag and body length of an item."""


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One message of a batch."""

    body: bytes
    """The body; clients never compress the items of a batch."""
    properties: dict[str, str] = field(default_factory=dict)
    """All properties, in the order written."""
    flag: int = 0
    """The application's flag."""
    body_crc: int = 0
    """CRC-32 of the body; 0, because clients do not fill it in."""
    offset: int = field(default=0, compare=False)
    """Where the item starts in the batch, bytes."""
    missing: int = field(default=0, compare=False)
    """Bytes of the item that were not captured."""
    raw_properties: bytes | None = field(default=None, compare=False, repr=False)
    """The properties as bytes; None for an item that was not decoded."""


@dataclass(frozen=True, slots=True)
class BatchList:
    """Items of a batch, and its problems."""

    items: tuple[BatchItem, ...]
    """Items in order; the last one may be truncated (`missing`)."""
    problems: tuple[tuple[int, str], ...] = ()
    """(offset in the batch, problem)."""
    rest: bytes = b""
    """Bytes after the place where decoding stopped."""


def decode_batch(body: bytes) -> BatchList:
    """Decode all items of a batch send body; never raises."""
    items: list[BatchItem] = []
    problems: list[tuple[int, str]] = []
    at = 0
    while at < len(body):
        left = len(body) - at
        problem = _why_not_an_item(body, at, left)
        if problem is not None:
            problems.append((at, problem))
            break
        size = SIZE_AND_MAGIC.unpack_from(body, at)[0]
        item, problem = _decode_item(body, at, min(size, left), max(size - left, 0))
        items.append(item)
        if size > left:
            problems.append((at, f"item of {size} bytes is cut after {left}"))
        elif problem is not None:
            problems.append((at, problem))
        at += min(size, left)
    return BatchList(tuple(items), tuple(problems), body[at:])


def starts_batch(body: bytes) -> bool:
    """Return whether a batch send body has an item, complete or cut."""
    return bool(body) and _why_not_an_item(body, 0, len(body)) is None


def _why_not_an_item(body: bytes, at: int, left: int) -> str | None:
    if left < MIN_FILLER_SIZE:
        return f"{left} bytes are too few for an item"
    size, magic = SIZE_AND_MAGIC.unpack_from(body, at)
    if magic != 0:
        return f"magic {magic:#010x} marks no batch item"
    return f"size {size} is too small for an item" if size < MIN_ITEM_SIZE else None


def _decode_item(data: bytes, at: int, size: int, missing: int) -> tuple[BatchItem, str | None]:
    """Decode an item with `size` bytes at `at` and `missing` uncaptured ones."""
    stop = at + size
    if size < ITEM_HEAD.size:
        return BatchItem(b"", offset=at, missing=missing), "the item ends inside its fixed part"
    _, _, crc, flag, length = ITEM_HEAD.unpack_from(data, at)
    body_at = at + ITEM_HEAD.size
    size_at = body_at + length
    # A length must fit what was sent, of which the last bytes may not have been captured.
    if length < 0 or size_at + 2 > stop + missing:
        problem = f"body length {length} does not fit the item"
        return BatchItem(b"", {}, flag, crc, at, missing), problem
    body = data[body_at : min(size_at, stop)]
    if size_at + 2 > stop:
        return BatchItem(body, {}, flag, crc, at, missing), "the item ends before its properties"
    properties_length = int.from_bytes(data[size_at : size_at + 2], "big")
    end = size_at + 2 + properties_length
    if end > stop + missing:
        problem = f"properties length {properties_length} does not fit the item"
        return BatchItem(body, {}, flag, crc, at, missing), problem
    raw = data[size_at + 2 : min(end, stop)]
    properties = properties_of(raw, cut=end > stop)
    item = BatchItem(body, properties, flag, crc, at, missing, raw)
    if end < stop:
        return item, f"{stop - end} bytes follow the properties inside the item"
    return item, None


def encode_batch(items: Iterable[BatchItem]) -> bytes:
    """Encode the body of a batch send; raise ValueError for invalid items."""
    parts: list[bytes] = []
    for item in items:
        properties = encode_properties_bytes(item.properties, item.raw_properties)
        if item.missing or len(properties) >= 1 << 16:
            raise ValueError("a batch item is cut, or its properties are too long")
        size = ITEM_HEAD.size + len(item.body) + 2 + len(properties)
        parts.append(ITEM_HEAD.pack(size, 0, item.body_crc, item.flag, len(item.body)))
        parts += (item.body, len(properties).to_bytes(2, "big"), properties)
    return b"".join(parts)


def is_inner_batch(message: StoredMessage) -> bool:
    """Return whether the body of a record is a batch that the client unpacks."""
    return message.sys_flag & UNWRAP_BITS == UNWRAP_BITS


def unwrap_inner_batch(
    message: StoredMessage, limit: int = DEFAULT_LIMIT, budget: Budget | None = None
) -> list[StoredMessage]:
    """Return the messages of a record: itself, or the items of its inner batch.

    Items have the queue offsets of their places and all shared fields of the record, except the
    compression bits, which are cleared. An unreadable batch gives the record itself.
    """
    if not is_inner_batch(message):
        return [message]
    batch = decode_batch(message.decompressed(limit, budget).data)
    if not batch.items:
        return [message]
    sys_flag = message.sys_flag
    if message.compression is not None:  # the batch was compressed, not its items
        sys_flag &= ~COMPRESSION_BITS
    return [
        replace(
            message,
            body=item.body,
            properties=item.properties,
            raw_properties=item.raw_properties,
            properties_crc_ok=None,
            flag=item.flag,
            body_crc=item.body_crc,
            queue_offset=message.queue_offset + place,
            sys_flag=sys_flag,
            missing=item.missing,
        )
        for place, item in enumerate(batch.items)
    ]
