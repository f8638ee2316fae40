"""HTTP/2 frames: layout, types, flags, and cutting one direction into frames.

Rules: captured bytes never raise; a length that no peer may send is a problem that ends the
direction. Of one frame only the received part is held. RFC 9113.
"""

from __future__ import annotations

from typing import Final, NamedTuple

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""connection preface of a client"""
HEAD: Final = 9
"""bytes before the payload of a frame: length, type, flags, stream"""
LARGEST: Final = 1 << 20
"""maximum payload bytes of a frame: 16 KiB unless the peer allows more"""

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
"""type → its only valid payload length"""
ON_STREAMS: Final = frozenset((DATA, HEADERS, PRIORITY, RST_STREAM, PUSH_PROMISE, CONTINUATION))
"""types that need a stream; WINDOW_UPDATE may have one, the others have none"""

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
"""error code names, by number"""


class StreamPlace(NamedTuple):
    """A place in the capture."""

    packet: int
    """id of the packet"""
    ts: int
    """its time, nanoseconds since the epoch"""
    offset: int
    """offset in the byte stream"""


class Http2Frame(NamedTuple):
    """One frame."""

    type: int
    flags: int
    stream: int
    payload: bytes
    """captured part of the payload"""
    missing: int
    """payload bytes that were not captured"""
    place: StreamPlace
    """where it ended"""


def error_name(code: int) -> str:
    """Return the name of an error code."""
    return ERRORS[code] if 0 <= code < len(ERRORS) else f"UNKNOWN({code})"


def is_plausible(length: int, type_: int, stream: int) -> bool:
    """Return whether these values form a valid frame header."""
    if length > LARGEST:
        return False
    if type_ > CONTINUATION:  # extension frames are ignored
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
        """why this direction is not cut any further, or None"""
        self._held = bytearray()
        self._wanted = HEAD
        self._lost = 0
        self._preface = True

    @property
    def held(self) -> int:
        """Bytes held of an incomplete frame."""
        return len(self._held)

    @property
    def begun(self) -> tuple[bytes, int]:
        """Header of the incomplete frame, and the bytes received since it began."""
        return bytes(self._held[:HEAD]), len(self._held) + self._lost

    def receive(self, data: bytes, place: StreamPlace, out: list[Http2Frame]) -> None:
        """Append the frames that these bytes complete; the bytes end at `place`."""
        if self.problem is not None:
            return
        held = self._held
        if self._lost:  # the payload is kept up to its first hole; later bytes are only counted
            remaining = min(self._wanted - len(held) - self._lost, len(data))
            self._lost += remaining
            data = data[remaining:]
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
        """Continue after a hole in the payload of a DATA frame; return False for any other hole.

        Another hole may hide header blocks, which would change the meaning of later ones.
        """
        held = self._held
        if len(held) < HEAD or held[3] != DATA or len(held) + self._lost + length > self._wanted:
            return False
        if held[4] & PADDED and len(held) == HEAD:  # the padding length is in the hole
            return False
        self._lost += length
        self.receive(b"", place, out)
        return True

    def stop(self, problem: str) -> None:
        """Stop cutting this direction."""
        self.problem = self.problem or problem
        self._held = bytearray()

    def _is_past_preface(self) -> bool:
        """Remove the client preface; return False while it is incomplete."""
        # Only a client begins with the preface; a server begins with a frame.
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
