"""Sockets of the sandbox: frames in, responses out; one listener per port, protocols of the loop.

Bytes that are not a frame close the connection, as a broker does. Connections, unfinished frames
and what waits to be read by a client are bounded; who is silent for long is closed.
RocketMQ: NettyRemotingServer, NettyDecoder, NettyRemotingAbstract.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from dissectors.decode.strict_reader import ReceivedCommand, StrictReader
from dissectors.endpoint import endpoint_of_socket
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, ROCKETMQ, RemotingCommand
from dissectors.remoting.framing.frame import MAX_FRAME, encode_frame
from dissectors.remoting.header_codec import BINARY_TYPE, JSON_TYPE, encode_header

from ..accepting import OpenFiles
from .errors import SandboxError
from .events import EventKind

LANGUAGE: Final = "PYTHON"
_UNREAD_LIMIT: Final = 2 * MAX_FRAME
"""bytes that a client may leave unread, or ask for within one turn"""
_REQUESTS_LIMIT: Final = 1000
"""requests to a client that it has not answered"""
_REQUESTS_IN_ALL: Final = 20_000
"""requests to all clients that they have not answered"""

OnResponse = Callable[[RemotingCommand | None, bytes], None]
"""Takes the response to a request of the broker; None when the connection ended before."""


class HandlerResponse(NamedTuple):
    """The response to a request."""

    code: int = 0
    fields: Mapping[str, str] | None = None
    body: bytes = b""
    remark: str | None = None


class Service(Protocol):
    """What stands behind a listener: a NameServer or a broker."""

    name: str
    """`namesrv` or the broker's name"""

    def serve(self, connection: Connection, command: RemotingCommand, body: bytes) -> None:
        """Serve a request: respond now or later."""

    def opened(self, connection: Connection) -> bool:
        """Return whether a new connection is taken."""

    def closed(self, connection: Connection) -> None:
        """Handle the end of a connection."""

    def tell(self, kind: EventKind, connection: Connection | None = None, detail: str = "") -> None:
        """Emit an event."""


class Hub:
    """What all connections of a sandbox share: limits, and the writing at the end of a turn."""

    def __init__(self, version: int, serialize_type: str, connections: int, waiting: int):
        self.version = version
        """MQVersion ordinal in the headers"""
        self.serialize_type = serialize_type
        """JSON or ROCKETMQ"""
        self.binary = serialize_type == ROCKETMQ
        """responses have binary headers"""
        self.connections: set[Connection] = set()
        self.opaque = 0
        """number of the last request of a broker"""
        self.commit: Callable[[], None] | None = None
        """called before responses are written: what must be on the disk first"""
        self.on_failure: Callable[[Exception], None] | None = None
        """is notified that this failed; no request is answered then"""
        self._connections_limit = connections
        self._waiting_limit = waiting
        self.unfinished = 0
        """bytes of incomplete frames"""
        self.unread = 0
        """bytes of responses that clients have not read yet"""
        self.asked = 0
        """requests that clients have not answered yet"""
        self._dirty: list[Connection] = []
        self._collected = 0
        self._scheduled = False
        self._silence: asyncio.TimerHandle | None = None
        self.files = OpenFiles(lambda: len(self.connections))
        """open files that connections may take"""

    @property
    def full(self) -> bool:
        """Whether no further connection is taken."""
        return len(self.connections) >= self._connections_limit

    def next_opaque(self) -> int:
        """Return a number for a request of a broker."""
        self.opaque = (self.opaque + 1) & 0x7FFFFFFF
        return self.opaque

    def hold_unfinished(self, change: int) -> bool:
        """Note that unfinished frames grew by `change` bytes; whether that is still allowed."""
        self.unfinished += change
        return self.unfinished <= self._waiting_limit

    def hold_unread(self, change: int) -> bool:
        """Note that unread responses grew by `change` bytes; whether that is still allowed."""
        self.unread += change
        return self.unread <= self._waiting_limit

    def collect(self, size: int) -> None:
        """Note bytes of a response; all are written at once where they are many for one turn."""
        self._collected += size
        if self._collected > _UNREAD_LIMIT:
            self.flush()

    def watch_silence(self, greeting: float, idle: float) -> None:
        """Close, from now on, who sent no whole frame or is silent for a number of seconds."""
        loop = asyncio.get_running_loop()
        step = max(0.02, min(greeting, idle, 40.0) / 4)

        def look() -> None:
            self._silence = loop.call_later(step, look)
            now = loop.time()
            for connection in list(self.connections):
                connection.close_silent(now - greeting, now - idle)

        self._silence = loop.call_later(step, look)

    def close(self) -> None:
        """Look at no connection any more."""
        if self._silence is not None:
            self._silence.cancel()

    def schedule(self, connection: Connection) -> None:
        """Have a connection written at the end of this turn."""
        self._dirty.append(connection)
        if not self._scheduled:
            self.schedule_flush()

    def schedule_flush(self) -> None:
        """Have everything stored and written at the end of this turn."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Store what must be stored, then write all responses."""
        self._scheduled = False
        self._collected = 0
        dirty, self._dirty = self._dirty, []
        if self.commit is not None:  # first: a response promises that its message survives a crash
            try:
                self.commit()
            except SandboxError as error:
                # What a response would promise is not true: who waits for one finds out by himself.
                for connection in dirty:
                    connection.close(reset=True)
                if self.on_failure is not None:
                    self.on_failure(error)
                return
        for connection in dirty:
            connection.write_out()


