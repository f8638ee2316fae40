"""One connection of the proxy without I/O: relays bytes between its two ends.

Rules: bytes pass unchanged and at once. Only these are held until their frame is complete:
responses on a connection with a pending response that contains broker addresses, and all frames if
faults are injected. Non-RocketMQ data passes uninspected from its first bad byte on.
RocketMQ: NettyDecoder, RemotingCommand.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, Protocol

from dissectors.findings import Finding
from dissectors.remoting.broker_addresses import answered_with_addresses
from dissectors.remoting.code_names import wide_request_code
from dissectors.remoting.command import RESPONSE_FLAG
from dissectors.remoting.framing.frame import PREFIX, Frame, encode_frame, is_prefix
from dissectors.remoting.framing.frame_decoder import KEEP_NONE, FrameDecoder
from dissectors.remoting.header_codec import BINARY_TYPE, decode_header, first_code_of

from ..sandbox.room import Room
from .faults import FaultGate
from .options import MOST_DUE

_LEAST: Final = PREFIX + 12
"""bytes of a frame that are looked at"""
_begin_of: Final = struct.Struct(">II8s4s").unpack_from
"""a prefix, and what follows it"""
_JSON_BEGIN: Final = b'{"code":'
_CODES: Final = answered_with_addresses()
# what follows {"code": in the four bytes that are looked at
_JSON_CODES: Final = frozenset(f"{code},".encode()[:4] for code in _CODES)
_BINARY_CODES: Final = frozenset((code & 0xFFFF).to_bytes(2, "big") for code in _CODES)
"""how the codes of requests begin that are looked at"""


class Outlet(Protocol):
    """The destination of a connection's bytes."""

    def to_server(self, data: bytes) -> None:
        """Record bytes from the client and send them to the real server."""

    def forward(self, data: bytes) -> None:
        """Send recorded bytes to the real server."""

    def to_client(self, data: bytes, shown: bytes | None = None) -> None:
        """Send bytes to the client; a recording shows `shown`, what the real server sent."""

    def seen(self, data: bytes, fault: str = "") -> None:
        """Record bytes from the client, and the fault injected into their request."""

    def unreadable(self, from_client: bool) -> None:
        """Report that bytes are not RocketMQ and pass uninspected from now on."""

    def overflow(self) -> None:
        """Close the connection: incomplete frames take too much memory."""


class Stream:
    """The frames of one direction, and the bytes held until their frame is complete."""

    __slots__ = (
        "_counted", "_decoder", "_findings", "_held", "_held_at", "_inside", "_offset", "_room"
    )  # fmt: skip

    def __init__(self, room: Room) -> None:
        self._findings: list[Finding] = []
        self._decoder = FrameDecoder(0, self._findings, KEEP_NONE, True)
        self._held = bytearray()
        self._held_at = 0
        self._offset = 0
        self._room = room
        self._counted = 0
        self._inside = False

    def passes(self, data: bytes, *, requests: bool) -> bool:
        """Return whether bytes are complete frames that need no inspection; skip them if so.

        This is nearly all traffic. `requests`: also check for requests whose responses may contain
        broker addresses.
        """
        # within a frame the position of the next prefix is not known here
        if self._counted or self._held or self._decoder.held_bytes or self._inside:
            return False
        at, end = 0, len(data)
        while at < end:
            if end - at < _LEAST:
                return False
            total, second, begin, code = _begin_of(data, at)
            # a length with its top bit set would overflow the 64 bits of a prefix
            if total >> 31 or not is_prefix(total << 32 | second):
                return False
            if begin == _JSON_BEGIN:
                # no digit: white space or a text, which only a decoder understands
                if requests and (code in _JSON_CODES or not code[:1].isdigit()):
                    return False
            elif second >> 24 != BINARY_TYPE or (requests and begin[:2] in _BINARY_CODES):
                return False
            at += 4 + total
        if at != end:
            return False
        self._offset += end
        self._held_at = self._offset
        return True

    def receive(self, data: bytes, hold: bool) -> list[Frame] | None:
        """Return the frames completed by these bytes, or None if they are not RocketMQ.

        `hold`: the bytes are kept for `take` and `rest`.
        """
        if hold:
            self._held += data
        elif not self._held:
            self._held_at = self._offset + len(data)
        frames: list[Frame] = []
        self._decoder.receive(data, 0, len(data), self._offset, 0, 0, frames)
        self._offset += len(data)
        self._inside = self._decoder.inside
        if self._findings or not self._decoder.synchronized:
            return None
        return frames

    def has_room(self) -> bool:
        """Return whether the held bytes are within the limit."""
        size = len(self._held) + self._decoder.held_bytes
        if size == self._counted:
            return True
        allowed = self._room.take(size - self._counted)
        if allowed:
            self._counted = size
        return allowed

    def take(self, frame: Frame) -> bytes:
        """Return the held bytes up to the end of a frame."""
        end = frame.offset + PREFIX + len(frame.header) + frame.body_length - self._held_at
        taken = bytes(self._held[:end])
        del self._held[:end]
        self._held_at += len(taken)
        return taken

    def rest(self) -> bytes:
        """Return all held bytes."""
        rest = bytes(self._held)
        self._held.clear()
        self._held_at = self._offset
        return rest

    def close(self) -> None:
        """Release the memory."""
        self._room.take(-self._counted)
        self._counted = 0
        self._held.clear()


