"""TCP segments: flags, sequence numbers, and the range of the payload."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10


# In C, the garbage collector does not track it, and the next one reuses its memory.
@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Segment:
    """The TCP segment of one packet."""

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
        """`sequence` has sequence and acknowledgement number, in the order of the header."""
        self.packet: i64 = packet
        """packet id"""
        self.ts: i64 = ts
        """nanoseconds since the epoch"""
        self.key = key
        """key of the direction: source and destination address, ports, tunnel"""
        self.seq: i64 = (sequence >> 32) & 0xFFFFFFFF
        """sequence number of the first payload byte, or of the SYN"""
        self.ack: i64 = sequence & 0xFFFFFFFF
        """acknowledgement number; undefined without the ACK flag"""
        self.flags: i64 = flags
        self.window: i64 = window
        """window as sent, unscaled"""
        self.data = data
        """the chunk that contains the payload"""
        self.start: i64 = start
        """offset of the first payload byte in `data`"""
        self.end: i64 = end
        """offset after the last captured payload byte in `data`"""
        self.missing: i64 = missing
        """payload bytes cut off by the snap length"""