class Connection(asyncio.Protocol):
    """One client on one port."""

    def __init__(self, hub: Hub, service: Service) -> None:
        self.hub = hub
        self.service = service
        self.peer = ""
        """address of the client, `ip:port`"""
        self.local = ""
        """our address, `ip:port`"""
        self.pace: Callable[[int], float] | None = None
        """an injection: seconds to wait before more is read, by the bytes just read"""
        self._transport: asyncio.Transport | None = None
        self._reader = StrictReader()
        self._held = 0
        self._out: list[bytes] = []
        self._out_size = 0
        self._unread = 0
        self._asked: dict[int, OnResponse] = {}
        self._paused = 0
        self._loop = asyncio.get_running_loop()
        self._opened = self._used = self._loop.time()
        self._greeted = False

    # -- the loop's calls -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle a new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.peer = endpoint_of_socket(transport.get_extra_info("peername"))
        self.local = endpoint_of_socket(transport.get_extra_info("sockname"))
        if self.hub.full:
            self.service.tell(EventKind.REFUSED, self, "too many connections")
            transport.abort()
            return
        self.hub.connections.add(self)
        if not self.service.opened(self):
            self.close(reset=True)

    def data_received(self, data: bytes) -> None:
        """Serve the frames that bytes make whole."""
        if self._transport is None:
            return
        self._used = self._loop.time()
        for received in self._reader.receive(data):
            self._receive(received)
            # the request may have ended the connection
            if self._transport is None:
                return
        problem = self._reader.problem
        if problem is not None:
            is_readable = problem.bad_header or problem.protocol is not None
            self._refuse(problem.detail if is_readable else f"not a frame: {problem.detail}")
            return
        held = self._reader.held_bytes
        if held != self._held:
            allowed = self.hub.hold_unfinished(held - self._held)
            self._held = held
            if not allowed and held:
                self._refuse("too many bytes of unfinished frames")
                return
        if self.pace is not None:
            self._read_slowly(self.pace(len(data)))

    def eof_received(self) -> bool:
        """Close the connection: the client has finished."""
        # as Netty without ALLOW_HALF_CLOSURE
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the end of the connection."""
        self._forget()

    def pause_writing(self) -> None:
        """Stop reading requests while the client does not read responses."""
        self.pause_reading()

    def resume_writing(self) -> None:
        """Read requests again: the client reads responses."""
        self._note_unread()
        self.resume_reading()

    # -- for services ---------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether something can still be written."""
        return self._transport is not None

    def respond(self, request: RemotingCommand, response: HandlerResponse) -> None:
        """Respond to a request of this connection at the end of this turn; oneway ones are not."""
        if request.flag & ONEWAY_FLAG or self._transport is None:
            return
        self.write(self.encode_response(request, response))

    def encode_response(self, request: RemotingCommand, response: HandlerResponse) -> bytes:
        """Return the frame of the response to a request."""
        command = RemotingCommand(
            response.code,
            request.opaque,
            RESPONSE_FLAG,
            LANGUAGE,
            self.hub.version,
            response.remark,
            dict(response.fields) if response.fields else {},
            self.hub.serialize_type,
        )
        try:
            return self._encode(command, response.body)
        except ValueError as error:  # a response over the frame limit
            command.code, command.remark = ResponseCode.SYSTEM_ERROR, str(error)
            command.ext_fields = {}
            return self._encode(command, b"")

    def ask(
        self,
        code: int,
        fields: dict[str, str],
        body: bytes = b"",
        on_response: OnResponse | None = None,
    ) -> bool:
        """Send a request to the client, oneway without `on_response`; False if that cannot be."""
        if self._transport is None:
            return False
        if len(self._asked) >= _REQUESTS_LIMIT or self.hub.asked >= _REQUESTS_IN_ALL:
            return False
        opaque = self.hub.next_opaque()
        flag = 0 if on_response is not None else ONEWAY_FLAG
        command = RemotingCommand(
            code, opaque, flag, LANGUAGE, self.hub.version, None, fields, self.hub.serialize_type
        )
        if on_response is not None:
            self._asked[opaque] = on_response
            self.hub.asked += 1
        self.write(self._encode(command, body))
        return True

    def forget_request(self, on_response: OnResponse) -> None:
        """Forget a response that nobody waits for any more."""
        for opaque, waiting in list(self._asked.items()):
            if waiting == on_response:
                del self._asked[opaque]
                self.hub.asked -= 1

    def write(self, data: bytes) -> None:
        """Have bytes written at the end of this turn."""
        if not self._out:
            self.hub.schedule(self)
        self._out.append(data)
        self._out_size += len(data)
        if self._out_size > _UNREAD_LIMIT:
            self._refuse("it sends too many requests at once")
        else:
            self.hub.collect(len(data))

    def write_out(self) -> None:
        """Write what was collected."""
        out, self._out = self._out, []
        self._out_size = 0
        if self._transport is None or not out:
            return
        self._used = self._loop.time()
        self._transport.write(out[0] if len(out) == 1 else b"".join(out))
        if not self._note_unread():
            self._refuse("it does not read its responses")

    def _note_unread(self) -> bool:
        """Note what the client has not read; whether that is still allowed."""
        size = self._transport.get_write_buffer_size() if self._transport is not None else 0
        change = size - self._unread
        if not change:
            return True
        self._unread = size
        return self.hub.hold_unread(change) and size <= _UNREAD_LIMIT

    def close(self, reset: bool = False) -> None:
        """End the connection: in order, with what was written, or at once."""
        transport = self._transport
        if transport is None:
            return
        if reset:
            transport.abort()
        else:
            self.write_out()
            transport.close()
        self._forget()

    def close_silent(self, greeted_since: float, used_since: float) -> None:
        """Close the connection if nothing was said since then; a slowed one is given its time."""
        if self.pace is not None:
            return
        if not self._greeted and self._opened < greeted_since:
            self.service.tell(EventKind.REFUSED, self, "it sends nothing")
            self.close(reset=True)
        elif self._used < used_since:
            self.close()

    def pause_reading(self) -> None:
        """Pause reading; calls nest."""
        self._paused += 1
        if self._paused == 1 and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Undo one `pause_reading`."""
        self._paused -= 1
        if self._paused == 0 and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # -- internal -------------------------------------------------------------------------------

    def _receive(self, received: ReceivedCommand) -> None:
        self._greeted = True
        command = received.command
        if command.flag & RESPONSE_FLAG:
            on_response = self._asked.pop(command.opaque, None)
            if on_response is not None:
                self.hub.asked -= 1
                on_response(command, received.body)
        else:
            self.service.serve(self, command, received.body)

    def _encode(self, command: RemotingCommand, body: bytes) -> bytes:
        kind = BINARY_TYPE if self.hub.binary else JSON_TYPE
        return encode_frame(kind, encode_header(command, kind), body)

    def _read_slowly(self, seconds: float) -> None:
        if seconds > 0:
            self.pause_reading()
            asyncio.get_running_loop().call_later(seconds, self.resume_reading)

    def _refuse(self, why: str) -> None:
        self.service.tell(EventKind.BAD_BYTES, self, why)
        self.close(reset=True)

    def _forget(self) -> None:
        if self._transport is None:
            return
        self._transport = None
        self._out = []
        self.hub.connections.discard(self)
        self.hub.hold_unfinished(-self._held)
        self.hub.hold_unread(-self._unread)
        self._held = self._unread = 0
        asked, self._asked = self._asked, {}
        self.hub.asked -= len(asked)
        for on_response in asked.values():
            on_response(None, b"")
        self.service.closed(self)
