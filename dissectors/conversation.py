"""A conversation: both directions of one TCP connection, segments in, PDUs out.

Each direction has a reassembler and a frame decoder. What the conversation speaks is found by its
bytes; from then on it is either decoded or passed over. A request is told from a response by its
flag, never by a port: brokers send requests too.
"""

from __future__ import annotations

import ipaddress
from typing import Final, final

from mypy_extensions import i64

from .expert import ExpertInfo, ExpertKind
from .recognition import HAPROXY, HTTP2, NO_PAYLOAD, UNKNOWN, protocol_of, refined
from .remoting.command import RemotingCommand
from .remoting.frame import PREFIX, Frame, FrameDecoder
from .remoting.header_codec import decode_header
from .replication import Reading, Replication, ReplicationFinder
from .tcp.reassembly import Data, Gap, Piece, StreamReassembler
from .tcp.segment import ACK, FIN, RST, SYN, Segment

DETECT_LIMIT: Final = 1024 * 1024
"""bytes of a direction searched for a frame before the conversation is given up as unknown"""
DETECT_LIMIT_FROM_START: Final = 128 * 1024
"""the same where the start was captured: a first frame's header is not larger"""
HEAD: Final = 1024
"""first bytes of a direction that are looked at to see which other protocol it is"""
REFINE_BYTES: Final = 16 * 1024
"""bytes of an HTTP/2 conversation that are looked at to see whether it carries gRPC"""
REFINE_KEPT: Final = 15
"""bytes that are looked at again with those that follow"""
LINGER: Final = 2_000_000_000
"""nanoseconds that a closed conversation waits for packets captured late"""
HALF_LINGER: Final = 120_000_000_000
"""the same where only one end has closed: the other may still have something to say"""

UNDECIDED: Final = 0
ROCKETMQ: Final = 1
FOREIGN: Final = 2
REPLICATION: Final = 3


@final
class Pdu:
    """A command where it was seen: when, from whom, in which packets."""

    __slots__ = (
        "body",
        "body_length",
        "command",
        "conversation",
        "direction",
        "expert",
        "flag",
        "frame_bytes",
        "groups",
        "header_length",
        "message_count",
        "missing",
        "offset",
        "opaque",
        "packet",
        "ts",
    )

    def __init__(self, direction: Direction, frame: Frame, command: RemotingCommand) -> None:
        self.direction = direction
        self.conversation: i64 = direction.conversation.number
        """number of the conversation"""
        self.command = command
        self.flag: i64 = command.flag
        """the command's flag"""
        self.opaque = command.opaque
        """the command's opaque"""
        self.body = frame.body
        """the body up to the first hole; empty where bodies are not kept"""
        self.body_length: i64 = frame.body_length
        """bytes of the body on the wire"""
        self.header_length: i64 = len(frame.header)
        """bytes of the header"""
        self.frame_bytes: i64 = PREFIX + len(frame.header) + frame.body_length
        """bytes of the whole frame, prefix included"""
        self.missing: i64 = frame.missing
        """bytes of the body that the capture does not have"""
        self.packet: i64 = frame.packet
        """id of the last packet that was needed for it"""
        self.ts: i64 = frame.ts
        """time of that packet, nanoseconds since the epoch"""
        self.offset: i64 = frame.offset
        """offset in the stream"""
        self.message_count: i64 = -1
        """messages in the body where they were counted; -1: not"""
        self.groups: str | None = None
        """groups that a heartbeat announces, joined by commas"""
        self.expert: list[ExpertInfo] | None = None
        """findings about this frame; None: none"""

    @property
    def src(self) -> str:
        """`address:port` of the sender."""
        return self.direction.src

    @property
    def dst(self) -> str:
        """`address:port` of the receiver."""
        return self.direction.peer.src

    def say(self, kind: ExpertKind, detail: str) -> ExpertInfo:
        """Attaches a finding to this frame and gives it back."""
        info = ExpertInfo(kind, detail, self.ts, self.packet, self.conversation, self.offset)
        if self.expert is None:
            self.expert = []
        self.expert.append(info)
        return info


