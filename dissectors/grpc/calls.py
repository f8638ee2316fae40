"""The calls of one connection: what happens on streams in, requests and responses out.

Rules: a unary call and a server's stream are one request and one response; the response is there
when the server has ended it. What either end says on a telemetry stream is a request or a response
for itself: the stream lasts as long as the client. Messages whose bytes do not pay for a row have
one together. A stream that is reset before its response gives one that stands for none. What a
server says may be captured before what it answers: it waits for that. Streams at a time are
bounded; the oldest is given up. Headers and bodies that are held are bounded together.
"""

from __future__ import annotations

from typing import Final

from ..budget import Budget
from ..http2.connection import Happening, StreamEvent
from ..http2.frame import HEAD, StreamPlace
from ..http2.header_blocks import bytes_of
from .call_stream import CallStream, HeldBytes, single
from .command import CallColumns
from .commands import (
    LOST_STATUS,
    client_facts,
    has_unknown,
    reset_of,
    shown_metadata,
    transport_status,
)
from .definition import METHODS
from .names import TELEMETRY
from .said import Said, command_of, read_columns, said_of, telemetry_said, value_of

MOST_STREAMS: Final = 4096
"""streams of a connection that are open at a time; a proxy allows 1024 calls unless told more"""
MOST_HELD: Final = 32 * 1024 * 1024
"""bytes of a connection that wait for the rest of their calls: one of the largest messages fits"""
MOST_EARLY: Final = 1024
"""events of streams that wait for the request that opens them: it may be behind a hole"""
ROW_BYTES: Final = 800
"""bytes that a row takes as JSON, about"""
FREE_ROWS: Final = 16
"""rows about messages of telemetry streams that a connection may have whatever was read"""
MOST_TIMES: Final = 16
"""bytes that each byte of a connection may become in such rows besides: those of a client and a
server are 50 bytes and more, but five bytes are a message, too"""
_BY_PATH: Final = {method.path: method for method in METHODS}


