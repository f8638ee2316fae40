"""A frame cut out of a stream."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64, mypyc_attr


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
