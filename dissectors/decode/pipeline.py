"""Capture files in, exchanges out: the whole passive way, joined.

`Decode` is what a program uses: it reads the named captures in order (a conversation goes on from
one file to the next), and gives batches of records, exchanges or commands. Memory does not depend
on the size of the captures.

    for batch in Decode(["incident.pcap"]).records():
        for record in batch:
            print(record.topic, record.latency_us)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .conversation import Pdu
from .conversation_record import ConversationRecord
from .exchange import Exchange
from .expert import ExpertInfo, ExpertKind
from .record import ExchangeRecord
from .remoting.frame import KEEP_ALL, KEEP_MESSAGES
from .replication import Replication, first_of
from .row import record_of, records_of
from .row import settled_by as settled_by
from .stages import MAX_EXPERTS, Stages
from .tcp.capture import CAPTURE_SHIFT, CaptureReader, Packet
from .tcp.formats import PCAP_HEADER, PcapReader, reader_of
from .tcp.source import ByteSource, CaptureError, expand_sources

IDLE_LOOKS = 5
"""looks in vain at a file that is followed (a second), then what waits is given out"""


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """What is read and how."""

    decode_as: frozenset[int] = frozenset()
    """TCP ports of which every conversation is taken to be RocketMQ"""
    follow: bool = False
    """the last capture is still being written: wait for more"""
    since: int | None = None
    """nanoseconds since the epoch; what happened before is not given out"""
    until: int | None = None
    """nanoseconds since the epoch; what happened at or after is not given out"""
    shard: int = 0
    """which part of the conversations is decoded here, of `shards`"""
    shards: int = 1
    conversations: bool = False
    """rows of the TCP connections are wanted: `Decode.take_conversations`"""


@dataclass(slots=True)
class CaptureStats:
    """What was read of one capture file."""

    name: str
    """as the user named it"""
    format: str = ""
    """pcap or pcapng; empty: it is no capture"""
    compression: str | None = None
    packets: int = 0
    bytes: int = 0
    """bytes of the file as it is stored"""
    first_ts: int | None = None
    """time of the first packet, nanoseconds since the epoch"""
    last_ts: int | None = None
    skipped: dict[str, int] = field(default_factory=dict)
    """why packets gave no TCP segment, and how many"""


@dataclass(slots=True)
class DecodeStats:
    """What was found so far."""

    captures: list[CaptureStats] = field(default_factory=list)
    conversations: int = 0
    """TCP connections with payload, SYN, FIN or RST"""
    rocketmq_conversations: int = 0
    not_decoded: dict[str, int] = field(default_factory=dict)
    """protocol of what is not RocketMQ, and conversations"""
    replication_conversations: int = 0
    """connections between a slave and its master: RocketMQ, but without commands"""
    replications: list[Replication] = field(default_factory=list)
    """what each of those transferred, by number of the conversation; at most 4096"""
    frames: int = 0
    commands: int = 0
    gaps: int = 0
    """holes in RocketMQ conversations"""
    gap_bytes: int = 0
    expert_counts: dict[ExpertKind, int] = field(default_factory=dict)


class CommandSeen(NamedTuple):
    """A command in the order seen, with the request where it is a response."""

    pdu: Pdu
    request: Pdu | None
    """the request of a response, where it is known"""
    latency: int | None
    """nanoseconds from request to response"""


class Decode:
    """One run over captures. Iterate one of `records`, `exchanges` and `commands`, once."""

    def __init__(self, sources: Sequence[str], options: DecodeOptions | None = None) -> None:
        self.options = options or DecodeOptions()
        self.sources = expand_sources(sources)
        self.stats = DecodeStats()
        self.bytes_total = _size_of(self.sources)
        self.read_before = 0
        """bytes of the captures that are done, as they are stored"""
        self._source: ByteSource | None = None
        self._stages: Stages | None = None
        self._experts: list[ExpertInfo] = []
        self._stopped = False

    @property
    def bytes_read(self) -> int:
        """Bytes read so far of the files as they are stored."""
        return self.read_before + (self._source.bytes_read if self._source else 0)

    def capture_name(self, packet: int) -> str:
        """The name of the capture that a packet is in."""
        return self.sources[packet >> CAPTURE_SHIFT]

    def records(self) -> Iterator[list[ExchangeRecord]]:
        """Exchanges as rows, in the order they are settled; bodies are not kept."""
        names = self.sources
        for batch in self._exchanges(KEEP_MESSAGES):
            yield records_of(batch, names)

    def ordered_records(self) -> Iterator[list[tuple[int, int, ExchangeRecord]]]:
        """The rows of one shard, each behind its place among those of all shards."""
        names = self.sources
        stages = self._start(KEEP_MESSAGES, commands=False)
        for _ in self._drive(stages):
            exchanges = stages.take_exchanges()
            order = stages.take_order()
            yield [
                (packet, place, record_of(one, names[settled_by(one) >> CAPTURE_SHIFT]))
                for (packet, place), one in zip(order, exchanges, strict=True)
                if self._in_time(one)
            ]

    def exchanges(self) -> Iterator[list[Exchange]]:
        """Exchanges with both PDUs and their bodies, in the order they are settled."""
        yield from self._exchanges(KEEP_ALL)

    def commands(self) -> Iterator[list[CommandSeen]]:
        """Commands in the order seen; a response before its request waits for that."""
        for batch in self._exchanges(KEEP_ALL, commands=True):
            yield [_seen(one) for one in batch]

    def add_experts(self, found: list[ExpertInfo]) -> None:
        """Adds the findings of one chunk, in an order that does not depend on the shards."""
        found.sort(key=_place_of)
        counts = self.stats.expert_counts
        for info in found:
            counts[info.kind] = counts.get(info.kind, 0) + 1
        self._experts += found
        if len(self._experts) > MAX_EXPERTS:  # nobody takes them
            del self._experts[MAX_EXPERTS // 2 :]

    def stop(self) -> None:
        """Reads no further: what was read is finished as if the captures ended here."""
        self._stopped = True

    def take_experts(self) -> list[ExpertInfo]:
        """The findings since the last call."""
        taken, self._experts = self._experts, []
        return taken

    def take_conversations(self) -> list[ConversationRecord]:
        """The rows of the connections that ended since the last call, by their number.

        None unless the options ask for them. Those still open at the end come with it.
        """
        if self._stages is None:
            return []
        ended = self._stages.table.ended
        taken = ended[:]
        ended.clear()
        rows = []
        for packet, row in taken:
            row.capture = self.sources[packet >> CAPTURE_SHIFT]
            rows.append(row)
        rows.sort(key=_conversation_of)
        return rows

    # -- inside ---------------------------------------------------------------------------------

    def _exchanges(self, keep: int, *, commands: bool = False) -> Iterator[list[Exchange]]:
        stages = self._start(keep, commands)
        limited = self.options.since is not None or self.options.until is not None
        for _ in self._drive(stages):
            exchanges = stages.take_exchanges()
            yield [one for one in exchanges if self._in_time(one)] if limited else exchanges

    def _start(self, keep: int, commands: bool) -> Stages:
        if self._stages is not None:
            raise RuntimeError("a Decode is iterated once")
        options = self.options
        self._stages = Stages(
            options.decode_as,
            keep,
            commands,
            options.shard,
            options.shards,
            options.conversations,
        )
        return self._stages

    def _drive(self, stages: Stages) -> Iterator[None]:
        """Feeds the stages; stops after each chunk for what it gave, and once after the end."""
        for index in range(len(self.sources)):
            yield from self._read(stages, index)
        stages.finish()
        self._collect_experts(stages, [])
        self._count(stages)
        yield

    def _read(self, stages: Stages, index: int) -> Iterator[None]:
        """One capture file, chunk by chunk."""
        name = self.sources[index]
        stats = CaptureStats(name)
        self.stats.captures.append(stats)
        follow = self.options.follow and index == len(self.sources) - 1
        source = ByteSource(name, follow=follow)
        self._source = source
        skipped_before = dict(stages.segments.skipped)
        stats.compression = source.compression
        try:
            yield from self._read_chunks(stages, index, source, stats)
        finally:
            stats.bytes = source.bytes_read
            self.read_before += source.bytes_read
            self._source = None
            source.close()
            stats.skipped = _increase(skipped_before, stages.segments.skipped)
            self._count(stages)

    def _read_chunks(
        self, stages: Stages, index: int, source: ByteSource, stats: CaptureStats
    ) -> Iterator[None]:
        head = b""
        reader: CaptureReader | None = None
        idle = 0
        for chunk in source.chunks():
            if self._stopped:
                break
            idle = 0 if chunk else idle + 1
            if idle == IDLE_LOOKS:
                stages.release_holes()
            if reader is None:
                head += chunk
                if len(head) < PCAP_HEADER:
                    yield
                    continue
                reader = reader_of(index, head)
                if reader is None:
                    break
                stats.format = reader.format
                chunk = head[PCAP_HEADER:] if isinstance(reader, PcapReader) else head
            _receive(stages, stats, reader.receive(chunk))
            self._collect_experts(stages, reader.take_experts())
            yield
        if reader is None:
            if not self._stopped:
                self._refuse(source, head)
            return
        if not self._stopped:
            _receive(stages, stats, reader.finish(source.problem))
        self._collect_experts(stages, reader.take_experts())

    def _refuse(self, source: ByteSource, head: bytes) -> None:
        """A file that is no capture: an error if it is the only one, else a finding."""
        reason, hint = _what_it_is(head, source.problem)
        if len(self.sources) == 1:
            raise CaptureError(source.name, reason, 0, hint)
        detail = f"{source.name}: {reason}"
        self.add_experts([ExpertInfo(ExpertKind.CAPTURE_DAMAGED, detail, 0, 0, -1, 0)])

    def _collect_experts(self, stages: Stages, found: list[ExpertInfo]) -> None:
        """Takes over the findings of one chunk."""
        found += stages.take_experts()
        if found:
            self.add_experts(found)

    def _count(self, stages: Stages) -> None:
        stats = self.stats
        table = stages.table
        rocketmq, frames, commands, gaps, gap_bytes = table.count_open()
        stats.conversations = table.conversations
        stats.rocketmq_conversations = table.rocketmq + rocketmq
        stats.not_decoded = dict(sorted(table.not_decoded.items()))
        replicating = table.open_replications()
        stats.replication_conversations = table.replication + len(replicating)
        stats.replications = first_of(table.replications + replicating)
        stats.frames = table.frames + frames
        stats.commands = table.commands + commands
        stats.gaps = table.gaps + gaps
        stats.gap_bytes = table.gap_bytes + gap_bytes

    def _in_time(self, exchange: Exchange) -> bool:
        """Whether it began, or where that was not seen ended, in the time asked for."""
        one = exchange.request or exchange.response
        since, until = self.options.since, self.options.until
        if one is None:
            return False
        return (since is None or one.ts >= since) and (until is None or one.ts < until)


def _receive(stages: Stages, stats: CaptureStats, packets: list[Packet]) -> None:
    if packets:
        stats.packets += len(packets)
        stats.first_ts = packets[0].ts if stats.first_ts is None else stats.first_ts
        stats.last_ts = packets[-1].ts
    stages.receive(packets)


def _seen(exchange: Exchange) -> CommandSeen:
    """What the stages give for a command: a request alone, or a response with its request."""
    if exchange.response is not None:
        return CommandSeen(exchange.response, exchange.request, exchange.latency)
    assert exchange.request is not None
    return CommandSeen(exchange.request, None, None)


def _conversation_of(row: ConversationRecord) -> int:
    return row.conversation


def _place_of(info: ExpertInfo) -> tuple[int, int, int, str]:
    return info.packet, info.conversation, info.offset, info.kind.name


def _increase(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {why: n - before.get(why, 0) for why, n in after.items() if n > before.get(why, 0)}


def _size_of(sources: Sequence[str]) -> int | None:
    """Bytes of all files together, or None where one has no size."""
    if "-" in sources:
        return None
    try:
        return sum(os.stat(name).st_size for name in sources)
    except OSError:
        return None


_SIGNS: tuple[tuple[bytes, str, str], ...] = (
    (b"{", "not a capture but JSON", "a decoded log? `rmqtool report` reads those"),
    (b"PAR1", "not a capture but Parquet", "a decoded log? `rmqtool report` reads those"),
    (b"PK\x03\x04", "not a capture but a zip archive", "unpack it first"),
    (b"\xa1\xb2\xcd\x34", "a pcap of a patched libpcap", "editcap -F pcapng IN OUT"),
    (b"\x34\xcd\xb2\xa1", "a pcap of a patched libpcap", "editcap -F pcapng IN OUT"),
    (b"snoop\0\0\0", "a snoop capture", "editcap -F pcapng IN OUT"),
    (b"BZh", "compressed by bzip2", "decompress it first: gzip, zstd, lz4 and xz are read"),
)
"""first bytes of what is taken for a capture by mistake, what it is, and the way out"""


def _what_it_is(head: bytes, problem: str | None) -> tuple[str, str]:
    if problem:
        return problem, "fetch or record it again"
    if not head:
        return "the file is empty", "a capture has at least a header of 24 bytes"
    for sign, what, hint in _SIGNS:
        if head.startswith(sign):
            return what, hint
    return "not a pcap or pcapng file", f"it begins with {head[:8].hex(' ')}"
