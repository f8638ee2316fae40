"""A conversation: both directions of one TCP connection, segments in, PDUs out.

Each direction has a reassembler and a frame decoder. The protocol is detected by content;
`ConversationState` handles the bytes accordingly. A request is distinguished from a response by its
flag, never by port: brokers send requests too.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..findings import Finding, FindingKind
from ..remoting.command import ROCKETMQ, RemotingCommand
from ..remoting.framing.frame import PREFIX, Frame
from ..remoting.framing.frame_decoder import FrameDecoder
from ..remoting.header_codec import BINARY_TYPE, JSON_TYPE, decode_header
from ..replication.progress import Replication
from ..tcp.passed_flows import Followed
from ..tcp.reassembly import Piece, StreamReassembler
from ..tcp.segment import ACK, FIN, RST, SYN, Segment, reversed_key, source_of
from .header_view import HeaderView, view_of_command
from .recognition import NO_PAYLOAD, UNKNOWN

LATE: Final[i64] = 50_000_000
"""ns after which a segment counts as late: more than most round trips on a LAN"""


@final
class Pdu:
    """A command in its context: time, sender, packets."""

    __slots__ = (
        "_command", "body", "body_length", "brokers", "conversation", "direction", "facts",
        "findings", "flag", "frame_bytes", "groups", "head", "header", "header_length",
        "message_count", "missing", "offset", "opaque", "packet", "ts",
    )  # fmt: skip

    def __init__(
        self, direction: Direction, frame: Frame, command: RemotingCommand | None, head: HeaderView
    ) -> None:
        """`command` is None if the header is only decoded in full on demand."""
        self.direction = direction
        self.conversation: i64 = direction.conversation.number
        """number of the conversation"""
        self._command = command
        self.head = head
        """the header; `view` has the fields that a row needs"""
        self.flag: i64 = head.flag
        """the command's flag"""
        self.opaque = head.opaque
        """the command's opaque"""
        self.body = frame.body
        """the body up to the first hole; empty unless bodies are kept"""
        self.body_length: i64 = frame.body_length
        """bytes of the body on the wire"""
        self.header = frame.header
        """the header as sent; empty unless it had RocketMQ's own framing"""
        self.header_length: i64 = len(frame.header)
        """bytes of the header"""
        self.frame_bytes: i64 = PREFIX + len(frame.header) + frame.body_length
        """bytes of the whole frame, prefix included"""
        self.missing: i64 = frame.missing
        """bytes of the body that the capture does not have"""
        self.packet: i64 = frame.packet
        """id of the last packet of the frame"""
        self.ts: i64 = frame.ts
        """time of that packet, nanoseconds since the epoch"""
        self.offset: i64 = frame.offset
        """offset in the stream"""
        self.message_count: i64 = -1
        """messages in the body; -1: not counted"""
        self.groups: str | None = None
        """groups that a heartbeat announces, joined by commas"""
        self.brokers: list[str] | None = None
        """broker addresses in a NameServer's response, see `broker_addresses_of`"""
        self.facts: list[str] | None = None
        """facts in the body without a column of their own, see `row_facts`; None if there are
        none"""
        self.findings: list[Finding] | None = None
        """findings about this frame; None: none"""

    @property
    def command(self) -> RemotingCommand:
        """The header, decoded in full."""
        command = self._command
        if command is None:
            head = self.head
            form = BINARY_TYPE if head.serialize_type == ROCKETMQ else JSON_TYPE
            command = decode_header(form, self.header)
            if command is None:
                command = RemotingCommand(
                    head.code, head.opaque, int(head.flag), head.language, int(head.version),
                    head.remark, {}, head.serialize_type,
                )  # fmt: skip
            self._command = command
        return command

    @property
    def view(self) -> HeaderView:
        """The header with the positions of the fields that a row needs."""
        head = self.head
        if not head.is_filled:
            head.fill(self.command)
        return head

    def forget_fields(self) -> None:
        """Release a fully decoded header; it is decoded again on demand."""
        if self.header:
            self._command = None

    @property
    def serialize_type(self) -> str:
        """Serialization of the header: JSON, ROCKETMQ or PROTOBUF."""
        return self.head.serialize_type

    @property
    def src(self) -> str:
        """`address:port` of the sender."""
        return self.direction.src

    @property
    def dst(self) -> str:
        """`address:port` of the receiver."""
        return self.direction.peer.src

    def say(self, kind: FindingKind, detail: str) -> Finding:
        """Attach a finding to this frame and return it."""
        info = Finding(kind, detail, self.ts, self.packet, self.conversation, self.offset)
        self.findings = self.findings or []
        self.findings.append(info)
        return info


