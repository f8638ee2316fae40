# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
# scapy.contrib.description = RocketMQ remoting protocol (RemotingCommand)
# scapy.contrib.status = loads
"""RemotingCommand as a scapy layer, for people who craft and look at packets interactively.

    >>> from dissectors.with_scapy.layer import RemotingLayer
    >>> RemotingLayer(code="GET_ROUTEINFO_BY_TOPIC", ext={"topic": "Orders"}).show2()

What was dissected is built again byte for byte until a field is changed. Several commands in a
segment are layers one behind the other. A command that is not complete is raw bytes;
`RemotingSession` waits for the rest. RocketMQ: RemotingCommand.
"""

from __future__ import annotations

import struct
from typing import Final

from scapy.config import conf
from scapy.fields import ByteEnumField, Field, FlagsField, SignedIntField, StrField
from scapy.layers.inet import TCP
from scapy.packet import Packet, Padding, bind_bottom_up, bind_layers
from scapy.sessions import IPSession

from ..findings import Finding
from ..ports import BROKER, NAMESRV, REPLICATION, VIP
from ..remoting.code_names import request_name, response_name
from ..remoting.codes import RequestCode, ResponseCode
from ..remoting.command import JSON, ROCKETMQ, RemotingCommand
from ..remoting.framing.frame import (
    MAX_FRAME,
    PREFIX,
    Frame,
    encode_frame,
    header_length_of,
    is_prefix,
    total_of,
    type_of,
)
from ..remoting.framing.frame_decoder import KEEP_ALL, FrameDecoder
from ..remoting.header_codec import BINARY_TYPE, JSON_TYPE, decode_header, encode_header
from ..remoting.versions import V5_3_2
from ..tcp.reassembly import Data, Piece, StreamReassembler
from ..tcp.segment import SYN, Segment

PORTS: Final = (NAMESRV, VIP, REPLICATION, BROKER)
"""ports of the layer; the last one is the default"""
MOST_DIRECTIONS: Final = 4096
"""directions that a session follows; the one that began first is let go for a new one"""

MOST_FINDINGS: Final = 100_000
"""findings that a session keeps; the older half is let go for new ones"""

_SERIALIZE_TYPES: Final = {JSON_TYPE: JSON, BINARY_TYPE: ROCKETMQ}


class CodeField(SignedIntField):  # type: ignore[misc]
    """A request or response code: a number, or its name."""

    def any2i(self, pkt: object, x: object) -> object:  # noqa: ARG002
        """Return the number that a name stands for."""
        if not isinstance(x, str):
            return x
        for codes in (RequestCode, ResponseCode):
            if x in codes.__members__:
                return int(codes[x])
        raise ValueError(f"{x!r} is the name of no request and no response")

    def i2repr(self, pkt: object, x: object) -> str:
        """Return the number with its name."""
        if not isinstance(pkt, RemotingLayer) or not isinstance(x, int):
            return str(x)
        known = response_name(x, None, pkt.version) if int(pkt.flag) & 1 else None
        return f"{known or request_name(x)} ({x})"


class TextField(Field):  # type: ignore[misc]
    """A text, or None."""

    def any2i(self, pkt: object, x: object) -> object:  # noqa: ARG002
        """Return bytes as the text that they are in UTF-8."""
        return x.decode("utf-8", "replace") if isinstance(x, bytes) else x

    def i2repr(self, pkt: object, x: object) -> str:  # noqa: ARG002
        """Return the text in quotes."""
        return repr(x)


class ExtField(Field):  # type: ignore[misc]
    """The custom header: names and values, both texts."""

    def any2i(self, pkt: object, x: object) -> object:  # noqa: ARG002
        """Return values as texts, as RocketMQ writes them."""
        if x is None:
            return {}
        if not isinstance(x, dict):
            raise ValueError(f"ext fields are a dict, not {type(x).__name__}")
        return {str(name): _text_of(value) for name, value in x.items()}

    def do_copy(self, x: object) -> object:
        """Return a dict of its own."""
        return dict(x) if isinstance(x, dict) else x

    def i2repr(self, pkt: object, x: object) -> str:  # noqa: ARG002
        """Return the dict."""
        return repr(x)


