"""Output of stream reassembly: data in order, and gaps."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from .segment import Segment

PIECE_COST: Final = 256
"""memory overhead of a piece, bytes; dominant for tiny segments"""


# In C, the garbage collector does not track it, and the next one reuses its memory.
@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Data:
    """Bytes of a stream, in order: a range of the packet that carried them."""

    __slots__ = ("data", "end", "offset", "packet", "start", "ts")

    def __init__(
        self, offset: i64, packet: i64, ts: i64, data: bytes, start: i64, end: i64
    ) -> None:
        self.offset: i64 = offset
        """stream offset of the first byte"""
        self.packet: i64 = packet
        self.ts: i64 = ts
        self.data = data
        self.start: i64 = start
        self.end: i64 = end


@final
@mypyc_attr(acyclic=True)
class Gap:
    """A range of the stream that is missing in the capture."""

    __slots__ = ("length", "offset", "packet", "ts")

    def __init__(self, offset: i64, packet: i64, ts: i64, length: i64) -> None:
        self.offset: i64 = offset
        """stream offset of the first missing byte"""
        self.packet: i64 = packet
        """the packet after the hole"""
        self.ts: i64 = ts
        self.length: i64 = length
        """missing bytes; 0 if unknown"""


Piece = Data | Gap


def agree(segment: Segment, offset: i64, piece: Data) -> bool:
    """Return whether the overlapping bytes of a segment and a piece are equal."""
    if not piece.data:  # known to be missing
        return True
    low: i64 = max(offset, piece.offset)
    high: i64 = min(offset + segment.end - segment.start, piece.offset + piece.end)
    shift: i64 = segment.start - offset
    mine = segment.data[low + shift : high + shift]
    return low >= high or mine == piece.data[low - piece.offset : high - piece.offset]