def pdu_of(direction: Direction, frame: Frame, command: RemotingCommand) -> Pdu:
    """Return the PDU of a fully decoded command."""
    return Pdu(direction, frame, command, view_of_command(command))


@final
class Unpaired:
    """Commands of one direction that wait for their counterpart in `ExchangeMatcher`, by opaque."""

    __slots__ = ("early", "requests")

    def __init__(self) -> None:
        self.requests: dict[int, Pdu] = {}
        """unanswered requests sent in this direction"""
        self.early: dict[int, Pdu] = {}
        """responses to requests of this direction that were seen before the request"""


@final
class Direction:
    """TCP state of one direction of a conversation."""

    __slots__ = (
        "acked_at_end", "conversation", "ended_at", "finished", "first_seq", "isn", "key", "late",
        "late_most", "mark_age", "mark_end", "mark_repeats", "mark_ts", "packets", "payload_bytes",
        "peer", "reassembler", "src", "syn_ts", "syns", "truncated", "zero_windows",
    )  # fmt: skip

    def __init__(self, conversation: Conversation, key: bytes) -> None:
        self.conversation = conversation
        self.key = key
        self.src = source_of(key)
        """`address:port` of the sender"""
        self.peer: Direction = self
        """the other direction; set by the conversation"""
        self.reassembler = StreamReassembler(conversation.number, conversation.findings)
        self.isn: i64 = -1
        """sequence number of the SYN; -1: not seen"""
        self.first_seq: i64 = -1
        """sequence number of the first segment seen; -1: none"""
        self.finished = False
        """FIN or RST was seen"""
        self.ended_at: i64 = -1
        """sequence number after the last byte, from the FIN; -1: not seen"""
        self.acked_at_end: i64 = -1
        """acknowledgement number in the other end's FIN; -1: unknown"""
        self.truncated = False
        """the finding about truncation by the snap length was already reported"""
        self.packets: i64 = 0
        """packets with payload, SYN, FIN or RST"""
        self.payload_bytes: i64 = 0
        """payload bytes in these packets as sent, including retransmissions"""
        self.zero_windows: i64 = 0
        """packets that announce a zero window"""
        self.mark_end: i64 = -1
        """sequence number after the segment whose acknowledgement is measured; -1: none"""
        self.mark_ts: i64 = 0
        """time of that segment"""
        self.mark_age: i64 = 0
        """ns after it at which the other end last sent data without acknowledging it"""
        self.mark_repeats: i64 = 0
        """retransmitted segments at that time"""
        self.late: i64 = 0
        """segments delivered after `LATE` or more without a retransmission"""
        self.late_most: i64 = 0
        """lower bound of the delay of the slowest of these segments, ns"""
        self.syns: i64 = 0
        """packets with SYN"""
        self.syn_ts: i64 = 0
        """time of the last SYN"""


