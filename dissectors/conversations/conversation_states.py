"""Protocol states of a conversation.

A conversation begins as `Undecided`, or as `Announced` if the user set its port with `--decode-as`.
The first frame makes it `RocketMq`, the replication protocol of slave and master `Replicating`, the
first bytes of another protocol, or too many bytes without a frame, `Foreign`. These three are
final. TLS makes it `Tls`, with an inner state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from ..findings import Finding, FindingKind, undecoded
from ..remoting.command import RemotingCommand
from ..remoting.framing.frame import Frame
from ..remoting.framing.frame_decoder import KEEP_CARRIED, KEEP_MESSAGES
from ..remoting.header_codec import JSON_TYPE, decode_usual_header
from ..remoting.odd_header import odd_header_of
from ..replication.progress import Reading, Replication, ReplicationFinder
from ..rows.conversation_facts import FIRST_BYTES, conversation_fact
from ..tcp.reassembly import Data, Gap, Piece
from ..tls.key_log import KeyLog
from .conversation import Conversation, ConversationState, Direction, Pdu
from .header_scan import scanned
from .header_view import HeaderView, view_of_command
from .recognition import HAPROXY, HTTP2, TLS, UNKNOWN, may_be_calls, protocol_of
from .tls_state import Tls

if TYPE_CHECKING:
    from ..http2.connection import Joining

DETECT_LIMIT: Final = 1024 * 1024
"""bytes of a direction searched for a frame before the protocol counts as unknown"""
DETECT_LIMIT_FROM_START: Final = 128 * 1024
"""the limit if the start was captured: the header of a first frame is not larger"""
HEAD: Final = 1024
"""first bytes of a direction used to detect other protocols"""
FIRST_BYTES_KEPT: Final = 16
"""first bytes of a client that are recorded for an unknown protocol"""
TLS_KINDS: Final = b"\x14\x15\x16\x17"
"""first bytes of TLS records: as a frame length they would far exceed the largest"""
TLS_HEAD: Final = 3
"""bytes that identify TLS"""
MOST_EARLY: Final = 8
"""deliveries of data after which the decision no longer waits for the first bytes"""


def open_conversation(
    number: i64,
    key: bytes,
    keep: i64,
    findings: list[Finding],
    is_rocketmq: bool,
    secrets: KeyLog,
) -> Conversation:
    """Return a new conversation; `is_rocketmq`: set by the user."""
    conversation = Conversation(number, key, keep, findings)
    if is_rocketmq:
        conversation.state = Announced(conversation, secrets)
    else:
        conversation.state = Undecided(conversation, secrets)
    return conversation


@final
class _Beginning:
    """What one direction has sent while its protocol was unknown."""

    __slots__ = ("end", "head")

    def __init__(self) -> None:
        self.head = b""
        """the first bytes, at most `HEAD`, up to the first hole"""
        self.end: i64 = 0
        """stream offset after the last byte"""


@final
class Undecided(ConversationState):
    """Initial state: searches for a frame, a replication, or another protocol."""

    __slots__ = ("_finder", "_first", "_frames", "_joining", "_second", "_secrets")

    def __init__(self, conversation: Conversation, secrets: KeyLog) -> None:
        super().__init__(conversation, False, True)
        self._secrets = secrets
        self._finder: ReplicationFinder | None = None
        self._first = _Beginning()
        self._second = _Beginning()
        self._joining: Joining | None = None
        self._frames: list[Frame] = []

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Search for the first frame, or for the signature of another protocol."""
        conversation = self.conversation
        decoder = conversation.decoder_of(direction)
        frames = self._frames
        beginning = self._beginning_of(direction)
        # Frames are searched at the same time: whatever is recognized first decides.
        for at, piece in enumerate(pieces):
            if not isinstance(piece, Data):
                decoder.receive_gap(piece.length, piece.packet, piece.ts, frames)
            else:
                foreign = self._foreign_of(direction, piece) if piece.offset < HEAD else None
                if foreign is not None:
                    foreign.receive(direction, pieces[at:], out)
                    break
                beginning.end = piece.offset + piece.end - piece.start
                decoder.receive(
                    piece.data, piece.start, piece.end, piece.offset, piece.packet, piece.ts, frames
                )
        if current_of(conversation) is self:
            if frames or decoder.synchronized:
                self._recognize(direction)
            else:
                self._try_replication(direction, pieces, out)
                if current_of(conversation) is self:
                    self._join_http2(direction, pieces, out)
        if frames:
            _give_commands(direction, frames, out)
        elif current_of(conversation) is self:
            self._decide(direction)

    def finish(self, direction: Direction, out: list[Pdu]) -> None:
        """Append what can still be decoded; a frame decides the protocol."""
        frames = self._frames
        self.conversation.decoder_of(direction).finish(frames)
        if frames:
            self._recognize(direction)
            _give_commands(direction, frames, out)

    def give_up(self) -> None:
        """Settle on an unknown protocol: nothing was recognized."""
        self._note_first_bytes()
        _pass_over(self.conversation, self.conversation.protocol)

    def _beginning_of(self, direction: Direction) -> _Beginning:
        return self._first if direction is self.conversation.first else self._second

    def _note_first_bytes(self) -> None:
        """Record the first bytes of a conversation with an unknown protocol."""
        conversation = self.conversation
        if conversation.protocol != UNKNOWN:
            return
        client = conversation.client or conversation.first
        head = self._beginning_of(client).head
        if head and client.reassembler.isn >= 0:
            conversation.note([conversation_fact(FIRST_BYTES, head[:FIRST_BYTES_KEPT].hex())])

    def _recognize(self, direction: Direction) -> None:
        """Handle a frame, or a frame header, found in this direction."""
        become(self.conversation, RocketMq(self.conversation, False))
        peer = direction.peer
        # The other end has sent nothing, so its first byte begins a frame.
        if peer.reassembler.isn >= 0 and peer.reassembler.empty:
            self.conversation.decoder_of(peer).synchronized = True

    def _foreign_of(self, direction: Direction, piece: Data) -> ConversationState | None:
        """Return the state for the protocol of a direction's first bytes, or None."""
        conversation = self.conversation
        beginning = self._beginning_of(direction)
        if len(beginning.head) != piece.offset:
            return None  # a hole is among the first bytes
        stop: i64 = min(piece.end, piece.start + HEAD - piece.offset)
        beginning.head += piece.data[piece.start : stop]
        protocol = protocol_of(beginning.head)
        if protocol is None:
            return None
        if protocol == TLS and conversation.state is self:  # TLS in TLS is not read
            conversation.protocol = TLS
            tls = Tls(conversation, Undecided(conversation, self._secrets), self._secrets)
            conversation.state = tls
            return self._fed(tls, direction, piece)
        if protocol == HTTP2:
            _speak_http2(conversation, False)
            return self._fed(current_of(conversation), direction, piece)
        if protocol != HAPROXY:
            _pass_over(conversation, protocol)
            return current_of(conversation)
        # The header of a proxy precedes the protocol, which the search for frames still finds.
        if conversation.protocol != HAPROXY:
            conversation.protocol = HAPROXY
            conversation.report(FindingKind.PROXY_HEADER, HAPROXY, piece.ts, piece.packet, 0)
        return None

    def _fed(
        self, state: ConversationState, direction: Direction, piece: Data
    ) -> ConversationState:
        """Feed a state the bytes before this piece: the first bytes of both ends."""
        mine = self._beginning_of(direction).head
        beginning = self._beginning_of(direction.peer)
        other = beginning.head
        behind: i64 = beginning.end - len(other)
        for end, head in ((direction, mine[: piece.offset]), (direction.peer, other)):
            if head:
                early: Piece = Data(0, piece.packet, piece.ts, head, 0, len(head))
                state.receive(end, [early], [])
        if behind > 0:  # more than was kept
            state.receive(direction.peer, [Gap(len(other), piece.packet, piece.ts, behind)], [])
        return state

    def _join_http2(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Detect calls that began before the capture: a piece that begins with their headers."""
        reassembler = direction.reassembler
        if reassembler.isn >= 0 and reassembler.gaps == 0:
            return  # the preface would have been recognized
        for at, piece in enumerate(pieces):
            if isinstance(piece, Data) and may_be_calls(piece.data, piece.start, piece.end):
                from ..http2.connection import Joining

                joining = self._joining = self._joining or Joining()
                if joining.is_start(piece.data[piece.start : piece.end]):
                    _speak_http2(self.conversation, True)
                    current_of(self.conversation).receive(direction, pieces[at:], out)
                    return

    def _try_replication(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Try pieces without a frame as the replication of slave and master."""
        if not pieces:  # a SYN: most connections of a scan have nothing else
            return
        conversation = self.conversation
        finder = self._finder
        if finder is None:
            finder = ReplicationFinder(conversation.number)
            self._finder = finder
        elif not finder.possible:
            return
        first = direction is conversation.first
        started = direction.reassembler.isn >= 0
        for at, piece in enumerate(pieces):
            if isinstance(piece, Gap):
                finder.receive_gap(first, piece.length)
                continue
            data = piece.data[piece.start : piece.end]
            reading = finder.receive(first, data, piece.offset, piece.packet, piece.ts, started)
            if reading is not None:
                # The reading has already got the pieces up to this one.
                become(conversation, Replicating(conversation, reading))
                current_of(conversation).receive(direction, pieces[at + 1 :], out)
                return

    def _decide(self, direction: Direction) -> None:
        searched: i64 = self.conversation.decoder_of(direction).search.searched
        limit: i64 = DETECT_LIMIT
        if direction.reassembler.isn >= 0 and direction.reassembler.gaps == 0:
            limit = DETECT_LIMIT_FROM_START
        if searched > limit:
            self._note_first_bytes()
            _pass_over(self.conversation, UNKNOWN)


@final
class RocketMq(ConversationState):
    """RocketMQ frames with commands."""

    __slots__ = ("_frames", "_is_announced")

    def __init__(self, conversation: Conversation, is_announced: bool) -> None:
        """`is_announced`: the user set RocketMQ, so the first byte begins a frame."""
        super().__init__(conversation, True, True)
        self._is_announced = is_announced
        self._frames: list[Frame] = []

    @property
    def protocol(self) -> str:
        """Name of the protocol, as in the conversation's row."""
        return "ROCKETMQ"

    def start(self, direction: Direction) -> None:
        """Handle the SYN of a direction."""
        decoder = self.conversation.decoder_of(direction)
        decoder.search.started = True
        if self._is_announced:
            decoder.synchronized = True

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Append the commands that these pieces complete."""
        decoder = self.conversation.decoder_of(direction)
        frames = self._frames
        for piece in pieces:
            if isinstance(piece, Data):
                decoder.receive(
                    piece.data, piece.start, piece.end, piece.offset, piece.packet, piece.ts, frames
                )
            else:
                decoder.receive_gap(piece.length, piece.packet, piece.ts, frames)
        if frames:
            _give_commands(direction, frames, out)

    def finish(self, direction: Direction, out: list[Pdu]) -> None:
        """Append the truncated frame at the end, as far as it goes."""
        frames = self._frames
        self.conversation.decoder_of(direction).finish(frames)
        if frames:
            _give_commands(direction, frames, out)


@final
class Announced(ConversationState):
    """RocketMQ as set by the user, until the first bytes show whether it is inside TLS."""

    __slots__ = ("_early", "_head", "_secrets")

    def __init__(self, conversation: Conversation, secrets: KeyLog) -> None:
        super().__init__(conversation, True, True)
        self._secrets = secrets
        self._early: list[tuple[Direction, list[Piece]]] = []
        self._head = b""

    @property
    def protocol(self) -> str:
        """Name of the protocol, as in the conversation's row."""
        return "ROCKETMQ"

    def start(self, direction: Direction) -> None:
        """Handle the SYN of a direction: its first byte begins a frame, or TLS."""
        decoder = self.conversation.decoder_of(direction)
        decoder.search.started = True
        decoder.synchronized = True

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Detect TLS in the first bytes of the first sender, and continue with that state."""
        self._early.append((direction, list(pieces)))
        waits = True
        if self._early[0][0] is direction:
            for piece in pieces:
                if isinstance(piece, Data):
                    self._head += piece.data[piece.start : piece.end]
                elif not self._head:
                    waits = False  # captured midway
        head = self._head
        if head:
            waits = waits and head[0] in TLS_KINDS and len(head) < TLS_HEAD
        if not waits or len(self._early) > MOST_EARLY:
            self._go_on(out)

    def finish(self, direction: Direction, out: list[Pdu]) -> None:
        """Append what can still be decoded."""
        if self.conversation.state is self:
            self._go_on(out)
        self.conversation.state.finish(direction, out)

    def _go_on(self, out: list[Pdu]) -> None:
        conversation = self.conversation
        state: ConversationState = RocketMq(conversation, True)
        if protocol_of(self._head) == TLS:
            conversation.protocol = TLS
            state = Tls(conversation, state, self._secrets)
        conversation.state = state
        for direction, pieces in self._early:
            state.receive(direction, pieces, out)
        self._early = []


@final
class Replicating(ConversationState):
    """Replication between slave and master: no commands, only progress."""

    __slots__ = ("_reading",)

    def __init__(self, conversation: Conversation, reading: Reading) -> None:
        super().__init__(conversation, False, False)
        self._reading = reading
        reading.findings = conversation.findings
        conversation.forget_frames()

    @property
    def protocol(self) -> str:
        """Name of the protocol, as in the conversation's row."""
        return "REPLICATION"

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:  # noqa: ARG002
        """Track the progress; there are no commands."""
        first = direction is self.conversation.first
        for piece in pieces:
            if isinstance(piece, Gap):
                self._reading.receive_gap(first, piece.length)
            else:
                self._read(first, piece)

    def replication(self) -> Replication | None:
        """Return the progress so far."""
        conversation = self.conversation
        return self._reading.value(conversation.first.src, conversation.second.src)

    def _read(self, first: bool, piece: Data) -> None:
        data = piece.data[piece.start : piece.end]
        try:
            self._reading.receive(first, data, piece.offset, piece.packet, piece.ts, False)
        except Exception as error:  # last line of defence: a bad piece must not end the run
            kind, detail = FindingKind.BAD_REPLICATION, undecoded(error)
            self.conversation.report(kind, detail, piece.ts, piece.packet, piece.offset)


@final
class Foreign(ConversationState):
    """Another protocol, which is only counted."""

    __slots__ = ()

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(conversation, False, False)
        conversation.forget_frames()
        conversation.ignore()

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Ignore all bytes."""


def _pass_over(conversation: Conversation, protocol: str) -> None:
    """Only count the conversation from now on: it is not RocketMQ."""
    conversation.protocol = protocol
    become(conversation, Foreign(conversation))


def _speak_http2(conversation: Conversation, joined: bool) -> None:
    """Read the conversation as HTTP/2, which may carry RocketMQ."""
    from .http2_state import Http2

    become(conversation, Http2(conversation, joined))


def _give_commands(direction: Direction, frames: list[Frame], out: list[Pdu]) -> None:
    """Append the commands of these frames, and clear the list."""
    conversation = direction.conversation
    keep: i64 = conversation.first_decoder.keep
    rows_only = keep in (KEEP_MESSAGES, KEEP_CARRIED)
    for frame in frames:
        conversation.frames += 1
        command: RemotingCommand | None = None
        head: HeaderView | None = None
        note: str | None = None
        try:
            if rows_only:  # only some of the values are needed
                head = scanned(frame.serialize_type, frame.header)
            if head is None:
                command = decode_usual_header(frame.serialize_type, frame.header)
                if command is None and frame.serialize_type == JSON_TYPE:
                    odd = odd_header_of(frame.header)
                    if odd is not None:
                        command, note = odd
                if command is not None:
                    head = view_of_command(command)
        except Exception as error:  # last line of defence: a bad frame must not end the run
            kind, detail = FindingKind.BAD_BODY, undecoded(error)
            conversation.report(kind, detail, frame.ts, frame.packet, frame.offset)
            continue
        if head is None:
            kind, detail = FindingKind.BAD_HEADER, repr(frame.header[:40])
            conversation.report(kind, detail, frame.ts, frame.packet, frame.offset)
            continue
        conversation.commands += 1
        pdu = Pdu(direction, frame, command, head)
        if conversation.client is None:
            conversation.client = direction.peer if pdu.flag & 1 else direction
        if note is not None:
            conversation.findings.append(pdu.say(FindingKind.RELEASES_DIFFER, note))
        if frame.missing:
            pdu.say(FindingKind.GAP, f"{frame.missing} of {frame.body_length} body bytes")
        out.append(pdu)
    frames.clear()


def current_of(conversation: Conversation) -> ConversationState:
    """Return the state of a conversation, or the inner one of a carrier."""
    inner = conversation.state.inside
    return conversation.state if inner is None else inner


def become(conversation: Conversation, state: ConversationState) -> None:
    """Set the state of a conversation, or the inner one of a carrier."""
    outside = conversation.state
    if outside.inside is None:
        conversation.state = state
    else:
        outside.inside = state
        outside.is_rocketmq = state.is_rocketmq
        outside.may_give_commands = state.may_give_commands
