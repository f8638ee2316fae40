"""Count messages in a body without decoding them, by their size fields, for the hot path.

A count never exceeds what the body proves: it stops at the first impossible size or magic.
RocketMQ: MessageDecoder.decodes (stored records), MessageDecoder.decodeMessages (batch items).
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

MAGIC_V1: Final = 0xDAA320A7
"""Magic of a stored record with a topic length of one byte."""
MAGIC_V2: Final = 0xDAA320AB
"""Magic of a stored record with a topic length of two bytes."""
RECORD_MAGICS: Final = (MAGIC_V1, MAGIC_V2)
"""Both kinds of stored record."""
MAGIC_FILLER: Final = 0xCBD43194
"""Magic of the unused end of a commit log file."""

MIN_RECORD_SIZE: Final = 91
"""Bytes of a V1 record with IPv4 hosts, no body, no topic and no properties."""
MIN_FILLER_SIZE: Final = 8
"""Bytes of the smallest file end filler: its size and its magic."""
MIN_ITEM_SIZE: Final = 22
"""Bytes of a batch item with neither body nor properties."""


def count_messages(body: bytes, missing: int = 0) -> int:
    """Return the number of stored records in a pull, pop or query body.

    `missing` is the number of uncaptured bytes: a truncated last record counts only if the missing
    bytes can hold its rest, because then it was sent completely. Records entirely in the missing
    part do not count.
    """
    at: i64 = 0
    count: i64 = 0
    end: i64 = len(body)
    absent: i64 = missing
    while end - at >= MIN_FILLER_SIZE:
        size: i64 = i64(read_i32_be(body, at))
        magic: i64 = read_i64_be(body, at) & 0xFFFFFFFF  # unsigned, unlike read_i32_be
        if magic == MAGIC_V1 or magic == MAGIC_V2:  # noqa: SIM109 (compiled: no tuple)
            if size < MIN_RECORD_SIZE or size > end - at + absent:
                break
            count += 1
        elif magic != MAGIC_FILLER or size < MIN_FILLER_SIZE:
            break
        at += size
    return int(count)


def count_batch(body: bytes, missing: int = 0) -> int:
    """Return the number of items in a batch send body; `missing` as for `count_messages`."""
    at: i64 = 0
    count: i64 = 0
    end: i64 = len(body)
    absent: i64 = missing
    while end - at >= MIN_FILLER_SIZE:
        size: i64 = i64(read_i32_be(body, at))
        magic: i64 = read_i64_be(body, at) & 0xFFFFFFFF
        if magic != 0 or size < MIN_ITEM_SIZE or size > end - at + absent:
            break
        count += 1
        at += size
    return int(count)