@final
class Direction:
    """One direction of a conversation."""

    __slots__ = (
        "conversation",
        "decoder",
        "early",
        "finished",
        "first_seq",
        "head",
        "isn",
        "key",
        "listed",
        "packets",
        "payload_bytes",
        "peer",
        "reassembler",
        "requests",
        "src",
        "syn_ts",
        "syns",
        "truncated",
        "zero_windows",
    )

    def __init__(self, conversation: Conversation, key: bytes, keep: i64) -> None:
        self.conversation = conversation
        self.key = key
        self.src = source_of(key)
        """`address:port` of who sends in this direction"""
        self.peer: Direction = self
        """the other direction; set by the conversation"""
        self.reassembler = StreamReassembler(conversation.number, conversation.experts)
        self.decoder = FrameDecoder(conversation.number, conversation.experts, keep, False)
        self.requests: dict[int, Pdu] = {}
        """unanswered requests that were sent in this direction, by opaque"""
        self.early: dict[int, Pdu] = {}
        """responses to requests of this direction that were seen before their request"""
        self.listed = False
        """`ExchangeMatcher` knows that requests may be waiting here"""
        self.isn: i64 = -1
        """sequence number of the SYN; -1: none seen"""
        self.first_seq: i64 = -1
        """sequence number of the first segment seen; -1: none"""
        self.finished = False
        """FIN or RST was seen"""
        self.truncated = False
        """it was said that the snap length cuts packets off"""
        self.head = b""
        """the first bytes, while it is not decided what they are"""
        self.packets: i64 = 0
        """packets with payload, SYN, FIN or RST"""
        self.payload_bytes: i64 = 0
        """bytes of payload in them as they were sent, repeated ones too"""
        self.zero_windows: i64 = 0
        """packets that say that there is no room left for what the other end sends"""
        self.syns: i64 = 0
        """packets with SYN"""
        self.syn_ts: i64 = 0
        """time of the last of them"""

    def note_start(self, segment: Segment) -> None:
        """Follows what tells one connection from the next on the same ports, and its end."""
        if self.first_seq < 0:
            self.first_seq = segment.seq
        conversation = self.conversation
        if segment.flags & SYN:
            if self.isn < 0:
                self.isn = segment.seq
            self._note_syn(segment)
        closing = segment.flags & (FIN | RST) != 0
        self.finished = self.finished or closing
        if segment.flags & RST:
            if conversation.reset_by is None:
                conversation.reset_by = self
        elif closing and conversation.closed_by is None:
            conversation.closed_by = self
        conversation.closing = closing
        half = not (segment.flags & RST or self.peer.finished)
        conversation.linger = HALF_LINGER if half else LINGER

    def _note_syn(self, segment: Segment) -> None:
        conversation = self.conversation
        self.syns += 1
        self.syn_ts = segment.ts
        if segment.flags & ACK == 0:
            if conversation.client is None:
                conversation.client = self
        elif self.peer.syns > 0 and self.syns == 1:
            conversation.shaking = conversation.mine
        elif conversation.client is None:
            conversation.client = self.peer

    def note_ack(self, segment: Segment) -> None:
        """A packet without payload, SYN, FIN or RST."""
        if segment.window == 0:
            self.zero_windows += 1
        conversation = self.conversation
        if conversation.shaking and conversation.client is self and segment.flags & ACK:
            conversation.shaking = False
            conversation.established_ts = segment.ts


