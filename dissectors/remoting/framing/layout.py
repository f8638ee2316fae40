"""The prefix of a frame and its limit: spelled once, for decoding, encoding and resynchronising.

A frame is four bytes total length (not counting themselves), one byte serialization type, three
bytes header length, header, body.

RocketMQ: NettyDecoder, RemotingCommand.
"""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64

from ..header_codec import BINARY_TYPE, JSON_TYPE, MIN_BINARY_HEADER

PREFIX: Final = 8
"""bytes of total length, serialization type and header length"""
_BEGIN_OF_JSON: Final = re.compile(rb"[\0-\x20\x7f\xef\xbb\xbf]*(?:\{|/[/*])")
"""what Java's readers pass over before an object, and how it begins"""
MAX_FRAME: Final = 16 * 1024 * 1024
"""largest frame with its four length bytes: RocketMQ's com.rocketmq.remoting.frameMaxLength"""


def total_of(prefix: i64) -> i64:
    """Return the total length that a prefix says, negative where its top bit is set."""
    return prefix >> 32


def type_of(prefix: i64) -> i64:
    """Return the serialization type that a prefix says."""
    return (prefix >> 24) & 0xFF


def header_length_of(prefix: i64) -> i64:
    """Return the header length that a prefix says."""
    return prefix & 0xFFFFFF


def is_prefix(prefix: i64) -> bool:
    """Return whether eight bytes can be a frame's prefix."""
    total: i64 = total_of(prefix)
    header: i64 = header_length_of(prefix)
    if total + 4 > MAX_FRAME or header > total - 4:
        return False
    kind: i64 = type_of(prefix)
    if kind == JSON_TYPE:
        return header >= 2
    return kind == BINARY_TYPE and header >= MIN_BINARY_HEADER


def is_no_json(prefix: i64, data: bytes, at: i64) -> bool:
    """Return whether the header at this place is said to be JSON and is not an object."""
    if type_of(prefix) != JSON_TYPE or data[at] == 0x7B:
        return False
    begin = _BEGIN_OF_JSON.match(data, at, at + header_length_of(prefix))
    return begin is None


def encode_frame(serialize_type: int, header: bytes, body: bytes = b"") -> bytes:
    """Return a frame as bytes. Raises ValueError where it is over the frame limit."""
    total = 4 + len(header) + len(body)
    if total + 4 > MAX_FRAME:
        raise ValueError(f"a frame of {total + 4} bytes: at most {MAX_FRAME} are accepted")
    prefix = total.to_bytes(4, "big") + bytes((serialize_type,)) + len(header).to_bytes(3, "big")
    return prefix + header + body
