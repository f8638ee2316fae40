"""The TCP part of one packet: flags, numbers, and where its payload lies."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Segment:
    """The TCP part of one packet."""

    __slots__ = (
        "ack",
        "data",
        "end",
        "flags",
        "key",
        "missing",
        "packet",
        "seq",
        "start",
        "ts",
        "window",
    )

    def __init__(
        self,
        packet: i64,
        ts: i64,
        key: bytes,
        sequence: i64,
        flags: i64,
        window: i64,
        data: bytes,
        start: i64,
        end: i64,
        missing: i64,
    ) -> None:
        self.packet: i64 = packet
        """packet id"""
        self.ts: i64 = ts
        """nanoseconds since the epoch"""
        self.key = key
        """source and destination address, source and destination port, tunnel: one direction"""
        self.seq: i64 = (sequence >> 32) & 0xFFFFFFFF
        """sequence number of the first payload byte (of the SYN where there is one)"""
        self.ack: i64 = sequence & 0xFFFFFFFF
        """acknowledgement number; means nothing without the ACK flag"""
        self.flags: i64 = flags
        self.window: i64 = window
        """the window as sent, unscaled"""
        self.data = data
        """the bytes that hold the payload"""
        self.start: i64 = start
        """where the payload begins in `data`"""
        self.end: i64 = end
        """where the captured payload ends in `data`"""
        self.missing: i64 = missing
        """bytes of the payload's end that the snap length cut off"""