@final
class Conversation:
    """Both directions of one TCP connection."""

    __slots__ = (
        "_finder",
        "_forced",
        "_frames",
        "_payload_seen",
        "_pieces",
        "_reading",
        "_refine_left",
        "_reset",
        "client",
        "closed_by",
        "closing",
        "commands",
        "established_ts",
        "experts",
        "first",
        "first_packet",
        "first_ts",
        "frames",
        "last_ts",
        "linger",
        "mine",
        "number",
        "protocol",
        "reset_by",
        "second",
        "shaking",
        "state",
    )

    def __init__(self, number: i64, key: bytes, keep: i64, experts: list[ExpertInfo]) -> None:
        self.number: i64 = number
        """number in order of appearance, from 0"""
        self.experts = experts
        """where findings are put"""
        self.protocol = NO_PAYLOAD
        """what it speaks, where it is not decoded"""
        self.state: i64 = UNDECIDED
        self.closing = False
        """FIN or RST was seen, and no data since"""
        self.linger: i64 = LINGER
        """nanoseconds that it waits then for what is captured late"""
        self.mine = True
        """it is decoded here; else only followed for its number"""
        self.first_packet: i64 = 0
        """id of the first packet"""
        self.first_ts: i64 = 0
        """time of the first packet"""
        self.last_ts: i64 = 0
        """time of the last segment"""
        self.client: Direction | None = None
        """the end that connected; where that was not captured, the one that asked first"""
        self.shaking = False
        """SYN and SYN/ACK were seen, the acknowledgement that completes the handshake was not"""
        self.established_ts: i64 = 0
        """time of that acknowledgement; 0: not seen"""
        self.closed_by: Direction | None = None
        """who sent the first FIN"""
        self.reset_by: Direction | None = None
        """who sent the first RST"""
        self.frames: i64 = 0
        self.commands: i64 = 0
        self._forced = False
        self._refine_left: i64 = REFINE_BYTES
        self._payload_seen = False
        self._reset = False
        self._finder: ReplicationFinder | None = None
        self._reading: Reading | None = None
        self._pieces: list[Piece] = []
        self._frames: list[Frame] = []
        self.first = Direction(self, key, keep)
        self.second = Direction(self, reversed_key(key), keep)
        self.first.peer = self.second
        self.second.peer = self.first

    def force(self) -> None:
        """The user says that this is RocketMQ."""
        self.state = ROCKETMQ
        self._forced = True

    def receive(self, direction: Direction, segment: Segment, out: list[Pdu]) -> None:
        """Appends the PDUs that are complete with this segment."""
        if self.state == FOREIGN and self._refine_left <= 0:
            return
        pieces = self._pieces
        if segment.flags & (SYN | FIN | RST):
            self._control(direction, segment, pieces)
        if segment.end > segment.start or segment.missing:
            self._note_first(direction, segment)
            direction.reassembler.receive(segment, pieces)
        if pieces:
            self._receive_pieces(direction, out)
        peer = direction.peer
        if peer.reassembler.waiting:
            peer.reassembler.acknowledge(segment, pieces)
            if pieces:
                self._receive_pieces(peer, out)

    def finish(self, out: list[Pdu]) -> None:
        """No more comes: appends what can still be decoded."""
        self.release_holes(out)
        for direction in (self.first, self.second):
            if self.state == UNDECIDED or self.state == ROCKETMQ:
                direction.decoder.finish(self._frames)
                if self._frames:
                    self._receive_frames(direction, out)
        if self.state == UNDECIDED:
            self._give_up(self.protocol)

    def release_holes(self, out: list[Pdu]) -> None:
        """Gives out what waits for holes to be filled: nothing more comes for now.

        Both directions in the order of their packets, so that requests come before responses.
        """
        first: list[Piece] = []
        second: list[Piece] = []
        self.first.reassembler.finish(first)
        self.second.reassembler.finish(second)
        at: i64 = 0
        for piece in first:
            while at < len(second) and second[at].packet < piece.packet:
                self._pieces.append(second[at])
                self._receive_pieces(self.second, out)
                at += 1
            self._pieces.append(piece)
            self._receive_pieces(self.first, out)
        self._pieces.extend(second[at:])
        self._receive_pieces(self.second, out)

    @property
    def waiting(self) -> bool:
        """Whether a direction waits for a hole to be filled."""
        return self.first.reassembler.waiting or self.second.reassembler.waiting

    @property
    def rtt(self) -> i64:
        """Nanoseconds from SYN to the acknowledgement of SYN/ACK; -1 where that cannot be said.

        With a repeated SYN or SYN/ACK nobody knows which of them was answered.
        """
        client = self.client
        if client is None or self.established_ts == 0:
            return -1
        if client.syns != 1 or client.peer.syns != 1 or self.established_ts < client.syn_ts:
            return -1
        return self.established_ts - client.syn_ts

    @property
    def held_bytes(self) -> i64:
        """Bytes held in both directions."""
        first = self.first
        second = self.second
        held: i64 = first.decoder.held_bytes + second.decoder.held_bytes
        return held + first.reassembler.pending_bytes + second.reassembler.pending_bytes

    # -- inside ---------------------------------------------------------------------------------

    def _control(self, direction: Direction, segment: Segment, pieces: list[Piece]) -> None:
        if segment.flags & SYN:
            direction.reassembler.synchronize(segment, pieces)
            direction.decoder.started = True
            if self._forced:
                direction.decoder.synchronized = True
            segment.seq = (segment.seq + 1) & 0xFFFFFFFF  # the SYN has a number of its own
        if segment.flags & RST and not self._reset:
            self._reset = True
            self._say(ExpertKind.RESET, f"by {direction.src}", segment)
        if segment.flags & RST:
            segment.end = segment.start  # may hold a text for people, which is no data (RFC 9293)
            segment.missing = 0

    def _note_first(self, direction: Direction, segment: Segment) -> None:
        if not self._payload_seen:
            self._payload_seen = True
            self.protocol = UNKNOWN
            if direction.reassembler.isn < 0:
                self._say(ExpertKind.MIDSTREAM, "no SYN was captured", segment)
        if segment.missing and not direction.truncated:
            direction.truncated = True
            detail = f"{segment.missing} bytes were not captured, here and maybe further on"
            self._say(ExpertKind.PACKET_TRUNCATED, detail, segment)

    def _receive_pieces(self, direction: Direction, out: list[Pdu]) -> None:
        decoder = direction.decoder
        frames = self._frames
        pieces = self._pieces
        if self.state == REPLICATION:
            self._receive_replication(direction)
            return
        for piece in pieces:
            if self.state == FOREIGN:
                self._refine(piece)
            elif isinstance(piece, Data):
                if self.state == UNDECIDED and piece.offset < HEAD:
                    self._look_at_first(direction, piece)
                    if self.state == FOREIGN:
                        continue
                decoder.receive(
                    piece.data, piece.start, piece.end, piece.offset, piece.packet, piece.ts, frames
                )
            else:
                decoder.receive_gap(piece.length, piece.packet, piece.ts, frames)
        if self.state == UNDECIDED:
            if frames or decoder.synchronized:
                self._recognize(direction)
            else:
                self._try_replication(direction)
        pieces.clear()
        if frames:
            self._receive_frames(direction, out)
        elif self.state == UNDECIDED:
            self._decide(direction)

    def _recognize(self, direction: Direction) -> None:
        """A frame, or the header of one, was found in this direction."""
        self.state = ROCKETMQ
        self._finder = None
        peer = direction.peer
        if peer.reassembler.isn >= 0 and peer.reassembler.empty:
            peer.decoder.synchronized = True

    def _receive_frames(self, direction: Direction, out: list[Pdu]) -> None:
        if self.state == UNDECIDED:
            self._recognize(direction)
        for frame in self._frames:
            self.frames += 1
            command = decode_header(frame.serialize_type, frame.header)
            if command is None:
                self._say_bad_header(frame)
                continue
            self.commands += 1
            pdu = Pdu(direction, frame, command)
            if self.client is None:
                self.client = direction.peer if pdu.flag & 1 else direction
            if frame.missing:
                pdu.say(ExpertKind.GAP, f"{frame.missing} of {frame.body_length} body bytes")
            out.append(pdu)
        self._frames.clear()

    def _try_replication(self, direction: Direction) -> None:
        """No frame in these pieces: are they what a slave and its master write?"""
        finder = self._finder
        if finder is None:
            if direction.decoder.synchronized:
                return  # a frame has begun
            finder = ReplicationFinder(self.number)
            self._finder = finder
        elif not finder.possible:
            return
        first = direction is self.first
        started = direction.reassembler.isn >= 0
        for at, piece in enumerate(self._pieces):
            if isinstance(piece, Gap):
                finder.receive_gap(first, piece.length)
                continue
            data = piece.data[piece.start : piece.end]
            reading = finder.receive(first, data, piece.offset, piece.packet, piece.ts, started)
            if reading is not None:
                self._become_replication(reading)
                del self._pieces[: at + 1]
                self._receive_replication(direction)
                return

    def _become_replication(self, reading: Reading) -> None:
        self.state = REPLICATION
        self._finder = None
        self._reading = reading
        reading.experts = self.experts
        for direction in (self.first, self.second):
            direction.decoder.forget()

    def _receive_replication(self, direction: Direction) -> None:
        reading = self._reading
        assert reading is not None
        first = direction is self.first
        for piece in self._pieces:
            if isinstance(piece, Gap):
                reading.receive_gap(first, piece.length)
            else:
                data = piece.data[piece.start : piece.end]
                reading.receive(first, data, piece.offset, piece.packet, piece.ts, False)
        self._pieces.clear()

    def replication(self) -> Replication:
        """What is known of the replication by now, where the state says that it is one."""
        assert self._reading is not None
        return self._reading.value(self.first.src, self.second.src)

    def _look_at_first(self, direction: Direction, piece: Data) -> None:
        """The first bytes of a direction: do they belong to another protocol?"""
        if len(direction.head) != piece.offset:
            return  # a hole is among them
        stop: i64 = min(piece.end, piece.start + HEAD - piece.offset)
        direction.head = direction.head + piece.data[piece.start : stop]
        protocol = protocol_of(direction.head)
        if protocol == HAPROXY:
            if self.protocol == HAPROXY:
                return
            self.protocol = HAPROXY
            self.experts.append(
                ExpertInfo(ExpertKind.PROXY_HEADER, HAPROXY, piece.ts, piece.packet, self.number, 0)
            )
        elif protocol is not None:
            self._give_up(protocol)
            self._refine(piece)

    def _decide(self, direction: Direction) -> None:
        searched: i64 = direction.decoder.searched
        limit: i64 = DETECT_LIMIT
        if direction.reassembler.isn >= 0 and direction.reassembler.gaps == 0:
            limit = DETECT_LIMIT_FROM_START
        if searched > limit:
            self._give_up(UNKNOWN)

    def _give_up(self, protocol: str) -> None:
        """The conversation is not RocketMQ: from now on it is only counted."""
        self.state = FOREIGN
        self.protocol = protocol
        self._finder = None
        for direction in (self.first, self.second):
            direction.decoder.forget()
            direction.head = b""
        if protocol != HTTP2:
            self._stop_refining()

    def _refine(self, piece: Piece) -> None:
        if self._refine_left <= 0 or not isinstance(piece, Data):
            return
        head = self.first.head + piece.data[piece.start : piece.end]
        self.first.head = head[-REFINE_KEPT:]
        self.protocol = refined(self.protocol, head)
        self._refine_left -= piece.end - piece.start
        if self._refine_left <= 0 or self.protocol != HTTP2:
            self._stop_refining()

    def _stop_refining(self) -> None:
        """Nothing more of the conversation is looked at."""
        self._refine_left = 0
        for direction in (self.first, self.second):
            direction.head = b""
            direction.reassembler.forget()

    def _say_bad_header(self, frame: Frame) -> None:
        detail = repr(frame.header[:40])
        self.experts.append(
            ExpertInfo(
                ExpertKind.BAD_HEADER, detail, frame.ts, frame.packet, self.number, frame.offset
            )
        )

    def _say(self, kind: ExpertKind, detail: str, segment: Segment) -> None:
        self.experts.append(ExpertInfo(kind, detail, segment.ts, segment.packet, self.number, -1))


def reversed_key(key: bytes) -> bytes:
    """The key of the other direction: addresses and ports change places, the tunnel stays."""
    size: i64 = address_size(key)
    ports: i64 = 2 * size
    return (
        key[size:ports]
        + key[:size]
        + key[ports + 2 : ports + 4]
        + key[ports : ports + 2]
        + key[ports + 4 :]
    )


def address_size(key: bytes) -> i64:
    """4 or 16: addresses, ports (4 bytes), then 5 bytes for each tunnel."""
    return 16 if len(key) % 5 == 1 else 4


def port_of(key: bytes) -> i64:
    """The source port of a direction."""
    at: i64 = 2 * address_size(key)
    return (key[at] << 8) | key[at + 1]


def source_of(key: bytes) -> str:
    """`address:port` of the sender, IPv6 in brackets."""
    size: i64 = address_size(key)
    port: i64 = port_of(key)
    if size == 4:
        return f"{key[0]}.{key[1]}.{key[2]}.{key[3]}:{port}"
    return f"[{ipaddress.IPv6Address(key[:16]).compressed}]:{port}"