class ConversationState:
    """Protocol state of a conversation: handles its bytes."""

    __slots__ = ("conversation", "earliest", "held", "inside", "is_rocketmq", "may_give_commands")

    def __init__(
        self, conversation: Conversation, is_rocketmq: bool, may_give_commands: bool
    ) -> None:
        self.conversation = conversation
        self.is_rocketmq = is_rocketmq
        """certainly RocketMQ with commands"""
        self.may_give_commands = may_give_commands
        """held bytes may contain commands"""
        self.inside: ConversationState | None = None
        """the inner state of a carrier such as TLS: see `become` in `conversation_states`"""
        self.held: i64 = 0
        """approximate memory of the bytes held by this state itself"""
        self.earliest: i64 = -1
        """id of the earliest packet held by this state that may contain a command; -1: none"""

    @property
    def protocol(self) -> str:
        """Name of the protocol, as in the conversation's row."""
        return self.conversation.protocol

    def start(self, direction: Direction) -> None:
        """Handle the SYN of a direction: for RocketMQ, its first byte begins a frame."""
        self.conversation.decoder_of(direction).search.started = True

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Append the PDUs that these pieces complete."""
        raise NotImplementedError

    def finish(self, direction: Direction, out: list[Pdu]) -> None:
        """Append what can still be decoded at the end of a direction."""

    def give_up(self) -> None:
        """Settle an open protocol decision at the end of the conversation."""

    def release(self) -> None:
        """Release the bytes held by this state: memory is short."""

    def replication(self) -> Replication | None:
        """Return the replication so far, or None if this is not one."""
        return None


@final
class Conversation(Followed):
    """Both directions of one TCP connection."""

    __slots__ = (
        "_payload_seen", "_pieces", "_reset", "after_fin", "client", "closed_by", "closing",
        "closing_ts", "commands", "established_ts", "facts", "findings", "first", "first_decoder",
        "first_packet", "first_ts", "first_unpaired", "frames", "idle", "ignored", "linger", "mine",
        "number", "pause", "pause_end", "payload_ts", "protocol", "reset_by", "second",
        "second_decoder", "second_unpaired", "shaking", "state",
    )  # fmt: skip

    state: ConversationState
    """protocol state; set by the code that opens the conversation"""

    def __init__(self, number: i64, key: bytes, keep: i64, findings: list[Finding]) -> None:
        super().__init__()
        self.number: i64 = number
        """number in order of appearance, from 0"""
        self.findings = findings
        """list that receives findings"""
        self.protocol = NO_PAYLOAD
        """name of the protocol if it is not decoded"""
        self.ignored = False
        """no further bytes are examined"""
        self.closing = False
        """FIN or RST was seen, and no data since"""
        self.closing_ts: i64 = 0
        """time of the first FIN or RST; 0: none was seen"""
        self.linger: i64 = 0
        """ns to wait after that for packets captured late; `LINGER` or `HALF_LINGER`"""
        self.mine = True
        """decoded here; otherwise only tracked for its number"""
        self.first_packet: i64 = 0
        """id of the first packet"""
        self.first_ts: i64 = 0
        """time of the first packet"""
        self.payload_ts: i64 = 0
        """time of the last segment with payload; 0: none"""
        self.idle: i64 = 0
        """ns without payload before the first FIN or RST, or before what it responds to"""
        self.pause: i64 = 0
        """ns of the last long pause without payload"""
        self.pause_end: i64 = 0
        """time of the payload that ended the pause"""
        self.after_fin: i64 = 0
        """segments with payload sent after the other end's FIN"""
        self.facts: list[str] | None = None
        """facts besides counts, see `rows.conversation_facts`; None if there are none"""
        self.client: Direction | None = None
        """the end that connected, or if that was not captured, the first to send a request"""
        self.shaking = False
        """SYN and SYN/ACK were seen, the final ACK of the handshake was not"""
        self.established_ts: i64 = 0
        """time of the final ACK of the handshake; 0: not seen"""
        self.closed_by: Direction | None = None
        """sender of the first FIN"""
        self.reset_by: Direction | None = None
        """sender of the first RST"""
        self.frames: i64 = 0
        self.commands: i64 = 0
        self._payload_seen = self._reset = False
        self._pieces: list[Piece] = []  # reused by each segment
        self.first = Direction(self, key)
        self.second = Direction(self, reversed_key(key))
        self.first.peer, self.second.peer = self.second, self.first
        self.first_decoder = FrameDecoder(number, findings, keep, False)
        """decoder of the frames of `first`"""
        self.second_decoder = FrameDecoder(number, findings, keep, False)
        """decoder of the frames of `second`"""
        self.first_unpaired: Unpaired | None = None
        """commands of `first` that wait; None: none did so far"""
        self.second_unpaired: Unpaired | None = None
        """commands of `second` that wait"""

    def decoder_of(self, direction: Direction) -> FrameDecoder:
        """Return the decoder of the frames of a direction."""
        return self.first_decoder if direction is self.first else self.second_decoder

    def forget_frames(self) -> None:
        """Drop all partial frames: the bytes of the connection are no frames."""
        self.first_decoder.forget()
        self.second_decoder.forget()

    def ignore(self) -> None:
        """Examine no further bytes, and drop those that are held behind holes."""
        self.ignored = True
        self.first.reassembler.forget()
        self.second.reassembler.forget()

    def report(self, kind: FindingKind, detail: str, ts: i64, packet: i64, offset: i64) -> None:
        """Add a finding about the connection; `offset` is that in the stream, or -1."""
        self.findings.append(Finding(kind, detail, ts, packet, self.number, offset))

    def note(self, facts: list[str]) -> None:
        """Add facts of the connection."""
        if facts:
            self.facts = facts if self.facts is None else self.facts + facts

    def receive(self, direction: Direction, segment: Segment, out: list[Pdu]) -> None:
        """Append the PDUs that this segment completes."""
        if self.ignored:
            return
        pieces = self._pieces
        if segment.flags & (SYN | FIN | RST):
            self._control(direction, segment, pieces)  # a SYN or FIN may come with data
        if segment.end > segment.start or segment.missing:
            self._note_first(direction, segment)
            direction.reassembler.receive(segment, pieces)
            self._measure(direction, segment)
        if pieces:
            self.state.receive(direction, pieces, out)
            pieces.clear()
        peer = direction.peer
        if peer.reassembler.waiting:  # the acknowledgement may tell that a hole is never filled
            peer.reassembler.acknowledge(segment, pieces)
            if pieces:
                self.state.receive(peer, pieces, out)
                pieces.clear()

    def finish(self, out: list[Pdu]) -> None:
        """Append what can still be decoded at the end."""
        self.release_holes(out)
        self.state.finish(self.first, out)
        self.state.finish(self.second, out)
        self.state.give_up()

    def release_holes(self, out: list[Pdu]) -> None:
        """Release the data held behind holes, in packet order: requests before their responses."""
        first: list[Piece] = []
        second: list[Piece] = []
        self.first.reassembler.finish(first)
        self.second.reassembler.finish(second)
        at: i64 = 0
        for piece in first:
            while at < len(second) and second[at].packet < piece.packet:
                self.state.receive(self.second, [second[at]], out)
                at += 1
            self.state.receive(self.first, [piece], out)
        self.state.receive(self.second, second[at:], out)

    @property
    def waiting(self) -> bool:
        """Whether a direction waits for a hole to be filled."""
        return self.first.reassembler.waiting or self.second.reassembler.waiting

    @property
    def earliest_held(self) -> i64:
        """Id of the earliest packet held that may contain a command; -1: none.

        Packets are held behind holes, in partial frames, and by the state.
        """
        if not self.state.may_give_commands:
            return -1
        held: i64 = _earlier(self.first_decoder.search.earliest_held, self.state.earliest)
        held = _earlier(held, self.second_decoder.search.earliest_held)
        for direction in (self.first, self.second):
            if direction.reassembler.waiting:
                held = _earlier(held, direction.reassembler.earliest_held)
        return held

    def _control(self, direction: Direction, segment: Segment, pieces: list[Piece]) -> None:
        if segment.flags & SYN:
            direction.reassembler.synchronize(segment, pieces)
            self.state.start(direction)
            segment.seq = (segment.seq + 1) & 0xFFFFFFFF  # a SYN consumes one sequence number
        if segment.flags & RST and not self._reset:
            self._reset = True
            self._report(FindingKind.RESET, f"by {direction.src}", segment)
        if segment.flags & RST:
            segment.end = segment.start  # may be diagnostic text, which is not data (RFC 9293)
            segment.missing = 0

    def _measure(self, direction: Direction, segment: Segment) -> None:
        """Record whether earlier data from the other end has been received by now.

        See `round_trip_of` for the round trip without a backlog.
        """
        peer = direction.peer
        # A data segment acknowledges all that its sender has received. The operating system does
        # that, so a slow program makes no difference.
        if peer.mark_end >= 0 and segment.flags & ACK:
            behind: i64 = (peer.mark_end - segment.ack) & 0xFFFFFFFF
            if 0 < behind < 0x80000000:  # not yet received
                peer.mark_age = segment.ts - peer.mark_ts
            else:
                # After a retransmission, it is unknown which copy was acknowledged (RFC 6298, 3).
                if peer.mark_age >= LATE and peer.mark_repeats == peer.reassembler.retransmissions:
                    peer.late += 1
                    peer.late_most = max(peer.late_most, peer.mark_age)
                peer.mark_end = -1
        # One segment at a time: a list of those under way could grow without limit.
        if direction.mark_end < 0:
            size: i64 = segment.end - segment.start + segment.missing
            direction.mark_end = (segment.seq + size) & 0xFFFFFFFF
            direction.mark_ts = segment.ts
            direction.mark_age = 0
            direction.mark_repeats = direction.reassembler.retransmissions

    def _note_first(self, direction: Direction, segment: Segment) -> None:
        if not self._payload_seen:
            self._payload_seen = True
            self.protocol = UNKNOWN
            if direction.reassembler.isn < 0:
                self._report(FindingKind.MIDSTREAM, "no SYN was captured", segment)
        if segment.missing and not direction.truncated:
            direction.truncated = True
            lost = f"{segment.missing} bytes were not captured, here and maybe further on"
            self._report(FindingKind.PACKET_TRUNCATED, lost, segment)

    def _report(self, kind: FindingKind, detail: str, segment: Segment) -> None:
        self.report(kind, detail, segment.ts, segment.packet, -1)


