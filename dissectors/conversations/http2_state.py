"""HTTP/2 conversations: calls of RocketMQ's gRPC clients as requests and responses.

A connection counts as RocketMQ from the first stream of one of its methods; one that carries other
traffic for long is ignored. The HTTP/2 parser is imported with the first such connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from ..findings import Finding, FindingKind, undecoded
from ..remoting.framing.frame import Frame
from ..tcp.reassembly import Data, Gap, Piece
from .conversation import Conversation, ConversationState, Direction, Pdu, pdu_of
from .recognition import GRPC, HTTP2, refined

if TYPE_CHECKING:
    from ..grpc.call_messages import CallMessage
    from ..grpc.calls import CallReader
    from ..http2.connection import Http2End, StreamEvent

OTHERS_READ: Final = 256 * 1024
"""bytes of other services after which a connection is ignored"""

MOST_UNNAMED: Final = 1000
"""calls without a known method after which it is ignored: a client repeats its methods after
about thirty calls, when they have left its header table"""
MOST_UNSAID: Final = 16
"""findings held until the connection is known to be RocketMQ"""
HEAD_KEPT: Final = 15
"""bytes kept to match the gRPC content type across pieces"""


@final
class Http2(ConversationState):
    """HTTP/2 streams, some or all of which are calls of RocketMQ's services."""

    __slots__ = (
        "_calls",
        "_first",
        "_first_at",
        "_head",
        "_other",
        "_second",
        "_second_at",
        "_seen",
        "_unsaid",
    )

    def __init__(self, conversation: Conversation, joined: bool) -> None:
        """Begin with HTTP/2; `joined`: the first bytes of both ends were not captured."""
        super().__init__(conversation, False, True)
        from ..budget import FREE_BYTES, Budget
        from ..grpc.calls import CallReader
        from ..http2.connection import Http2End

        conversation.protocol = HTTP2
        self._first: Http2End = Http2End(joined)
        self._second: Http2End = Http2End(joined)
        budget = Budget()
        budget.spend(FREE_BYTES)  # there may be many connections: only bytes read earn budget
        self._calls: CallReader = CallReader(budget)
        self._other = HTTP2
        self._head = b""
        self._unsaid: list[Finding] = []
        self._seen: i64 = 0
        self._first_at: i64 = -1 if joined else 0
        self._second_at: i64 = -1 if joined else 0
        conversation.forget_frames()

    @property
    def protocol(self) -> str:
        """Name of the protocol, as in the conversation's row."""
        return GRPC if self.is_rocketmq else self.conversation.protocol

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Append the requests and responses that these pieces complete."""
        end = self._first if direction is self.conversation.first else self._second
        for piece in pieces:
            if self.conversation.ignored:
                return
            before, losses = end.problem, end.losses
            events: list[StreamEvent] = []
            try:
                self._follow(direction, end, piece, events)
                self._read(end, piece, events)
                self._take(direction, events, out)
            except Exception as error:  # last line of defence: a bad piece must not end the run
                end.stop(undecoded(error))
            problem = end.problem
            if problem is not None and before is None:
                self._lose(direction, problem, True, piece, out)
            elif end.losses != losses:
                self._lose(direction, "bytes are missing", False, piece, out)
        self.held = self._first.held + self._second.held + self._calls.held

    def finish(self, direction: Direction, out: list[Pdu]) -> None:
        """Append the requests that the end truncates."""
        client = self.conversation.client
        messages: list[CallMessage] = []
        # Both directions share the calls, which are finished once.
        if direction is client:
            self._calls.finish(messages)
        out += [self._pdu(direction, message) for message in messages]

    def release(self) -> None:
        """Release the held bytes."""
        self._calls.release()
        self.held = self._first.held + self._second.held

    def give_up(self) -> None:
        """Settle the protocol at the end of the conversation."""
        if not self.is_rocketmq:
            self.conversation.protocol = self._other
        elif self._calls.unnamed:
            conversation = self.conversation
            detail = f"{self._calls.unnamed} calls whose method is not known"
            ts, packet = conversation.first_ts, conversation.first_packet
            conversation.report(FindingKind.HEADERS_LOST, detail, ts, packet, -1)

    def _follow(
        self, direction: Direction, end: Http2End, piece: Piece, events: list[StreamEvent]
    ) -> None:
        """Report missing bytes before this piece to an end, and update its offset."""
        is_first = direction is self.conversation.first
        at: i64 = self._first_at if is_first else self._second_at
        offset: i64 = piece.offset
        if 0 <= at < offset:
            from ..http2.frame import StreamPlace

            end.receive_gap(int(offset - at), StreamPlace(piece.packet, piece.ts, offset), events)
        length: i64 = piece.end - piece.start if isinstance(piece, Data) else piece.length
        if is_first:
            self._first_at = offset + length
        else:
            self._second_at = offset + length

    def _lose(
        self, direction: Direction, detail: str, ends: bool, piece: Piece, out: list[Pdu]
    ) -> None:
        """Report a gap of unknown length to an end, and continue after it."""
        if self.is_rocketmq or len(self._unsaid) < MOST_UNSAID:
            self._report(FindingKind.HEADERS_LOST, detail, piece)
        messages: list[CallMessage] = []
        self._calls.lose(direction is self.conversation.client, ends, messages)
        out += [self._pdu(direction, message) for message in messages]

    def _read(self, end: Http2End, piece: Piece, events: list[StreamEvent]) -> None:
        from ..http2.frame import StreamPlace

        if isinstance(piece, Gap):
            if piece.length <= 0:  # of unknown length: offsets behind it mean nothing
                end.stop("bytes are missing")
                return
            place = StreamPlace(piece.packet, piece.ts, piece.offset + piece.length)
            end.receive_gap(int(piece.length), place, events)
            return
        length: i64 = piece.end - piece.start
        data = piece.data[piece.start : piece.end]
        end.receive(data, StreamPlace(piece.packet, piece.ts, piece.offset + length), events)
        if not self.is_rocketmq:
            head = self._head + data
            self._head = head[-HEAD_KEPT:]
            self._other = refined(self._other, head)
            self._seen += length

    def _take(self, direction: Direction, events: list[StreamEvent], out: list[Pdu]) -> None:
        conversation = self.conversation
        messages: list[CallMessage] = []
        for event in events:
            if conversation.client is None and _is_request(event):  # no SYN was captured
                conversation.client = direction
            self._calls.receive(event, direction is conversation.client, messages)
        if not self.is_rocketmq and self._calls.methods:
            self.is_rocketmq = True
            conversation.state.is_rocketmq = True  # inside TLS
            conversation.findings.extend(self._unsaid)
            self._unsaid = []
        elif self._seen > OTHERS_READ and not self.is_rocketmq and not self._may_be_named():
            conversation.protocol = self._other
            conversation.ignore()
        conversation.frames += len(events)
        out += [self._pdu(direction, message) for message in messages]

    def _may_be_named(self) -> bool:
        """Return whether calls may be RocketMQ's with a method sent before the capture."""
        return self._calls.others == 0 and 0 < self._calls.unnamed < MOST_UNNAMED

    def _pdu(self, direction: Direction, message: CallMessage) -> Pdu:
        """Return the PDU of a request or response."""
        command = message.command
        place = message.place
        sender = direction
        if message.from_client != (direction is self.conversation.client):
            sender = direction.peer  # a request of which nothing more comes, before its response
        length = len(message.body)
        frame = Frame(
            place.offset, place.packet, place.ts, 0, b"", message.body, length, message.missing
        )
        pdu = pdu_of(sender, frame, command)
        pdu.header_length = message.header_bytes
        pdu.frame_bytes = message.header_bytes + message.wire_bytes
        self.conversation.commands += 1
        if message.missing:
            pdu.say(FindingKind.GAP, f"{message.missing} bytes")
        if message.problem is not None:
            self.conversation.findings.append(pdu.say(FindingKind.BAD_BODY, message.problem))
        return pdu

    def _report(self, kind: FindingKind, detail: str, piece: Piece) -> None:
        number = self.conversation.number
        findings = self.conversation.findings if self.is_rocketmq else self._unsaid
        findings.append(Finding(kind, detail, piece.ts, piece.packet, number, piece.offset))


def _is_request(event: StreamEvent) -> bool:
    """Return whether these headers are those of a request."""
    return any(name == ":method" for name, _ in event.headers)
