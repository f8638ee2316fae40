"""Rewrite a capture: commands in place, all other bytes dropped.

Rules: two passes. The first keeps the rewritten commands in a temporary file; `streams` does the
same for connections with calls or replication. The second writes every TCP packet, with the
rewritten bytes of its payload; other bytes become zeros, and are counted. Link-layer addresses,
tunnels, and TCP options are dropped.
"""

from __future__ import annotations

import struct
import tempfile
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from operator import le
from typing import BinaryIO, Final

from ..conversations.conversation import Direction, Pdu
from ..conversations.conversation_table import SWEEP_PACKETS, ConversationTable, ReleasedPdus
from ..conversations.tls_state import Tls
from ..decode.pipeline import Decode, DecodeOptions
from ..findings import Finding, undecoded
from ..grpc.call_stream import HeldBytes
from ..remoting.framing.frame import PREFIX
from ..remoting.framing.frame_decoder import KEEP_ALL
from ..remoting.header_codec import BINARY_TYPE, JSON_TYPE
from ..replication.progress import AUTO_SWITCH, Replication
from ..tcp.capture import Packet
from ..tcp.formats import PCAP_HEADER, reader_of
from ..tcp.pcapng_writer import PcapngWriter
from ..tcp.reassembly import Piece
from ..tcp.segment import RST, SYN, Segment, address_size, reversed_key, source_of
from ..tcp.segment_reader import SegmentReader
from ..tcp.source import CaptureError, sources_of
from .frames import FrameRewriter
from .pseudonyms import Pseudonyms
from .streams import CallStreams, ReplicationStreams

LINKTYPE_RAW: Final = 101
_TCP: Final = 6
_EXPERIMENT: Final = 253
_MOST_LENGTH: Final = 0xFFFF
_TCP_HEAD: Final = struct.Struct(">HHIIBBH")
"""ports, sequence, acknowledgement, size, flags, window; then checksum and urgent pointer"""
_V4_HEAD: Final = struct.Struct(">BxHxxHBB")
"""version and size, length, flags, hops, protocol; then checksum and addresses"""
_V6_HEAD: Final = struct.Struct(">BxxxHBB")
"""version, length, protocol, hops; then addresses"""
_CYCLE: Final = 1 << 32
_MOST_KEYS: Final = 1 << 16


@dataclass
class Anonymized:
    """Statistics of an anonymized capture."""

    packets: int = 0
    """packets written"""
    other_packets: int = 0
    """packets that were not TCP, now empty"""
    commands: int = 0
    """rewritten commands"""
    replaced: dict[str, int] = field(default_factory=dict)
    """kind → replaced texts"""
    dropped: Counter[str] = field(default_factory=Counter)
    """kind of data that was not understood → dropped bytes"""


class _Run:
    """The rewritten commands of one direction of a conversation."""

    # Arrays: a capture may have millions of commands, and all their places stay in memory.
    __slots__ = (
        "first_packet", "has_commands", "last_packet", "lengths", "offsets", "origin", "places"
    )  # fmt: skip

    def __init__(self, origin: int, has_commands: bool) -> None:
        self.origin = origin
        """sequence number of offset 0"""
        self.has_commands = has_commands
        self.offsets = array("q")
        self.lengths = array("q")
        self.places = array("q")
        self.first_packet = 1 << 62
        self.last_packet = 0

    def note(self, offset: int, length: int, place: int, packet: int) -> None:
        """Record the place of some bytes."""
        self.offsets.append(offset)
        self.lengths.append(length)
        self.places.append(place)
        self.first_packet = min(self.first_packet, packet or self.first_packet)
        self.last_packet = max(self.last_packet, packet)

    def is_last_of_some(self, at: int) -> bool:
        """Return whether the bytes after a place were not recorded."""
        end = self.offsets[at] + self.lengths[at]
        return at + 1 == len(self.offsets) or self.offsets[at + 1] != end

    def sort(self) -> None:
        """Sort the recorded places by offset."""
        if all(map(le, self.offsets, islice(self.offsets, 1, None))):
            return
        order = sorted(range(len(self.offsets)), key=self.offsets.__getitem__)
        for name in ("lengths", "places", "offsets"):
            values = getattr(self, name)
            setattr(self, name, array("q", (values[at] for at in order)))