def _earlier(first: i64, second: i64) -> i64:
    """Return the smaller of two packet ids, where -1 means none."""
    return second if first < 0 or 0 <= second < first else first


LINGER: Final = 2_000_000_000
"""ns that a closed conversation waits for packets captured late"""
HALF_LINGER: Final = 120_000_000_000
"""ns of the same wait if only one end has closed: the other may still send"""
LEAST_PAUSE: Final = 1_000_000_000
"""shortest recorded pause without payload, ns"""


def note_start(direction: Direction, segment: Segment) -> None:
    """Track setup and teardown, which separate connections on the same ports."""
    if direction.first_seq < 0:
        direction.first_seq = segment.seq
    conversation = direction.conversation
    if segment.flags & SYN:
        if direction.isn < 0:
            direction.isn = segment.seq
        _note_syn(direction, segment)
    closing = segment.flags & (FIN | RST) != 0
    # Of several FIN and RST, the first one tells how long the connection was idle before its end.
    open_till_now = conversation.reset_by is None and conversation.closed_by is None
    if closing and open_till_now:
        conversation.closing_ts = segment.ts
        if conversation.payload_ts > 0:
            conversation.idle = segment.ts - conversation.payload_ts
            if segment.flags & RST and segment.ts - conversation.pause_end < LEAST_PAUSE:
                # A RST to a reused connection means that the peer had forgotten it.
                conversation.idle = conversation.pause
    if segment.flags & FIN and not direction.finished:
        _note_fin(direction, segment)
    direction.finished = direction.finished or closing
    if segment.flags & RST:
        if conversation.reset_by is None:
            conversation.reset_by = direction
    elif closing and conversation.closed_by is None:
        conversation.closed_by = direction
    conversation.closing = closing  # a SYN, or data later on, opens it again
    half = not (segment.flags & RST or direction.peer.finished)
    conversation.linger = HALF_LINGER if half else LINGER


