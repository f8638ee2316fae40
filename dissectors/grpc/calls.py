"""Requests and responses of one connection, assembled from stream events.

A unary call or a server stream is one request and one response, complete when the server ends the
stream. On a telemetry stream, which lasts as long as the client, each message is a request or a
response.
"""

from __future__ import annotations

from typing import Final

from ..budget import Budget
from ..http2.connection import Happening, StreamEvent
from ..http2.frame import HEAD, StreamPlace
from ..http2.header_blocks import bytes_of
from .call_messages import (
    LOST_STATUS,
    CallMessage,
    call_message,
    client_facts,
    command_of,
    has_unknown,
    read_columns,
    reset_of,
    shown_metadata,
    telemetry_message,
    transport_status,
    value_of,
)
from .call_stream import CallStream, HeldBytes, Taken, single
from .command import NO_CODE, CallColumns
from .definition import METHODS
from .names import TELEMETRY

MOST_STREAMS: Final = 4096
"""streams open at a time on a connection; a proxy allows 1024 calls by default"""
MOST_HELD: Final = 32 * 1024 * 1024
"""bytes of incomplete calls held for a connection: enough for one message of maximum size"""
MOST_EARLY: Final = 1024
"""server events held until their request arrives, which may be behind a hole"""
ROW_BYTES: Final = 800
"""approximate bytes of a row as JSON"""
FREE_ROWS: Final = 16
"""rows for telemetry messages that a connection may always have"""
MOST_TIMES: Final = 16
"""further row bytes for each byte of a connection: client and server messages have at least 50
bytes, but a message may be as short as five
"""
METHODS_BY_PATH: Final = {method.path: method for method in METHODS}


