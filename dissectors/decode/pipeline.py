"""Captures in, exchanges out: the whole passive way, joined.

`Decode` is what a program uses: it reads captures in order (a conversation goes on from one to the
next), by name or from a `Source`, and gives batches of records, exchanges or commands. Memory does
not depend on the size of the captures.

    for batch in Decode(["incident.pcap"]).records():
        for record in batch:
            print(record.topic, record.latency_us)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ..conversations.conversation import Pdu
from ..conversations.conversation_row import conversation_row_of
from ..expert import ExpertInfo, ExpertKind
from ..remoting.framing.frame_decoder import KEEP_ALL, KEEP_MESSAGES
from ..replication.progress import first_of
from ..rows.conversation_record import NO_ANSWER, ConversationRecord
from ..rows.encoded import Lines
from ..rows.record import ExchangeRecord
from ..tcp.capture import CAPTURE_SHIFT, CaptureReader, Packet
from ..tcp.decompression import MOST_TIMES
from ..tcp.formats import PCAP_HEADER, reader_of
from ..tcp.no_capture import what_it_is
from ..tcp.source import CaptureError, Source, StoredSource, size_of, sources_of
from .command_order import CommandSeen as CommandSeen
from .command_order import CommandStages
from .exchange import Exchange
from .exchange_row import records_of
from .exchange_row import settled_by as settled_by
from .pending import (
    CONNECTING,
    QUIET,
    CaptureClock,
    Overdue,
    Pending,
    latest,
    spread,
)
from .secrets import left_out_of, secrets_of
from .stages import MAX_EXPERTS, ExchangeStages, Stages
from .totals import CaptureStats as CaptureStats
from .totals import DecodeStats as DecodeStats
from .totals import increase

if TYPE_CHECKING:
    from ..message_rows.message_table import MessageTable
    from ..rows.message_record import MessageRecord

WATCHED_PATIENCE = 2_000_000_000
"""nanoseconds that a command is held back for the order of packets where somebody may watch"""
PACKET_NUMBER = (1 << CAPTURE_SHIFT) - 1
"""the part of a packet's id that is its number in its capture"""
IDLE_LOOKS = 5
"""looks without new bytes at a file that is followed (a second), then what waits is given out"""


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
    messages: bool = False
    """rows of messages are wanted beside those of exchanges: `Decode.take_messages`"""
    body_limit: int = 0
    """bytes of each body that these rows have; 0: none"""
    tls_keylog: str = ""
    """file with secrets of TLS sessions, in the key log format; empty: none"""
    max_ratio: int = MOST_TIMES
    """bytes that each byte of a compressed capture may become"""
    overdue_after: int = 0
    """nanoseconds after which a request that waits is overdue, while the capture goes on:
    `Decode.take_overdue`; 0: that is not asked for"""


class Carried(NamedTuple):
    """The messages that one exchange shows."""

    exchange: ExchangeRecord
    """its row"""
    messages: list[MessageRecord]
    """at least one"""