class CaptureAnonymizer:
    """Rewrites one capture."""

    def __init__(self, names: Pseudonyms, options: DecodeOptions | None = None) -> None:
        self._names = names
        self._frames = FrameRewriter(names)
        self._options = options or DecodeOptions()
        self._runs: dict[bytes, list[_Run]] = {}
        self._by_conversation: dict[tuple[int, bytes, int], _Run] = {}
        self._place = 0
        self._done = Anonymized(dropped=self._frames.dropped)

    def write(self, capture: str, out: BinaryIO) -> Anonymized:
        """Write the rewritten capture to an open file; raise CaptureError if it is invalid."""
        if self._names.learns:  # a name may come before the field that says that it stays
            with tempfile.TemporaryFile(prefix="rmqtool-anonymize-") as unused:
                CaptureAnonymizer(self._names, self._options)._collect(capture, unused)
            self._names.start_over()
        with tempfile.TemporaryFile(prefix="rmqtool-anonymize-") as store:
            self._collect(capture, store)
            writer = PcapngWriter(out, LINKTYPE_RAW)
            for packet, segment, fault in _segments_of(capture, self._options.max_ratio):
                self._done.packets += 1
                if segment is None:  # not TCP: an empty packet keeps the numbers of the others
                    self._done.other_packets += 1
                    writer.write(packet.ts, _EMPTY)
                    continue
                data = self._packet(segment, store)
                mark = self._names.fault(fault)
                writer.write(packet.ts, data, len(data) + segment.missing, mark)
        self._done.replaced = self._names.replaced
        return self._done

    # -- first pass -------------------------------------------------------------------------------

    def _collect(self, capture: str, store: BinaryIO) -> None:
        decode = Decode([capture], self._options)
        calls: set[bytes] = set()
        for commands in decode.commands():
            for ordered in commands:
                pdu = ordered.pdu
                direction = pdu.direction
                if isinstance(direction.conversation.state, Tls):
                    continue  # decrypted: these bytes are not on the wire
                self._done.commands += 1
                if not pdu.header:
                    calls.update((direction.key, direction.peer.key))
                    continue
                ident = int(pdu.conversation), direction
                self._put(store, *ident, True, int(pdu.offset), self._command(pdu), int(pdu.packet))
        self._collect_streams(capture, store, calls, decode.stats.replications)

    def _collect_streams(
        self, capture: str, store: BinaryIO, calls: set[bytes], replications: list[Replication]
    ) -> None:
        """Rewrite connections with calls or replication."""
        masters = {
            (replication.master, replication.slave): replication.kind == AUTO_SWITCH
            for replication in replications
        }
        if not calls and not masters:
            return
        findings: list[Finding] = []
        table = ConversationTable(frozenset(), KEEP_ALL, findings, 0, 1)
        streams: dict[int, CallStreams | ReplicationStreams] = {}
        released: list[ReleasedPdus] = []
        pieces: list[Piece] = []
        held = HeldBytes()
        packets = 0

        @lru_cache(_MOST_KEYS)
        def is_wanted(key: bytes) -> bool:
            ends = source_of(key), source_of(reversed_key(key))
            return key in calls or ends in masters or ends[::-1] in masters

        def streams_of(direction: Direction) -> CallStreams | ReplicationStreams:
            conversation = direction.conversation
            first, second = conversation.first, conversation.second
            # This table numbers only some connections: keep apart from the numbers of `_collect`.
            number = -1 - int(conversation.number)
            puts = [partial(self._put, store, number, side, False) for side in (first, second)]
            if first.key in calls:
                return CallStreams(self._names, self._frames, held, *puts)
            is_master = (first.src, second.src) in masters
            auto = masters[(first.src, second.src) if is_master else (second.src, first.src)]
            return ReplicationStreams(
                auto,
                is_master,
                self._names,
                self._frames,
                held,
                *(puts if is_master else puts[::-1]),
            )

        def give(direction: Direction) -> None:
            if pieces:
                conversation = direction.conversation
                number = int(conversation.number)
                if number not in streams:
                    streams[number] = streams_of(direction)
                started = direction.reassembler.isn >= 0
                try:
                    streams[number].take(direction is conversation.first, pieces, started)
                except Exception as error:  # the last line of defence: other connections continue
                    self._done.dropped[undecoded(error)] += 1
                pieces.clear()

        for _, segment, _ in _segments_of(capture, self._options.max_ratio):
            findings.clear()  # nobody takes them
            if segment is None or not is_wanted(segment.key):
                continue
            direction = table.direction_of(segment, released)
            packets += 1
            if packets % SWEEP_PACKETS == 0:
                table.sweep(segment.ts, released)
            for entry in released:
                ended = streams.pop(int(entry.conversation.number), None)
                if ended is not None:
                    ended.finish()
            released.clear()
            if direction is None:
                continue
            if segment.flags & SYN:
                direction.reassembler.synchronize(segment, pieces)
                segment.seq = (segment.seq + 1) & (_CYCLE - 1)  # a SYN takes a sequence number
            if (segment.end > segment.start or segment.missing) and not segment.flags & RST:
                direction.reassembler.receive(segment, pieces)
            give(direction)
            if direction.peer.reassembler.waiting:
                direction.peer.reassembler.acknowledge(segment, pieces)
                give(direction.peer)
        for conversation in table.open_conversations():
            for direction in (conversation.first, conversation.second):
                direction.reassembler.finish(pieces)
                give(direction)
        for rest in streams.values():
            rest.finish()
        for runs in self._runs.values():
            for run in runs:
                if not run.has_commands:
                    run.sort()

    def _command(self, pdu: Pdu) -> bytes:
        form = BINARY_TYPE if pdu.serialize_type == "ROCKETMQ" else JSON_TYPE
        header = self._frames.header(form, pdu.header)
        fields = pdu.command.ext_fields
        texts = {name: value for name, value in fields.items() if isinstance(value, str)}
        body = self._frames.body(pdu.head.code, bool(pdu.flag & 1), texts, pdu.body)
        size = 4 + len(pdu.header) + int(pdu.body_length)
        prefix = size.to_bytes(4, "big") + bytes((form,)) + len(pdu.header).to_bytes(3, "big")
        return prefix + header + body

    def _put(
        self,
        store: BinaryIO,
        conversation: int,
        direction: Direction,
        has_commands: bool,
        offset: int,
        data: bytes,
        packet: int,
    ) -> None:
        """Store rewritten bytes of a direction."""
        origin = int(direction.reassembler.sequence_at(0))
        ident = conversation, direction.key, origin
        run = self._by_conversation.get(ident)
        if run is None:
            run = self._by_conversation[ident] = _Run(origin, has_commands)
            self._runs.setdefault(direction.key, []).append(run)
        run.note(offset, len(data), self._place, packet)
        store.write(data)
        self._place += len(data)

    # -- second pass ------------------------------------------------------------------------------

    def _packet(self, segment: Segment, store: BinaryIO) -> bytes:
        key = segment.key
        size = int(address_size(key))
        names = self._names
        source, target = (names.address(bytes(key[at : at + size])) for at in (0, size))
        ports = (
            names.port(int.from_bytes(key[at : at + 2], "big")) for at in (2 * size, 2 * size + 2)
        )
        payload = self._payload(segment, store)
        head = _TCP_HEAD.pack(
            *ports,
            int(segment.seq),
            int(segment.ack),
            0x50,  # 20 bytes, without options
            int(segment.flags) & 0xFF,
            int(segment.window) & 0xFFFF,
        )
        length = 20 + len(payload) + int(segment.missing)
        pseudo = source + target + struct.pack(">II", length, _TCP)
        # Where the snap length cut bytes off, the checksum is not known: 0.
        check = 0 if segment.missing else _checksum(pseudo + head + bytes(4) + payload)
        tcp = head + struct.pack(">HH", check, 0) + payload
        if size == 16:
            return _V6_HEAD.pack(0x60, _fitting(length), _TCP, 64) + source + target + tcp
        return _ipv4_head(20 + length, _TCP, source + target) + tcp

    def _payload(self, segment: Segment, store: BinaryIO) -> bytes:
        length = int(segment.end - segment.start)
        if not length:
            return b""
        out = bytearray(length)
        covered = 0
        for run in self._runs_at(segment):
            offset = _nearest(int(segment.seq) - run.origin, run)
            # Begin with the command that has the first byte of the segment, or ends before it.
            at = max(0, bisect_right(run.offsets, offset) - 1)
            while at < len(run.offsets) and run.offsets[at] < offset + length:
                first = max(offset, run.offsets[at])
                last = min(offset + length, run.offsets[at] + run.lengths[at])
                if first < last:
                    store.seek(run.places[at] + first - run.offsets[at])
                    out[first - offset : last - offset] = store.read(last - first)
                    covered += last - first
                if run.has_commands and run.is_last_of_some(at):
                    end = run.offsets[at] + run.lengths[at]
                    covered += _prefix(out, segment, end - offset)
                at += 1
            if run.has_commands and run.offsets[0]:
                covered += _prefix(out, segment, -offset)
            if covered:  # a later connection with the same ports has other bytes
                break
        if covered < length:
            self._done.dropped["bytes outside of decoded commands"] += length - covered
        return bytes(out)

    def _runs_at(self, segment: Segment) -> list[_Run]:
        """Return the conversations that a segment may belong to, nearest in time first."""
        runs = self._runs.get(segment.key, [])
        if len(runs) < 2:
            return runs
        packet = int(segment.packet)

        def distance(run: _Run) -> int:
            return max(run.first_packet - packet, packet - run.last_packet, 0)

        return sorted(runs, key=distance)