class RemotingLayer(Packet):  # type: ignore[misc]
    """One frame. Lengths are written when it is built; `ext` is what RocketMQ calls extFields."""

    name = "RocketMQ RemotingCommand"
    fields_desc = [  # noqa: RUF012 (scapy's metaclass reads and replaces it)
        ByteEnumField("serialize_type", JSON_TYPE, _SERIALIZE_TYPES),
        CodeField("code", int(RequestCode.GET_ROUTEINFO_BY_TOPIC)),
        TextField("language", "JAVA"),
        SignedIntField("version", V5_3_2),
        SignedIntField("opaque", 0),
        FlagsField("flag", 0, 32, ["RESPONSE", "ONEWAY"]),
        TextField("remark", None),
        ExtField("ext", {}),
        StrField("body", b""),
    ]
    raw_packet_cache: bytes | None
    missing = 0
    """bytes of the body that were not captured; only of what a `RemotingSession` gives"""

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *_: object, **__: object) -> type[Packet]:
        """Return the class of raw bytes where no whole frame stands."""
        if _pkt and not _frame_length(bytes(_pkt)):
            return conf.raw_layer  # type: ignore[no-any-return]
        return cls

    @classmethod
    def tcp_reassemble(cls, data: bytes, *_: object) -> Packet | None:
        """Return the frames that are whole, for TCPSession and StreamSocket; None: wait."""
        return cls(data) if _frame_length(bytes(data)) else None

    def do_dissect(self, s: bytes) -> bytes:
        """Read the fields; return what follows the frame."""
        end = _frame_length(s)
        kind = s[4]
        middle = PREFIX + int.from_bytes(s[5:8], "big")
        command = decode_header(kind, s[PREFIX:middle])
        assert command is not None
        self._take(kind, command, s[middle:end])
        self.raw_packet_cache = s[:end]
        self.raw_packet_cache_fields = {"ext": dict(command.ext_fields)}
        self.explicit = 1
        return s[end:]

    def self_build(self) -> bytes:
        """Return the frame as bytes."""
        cached: bytes | None = self.raw_packet_cache
        if cached is not None:
            if self.raw_packet_cache_fields == {"ext": self.ext}:
                return cached
            self.raw_packet_cache = None
        kind = int(self.serialize_type)
        return encode_frame(kind, encode_header(self.command_value(), kind), bytes(self.body))

    def command_value(self) -> RemotingCommand:
        """Return the header as the rest of the project has it."""
        kind = _SERIALIZE_TYPES.get(int(self.serialize_type), JSON)
        flag = int(self.flag)
        return RemotingCommand(
            int(self.code),
            int(self.opaque),
            flag - (flag >> 31 << 32),  # the field has no sign, a Java int has
            self.language or "",
            int(self.version),
            self.remark,
            dict(self.ext),
            kind,
        )

    def guess_payload_class(self, payload: bytes) -> type[Packet]:  # noqa: ARG002
        """Return this class: behind a frame stands another one."""
        return RemotingLayer

    def answers(self, other: Packet) -> bool:
        """Return whether it is the response to a request."""
        if not isinstance(other, RemotingLayer):
            return False
        is_response = bool(int(self.flag) & 1) and not int(other.flag) & 3
        return is_response and bool(self.opaque == other.opaque)

    def hashret(self) -> bytes:
        """Return what a request and its response share."""
        return struct.pack(">i", int(self.opaque))

    def mysummary(self) -> str:
        """Return a line: what, and the opaque."""
        code = self.get_field("code").i2repr(self, self.code)
        return f"RocketMQ {code} opaque={self.opaque}"

    def _take(self, kind: int, command: RemotingCommand, body: bytes) -> None:
        self.fields.update(
            serialize_type=kind,
            code=command.code,
            language=command.language,
            version=command.version,
            opaque=command.opaque,
            flag=self.get_field("flag").any2i(self, command.flag & 0xFFFFFFFF),
            remark=command.remark,
            ext=dict(command.ext_fields),
            body=body,
        )


class _Direction:
    """One direction of a TCP connection."""

    def __init__(self, number: int, experts: list[Finding]) -> None:
        self.reassembler = StreamReassembler(number, experts)
        self.decoder = FrameDecoder(number, experts, KEEP_ALL, False)
        self.last: Packet | None = None