class Decode:
    """One run over captures. Iterate one of `records`, `exchanges` and `commands`, once."""

    def __init__(
        self,
        sources: Sequence[str | Source],
        options: DecodeOptions | None = None,
        steady: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Take sources: names of files and folders, `-`, and anything else that gives a capture.

        `steady` is a clock in ns, by which time passes while no packets come.
        Raises CaptureError for a name that does not exist, for a folder without captures and for
        a key log that cannot be read or has no secrets.
        """
        self.options = options or DecodeOptions()
        self._sources = sources_of(sources, follow=self.options.follow)
        for source in self._sources:
            if isinstance(source, StoredSource):
                source.max_ratio = self.options.max_ratio
        self._secrets = secrets_of(self.options.tls_keylog, growing=self.options.follow)
        self.sources = [source.name for source in self._sources]
        """names of the captures, in the order they are read"""
        self.stats = DecodeStats()
        self.bytes_total = size_of(self._sources)
        """bytes of all captures as they are stored; None where one has no size"""
        self.read_before = 0
        """bytes of the captures that are done, as they are stored"""
        self._source: Source | None = None
        self._stages: Stages | None = None
        self._experts: list[ExpertInfo] = []
        self._stopped = False
        self._table = _message_table(self.options)
        self._carried: list[Carried] = []
        self._clock = CaptureClock(steady)
        self._goes_on = self.options.follow
        """packets come as they are captured; of standard input that shows when there is nothing new
        """
        self._overdue = Overdue(self.options.overdue_after) if self.options.overdue_after else None

    @property
    def bytes_read(self) -> int:
        """Bytes read so far of the files as they are stored."""
        return self.read_before + (self._source.bytes_read if self._source else 0)

    def capture_name(self, packet: int) -> str:
        """Return the name of the capture that a packet is in."""
        return self.sources[packet >> CAPTURE_SHIFT]

    def records(self) -> Iterator[list[ExchangeRecord]]:
        """Yield exchanges as rows, in the order they are settled; bodies are not kept."""
        for batch in self._exchanges(self._keep()):
            yield self.rows_of(batch)

    def exchanges(self) -> Iterator[list[Exchange]]:
        """Yield exchanges with both PDUs and their bodies, in the order they are settled."""
        yield from self._exchanges(KEEP_ALL)

    def commands(self) -> Iterator[list[CommandSeen]]:
        """Yield commands in the order of packets, as far as what is held back for it is bounded."""
        options = self.options
        stages = CommandStages(
            options.decode_as,
            options.shard,
            options.shards,
            options.conversations,
            WATCHED_PATIENCE if options.follow or self.bytes_total is None else 0,
            self._secrets,
        )
        limited = self._is_limited()
        for _ in self._drive(stages):
            commands = stages.take_commands()
            if limited:
                commands = [one for one in commands if self._in_time(one.request or one.pdu)]
            yield commands

    def add_experts(self, found: list[ExpertInfo]) -> None:
        """Add the findings of one chunk, in an order that does not depend on the shards."""
        found.sort(key=_place_of)
        counts = self.stats.expert_counts
        for info in found:
            counts[info.kind] = counts.get(info.kind, 0) + 1
        self._experts += found
        if len(self._experts) > MAX_EXPERTS:  # nobody takes them
            del self._experts[MAX_EXPERTS // 2 :]

    def stop(self) -> None:
        """Read no further: what was read is finished as if the captures ended here."""
        self._stopped = True

    def take_experts(self) -> list[ExpertInfo]:
        """Return the findings since the last call."""
        taken, self._experts = self._experts, []
        return taken

    def take_messages(self) -> list[Carried]:
        """Return the messages of the exchanges of which rows came since the last call.

        None unless the options ask for them; in the order of the exchanges.
        """
        taken, self._carried = self._carried, []
        return taken

    def counted_exchanges(self) -> Iterator[list[Exchange]]:
        """Return exchanges in the order they are settled; their bodies are counted and not kept."""
        return self._exchanges(KEEP_MESSAGES)

    def message_lines(self) -> Iterator[Lines]:
        """Yield the rows of messages as lines of JSON, chunk by chunk.

        The options ask for messages without bodies.
        """
        from .exchange_forms import MessageGiver

        assert self._table is not None
        lines = self._table.as_lines()
        found: list[ExpertInfo] = []
        giver = MessageGiver(self.sources, found)
        for batch in self._exchanges(KEEP_MESSAGES):
            for exchange in batch:
                giver.give(exchange, self._table)
            if found:
                self.add_experts(found)
                found.clear()
            count = lines.waiting
            yield Lines([lines.take()], [count])

    def take_conversations(self) -> list[ConversationRecord]:
        """Return the rows of the connections that ended since the last call, by their number.

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
        rows.sort(key=attrgetter("conversation"))
        return rows

    def pending(self) -> Pending:
        """Return what is not settled yet, while the capture goes on: provisional rows.

        Ask between two batches of exchanges. What came out as a row before is not among them.
        """
        stages, clock = self._stages, self._clock
        if stages is None or not clock.now:
            return Pending(0, [], [])
        waiting = spread(stages.matcher.waiting_since(clock.now))
        requests = self._provisional_rows([Exchange(one, None) for one in waiting])
        connections = []
        for conversation in latest(stages.table.open_conversations()):
            row = conversation_row_of(conversation)
            if row.end == NO_ANSWER and row.syns < 2 and clock.now - row.start_time < CONNECTING:
                continue  # its answer may be on the way
            row.capture = self.sources[conversation.first_packet >> CAPTURE_SHIFT]
            connections.append(row)
        return Pending(clock.now, requests, connections)

    def take_overdue(self) -> list[ExchangeRecord]:
        """Return the requests that became overdue since the last call, as unanswered; not all of
        them stay so: their exchanges come when they are settled.
        """
        stages, overdue = self._stages, self._overdue
        if stages is None or overdue is None or not (self._goes_on and self._clock.now):
            return []
        waiting = overdue.found(stages.matcher, self._clock.now)
        if self._is_limited():
            waiting = [one for one in waiting if self._in_time(one.request)]
        return self._provisional_rows(waiting)

    def stayed_overdue(self) -> set[tuple[int, int | None]]:
        """Return conversation and packet of those requests of the last batch of exchanges that were
        given out as overdue before, and stayed unanswered.
        """
        stayed = self._overdue.stayed if self._overdue is not None else ()
        return {(int(one.conversation), one.packet & PACKET_NUMBER) for one in stayed}

    def _provisional_rows(self, waiting: list[Exchange]) -> list[ExchangeRecord]:
        found: list[ExpertInfo] = []
        rows = records_of(waiting, self.sources, found)
        if found:
            self.add_experts(found)
        return rows

    # -- inside ---------------------------------------------------------------------------------

    def _exchanges(self, keep: int) -> Iterator[list[Exchange]]:
        stages = self._exchange_stages(keep)
        limited = self._is_limited()
        overdue = self._overdue
        for _ in self._drive(stages):
            exchanges = stages.take_exchanges()
            if overdue is not None:
                overdue.settle(exchanges)
            if limited:
                exchanges = [one for one in exchanges if self._in_time(one.request or one.response)]
            yield exchanges

    def _exchange_stages(self, keep: int) -> ExchangeStages:
        options = self.options
        return ExchangeStages(
            options.decode_as,
            keep,
            options.shard,
            options.shards,
            options.conversations,
            options.messages,
            self._secrets,
        )

    def _keep(self) -> int:
        """Return what rows need of bodies."""
        return KEEP_ALL if self.options.messages and self.options.body_limit else KEEP_MESSAGES

    def rows_of(self, batch: list[Exchange]) -> list[ExchangeRecord]:
        """Return the rows of exchanges; their messages and findings wait to be taken."""
        found: list[ExpertInfo] = []
        rows = records_of(batch, self.sources, found)
        if self._table is not None:
            self._make_messages(self._table, batch, rows, found)
        if found:
            self.add_experts(found)
        return rows

    def _make_messages(
        self,
        table: MessageTable,
        batch: list[Exchange],
        rows: list[ExchangeRecord],
        found: list[ExpertInfo],
    ) -> None:
        """Make the messages of exchanges; they wait to be taken."""
        for one, row in zip(batch, rows, strict=True):
            messages = table.rows_of(one.request, one.response, row, found)
            if messages:
                self._carried.append(Carried(row, messages))

    def _drive(self, stages: Stages) -> Iterator[None]:
        """Feed the stages; stops after each chunk for what it gave, and once after the end."""
        if self._stages is not None:
            raise RuntimeError("a Decode is iterated once")
        self._stages = stages
        for index, source in enumerate(self._sources):
            yield from self._read(stages, index, source)
        stages.finish()
        self._collect_experts(stages, left_out_of(self._secrets))
        self._count(stages)
        yield

    def _read(self, stages: Stages, index: int, source: Source) -> Iterator[None]:
        """Read one capture, chunk by chunk."""
        stats = CaptureStats(source.name)
        self.stats.captures.append(stats)
        self._source = source
        skipped_before = dict(stages.segments.skipped)
        try:
            yield from self._read_chunks(stages, index, source, stats)
        finally:
            stats.bytes = source.bytes_read
            self.read_before += source.bytes_read
            self._source = None
            source.close()
            stats.skipped = increase(skipped_before, stages.segments.skipped)
            self._count(stages)

    def _read_chunks(
        self, stages: Stages, index: int, source: Source, stats: CaptureStats
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
                stats.compression = source.compression
                head += chunk
                if len(head) < PCAP_HEADER:
                    yield
                    continue
                reader = reader_of(index, head)
                if reader is None:
                    break
                stats.format = reader.format
                reader.passed = stages.table.passed
                chunk = b""  # the reader has it
            size = reader.waiting + len(chunk)
            packets = reader.receive(chunk)
            self._take_secrets(reader)
            _receive(stages, stats, packets, reader.packets, size)
            self._note_time(stages, packets, idle)
            self._collect_experts(stages, reader.take_experts())
            yield
        if reader is None:
            if not self._stopped:
                self._refuse(source, head)
            return
        if not self._stopped:
            size = reader.waiting
            packets = reader.finish(source.problem)
            _receive(stages, stats, packets, reader.packets, size)
        self._collect_experts(stages, reader.take_experts())

    def _note_time(self, stages: Stages, packets: list[Packet], idle: int) -> None:
        """Let time pass in a capture that goes on: connections end, holes are given up."""
        clock = self._clock
        if packets:
            clock.note(packets[-1].ts)
        elif idle:
            self._goes_on = self._goes_on or clock.is_recent()
            if self._goes_on:
                clock.note_idle()
        if self._goes_on and clock.ticked():
            stages.release_quiet_holes(clock.now - QUIET)
            stages.sweep(clock.now, stages.packets)

    def _take_secrets(self, reader: CaptureReader) -> None:
        """Take the secrets that a capture brings, before what they open."""
        for text in reader.secrets:
            self._secrets.add_from_capture(text)
        reader.secrets.clear()

    def _refuse(self, source: Source, head: bytes) -> None:
        """Report a file that is not a capture: an error if it is the only one, else a finding."""
        reason, hint = what_it_is(head, source.problem)
        if len(self.sources) == 1:
            raise CaptureError(source.name, reason, 0, hint)
        detail = f"{source.name}: {reason}"
        self.add_experts([ExpertInfo(ExpertKind.CAPTURE_DAMAGED, detail, 0, 0, -1, 0)])

    def _collect_experts(self, stages: Stages, found: list[ExpertInfo]) -> None:
        """Take over the findings of one chunk."""
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

    def _is_limited(self) -> bool:
        return self.options.since is not None or self.options.until is not None

    def _in_time(self, one: Pdu | None) -> bool:
        """Return whether the first PDU that was seen of an exchange is in the time asked for."""
        since, until = self.options.since, self.options.until
        if one is None:
            return False
        return (since is None or one.ts >= since) and (until is None or one.ts < until)


def _message_table(options: DecodeOptions) -> MessageTable | None:
    """Return what makes rows of messages, imported only where somebody wants them."""
    if not options.messages:
        return None
    from ..message_rows.message_table import MessageTable

    return MessageTable(options.body_limit)


def _receive(
    stages: Stages, stats: CaptureStats, packets: list[Packet], so_far: int, size: int
) -> None:
    """Receive packets of so many bytes; `so_far` were read, with those that another process
    decodes.
    """
    passed = so_far - stats.packets - len(packets)
    if packets:
        stats.packets = so_far
        stats.first_ts = packets[0].ts if stats.first_ts is None else stats.first_ts
        stats.last_ts = packets[-1].ts
    stages.receive(packets, passed, size)


def _place_of(info: ExpertInfo) -> tuple[int, int, int, str]:
    return info.packet, info.conversation, info.offset, info.kind.name
