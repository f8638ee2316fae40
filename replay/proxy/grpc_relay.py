"""One gRPC connection of the proxy without I/O: routes are rewritten, the rest passes.

Client frames pass unchanged; their headers show which streams request a route. Server DATA on such
streams is held until the trailers and sent with replaced endpoints. Traffic that is not HTTP/2
passes uninspected. RFC 9113; apache.rocketmq.v2.MessagingService.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dissectors.foreign import Unreadable
from dissectors.grpc.wire import BYTES, VARINT, fields_of, varint
from dissectors.http2.connection import Happening, Http2End, StreamEvent
from dissectors.http2.frame import (
    DATA,
    END_STREAM,
    HEAD,
    HEADERS,
    LARGEST,
    PREFACE,
    RST_STREAM,
    StreamPlace,
)

from ..sandbox.room import Room
from .options import MOST_DUE
from .relay import Outlet

Endpoint = tuple[str, int]
_ASKING: Final = ("/QueryRoute", "/QueryAssignment")
_IPV4, _IPV6, _DOMAIN = 1, 2, 3
_MOST_DATA: Final = 16 * 1024
"""bytes of payload that every peer takes in one frame"""
_LARGEST_MESSAGE: Final = 4 * 1024 * 1024
"""bytes of a route: what clients of gRPC take"""

Tree = Mapping[int, object]
_ENDPOINTS: Final = "endpoints"
_BROKER: Final[Tree] = {3: _ENDPOINTS}
_RESPONSES: Final[Tree] = {2: {4: _BROKER, 1: {4: _BROKER}}}
"""where endpoints are: message_queues[].broker, assignments[].message_queue.broker"""
_ENDPOINTS_OF_ROUTE, _ENDPOINTS_OF_ASSIGNMENT = 2, 3
"""their fields in the requests"""


class GrpcRelay:
    """Both directions of one connection."""

    def __init__(
        self, out: Outlet, front_of: Callable[[str, int, bool], Endpoint | None], room: Room
    ) -> None:
        """`front_of` returns the replacement of a host and port, or None to keep them. Its last
        argument says whether the client connected to that host.
        """
        self._out = out
        self._front_of = front_of
        self._room = room
        self._end: Http2End | None = Http2End(False)
        self._preface = b""
        self._asking: dict[int, bytearray] = {}
        self._buffer = bytearray()
        self._counted = 0
        self._seen = True
        self._dialled = b""
        """host that the client connected to, as its last request for a route says"""

    def from_client(self, data: bytes) -> None:
        """Handle bytes from the client."""
        self._out.to_server(data)
        end = self._end
        if end is None:
            return
        if self._preface != PREFACE:
            missing = len(PREFACE) - len(self._preface)
            self._preface += data[:missing]
            data = data[missing:]
            if not PREFACE.startswith(self._preface):
                self._give_up(True)
                return
        events: list[StreamEvent] = []
        end.receive(data, StreamPlace(0, 0, 0), events)
        for event in events:
            if event.what is Happening.HEADERS and len(self._asking) < MOST_DUE:
                path = dict(event.headers).get(":path", "")
                if path.endswith(_ASKING):
                    self._asking[event.stream] = bytearray()
            elif event.what is Happening.DATA and event.stream in self._asking:
                self._dialled = _host_in_request(event.data) or self._dialled
            elif event.what is Happening.RESET:
                # the server may send nothing more on a cancelled stream
                held = self._asking.pop(event.stream, b"")
                if held:
                    self._out.to_client(bytes(held), b"")
        if end.problem is not None:
            self._give_up(True)

    def from_server(self, data: bytes) -> None:
        """Handle bytes from the real server."""
        if not self._seen:
            self._out.to_client(data)
            return
        self._buffer += data
        sent, shown = bytearray(), bytearray()
        while len(self._buffer) >= HEAD:
            length = int.from_bytes(self._buffer[:3])
            if length > LARGEST:
                self._give_up(False)
                break
            if len(self._buffer) < HEAD + length:
                break
            frame = bytes(self._buffer[: HEAD + length])
            del self._buffer[: HEAD + length]
            shown += frame
            sent += self._passed(frame)
        if not self._seen:
            sent += self._buffer
            shown += self._buffer
            self._buffer.clear()
        if shown:
            self._out.to_client(bytes(sent), bytes(shown))
        held = len(self._buffer) + sum(map(len, self._asking.values()))
        if self._room.take(held - self._counted):
            self._counted = held
        else:
            self._out.overflow()

    def close(self) -> None:
        """Drop held bytes."""
        self._room.take(-self._counted)
        self._counted = 0
        self._buffer.clear()
        self._asking.clear()

    def _give_up(self, from_client: bool) -> None:
        self._end = None
        self._seen = False
        held = b"".join(self._asking.values())
        self._asking.clear()
        if held:
            self._out.to_client(held, b"")
        if from_client:  # otherwise the caller passes the rest on
            if self._buffer:
                self._out.to_client(bytes(self._buffer))
                self._buffer.clear()
            self._room.take(-self._counted)
            self._counted = 0
        self._out.unreadable(from_client)

    def _passed(self, frame: bytes) -> bytes:
        """Return the output for a frame: nothing yet, the frame, or a route before it."""
        kind, flags = frame[3], frame[4]
        # the top bit is reserved (RFC 9113, 4.1)
        stream = int.from_bytes(frame[5:HEAD]) & 0x7FFFFFFF
        waiting = self._asking.get(stream)
        if waiting is None:
            return frame
        if kind == DATA:
            waiting += frame  # frames are kept to be sent unchanged if needed
            # beyond, it is no route that a client takes
            if not flags & END_STREAM and len(waiting) <= _LARGEST_MESSAGE:
                return b""
            del self._asking[stream]
            return self._rewritten(bytes(waiting), stream, flags & END_STREAM)
        # the first HEADERS come before any DATA, unless they end a response without any; those
        # after it are trailers
        if kind == RST_STREAM or (kind == HEADERS and (waiting or flags & END_STREAM)):
            del self._asking[stream]
            return self._rewritten(bytes(waiting), stream, 0) + frame
        return frame

    def _rewritten(self, frames: bytes, stream: int, flags: int) -> bytes:
        """Return DATA frames with replaced endpoints, or unchanged if that is impossible."""
        data, at = bytearray(), 0
        while at < len(frames):
            end = at + HEAD + int.from_bytes(frames[at : at + 3])
            if frames[at + 4] & 0x8:  # padded
                return frames
            data += frames[at + HEAD : end]
            at = end
        message = bytes(data)
        # a flag for compression and a length come first; a compressed message is left as it is
        if len(message) < 5 or message[0] or int.from_bytes(message[1:5]) != len(message) - 5:
            return frames
        try:
            new = self._with_fronts(message[5:], _RESPONSES)
        except Unreadable:
            return frames
        if new == message[5:]:
            return frames
        # Flow control is left out: its windows are thousands of times larger than the difference.
        new = b"\0" + len(new).to_bytes(4) + new
        parts = [new[n : n + _MOST_DATA] for n in range(0, len(new), _MOST_DATA)]
        return b"".join(
            len(part).to_bytes(3)
            + bytes((DATA, flags if number == len(parts) else 0))
            + stream.to_bytes(4)
            + part
            for number, part in enumerate(parts, 1)
        )

    def _with_fronts(self, data: bytes, tree: Tree) -> bytes:
        """Return a message with replaced endpoints; raise Unreadable."""
        out = bytearray()
        for number, kind, value, _ in fields_of(data):
            inner = tree.get(number)
            if isinstance(value, bytes) and kind == BYTES and inner is not None:
                if inner is _ENDPOINTS:
                    value = self._endpoints(value)
                elif isinstance(inner, Mapping):
                    value = self._with_fronts(value, inner)
            out += _field(number, kind, value)
        return bytes(out)

    def _endpoints(self, data: bytes) -> bytes:
        """Return endpoints replaced by their fronts, or unchanged if one has no front."""
        fronts: list[Endpoint] = []
        for number, _, value, _ in fields_of(data):
            if number == 2 and isinstance(value, bytes):
                address = {inner: part for inner, _, part, _ in fields_of(value)}
                host, port = address.get(1, b""), address.get(2, 0)
                if isinstance(host, bytes) and isinstance(port, int):
                    name = host.decode("utf-8", "replace")
                    front = self._front_of(name, port, host == self._dialled)
                    if front is None:
                        return data
                    fronts.append(front)
        if not fronts:
            return data
        scheme = _scheme_of(fronts[0][0])
        out = _field(1, VARINT, scheme)
        for own, number in dict.fromkeys(fronts):
            endpoint = _field(1, BYTES, own.encode()) + _field(2, VARINT, number)
            out += _field(2, BYTES, endpoint)
        return out


def _host_in_request(data: bytes) -> bytes:
    """Return the host in the endpoints of a route request; empty if absent."""
    try:
        fields = {number: value for number, _, value, _ in fields_of(data[5:])}
        endpoints = fields.get(_ENDPOINTS_OF_ASSIGNMENT, fields.get(_ENDPOINTS_OF_ROUTE))
        addresses = [part for number, _, part, _ in fields_of(_bytes(endpoints)) if number == 2]
        return _bytes(
            {number: part for number, _, part, _ in fields_of(_bytes(addresses[0]))}.get(1)
        )
    except (Unreadable, IndexError):
        return b""


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def _scheme_of(host: str) -> int:
    if ":" in host:
        return _IPV6
    return _IPV4 if host.replace(".", "").isdigit() else _DOMAIN


def _field(number: int, kind: int, value: int | bytes) -> bytes:
    """Return an encoded field."""
    key = varint(number << 3 | kind)
    if isinstance(value, int):
        return key + varint(value)
    return key + (varint(len(value)) if kind == BYTES else b"") + value