class CallReader:
    """Assembles the calls of one connection."""

    def __init__(self, budget: Budget) -> None:
        self.methods = 0
        """streams of known methods"""
        self.others = 0
        """streams of other methods"""
        self.unnamed = 0
        """streams without a captured method"""
        self.abandoned = 0
        """streams dropped because too many were open"""
        self._budget = budget
        self._held = HeldBytes()
        self._row_room = FREE_ROWS * ROW_BYTES
        self._streams: dict[int, CallStream] = {}
        self._newest = 0
        self._early: list[StreamEvent] = []
        self._early_bytes = 0
        self._lost_to = 0
        self._waits = True

    @property
    def held(self) -> int:
        """Bytes held for incomplete calls."""
        return self._held.bytes + self._early_bytes

    def receive(self, event: StreamEvent, from_client: bool, out: list[CallMessage]) -> None:
        """Append the requests and responses that an event completes."""
        what = event.what
        self._row_room += MOST_TIMES * (HEAD + event.size)
        if what is Happening.GOAWAY:
            return
        if not from_client and event.stream > self._newest:  # captured before its request
            self._keep_early(event)
            return
        stream = self._streams.get(event.stream)
        if what is Happening.HEADERS:
            self._headers(event, stream, from_client, out)
        elif stream is None:
            return
        elif what is Happening.DATA:
            self._data(event, stream, from_client, out)
        elif from_client:
            self._settle(stream, out)
            if event.stream in self._streams:
                self._reset(event, stream, True, out)
        else:
            self._close(event, stream, out)

    def finish(self, out: list[CallMessage]) -> None:
        """Append incomplete requests at the end of the connection."""
        self._settle_all(out)
        for number, stream in self._streams.items():
            if stream.method.name == TELEMETRY:
                self._emit_rest(number, stream, out)
                continue
            if not stream.requested:
                self._emit_request(number, stream, stream.place, out)
            if stream.server.last is not None:  # messages were received, although not all
                self._emit_partial(number, stream, "", [], stream.server.last, out)
        self._streams.clear()
        self._held.bytes = 0
        self._forget_early()

    def lose(self, from_client: bool, ends: bool, out: list[CallMessage]) -> None:
        """Continue after a hole in one direction, which may hide messages and whole calls; append
        the requests that waited for them. `ends`: nothing more of this direction is read.
        """
        for stream in self._streams.values():
            (stream.client if from_client else stream.server).lose()
        if not from_client or ends:
            self._forget_early()
        if from_client:
            self._waits = self._waits and not ends
            self._settle_all(out)

    def release(self) -> None:
        """Drop everything held; the calls continue without it."""
        for stream in self._streams.values():
            for side in (stream.client, stream.server):
                side.take()
                side.lose()
                side.drop_headers()
            if stream.ending is not None:
                stream.ending = stream.ending._replace(headers=[])
        self._forget_early()

    def _keep_early(self, event: StreamEvent) -> None:
        """Hold a server event until its request arrives."""
        size = len(event.data) + bytes_of(event.headers)
        if len(self._early) >= MOST_EARLY or self.held + size > MOST_HELD:
            self._forget_early()
        if self._waits:
            self._early.append(event)
            self._early_bytes += size

    def _forget_early(self) -> None:
        for event in self._early:
            self._lost_to = max(self._lost_to, event.stream)
        self._early = []
        self._early_bytes = 0

    def _take_early(self, number: int, out: list[CallMessage]) -> None:
        """Process server events that were captured before their stream opened."""
        early, self._early = self._early, []
        self._early_bytes = 0
        for event in early:
            if event.stream >= number:  # older streams cannot open any more
                self.receive(event, False, out)

    def _settle_all(self, out: list[CallMessage]) -> None:
        """Settle all streams that the server has ended."""
        for stream in list(self._streams.values()):
            self._settle(stream, out)

    def _settle(self, stream: CallStream, out: list[CallMessage]) -> None:
        """End a stream that the server has ended."""
        event = stream.ending
        if event is not None and event.what is Happening.RESET:
            self._reset(event, stream, False, out)
        elif event is not None:
            self._emit_response(event, stream, out)

    def _close(self, event: StreamEvent, stream: CallStream, out: list[CallMessage]) -> None:
        """End a stream, or wait for the rest of its request."""
        if stream.ending is None:
            stream.ending = event
            stream.server.keep_headers(event.headers)
        if stream.requested or stream.method.name == TELEMETRY or stream.client.cutter.broken:
            self._settle(stream, out)

    def _remove(self, number: int) -> None:
        stream = self._streams.pop(number)
        stream.client.forget()
        stream.server.forget()

    def _data(
        self, event: StreamEvent, stream: CallStream, from_client: bool, out: list[CallMessage]
    ) -> None:
        side = stream.client if from_client else stream.server
        if side.headers is None:  # they are in a hole, and maybe data too
            side.lose()
        side.receive(event, self._budget)
        self._take(event, stream, from_client, out)
        if not from_client:
            if event.ended:
                self._close(event, stream, out)
        elif event.ended or stream.requested or side.cutter.broken:
            self._settle(stream, out)
        self._bound()

    def _bound(self) -> None:
        """Drop held bytes above the limit."""
        if self.held > MOST_HELD:
            self.abandoned += 1
            self.release()

    def _headers(
        self,
        event: StreamEvent,
        stream: CallStream | None,
        from_client: bool,
        out: list[CallMessage],
    ) -> None:
        headers = event.headers
        opens = stream is None and from_client
        if opens:
            self._newest = max(self._newest, event.stream)
            stream = self._open(event)
        if stream is None:
            return
        side = stream.client if from_client else stream.server
        if side.headers is None:
            if not from_client and not value_of(headers, ":status"):
                side.lose()  # these are trailers
            side.headers = headers
            side.keep_headers(headers)
            side.header_bytes = event.size
            side.cutter.encoding = value_of(headers, "grpc-encoding")
        if event.ended and not from_client:
            self._close(event, stream, out)
        if opens and self._early:
            self._take_early(event.stream, out)
        self._bound()

    def _open(self, event: StreamEvent) -> CallStream | None:
        path = value_of(event.headers, ":path")
        method = METHODS_BY_PATH.get(path)
        if method is None:
            if path:
                self.others += 1
            else:
                self.unnamed += 1
            return None
        self.methods += 1
        if len(self._streams) >= MOST_STREAMS:  # drop the oldest
            self._remove(next(iter(self._streams)))
            self.abandoned += 1
        stream = self._streams[event.stream] = CallStream(method, event.place, self._held)
        if event.stream <= self._lost_to:  # the beginning of the response is no longer held
            stream.server.lose()
        return stream

    def _take(
        self, event: StreamEvent, stream: CallStream, from_client: bool, out: list[CallMessage]
    ) -> None:
        """Emit what is complete on its own."""
        side = stream.client if from_client else stream.server
        if side.place is None:
            return
        if stream.method.name == TELEMETRY:
            self._emit_telemetry(event.stream, stream, from_client, out)
        elif from_client and not stream.requested:
            self._emit_request(event.stream, stream, side.place, out)
        elif from_client:  # the request is emitted: further messages belong to no row
            side.take()

    def _emit_telemetry(
        self, number: int, stream: CallStream, from_client: bool, out: list[CallMessage]
    ) -> None:
        """Emit telemetry messages, one each unless their bytes are too few."""
        side = stream.client if from_client else stream.server
        if self._row_room < ROW_BYTES:
            return  # wait for more messages
        whole = side.take()
        # A row each, unless messages of few bytes would become many times as much in rows.
        parts = [whole]
        if whole.messages * ROW_BYTES <= self._row_room:
            parts = list(single(whole))
        self._row_room -= len(parts) * ROW_BYTES
        for part in parts:
            self._emit_one(number, stream, part, from_client, out)

    def _emit_one(
        self,
        number: int,
        stream: CallStream,
        part: Taken,
        from_client: bool,
        out: list[CallMessage],
    ) -> None:
        """Emit a telemetry message."""
        message = telemetry_message(number, stream, part, from_client)
        if from_client and not message.command.is_response:
            stream.waiting += 1
        elif not from_client and message.command.is_response:
            # A proxy also sends settings on its own.
            stream.waiting = max(0, stream.waiting - 1)
        out.append(message)

    def _emit_rest(self, number: int, stream: CallStream, out: list[CallMessage]) -> None:
        """Emit the rest of a telemetry stream that has ended."""
        for side, from_client in ((stream.client, True), (stream.server, False)):
            if side.place is not None:
                self._emit_one(number, stream, side.take(), from_client, out)

    def _emit_request(
        self, number: int, stream: CallStream, place: StreamPlace, out: list[CallMessage]
    ) -> None:
        """Emit the request of a stream."""
        stream.requested = True
        side = stream.client
        whole = side.take()
        taken = next(single(whole), whole)
        command = command_of(stream, number, stream.method.name)
        problem = read_columns(stream.method.asks, taken, command)
        command.columns.facts = command.columns.facts + client_facts(side.headers or [])
        out.append(call_message(True, command, side, taken, problem, place))

    def _emit_response(
        self, event: StreamEvent, stream: CallStream, out: list[CallMessage]
    ) -> None:
        """Emit the response of a stream that the server has ended."""
        self._remove(event.stream)
        failed = transport_status(event.headers)
        if stream.method.name == TELEMETRY:
            self._emit_rest(event.stream, stream, out)
            if failed is None or stream.waiting < 1:
                return  # the stream ends with its client or server
        elif not stream.requested:
            self._emit_request(event.stream, stream, event.place, out)
        side = stream.server
        taken = side.take()
        command = command_of(stream, event.stream, "")
        command.flag = 1
        command.ext_fields = shown_metadata([*(side.headers or []), *event.headers])
        problem = read_columns(stream.method.gives, taken, command)
        if failed is not None:
            command.code, command.name, command.remark = failed
        elif not taken.messages and has_unknown(event.headers):
            command.code, command.name, command.remark = LOST_STATUS
            problem = problem or "its status refers to headers that were not captured"
        out.append(call_message(False, command, side, taken, problem, event.place))

    def _reset(
        self, event: StreamEvent, stream: CallStream, from_client: bool, out: list[CallMessage]
    ) -> None:
        """End a stream without a response."""
        self._remove(event.stream)
        if stream.method.name == TELEMETRY:
            self._emit_rest(event.stream, stream, out)
        if not stream.requested or stream.method.name == TELEMETRY:
            return
        facts = [reset_of(event.reason, from_client)]
        self._emit_partial(event.stream, stream, "RST_STREAM", facts, event.place, out)

    def _emit_partial(
        self,
        number: int,
        stream: CallStream,
        name: str,
        facts: list[str],
        place: StreamPlace,
        out: list[CallMessage],
    ) -> None:
        """Emit the messages of a response without its end."""
        taken = stream.server.take()
        command = command_of(stream, number, name)
        command.flag = 1
        command.is_partial = True
        problem = taken.problem or read_columns(stream.method.gives, taken, command)
        # the end has the status of the call
        command.code, command.name, command.remark = NO_CODE, name, None
        command.ext_fields = {}
        command.columns = CallColumns(facts=facts)
        body, wire, missing = taken.body, taken.wire, taken.missing
        out.append(CallMessage(False, command, False, body, 0, wire, missing, problem, place))