def _note_fin(direction: Direction, segment: Segment) -> None:
    """Record the end of both streams from the numbers of a FIN: bytes missing before it were
    lost.
    """
    direction.ended_at = (segment.seq + segment.end - segment.start + segment.missing) & 0xFFFFFFFF
    if segment.flags & ACK and not direction.peer.finished:
        direction.peer.acked_at_end = segment.ack


def note_ack(direction: Direction, segment: Segment) -> None:
    """Handle a packet without payload, SYN, FIN, or RST."""
    if segment.window == 0:
        direction.zero_windows += 1
    conversation = direction.conversation
    if conversation.shaking and conversation.client is direction and segment.flags & ACK:
        conversation.shaking = False
        conversation.established_ts = segment.ts


def round_trip_of(conversation: Conversation) -> i64:
    """Return the ns from SYN to the ACK of the SYN/ACK, or -1 if unknown."""
    client = conversation.client
    established: i64 = conversation.established_ts
    if client is None or established == 0:
        return -1
    # The acknowledgement of a retransmitted SYN or SYN/ACK may be for either. Equal times measure
    # nothing: a recording of `rmqtool` has a synthesized handshake, or the clock is too coarse.
    if client.syns != 1 or client.peer.syns != 1 or established <= client.syn_ts:
        return -1
    return established - client.syn_ts


def _note_syn(direction: Direction, segment: Segment) -> None:
    conversation = direction.conversation
    direction.syns += 1
    direction.syn_ts = segment.ts
    if segment.flags & ACK == 0:
        if conversation.client is None:
            conversation.client = direction
    elif direction.peer.syns > 0 and direction.syns == 1:
        conversation.shaking = conversation.mine  # pure ACKs are asked for, which costs time
    elif conversation.client is None:
        conversation.client = direction.peer