class ProxyRelay:
    """Both directions of one connection."""

    __slots__ = ("_due", "_gate", "_out", "_requests", "_responses", "_rewrite")

    def __init__(
        self,
        out: Outlet,
        rewrite: Callable[[bytes], bytes],
        room: Room,
        gate: FaultGate | None = None,
    ) -> None:
        """`rewrite` returns the replacement of a body that contains broker addresses."""
        self._out = out
        self._rewrite = rewrite
        self._gate = gate
        self._requests: Stream | None = Stream(room)
        self._responses: Stream | None = Stream(room)
        self._due: dict[int, None] = {}

    def from_client(self, data: bytes) -> None:
        """Handle bytes from the client."""
        stream = self._requests
        if stream is None:
            self._out.to_server(data)
            return
        hold = self._gate is not None
        if not hold and stream.passes(data, requests=True):
            self._out.to_server(data)
            return
        frames = stream.receive(data, hold)
        if frames is None:
            self._give_up(stream, data, from_client=True)
            return
        for frame in frames:
            code = _code_of(frame)
            if code in _CODES or code < 0:
                self._expect(frame)
            if self._gate is not None:
                self._judge(self._gate, frame, stream.take(frame))
        if not hold:
            self._out.to_server(data)
        # not if that has closed the connection: nothing would release the memory again
        if stream is self._requests and not stream.has_room():
            self._out.overflow()

    def from_server(self, data: bytes) -> None:
        """Handle bytes from the real server."""
        stream = self._responses
        if stream is None:
            self._out.to_client(data)
            return
        hold = bool(self._due) or self._gate is not None
        if not hold and stream.passes(data, requests=False):
            self._out.to_client(data)
            return
        frames = stream.receive(data, hold)
        if frames is None:
            self._give_up(stream, data if not hold else b"", from_client=False)
            return
        if not hold:
            self._out.to_client(data)
        else:
            for frame in frames:
                self._take_response(frame, stream.take(frame))
            if not self._due and self._gate is None:
                rest = stream.rest()
                if rest:
                    self._out.to_client(rest)
        if stream is self._responses and not stream.has_room():
            self._out.overflow()

    def finish(self, from_client: bool) -> None:
        """Forward held bytes of a side that has finished sending."""
        stream = self._requests if from_client else self._responses
        rest = b"" if stream is None else stream.rest()
        if rest:
            (self._out.to_server if from_client else self._out.to_client)(rest)

    def close(self) -> None:
        """Drop held bytes."""
        for stream in (self._requests, self._responses):
            if stream is not None:
                stream.close()
        self._requests = self._responses = None

    # -- internal -------------------------------------------------------------------------------

    def _expect(self, frame: Frame) -> None:
        """Note whether the response to a request will contain broker addresses."""
        command = decode_header(frame.serialize_type, frame.header)
        if command is None or command.flag & RESPONSE_FLAG:
            return
        if command.code not in _CODES:
            return
        if len(self._due) >= MOST_DUE:
            del self._due[next(iter(self._due))]
        self._due[command.opaque] = None

    def _judge(self, gate: FaultGate, frame: Frame, raw: bytes) -> None:
        command = decode_header(frame.serialize_type, frame.header)
        if command is None or command.flag & RESPONSE_FLAG:
            self._out.to_server(raw)
        else:
            gate.request(command, raw, raw[len(raw) - frame.body_length :])

    def _take_response(self, frame: Frame, raw: bytes) -> None:
        command = decode_header(frame.serialize_type, frame.header)
        if command is None or not command.flag & RESPONSE_FLAG:
            self._out.to_client(raw)
            return
        body, sent = raw[max(0, len(raw) - frame.body_length) :], raw
        # A frame that began before the first such request was complete responds to another one.
        whole = len(raw) == PREFIX + len(frame.header) + frame.body_length
        if whole and command.opaque in self._due:
            del self._due[command.opaque]
            sent = self._rewritten(frame, raw, body)
        if self._gate is None or not self._gate.response(command, sent, raw):
            self._out.to_client(sent, raw)

    def _rewritten(self, frame: Frame, raw: bytes, body: bytes) -> bytes:
        new = self._rewrite(body) if body else body
        if new == body:
            return raw
        try:
            return encode_frame(frame.serialize_type, frame.header, new)
        except ValueError:  # over the frame limit: the real addresses are better than none
            return raw

    def _give_up(self, stream: Stream, data: bytes, *, from_client: bool) -> None:
        """Forward held bytes, and everything else unchanged from now on."""
        # held bytes include those of this call
        held = stream.rest()
        stream.close()
        data = held or data
        self._out.unreadable(from_client)
        if from_client:
            self._requests = None
            self._out.to_server(data)
            return
        self._responses = None
        self._out.to_client(data)
        if self._requests is not None:
            waiting = self._requests.rest()
            self._requests.close()
            self._requests = None
            if waiting:
                self._out.to_server(waiting)


def _code_of(frame: Frame) -> int:
    """Return the code of a request's header; -1 if that needs a full decode."""
    header = frame.header
    if frame.serialize_type == BINARY_TYPE:
        return int(wide_request_code(int.from_bytes(header[:2], "big", signed=True)))
    return int(first_code_of(header))