def _prefix(out: bytearray, segment: Segment, at: int) -> int:
    """Copy the lengths at the start of an incomplete frame; return their number of bytes."""
    place = int(segment.start) + at
    prefix = bytes(segment.data[place : min(place + PREFIX, int(segment.end))])
    if not 0 <= at <= len(out) - PREFIX or prefix[4] > 1:
        return 0
    if int.from_bytes(prefix[5:], "big") + 4 > int.from_bytes(prefix[:4], "big"):
        return 0
    out[at : at + PREFIX] = prefix
    return PREFIX


def _nearest(distance: int, run: _Run) -> int:
    """Return the offset of a sequence number that is nearest to those of a run."""
    # Sequence numbers start again after 4 GiB; offsets do not.
    middle = (run.offsets[0] + run.offsets[-1]) // 2
    offset = distance % _CYCLE
    return offset + (middle - offset + _CYCLE // 2) // _CYCLE * _CYCLE


def _segments_of(capture: str, max_ratio: int) -> Iterator[tuple[Packet, Segment | None, str]]:
    """Yield the packets of a capture, their TCP segments, and the faults injected there or ''."""
    segments = SegmentReader()
    segments.acks_wanted = True
    for packet, fault in _packets_of(capture, max_ratio):
        segment = segments.segment_of(packet)
        segments.findings.clear()  # nobody takes them
        yield packet, segment, fault


def _packets_of(capture: str, max_ratio: int) -> Iterator[tuple[Packet, str]]:
    """Yield the packets of a capture that was read before, and the fault injected there or ''."""
    (source,) = sources_of([capture])
    if hasattr(source, "max_ratio"):
        source.max_ratio = max_ratio
    reader, head = None, b""
    try:
        for chunk in source.chunks():
            if reader is None:
                head += chunk
                if len(head) < PCAP_HEADER:
                    continue
                reader = reader_of(0, head)
                if reader is None:
                    raise CaptureError(source.name, "not a capture")
                chunk = b""
            for packet in reader.receive(chunk):
                yield packet, reader.marks.pop(packet.packet, "")
            reader.findings.clear()
            reader.secrets.clear()
        if reader is not None:
            for packet in reader.finish(source.problem):
                yield packet, reader.marks.pop(packet.packet, "")
    finally:
        source.close()


def _checksum(data: bytes) -> int:
    """Return the Internet checksum."""
    if len(data) & 1:
        data += b"\0"
    # The sum of 16-bit words with end-around carry is the number modulo 2¹⁶ - 1.
    total = int.from_bytes(data, "big") % 0xFFFF
    return 0xFFFF - total


def _fitting(length: int) -> int:
    """Return a length as IP headers have it; 0 for one that does not fit (offloaded segments)."""
    return length if length <= _MOST_LENGTH else 0


def _ipv4_head(length: int, protocol: int, addresses: bytes) -> bytes:
    start = _V4_HEAD.pack(0x45, _fitting(length), 0x4000, 64, protocol)
    check = _checksum(start + bytes(2) + addresses)
    return start + check.to_bytes(2, "big") + addresses


_EMPTY: Final = _ipv4_head(20, _EXPERIMENT, bytes(8))
"""An empty IPv4 packet of an experimental protocol."""
