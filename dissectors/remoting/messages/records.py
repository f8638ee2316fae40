"""Decode stored messages, V1 and V2: records of pull, pop, query, view, and check bodies.

Every complete record is decoded; of a truncated one, the present part. Oddities of a record are
problems with its offset, never exceptions; decoding stops where the chain of sizes breaks, and the
rest is returned unchanged. RocketMQ: MessageDecoder.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from .message import StoredMessage
from .record_layout import (
    BORN_PORT,
    FIELD_ENDS,
    FIXED,
    MAGIC_FILLER,
    MAGIC_V2,
    MIN_FILLER_SIZE,
    MIN_RECORD_SIZE,
    RECORD_MAGICS,
    SIZE_AND_MAGIC,
    STORE_PORT,
    SYS_FLAG,
    SYS_FLAG_AT,
    host_of,
    properties_crc_ok_of,
    properties_of,
)


class MessageList(NamedTuple):
    """Records of a body, and its problems."""

    messages: tuple[StoredMessage, ...]
    """Records in order; the last one may be truncated (`missing`)."""
    problems: tuple[tuple[int, str], ...] = ()
    """(offset in the body, problem)."""
    rest: bytes = b""
    """Bytes after the place where decoding stopped."""


def decode_messages(body: bytes) -> MessageList:
    """Decode all records of a body made of stored messages; never raises."""
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
    """Decode the record at `at` and return its size; 0 if decoding must stop."""
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
    """The part of a record after its fixed fields."""

    body: bytes = b""
    topic: str = ""
    raw_properties: bytes | None = None
    end: int = 0
    problem: str | None = None


def _decode_record(
    data: bytes, at: int, size: int, missing: int
) -> tuple[StoredMessage, str | None]:
    """Decode a record with `size` bytes at `at` and `missing` uncaptured ones."""
    hosts = _hosts_of(data, at, size)
    fixed, ends = FIXED[hosts], FIELD_ENDS[hosts]
    stop = at + size
    if size >= fixed.size:
        readable = fixed.size
        values = fixed.unpack_from(data, at)
        tail = _decode_tail(data, at + fixed.size, stop, missing, values[16], values[1])
    else:
        readable = ends[bisect_right(ends, size) - 1]
        # Fields that are not complete are 0, and not the start of their bytes.
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
    """Return which hosts are IPv6, as in `FIXED`; 0 if the record ends before."""
    if size < SYS_FLAG_AT + 4:
        return 0
    sys_flag: int = SYS_FLAG.unpack_from(data, at + SYS_FLAG_AT)[0]
    # Bits 0x10 (born host) and 0x20 (store host).
    return sys_flag >> 4 & 3


def _decode_tail(
    data: bytes, at: int, stop: int, missing: int, body_length: int, magic: int
) -> _Tail:
    """Decode body, topic, and properties from `at`, each only if its length is plausible.

    `end` is the end of the properties, beyond `stop` if they are truncated.
    """
    topic_at = at + body_length
    if body_length < 0 or topic_at > stop + missing:
        return _Tail(end=stop, problem=f"body length {body_length} does not fit the record")
    body = data[at : min(topic_at, stop)]
    # Brokers of 5.x write V2 only for topics longer than 127 bytes.
    width = 2 if magic == MAGIC_V2 else 1
    if topic_at + width > stop:
        return _Tail(body, "", None, stop, "the record ends before its topic")
    topic_length = int.from_bytes(data[topic_at : topic_at + width], "big")
    size_at = topic_at + width + topic_length
    if size_at > stop + missing:
        return _Tail(body, "", None, stop, f"topic length {topic_length} does not fit the record")
    if size_at + 2 > stop:
        # A truncated name would be that of another topic.
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
