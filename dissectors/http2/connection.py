"""Turn both directions of an HTTP/2 connection into stream events.

Rules: header blocks of all streams are decoded in the order they were sent, because each changes
the table for the next. A hole outside DATA may hide some: reading resumes where a frame certainly
begins, with a table of unknown entries. One frame and one header block are held per direction.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from .frame import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HAS_PRIORITY,
    HEAD,
    HEADERS,
    PADDED,
    PING,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    FrameCutter,
    Http2Frame,
    StreamPlace,
    error_name,
    is_plausible,
)
from .header_blocks import LARGEST_BLOCK, HeaderBlocks, Headers

MOST_BEFORE: Final = 8
"""maximum frames skipped before the header block"""
MOST_LOOKS: Final = 1024
"""header blocks tried per direction: each costs thirty times as much as a packet"""
_CONTROLS: Final = {SETTINGS: ACK, PING: ACK, WINDOW_UPDATE: 0}
"""frames that may precede it → their only valid flags"""
_FLAGS: Final = END_STREAM | END_HEADERS | PADDED | HAS_PRIORITY
_PRIORITY: Final = 5
_METHOD: Final = (":method", "POST")
_STATUS: Final = (":status", "200")
_SCHEMES: Final = frozenset(((":scheme", "http"), (":scheme", "https")))


class Joining:
    """Searches for the start of a direction, a bounded number of times.

    Nothing marks the beginning of a frame, so only a segment that begins with a header block is
    certain: it is whole, decodes, and has the static-table entries of every gRPC request or
    response. Control frames may precede it. RFC 9113 (4.1), RFC 7541 (A).
    """

    def __init__(self) -> None:
        self._left = MOST_LOOKS

    def is_start(self, data: bytes) -> bool:
        """Return whether these bytes begin with a frame and contain the headers of a call."""
        at = 0
        for _ in range(MOST_BEFORE):
            head = data[at : at + HEAD]
            if len(head) < HEAD or not _is_frame(head):
                return False
            stop = at + HEAD + int.from_bytes(head[:3])
            if stop > len(data):
                return False
            if head[3] == HEADERS:
                behind = data[stop : stop + HEAD]
                by_client = head[HEAD - 1] & 1  # clients open call streams, with odd numbers
                goes_on = len(behind) < HEAD or _is_frame(behind)
                if not by_client or not goes_on or not self._left:
                    return False
                self._left -= 1
                return _is_call(head[4], data[at + HEAD : stop])
            if head[3] not in _CONTROLS or head[4] & ~_CONTROLS[head[3]]:
                return False
            at = stop
        return False


def _is_frame(head: bytes) -> bool:
    return is_plausible(int.from_bytes(head[:3]), head[3], int.from_bytes(head[5:]))


def _is_call(flags: int, payload: bytes) -> bool:
    """Return whether this is the header block of a gRPC request or response."""
    if flags & ~_FLAGS or not flags & END_HEADERS or not payload:
        return False
    block = payload
    if flags & PADDED:
        block = payload[1 : max(len(payload) - payload[0], 1)]
    if flags & HAS_PRIORITY:
        block = block[_PRIORITY:]
    # A table of its own: these bytes may not be a header block, and would spoil that of the stream.
    headers = HeaderBlocks(joined=True).decode(block)
    return headers is not None and _is_call_headers(headers)


def _is_call_headers(headers: Headers) -> bool:
    if not headers or any(name and not _is_name(name) for name, _ in headers):
        return False
    return headers[0] == _STATUS or (_METHOD in headers and not _SCHEMES.isdisjoint(headers))


def _is_name(name: str) -> bool:
    return name.isascii() and name.isprintable() and name == name.lower()


class Happening(Enum):
    """Types of stream events."""

    HEADERS = "headers"
    DATA = "data"
    RESET = "reset"
    GOAWAY = "goaway"


class StreamEvent(NamedTuple):
    """An event of one side on a stream."""

    what: Happening
    stream: int
    """stream number; for GOAWAY the last one that the sender handles"""
    ended: bool
    """the sender ends its side"""
    headers: Headers
    """for HEADERS"""
    data: bytes
    """for DATA: the captured part, without padding"""
    missing: int
    """bytes of the data that were not captured"""
    size: int
    """bytes of the frames on the wire"""
    reason: str
    """for RESET and GOAWAY: name of the error code"""
    place: StreamPlace
    """where the event was complete"""


class Http2End:
    """One direction of a connection."""

    def __init__(self, joined: bool) -> None:
        """Start with a first frame, or search for one if the capture `joined` the connection."""
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
        """Why this direction is not read any further, or None."""
        return self._cutter.problem or self._blocks.problem

    @property
    def held(self) -> int:
        """Bytes held until more arrive."""
        return self._cutter.held + len(self._block or b"")

    def receive(self, data: bytes, place: StreamPlace, out: list[StreamEvent]) -> None:
        """Append the events of these bytes, which end at `place`."""
        if self._seeking:
            if self.problem is not None or not self._joining.is_start(data):
                return
            self._seeking = False
        self._cutter.receive(data, place, self._frames)
        self._take_frames(out)

    def receive_gap(self, length: int, place: StreamPlace, out: list[StreamEvent]) -> None:
        """Continue after bytes that were not captured, as far as possible."""
        if self._seeking or self.problem is not None:
            return
        if self._cutter.receive_gap(length, place, self._frames):
            self._take_frames(out)
            return
        # The hole may hide the boundary of a frame, and headers that later ones refer to.
        self.losses += 1
        self._seeking = True
        self._block = None
        self._cutter = FrameCutter()
        self._blocks = HeaderBlocks(joined=True)

    def stop(self, problem: str) -> None:
        """Stop reading this direction."""
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
        if self._block is not None and kind != CONTINUATION:  # RFC 9113 (6.10)
            self.stop("a header block that does not go on")
        elif kind == DATA:
            data, padding = unpadded(frame)
            size = len(frame.payload) + frame.missing
            lost = max(frame.missing - padding, 0)
            out.append(_event(Happening.DATA, frame, data=data, missing=lost, size=size))
        elif kind == HEADERS:
            block, _ = unpadded(frame)
            if frame.flags & HAS_PRIORITY:  # stream dependency and weight
                block = block[5:]
            self._block_ends = bool(frame.flags & END_STREAM)
            self._begin_block(frame, block, out)
        elif kind == PUSH_PROMISE:  # gRPC peers do not send it, but its headers are in the table
            self._block_ends = False
            self._begin_block(frame, unpadded(frame)[0][4:], out)  # behind the promised stream
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


def unpadded(frame: Http2Frame) -> tuple[bytes, int]:
    """Return the payload without its padding, and the length of the padding."""
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