class RemotingSession(IPSession):  # type: ignore[misc]
    """For `sniff(session=RemotingSession)`: packets with whole commands, each of them once.

    A segment that completes no command is not given out; one that repeats bytes gives them once.
    Unlike scapy's TCPSession it fills no holes: behind one that the other end acknowledged it goes
    on with the next certain frame. `experts` has the latest findings: gaps, damage, and the like.
    """

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.experts: list[Finding] = []
        self._directions: dict[bytes, _Direction] = {}
        self._number = 0
        self._late: list[Packet] = []

    def process(self, packet: Packet) -> Packet | None:
        """Return the packet with its commands as payload; None where it completes none."""
        packet = super().process(packet)
        if packet is None or TCP not in packet:
            return packet
        tcp = packet[TCP]
        if not {tcp.sport, tcp.dport} & set(PORTS):
            return packet
        self._number += 1
        key, back = _keys_of(packet)
        direction, peer = self._direction(key), self._direction(back)
        segment = _segment_of(packet, self._number, key)
        size = segment.end
        pieces: list[Piece] = []
        if segment.flags & SYN and 0 <= direction.reassembler.isn != segment.seq:
            self._late += _rest_of(direction)  # another connection of the same ports
            direction = self._directions[key] = _Direction(self._number, self.experts)
        if segment.flags & SYN:
            direction.reassembler.synchronize(segment, pieces)
            direction.decoder.search.started = direction.decoder.synchronized = True
            segment.seq = (segment.seq + 1) & 0xFFFFFFFF
        elif size and direction.last is None:  # no handshake was seen: the stream begins here
            start = _segment_of(packet, self._number, key)
            start.seq = (start.seq - 1) & 0xFFFFFFFF
            direction.reassembler.synchronize(start, pieces)
        if size:
            direction.reassembler.receive(segment, pieces)
            direction.last = packet
        frames = _frames_of(direction, pieces)
        self._release(peer, segment)
        if len(self.experts) > MOST_FINDINGS:
            del self.experts[: MOST_FINDINGS // 2]
        if frames:
            return _with_frames(packet, frames)
        return None if size else packet

    def recv(self, sock: object) -> object:
        """Return what `process` gives, and what it gave behind holes."""
        yield from super().recv(sock)
        late, self._late = self._late, []
        yield from late

    def finish(self) -> list[Packet]:
        """Return packets with the commands that waited behind holes, as nothing more comes."""
        found, self._late = self._late, []
        for direction in self._directions.values():
            found += _rest_of(direction)
        return found

    def _release(self, peer: _Direction, segment: Segment) -> None:
        """Append what waited in the other direction for a hole that is acknowledged."""
        if not peer.reassembler.waiting or peer.last is None:
            return
        pieces: list[Piece] = []
        peer.reassembler.acknowledge(segment, pieces)
        frames = _frames_of(peer, pieces)
        if frames:
            self._late.append(_with_frames(peer.last.copy(), frames))

    def _direction(self, key: bytes) -> _Direction:
        found = self._directions.get(key)
        if found is None:
            if len(self._directions) >= MOST_DIRECTIONS:
                del self._directions[next(iter(self._directions))]
            found = self._directions[key] = _Direction(len(self._directions), self.experts)
        return found


def _rest_of(direction: _Direction) -> list[Packet]:
    """Return a packet with the commands that wait behind holes; none where nothing waits."""
    pieces: list[Piece] = []
    direction.reassembler.finish(pieces)
    frames = _frames_of(direction, pieces)
    direction.decoder.finish(frames)
    if not frames or direction.last is None:
        return []
    return [_with_frames(direction.last.copy(), frames)]


def _text_of(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _frame_length(data: bytes) -> int:
    """Return the bytes of the frame that data begins with; 0 where none does, or not all of it."""
    if len(data) < PREFIX:
        return 0
    prefix = int.from_bytes(data[:PREFIX], "big", signed=True)
    if not is_prefix(prefix) or total_of(prefix) + 4 > min(len(data), MAX_FRAME):
        return 0
    header = data[PREFIX : PREFIX + header_length_of(prefix)]
    return total_of(prefix) + 4 if decode_header(type_of(prefix), header) is not None else 0


def _keys_of(packet: Packet) -> tuple[bytes, bytes]:
    tcp = packet[TCP]
    under = tcp.underlayer
    ends = [f"{getattr(under, 'src', '')}|{tcp.sport}", f"{getattr(under, 'dst', '')}|{tcp.dport}"]
    return ">".join(ends).encode(), ">".join(reversed(ends)).encode()


def _segment_of(packet: Packet, number: int, key: bytes) -> Segment:
    tcp = packet[TCP]
    data = bytes(tcp.payload)
    if Padding in packet:
        data = data[: len(data) - len(packet[Padding].load)]
    sequence = (int(tcp.seq) << 32) | int(tcp.ack)
    if sequence >= 1 << 63:  # a segment takes both numbers as one signed integer
        sequence -= 1 << 64
    ts = int(float(packet.time) * 1e9)
    window, flags = int(tcp.window), int(tcp.flags)
    return Segment(number, ts, key, sequence, flags, window, data, 0, len(data), 0)


def _frames_of(direction: _Direction, pieces: list[Piece]) -> list[Frame]:
    frames: list[Frame] = []
    decoder = direction.decoder
    for piece in pieces:
        if isinstance(piece, Data):
            decoder.receive(
                piece.data, piece.start, piece.end, piece.offset, piece.packet, piece.ts, frames
            )
        else:
            decoder.receive_gap(piece.length, piece.packet, piece.ts, frames)
    return frames


def _with_frames(packet: Packet, frames: list[Frame]) -> Packet:
    """Return the packet with commands instead of the bytes that it brought."""
    chain: Packet | None = None
    for frame in frames:
        command = decode_header(frame.serialize_type, frame.header)
        if command is None:
            continue
        layer = RemotingLayer()
        layer._take(frame.serialize_type, command, frame.body)
        layer.missing = frame.missing
        if not frame.missing:
            layer.raw_packet_cache = encode_frame(frame.serialize_type, frame.header, frame.body)
            layer.raw_packet_cache_fields = {"ext": dict(command.ext_fields)}
        chain = layer if chain is None else chain / layer
    tcp = packet[TCP]
    tcp.remove_payload()
    if chain is not None:
        tcp.add_payload(chain)
    return packet


for _port in PORTS:
    bind_bottom_up(TCP, RemotingLayer, sport=_port)
    bind_layers(TCP, RemotingLayer, dport=_port)
