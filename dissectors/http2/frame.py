"""Frames of HTTP/2: their layout, types and flags, and how a direction is cut into them.

Rules: nothing raises because of what was captured; a length that no peer may send is a problem of
the direction, which ends it. What is held of one frame is what has come of it. RFC 9113.
"""

from __future__ import annotations

from typing import Final, NamedTuple

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""what a client sends first"""
HEAD: Final = 9
"""bytes before the payload of a frame: length, type, flags, stream"""
LARGEST: Final = 1 << 20
"""bytes of payload of one frame: peers keep to 16 KiB unless the other end allows more"""

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20

FIXED: Final = {PRIORITY: 5, RST_STREAM: 4, PING: 8, WINDOW_UPDATE: 4}
"""type → the only length of payload that it has"""
ON_STREAMS: Final = frozenset((DATA, HEADERS, PRIORITY, RST_STREAM, PUSH_PROMISE, CONTINUATION))
"""types that belong to a stream; WINDOW_UPDATE may, the others do not"""

ERRORS: Final = (
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
)
"""names of the error codes, by number"""


class StreamPlace(NamedTuple):
    """Where in the capture something ended."""

    packet: int
    """id of the packet"""
    ts: int
    """its time, nanoseconds since the epoch"""
    offset: int
    """offset in the stream of bytes"""


class Http2Frame(NamedTuple):
    """One frame."""

    type: int
    flags: int
    stream: int
    payload: bytes
    """what was captured of it"""
    missing: int
    """bytes of the payload that the capture does not have"""
    place: StreamPlace
    """where it ended"""


def error_name(code: int) -> str:
    """Return the name of an error code."""
    return ERRORS[code] if 0 <= code < len(ERRORS) else f"UNKNOWN({code})"


def is_plausible(length: int, type_: int, stream: int) -> bool:
    """Return whether these can stand at the head of one frame."""
    if length > LARGEST:
        return False
    if type_ > CONTINUATION:  # an extension, which everybody passes over
        return True
    if length != FIXED.get(type_, length) or (type_ == SETTINGS and length % 6):
        return False
    if type_ == WINDOW_UPDATE:
        return True
    return (stream != 0) == (type_ in ON_STREAMS)


class FrameCutter:
    """Cuts one direction into frames."""

    def __init__(self) -> None:
        self.problem: str | None = None
        """why nothing more is cut out of this direction; None: it goes on"""
        self._held = bytearray()
        self._wanted = HEAD
        self._lost = 0
        self._preface = True

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self._held)

    def receive(self, data: bytes, place: StreamPlace, out: list[Http2Frame]) -> None:
        """Append the frames that are complete with these bytes, which end at `place`."""
        if self.problem is not None:
            return
        held = self._held
        if self._lost:  # the payload is kept up to its first hole
            rest = min(self._wanted - len(held) - self._lost, len(data))
            self._lost += rest
            data = data[rest:]
        held += data
        if self._preface and not self._is_past_preface():
            return
        at = 0
        while len(held) - at + self._lost >= self._wanted:
            if self._wanted == HEAD:
                head = held[at : at + HEAD]
                length = int.from_bytes(head[:3])
                if not is_plausible(length, head[3], int.from_bytes(head[5:]) & 0x7FFFFFFF):
                    self.stop(f"no frame begins with {head.hex()}")
                    return
                self._wanted = HEAD + length
                if length:
                    continue
            stop = at + self._wanted - self._lost
            where = StreamPlace(place.packet, place.ts, place.offset - (len(held) - stop))
            out.append(_frame(bytes(held[at:stop]), self._lost, where))
            at = stop
            self._wanted = HEAD
            self._lost = 0
        del held[:at]

    def receive_gap(self, length: int, place: StreamPlace, out: list[Http2Frame]) -> bool:
        """Go on behind a hole within the payload of a DATA frame; return False where it is none.

        Any other hole may hide header blocks, without which later ones mean something else.
        """
        held = self._held
        if len(held) < HEAD or held[3] != DATA or len(held) + self._lost + length > self._wanted:
            return False
        if held[4] & PADDED and len(held) == HEAD:  # how much of it is padding is in the hole
            return False
        self._lost += length
        self.receive(b"", place, out)
        return True

    def stop(self, problem: str) -> None:
        """Cut nothing more out of this direction."""
        self.problem = self.problem or problem
        self._held = bytearray()

    def _is_past_preface(self) -> bool:
        """Take off what a client sends first; return False while it may still be that."""
        held = self._held
        if len(held) < len(PREFACE) and PREFACE.startswith(held):
            return False
        self._preface = False
        if held.startswith(PREFACE):
            del held[: len(PREFACE)]
        return True


def _frame(data: bytes, missing: int, place: StreamPlace) -> Http2Frame:
    stream = int.from_bytes(data[5:HEAD]) & 0x7FFFFFFF
    return Http2Frame(data[3], data[4], stream, data[HEAD:], missing, place)
