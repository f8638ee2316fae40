"""Both directions of an HTTP/2 connection: bytes in, what happens on its streams out.

Rules: header blocks are decoded in the order they were sent, of every stream, because each changes
the table for the next. A hole outside DATA may hide some: what follows is read again from where a
frame certainly begins, with a table of unknown entries. What is held is one frame and one header
block a direction.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from .frame import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HAS_PRIORITY,
    HEADERS,
    PADDED,
    PUSH_PROMISE,
    RST_STREAM,
    FrameCutter,
    Http2Frame,
    StreamPlace,
    error_name,
)
from .header_blocks import LARGEST_BLOCK, HeaderBlocks, Headers
from .joining import Joining


class Happening(Enum):
    """What may happen on a stream."""

    HEADERS = "headers"
    DATA = "data"
    RESET = "reset"
    GOAWAY = "goaway"


class StreamEvent(NamedTuple):
    """Something that one end did on a stream."""

    what: Happening
    stream: int
    """number of the stream; of GOAWAY the last one that the sender deals with"""
    ended: bool
    """the sender says no more on it"""
    headers: Headers
    """of HEADERS"""
    data: bytes
    """of DATA, without padding, as far as it was captured"""
    missing: int
    """bytes of it that the capture does not have"""
    size: int
    """bytes of the frames on the wire"""
    reason: str
    """of RESET and GOAWAY: name of the error code"""
    place: StreamPlace
    """where it was complete"""


class Http2End:
    """What one end sends."""

    def __init__(self, joined: bool) -> None:
        """Begin with a first frame; where it was `joined`, look for one."""
        self.losses = 0
        """holes that may hide headers"""
        self._cutter = FrameCutter()
        self._blocks = HeaderBlocks(joined)
        self._seeking = joined
        self._joining = Joining()
        self._block: bytearray | None = None
        self._block_size = 0
        self._block_ends = False
        self._frames: list[Http2Frame] = []

    @property
    def problem(self) -> str | None:
        """Why nothing more is known of this direction; None: it goes on."""
        return self._cutter.problem or self._blocks.problem

    @property
    def held(self) -> int:
        """Bytes that wait for more."""
        return self._cutter.held + len(self._block or b"")

    def receive(self, data: bytes, place: StreamPlace, out: list[StreamEvent]) -> None:
        """Append what happened with these bytes, which end at `place`."""
        if self._seeking:
            if self.problem is not None or not self._joining.is_start(data):
                return
            self._seeking = False
        self._cutter.receive(data, place, self._frames)
        self._take_frames(out)

    def receive_gap(self, length: int, place: StreamPlace, out: list[StreamEvent]) -> None:
        """Go on behind bytes that the capture does not have, as far as that can be known."""
        if self._seeking or self.problem is not None:
            return
        if self._cutter.receive_gap(length, place, self._frames):
            self._take_frames(out)
            return
        self.losses += 1
        self._seeking = True
        self._block = None
        self._cutter = FrameCutter()
        self._blocks = HeaderBlocks(joined=True)

    def stop(self, problem: str) -> None:
        """Read no more of this direction."""
        self._cutter.stop(problem)
        self._block = None

    def _take_frames(self, out: list[StreamEvent]) -> None:
        frames, self._frames = self._frames, []
        for frame in frames:
            if self.problem is not None:
                return
            self._take(frame, out)

    def _take(self, frame: Http2Frame, out: list[StreamEvent]) -> None:
        kind = frame.type
        if self._block is not None and kind != CONTINUATION:
            self.stop("a header block that does not go on")
        elif kind == DATA:
            data, padding = _unpadded(frame)
            size = len(frame.payload) + frame.missing
            lost = max(frame.missing - padding, 0)
            out.append(_event(Happening.DATA, frame, data=data, missing=lost, size=size))
        elif kind == HEADERS:
            block, _ = _unpadded(frame)
            if frame.flags & HAS_PRIORITY:
                block = block[5:]
            self._block_ends = bool(frame.flags & END_STREAM)
            self._begin_block(frame, block, out)
        elif kind == PUSH_PROMISE:  # no peer of gRPC sends it, but its headers are in the table
            self._block_ends = False
            self._begin_block(frame, _unpadded(frame)[0][4:], out)
        elif kind == CONTINUATION:
            self._continue_block(frame, out)
        elif kind == RST_STREAM:
            reason = error_name(int.from_bytes(frame.payload[:4]))
            out.append(_event(Happening.RESET, frame, reason=reason))
        elif kind == GOAWAY and len(frame.payload) >= 8:
            last = int.from_bytes(frame.payload[:4]) & 0x7FFFFFFF
            reason = error_name(int.from_bytes(frame.payload[4:8]))
            out.append(_event(Happening.GOAWAY, frame._replace(stream=last), reason=reason))

    def _begin_block(self, frame: Http2Frame, block: bytes, out: list[StreamEvent]) -> None:
        self._block = bytearray(block)
        self._block_size = len(frame.payload)
        self._end_block(frame, out)

    def _continue_block(self, frame: Http2Frame, out: list[StreamEvent]) -> None:
        if self._block is None:
            self.stop("a header block of which the beginning is missing")
            return
        self._block += frame.payload
        self._block_size += len(frame.payload)
        if len(self._block) > LARGEST_BLOCK:
            self.stop(f"a header block of more than {LARGEST_BLOCK} bytes")
            return
        self._end_block(frame, out)

    def _end_block(self, frame: Http2Frame, out: list[StreamEvent]) -> None:
        if not frame.flags & END_HEADERS or self._block is None:
            return
        headers = self._blocks.decode(bytes(self._block))
        self._block = None
        if headers is None:
            self.stop(self._blocks.problem or "")
        elif frame.type != PUSH_PROMISE:
            event = _event(Happening.HEADERS, frame, size=self._block_size)
            out.append(event._replace(headers=headers, ended=self._block_ends))


def _unpadded(frame: Http2Frame) -> tuple[bytes, int]:
    """Return the payload without its padding, and how long that is."""
    if not frame.flags & PADDED or not frame.payload:
        return frame.payload, 0
    padding = frame.payload[0]
    whole = len(frame.payload) + frame.missing - 1 - padding
    return frame.payload[1 : 1 + max(whole, 0)], padding


def _event(
    what: Happening,
    frame: Http2Frame,
    *,
    data: bytes = b"",
    missing: int = 0,
    size: int = 0,
    reason: str = "",
) -> StreamEvent:
    ended = frame.type == DATA and bool(frame.flags & END_STREAM)
    return StreamEvent(what, frame.stream, ended, [], data, missing, size, reason, frame.place)