class CallReader:
    """Puts together the calls of one connection."""

    def __init__(self, budget: Budget) -> None:
        self.methods = 0
        """streams of methods that are known"""
        self.others = 0
        """streams of others"""
        self.unnamed = 0
        """streams of which the method was not captured"""
        self.given_up = 0
        """streams that were given up because too many were open"""
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
        """Bytes that wait for the rest of their call, or for its beginning."""
        return self._held.bytes + self._early_bytes

    def receive(self, event: StreamEvent, from_client: bool, out: list[Said]) -> None:
        """Append the requests and responses that are complete with an event."""
        what = event.what
        self._row_room += MOST_TIMES * (HEAD + event.size)
        if what is Happening.GOAWAY:
            return
        if not from_client and event.stream > self._newest:
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

    def finish(self, out: list[Said]) -> None:
        """Append the requests of which the end cut something off: no more comes."""
        self._settle_all(out)
        for number, stream in self._streams.items():
            if stream.method.name == TELEMETRY:
                self._tell_rest(number, stream, out)
            elif not stream.said:
                self._ask(number, stream, stream.place, out)
        self._streams.clear()
        self._held.bytes = 0
        self._forget_early()

    def lose(self, from_client: bool, ends: bool, out: list[Said]) -> None:
        """Go on behind what an end said that the capture does not have: any of its messages, and
        whole calls. Append what waited for them. `ends`: nothing more is read of that end.
        """
        for stream in self._streams.values():
            (stream.asked if from_client else stream.given).lose()
        if not from_client or ends:
            self._forget_early()
        if from_client:
            self._waits = self._waits and not ends
            self._settle_all(out)

    def release(self) -> None:
        """Let go what is held; the calls go on without it."""
        for stream in self._streams.values():
            for side in (stream.asked, stream.given):
                side.take()
                side.lose()
                side.drop_headers()
            if stream.ending is not None:
                stream.ending = stream.ending._replace(headers=[])
        self._forget_early()

    def _keep_early(self, event: StreamEvent) -> None:
        """Let what a server says wait for the request that it answers."""
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

    def _take_early(self, number: int, out: list[Said]) -> None:
        """Read what a server said on a stream before it was opened here."""
        early, self._early = self._early, []
        self._early_bytes = 0
        for event in early:
            if event.stream >= number:  # older streams are not opened any more
                self.receive(event, False, out)

    def _settle_all(self, out: list[Said]) -> None:
        """Wait for no more of requests that were answered."""
        for stream in list(self._streams.values()):
            self._settle(stream, out)

    def _settle(self, stream: CallStream, out: list[Said]) -> None:
        """End a stream that the server has ended."""
        event = stream.ending
        if event is not None and event.what is Happening.RESET:
            self._reset(event, stream, False, out)
        elif event is not None:
            self._end(event, stream, out)

    def _close(self, event: StreamEvent, stream: CallStream, out: list[Said]) -> None:
        """End a stream, or wait for the rest of its request."""
        if stream.ending is None:
            stream.ending = event
            stream.given.keep_headers(event.headers)
        if stream.said or stream.method.name == TELEMETRY or stream.asked.cutter.broken:
            self._settle(stream, out)

    def _remove(self, number: int) -> None:
        stream = self._streams.pop(number)
        stream.asked.forget()
        stream.given.forget()

    def _data(
        self, event: StreamEvent, stream: CallStream, from_client: bool, out: list[Said]
    ) -> None:
        side = stream.asked if from_client else stream.given
        if side.headers is None:
            side.lose()
        side.receive(event, self._budget)
        self._take(event, stream, from_client, out)
        if not from_client:
            if event.ended:
                self._close(event, stream, out)
        elif event.ended or stream.said or side.cutter.broken:
            self._settle(stream, out)
        self._bound()

    def _bound(self) -> None:
        """Let go what is held where it is too much."""
        if self.held > MOST_HELD:
            self.given_up += 1
            self.release()

    def _headers(
        self, event: StreamEvent, stream: CallStream | None, from_client: bool, out: list[Said]
    ) -> None:
        headers = event.headers
        opens = stream is None and from_client
        if opens:
            self._newest = max(self._newest, event.stream)
            stream = self._open(event)
        if stream is None:
            return
        side = stream.asked if from_client else stream.given
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
        method = _BY_PATH.get(path)
        if method is None:
            if path:
                self.others += 1
            else:
                self.unnamed += 1
            return None
        self.methods += 1
        if len(self._streams) >= MOST_STREAMS:
            self._remove(next(iter(self._streams)))
            self.given_up += 1
        stream = self._streams[event.stream] = CallStream(method, event.place, self._held)
        if event.stream <= self._lost_to:
            stream.given.lose()
        return stream

    def _take(
        self, event: StreamEvent, stream: CallStream, from_client: bool, out: list[Said]
    ) -> None:
        """Give out what is complete for itself."""
        side = stream.asked if from_client else stream.given
        if side.place is None:
            return
        if stream.method.name == TELEMETRY:
            self._tell(event.stream, stream, from_client, out)
        elif from_client and not stream.said:
            self._ask(event.stream, stream, side.place, out)
        elif from_client:
            side.take()

    def _tell(self, number: int, stream: CallStream, from_client: bool, out: list[Said]) -> None:
        """Give out messages of a telemetry stream, each for itself unless their bytes are few."""
        side = stream.asked if from_client else stream.given
        if self._row_room < ROW_BYTES:
            return  # they wait for more
        taken = side.take()
        every = [taken]
        if taken.messages * ROW_BYTES <= self._row_room:
            every = list(single(taken))
        self._row_room -= len(every) * ROW_BYTES
        out.extend(telemetry_said(number, stream, one, from_client) for one in every)

    def _tell_rest(self, number: int, stream: CallStream, out: list[Said]) -> None:
        """Give out what waits on a telemetry stream that has ended."""
        for side, from_client in ((stream.asked, True), (stream.given, False)):
            if side.place is not None:
                out.append(telemetry_said(number, stream, side.take(), from_client))

    def _ask(self, number: int, stream: CallStream, place: StreamPlace, out: list[Said]) -> None:
        """Give out the request of a stream."""
        stream.said = True
        side = stream.asked
        every = side.take()
        taken = next(single(every), every)
        command = command_of(stream, number, stream.method.name)
        problem = read_columns(stream.method.asks, taken, command)
        command.columns.facts = command.columns.facts + client_facts(side.headers or [])
        out.append(said_of(True, command, side, taken, problem, place))

    def _end(self, event: StreamEvent, stream: CallStream, out: list[Said]) -> None:
        """Give out the response: the server says no more."""
        self._remove(event.stream)
        if stream.method.name == TELEMETRY:
            self._tell_rest(event.stream, stream, out)
            return
        if not stream.said:
            self._ask(event.stream, stream, event.place, out)
        side = stream.given
        taken = side.take()
        command = command_of(stream, event.stream, "")
        command.flag = 1
        command.ext_fields = shown_metadata([*(side.headers or []), *event.headers])
        problem = read_columns(stream.method.gives, taken, command)
        failed = transport_status(event.headers)
        if failed is not None:
            command.code, command.name, command.remark = failed
        elif not taken.messages and has_unknown(event.headers):
            command.code, command.name, command.remark = LOST_STATUS
            problem = problem or "its status refers to headers that were not captured"
        out.append(said_of(False, command, side, taken, problem, event.place))

    def _reset(
        self, event: StreamEvent, stream: CallStream, from_client: bool, out: list[Said]
    ) -> None:
        """End a stream on which no response comes."""
        self._remove(event.stream)
        if stream.method.name == TELEMETRY:
            self._tell_rest(event.stream, stream, out)
        if not stream.said or stream.method.name == TELEMETRY:
            return
        command = command_of(stream, event.stream, "RST_STREAM")
        command.flag = 1
        command.is_reset = True
        command.ext_fields = {}
        command.columns = CallColumns(facts=[reset_of(event.reason, from_client)])
        out.append(Said(False, command, False, b"", 0, 0, 0, None, event.place))
