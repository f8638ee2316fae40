"""A frame cut out of a stream; layout and limit of its prefix, for decoding and encoding.

A frame is four bytes total length (not counting themselves), one byte serialization type, three
bytes header length, header, body. RocketMQ: NettyDecoder, RemotingCommand.
"""

from __future__ import annotations

import re
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from ..header_codec import BINARY_TYPE, JSON_TYPE, MIN_BINARY_HEADER

PREFIX: Final = 8
"""bytes of total length, serialization type and header length"""
_BEGIN_OF_JSON: Final = re.compile(rb"[\0-\x20\x7f\xef\xbb\xbf]*(?:\{|/[/*])")
"""bytes that Java's readers skip before an object, and its start"""
MAX_FRAME: Final = 16 * 1024 * 1024
"""largest frame with its four length bytes: RocketMQ's com.rocketmq.remoting.frameMaxLength"""


def total_of(prefix: i64) -> i64:
    """Return the total length in a prefix; negative if its top bit is set."""
    return prefix >> 32


def type_of(prefix: i64) -> i64:
    """Return the serialization type in a prefix."""
    return (prefix >> 24) & 0xFF


def header_length_of(prefix: i64) -> i64:
    """Return the header length in a prefix."""
    return prefix & 0xFFFFFF


def is_prefix(prefix: i64) -> bool:
    """Return whether eight bytes can be a frame's prefix."""
    total: i64 = total_of(prefix)
    header: i64 = header_length_of(prefix)
    if total + 4 > MAX_FRAME or header > total - 4:
        return False
    kind: i64 = type_of(prefix)
    if kind == JSON_TYPE:
        # The shortest object is `{}`.
        return header >= 2
    return kind == BINARY_TYPE and header >= MIN_BINARY_HEADER


def is_no_json(prefix: i64, data: bytes, at: i64) -> bool:
    """Return whether the header at this place is declared as JSON but is not an object."""
    if type_of(prefix) != JSON_TYPE or data[at] == 0x7B:  # an opening brace, the usual case
        return False
    begin = _BEGIN_OF_JSON.match(data, at, at + header_length_of(prefix))
    return begin is None


def encode_frame(serialize_type: int, header: bytes, body: bytes = b"") -> bytes:
    """Encode a frame; raise ValueError if it exceeds the frame limit."""
    total = 4 + len(header) + len(body)
    if total + 4 > MAX_FRAME:
        raise ValueError(f"a frame of {total + 4} bytes: at most {MAX_FRAME} are accepted")
    prefix = total.to_bytes(4, "big") + bytes((serialize_type,)) + len(header).to_bytes(3, "big")
    return prefix + header + body


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Frame:
    """A frame in a stream."""

    __slots__ = (
        "body",
        "body_length",
        "header",
        "missing",
        "offset",
        "packet",
        "serialize_type",
        "ts",
    )

    def __init__(
        self,
        offset: i64,
        packet: i64,
        ts: i64,
        serialize_type: i64,
        header: bytes,
        body: bytes,
        body_length: i64,
        missing: i64,
    ) -> None:
        self.offset: i64 = offset
        """stream offset of its first byte"""
        self.packet: i64 = packet
        """last packet of the frame"""
        self.ts: i64 = ts
        """time of that packet"""
        self.serialize_type: i64 = serialize_type
        """0 JSON, 1 ROCKETMQ"""
        self.header = header
        self.body = body
        """the body up to its first hole; empty if bodies are not kept"""
        self.body_length: i64 = body_length
        """bytes of the body on the wire"""
        self.missing: i64 = missing
        """body bytes that were not captured"""
