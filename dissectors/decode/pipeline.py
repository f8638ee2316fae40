"""The whole passive pipeline: captures in, exchanges out.

`Decode` reads captures in order, by name or from a `Source`; a conversation continues from one to
the next. Memory does not depend on the size of the captures.

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
from ..findings import Finding, FindingKind
from ..remoting.framing.frame_decoder import KEEP_ALL, KEEP_MESSAGES
from ..replication.progress import first_of
from ..rows.conversation_record import NO_RESPONSE, ConversationRecord
from ..rows.encoded import Lines
from ..rows.record import ExchangeRecord
from ..tcp.capture import CAPTURE_SHIFT, CaptureReader, Packet, packet_number
from ..tcp.decompression import MOST_TIMES
from ..tcp.formats import PCAP_HEADER, reader_of, what_it_is
from ..tcp.pcapng import MAX_MARKS
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
from .stages import MAX_FINDINGS, ExchangeStages, Stages
from .totals import CaptureStats as CaptureStats
from .totals import DecodeStats as DecodeStats
from .totals import increase

if TYPE_CHECKING:
    from ..message_rows.message_table import MessageTable
    from ..rows.message_record import MessageRecord

WATCHED_PATIENCE = 2_000_000_000
"""maximum ns to hold a command for packet order in live use"""
IDLE_LOOKS = 5
"""reads without new bytes of a followed file (a second) before held data is emitted"""


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """Options of a run."""

    decode_as: frozenset[int] = frozenset()
    """TCP ports whose conversations are all treated as RocketMQ"""
    follow: bool = False
    """the last capture is still growing: wait for more"""
    since: int | None = None
    """nanoseconds since the epoch; omit what happened before"""
    until: int | None = None
    """nanoseconds since the epoch; omit what happened at or after it"""
    shard: int = 0
    """index of the decoded part of the conversations, of `shards`"""
    shards: int = 1
    conversations: bool = False
    """collect rows of TCP connections: `Decode.take_conversations`"""
    messages: bool = False
    """collect message rows besides those of exchanges: `Decode.take_messages`"""
    body_limit: int = 0
    """maximum bytes of each body in message rows; 0: none"""
    tls_keylog: str = ""
    """TLS key log file; empty: none"""
    max_ratio: int = MOST_TIMES
    """maximum decompressed bytes per byte of a compressed capture"""
    overdue_after: int = 0
    """ns after which a pending request of a running capture is overdue (`Decode.take_overdue`);
    0: never"""


class Carried(NamedTuple):
    """The messages of one exchange."""

    exchange: ExchangeRecord
    """row of the exchange"""
    messages: list[MessageRecord]
    """at least one"""


class Decode:
    """A run over captures. Iterate one of `records`, `exchanges`, and `commands`, once."""

    def __init__(
        self,
        sources: Sequence[str | Source],
        options: DecodeOptions | None = None,
        steady: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Accept files, folders, `-`, or any other `Source`.

        `steady` is a monotonic clock in ns, used while no packets come. Raises CaptureError for a
        missing name, for a folder without captures, and for a key log that is unreadable or has no
        secrets.
        """
        self.options = options or DecodeOptions()
        self._sources = sources_of(sources, follow=self.options.follow)
        for source in self._sources:
            if isinstance(source, StoredSource):
                source.max_ratio = self.options.max_ratio
        self._secrets = secrets_of(self.options.tls_keylog, growing=self.options.follow)
        self.sources = [source.name for source in self._sources]
        """names of the captures, in reading order"""
        self.stats = DecodeStats()
        self.bytes_total = size_of(self._sources)
        """stored bytes of all captures; None if one has no size"""
        self.read_before = 0
        """stored bytes of the finished captures"""
        self._source: Source | None = None
        self._stages: Stages | None = None
        self._findings: list[Finding] = []
        self._stopped = False
        self._table = _message_table(self.options)
        self._carried: list[Carried] = []
        self._clock = CaptureClock(steady)
        self._goes_on = self.options.follow
        """the capture is running; for standard input, known once it is idle"""
        self._overdue = Overdue(self.options.overdue_after) if self.options.overdue_after else None

    @property
    def bytes_read(self) -> int:
        """Stored bytes read so far."""
        return self.read_before + (self._source.bytes_read if self._source else 0)

    @property
    def now(self) -> int:
        """Capture time, ns since the epoch; 0: no packet read yet."""
        return self._clock.now

    def capture_name(self, packet: int) -> str:
        """Return the name of a packet's capture."""
        return self.sources[packet >> CAPTURE_SHIFT]

    def records(self) -> Iterator[list[ExchangeRecord]]:
        """Yield exchanges as rows, in the order they are settled; bodies are not kept."""
        for batch in self._exchanges(self._keep()):
            yield self.rows_of(batch)

    def exchanges(self) -> Iterator[list[Exchange]]:
        """Yield exchanges with both PDUs and their bodies, in the order they are settled."""
        yield from self._exchanges(KEEP_ALL)

    def commands(self) -> Iterator[list[CommandSeen]]:
        """Yield commands in packet order, as far as the limits of held commands allow."""
        options = self.options
        stages = CommandStages(
            options.decode_as,
            options.shard,
            options.shards,
            options.conversations,
            # Live, a command out of order is better than one that never comes.
            WATCHED_PATIENCE if options.follow or self.bytes_total is None else 0,
            self._secrets,
        )
        limited = self._is_limited()
        for _ in self._drive(stages):
            commands = stages.take_commands()
            if limited:
                commands = [
                    command for command in commands if self._in_time(command.request or command.pdu)
                ]
            yield commands

    def add_findings(self, findings: list[Finding]) -> None:
        """Add the findings of one step, possibly none, in an order independent of the shards."""
        findings.sort(key=_place_of)
        counts = self.stats.finding_counts
        for info in findings:
            counts[info.kind] = counts.get(info.kind, 0) + 1
        self._findings += findings
        if len(self._findings) > MAX_FINDINGS:  # nobody takes them; half at once is cheaper
            del self._findings[MAX_FINDINGS // 2 :]

    def stop(self) -> None:
        """Stop reading: finish as if the captures ended here."""
        self._stopped = True

    def take_findings(self) -> list[Finding]:
        """Return the findings since the last call."""
        findings, self._findings = self._findings, []
        return findings

    def take_messages(self) -> list[Carried]:
        """Return the messages of the exchanges whose rows came since the last call.

        Empty unless requested in the options; in the order of the exchanges.
        """
        messages, self._carried = self._carried, []
        return messages

    def counted_exchanges(self) -> Iterator[list[Exchange]]:
        """Yield exchanges in the order they are settled; bodies are counted and not kept."""
        return self._exchanges(KEEP_MESSAGES)

    def message_lines(self) -> Iterator[Lines]:
        """Yield message rows as JSON lines, chunk by chunk.

        The options must request messages without bodies.
        """
        from .exchange_forms import MessageCollector

        assert self._table is not None
        lines = self._table.as_lines()
        findings: list[Finding] = []
        collector = MessageCollector(self.sources, findings)
        for batch in self._exchanges(KEEP_MESSAGES):
            for exchange in batch:
                collector.give(exchange, self._table)
            if findings:
                self.add_findings(findings)
                findings.clear()
            count = lines.waiting
            yield Lines([lines.take()], [count])

    def take_conversations(self) -> list[ConversationRecord]:
        """Return the rows of connections that ended since the last call, by number.

        Empty unless requested in the options. At the end it includes those still open.
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
        """Return the unsettled requests and connections of a running capture, as provisional rows.

        Call between two batches of exchanges. Exchanges already emitted are not included.
        """
        stages, clock = self._stages, self._clock
        if stages is None or not clock.now:
            return Pending(0, [], [])
        waiting = spread(stages.matcher.waiting_since(clock.now))
        requests = self._provisional_rows([Exchange(pdu, None) for pdu in waiting])
        connections = []
        for conversation in latest(stages.table.open_conversations()):
            row = conversation_row_of(conversation)
            if row.end == NO_RESPONSE and row.syns < 2 and clock.now - row.start_time < CONNECTING:
                continue  # its response may still come
            row.capture = self.sources[conversation.first_packet >> CAPTURE_SHIFT]
            connections.append(row)
        return Pending(clock.now, requests, connections)

    def take_overdue(self) -> list[ExchangeRecord]:
        """Return the requests that became overdue since the last call, as unanswered.

        Their exchanges still come when settled, possibly with a response.
        """
        stages, overdue = self._stages, self._overdue
        if stages is None or overdue is None or not (self._goes_on and self._clock.now):
            return []
        waiting = overdue.found(stages.matcher, self._clock.now)
        if self._is_limited():
            waiting = [exchange for exchange in waiting if self._in_time(exchange.request)]
        return self._provisional_rows(waiting)

    def stayed_overdue(self) -> set[tuple[int, int | None]]:
        """Return conversation and packet of exchanges in the last batch that remained unanswered.

        Only those that were already emitted as overdue.
        """
        stayed = self._overdue.stayed if self._overdue is not None else ()
        return {(int(pdu.conversation), packet_number(pdu.packet)) for pdu in stayed}

    def _provisional_rows(self, waiting: list[Exchange]) -> list[ExchangeRecord]:
        findings: list[Finding] = []
        rows = records_of(waiting, self.sources, findings)
        if findings:
            self.add_findings(findings)
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
                exchanges = [
                    exchange
                    for exchange in exchanges
                    if self._in_time(exchange.request or exchange.response)
                ]
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
        """Return which bodies the rows need."""
        return KEEP_ALL if self.options.messages and self.options.body_limit else KEEP_MESSAGES

    def rows_of(self, batch: list[Exchange]) -> list[ExchangeRecord]:
        """Return the rows of exchanges; collect their messages and findings."""
        findings: list[Finding] = []
        rows = records_of(batch, self.sources, findings)
        if self._table is not None:
            self._make_messages(self._table, batch, rows, findings)
        self.add_findings(findings)
        return rows

    def _make_messages(
        self,
        table: MessageTable,
        batch: list[Exchange],
        rows: list[ExchangeRecord],
        findings: list[Finding],
    ) -> None:
        """Build the messages of exchanges and collect them."""
        for exchange, row in zip(batch, rows, strict=True):
            messages = table.rows_of(exchange.request, exchange.response, row, findings)
            if messages:
                self._carried.append(Carried(row, messages))

    def _drive(self, stages: Stages) -> Iterator[None]:
        """Feed the stages; yield after each chunk, and once after the end."""
        if self._stages is not None:
            raise RuntimeError("a Decode is iterated once")
        self._stages = stages
        for index, source in enumerate(self._sources):
            if index and self._stopped:
                break
            yield from self._read(stages, index, source)
        stages.finish()
        self._collect_findings(stages, left_out_of(self._secrets))
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
            # The segment reader counts over all captures.
            stats.skipped = increase(skipped_before, stages.segments.skipped)
            self._count(stages)

    def _until_stopped(self, source: Source) -> Iterator[bytes]:
        """Yield the chunks of a capture; what was read before the stop is decoded."""
        for chunk in source.chunks():
            yield chunk
            if self._stopped:
                return

    def _read_chunks(
        self, stages: Stages, index: int, source: Source, stats: CaptureStats
    ) -> Iterator[None]:
        head = b""
        reader: CaptureReader | None = None
        idle = 0
        for chunk in self._until_stopped(source):
            idle = 0 if chunk else idle + 1
            # Equal, not more: once per pause.
            if idle == IDLE_LOOKS:
                stages.release_holes()
            if reader is None:
                stats.compression = source.compression
                head += chunk
                # A pipe or a followed file may deliver less than a file header at first.
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
            # Secrets and marks of a chunk must be known before its packets are decoded.
            self._take_secrets(reader)
            _take_marks(reader, stages)
            _receive(stages, stats, packets, reader.packets, size)
            self._note_time(stages, packets, idle)
            self._collect_findings(stages, reader.take_findings())
            yield
        if reader is None:
            if not self._stopped:
                self._refuse(source, head)
            return
        if not self._stopped:
            size = reader.waiting
            packets = reader.finish(source.problem)
            _take_marks(reader, stages)
            _receive(stages, stats, packets, reader.packets, size)
        self._collect_findings(stages, reader.take_findings())

    def _note_time(self, stages: Stages, packets: list[Packet], idle: int) -> None:
        """Advance the time of a running capture: end connections, release holes."""
        clock = self._clock
        if packets:
            clock.note(packets[-1].ts)
        elif idle:
            # An idle pipe may carry an old capture slowly: only recent packets show a running one.
            self._goes_on = self._goes_on or clock.is_recent()
            if self._goes_on:
                clock.note_idle()
        if self._goes_on and clock.ticked():
            stages.release_quiet_holes(clock.now - QUIET)
            stages.sweep(clock.now, stages.packets)

    def _take_secrets(self, reader: CaptureReader) -> None:
        """Add the secrets in a capture before the packets that need them."""
        for text in reader.secrets:
            self._secrets.add_from_capture(text)
        reader.secrets.clear()

    def _refuse(self, source: Source, head: bytes) -> None:
        """Report a file that is not a capture: an error if it is the only one, else a finding."""
        reason, hint = what_it_is(head, source.problem)
        if len(self.sources) == 1:
            raise CaptureError(source.name, reason, 0, hint)
        detail = f"{source.name}: {reason}"
        self.add_findings([Finding(FindingKind.CAPTURE_DAMAGED, detail, 0, 0, -1, 0)])

    def _collect_findings(self, stages: Stages, findings: list[Finding]) -> None:
        """Collect the findings of one chunk."""
        findings += stages.take_findings()
        self.add_findings(findings)

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

    def _in_time(self, pdu: Pdu | None) -> bool:
        """Return whether the first PDU of an exchange is in the requested time range."""
        since, until = self.options.since, self.options.until
        if pdu is None:
            return False
        return (since is None or pdu.ts >= since) and (until is None or pdu.ts < until)


def _message_table(options: DecodeOptions) -> MessageTable | None:
    """Return a message table, or None; imported only on demand."""
    if not options.messages:
        return None
    from ..message_rows.message_table import MessageTable

    return MessageTable(options.body_limit)


def _take_marks(reader: CaptureReader, stages: Stages) -> None:
    """Pass on fault marks of a capture before their packets."""
    if reader.marks:
        stages.marks.update(reader.marks)
        reader.marks.clear()
    while len(stages.marks) > MAX_MARKS:  # of packets without a command
        del stages.marks[next(iter(stages.marks))]


def _receive(
    stages: Stages, stats: CaptureStats, packets: list[Packet], so_far: int, size: int
) -> None:
    """Process packets from `size` bytes; `so_far` counts packets read, with other shards."""
    passed = so_far - stats.packets - len(packets)
    if packets:
        stats.packets = so_far
        stats.first_ts = packets[0].ts if stats.first_ts is None else stats.first_ts
        stats.last_ts = packets[-1].ts
    stages.receive(packets, passed, size)


def _place_of(info: Finding) -> tuple[int, int, int, str]:
    return info.packet, info.conversation, info.offset, info.kind.name
