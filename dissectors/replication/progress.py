"""Replication between brokers: what a slave fetched from its master, and its lag.

An HA connection is recognised by its framing, never by its port (`Reading`). Memory is independent
of the amount of data.
RocketMQ: DefaultHAClient, DefaultHAConnection, AutoSwitchHAClient, AutoSwitchHAConnection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, final

from ..findings import Finding, FindingKind
from ..histogram import Histogram
from .layouts import MIN_RECORD, HaState, Header
from .streams import MasterStream, SlaveStream

MOST_POINTS: Final = 256
"""maximum points of a list"""

Point = tuple[int, int]
"""commit log offset, and a time (ns since the epoch) by which everything before it was passed"""


@final
class Passed:
    """Increasing offsets, each with its time: a bounded list of points.

    When full, every second point is dropped, so the list spans the whole capture and gives upper
    bounds.
    """

    __slots__ = ("_points", "_skip", "_step")

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._step = 1
        self._skip = 0

    @property
    def points(self) -> tuple[Point, ...]:
        """The points, in order."""
        return tuple(self._points)

    def note(self, offset: int, ts: int) -> None:
        """Add an offset, if it is beyond the last one."""
        points = self._points
        if points and offset <= points[-1][0]:
            return
        self._skip += 1
        if self._skip < self._step:
            return
        self._skip = 0
        points.append((offset, ts))
        if len(points) > MOST_POINTS:
            del points[::2]
            self._step *= 2


def passed_at(points: Sequence[Sequence[int]], offset: int) -> int | None:
    """Return a time by which `offset` was passed, or None if that was not captured."""
    return next((ts for beyond, ts in points if beyond > offset), None)


CLASSIC: Final = "classic"
AUTO_SWITCH: Final = "autoswitch"
MAX_UNREPORTED: Final = 64
"""maximum unreported transfers; the lag of further ones is not measured"""
IDLE_ROUNDS: Final = 3
"""equal reports and heartbeats needed to recognise an idle connection"""
MAX_REPLICATIONS: Final = 4096
"""maximum listed connections; more are only counted"""
MAX_EPOCHS: Final = 64
"""maximum listed epochs, the newest ones"""
MAX_BAD: Final = 100
"""maximum findings of a connection"""


@dataclass(frozen=True, slots=True)
class Replication:
    """A connection between a slave and its master."""

    conversation: int
    """number of the conversation"""
    kind: str
    """`classic` or `autoswitch`"""
    master: str
    """`address:port`"""
    slave: str
    """`address:port`"""
    slave_id: str | None
    """broker id or address in the handshake of an AutoSwitch slave"""
    state: str
    """last HAConnectionState of either end; TRANSFER for classic ones"""
    first_time: int
    """time of the first message, nanoseconds since the epoch"""
    last_time: int
    """time of the last message"""
    first_offset: int | None
    """physical offset of the first transferred byte; null: nothing was transferred"""
    last_offset: int | None
    """physical offset after the last transferred byte"""
    bytes: int
    """commit log bytes captured"""
    missing: int
    """transferred commit log bytes that were not captured"""
    transfers: int
    """transfers captured, at least in part"""
    largest_transfer: int
    """bytes of the largest transfer"""
    heartbeats: int
    """empty transfers"""
    reports: int
    """reports of the slave"""
    acknowledged: int | None
    """last reported offset; null: no report was captured"""
    lag_bytes: int | None
    """bytes transferred but not reported at the end; null: no report was captured"""
    largest_lag_bytes: int | None
    """maximum of these bytes; uncaptured reports make it larger"""
    lags: int
    """transfers with a captured report that covers them"""
    lag_p50_us: int | None
    """median time from a transfer to its report, microseconds"""
    largest_lag_us: int | None
    """maximum of these times"""
    gaps: int
    """holes in both streams"""
    epochs: tuple[tuple[int, int], ...]
    """epochs and their start offsets"""
    confirm_offset: int | None
    """last confirm offset of an AutoSwitch master"""
    transferred: tuple[Point, ...] = field(default=(), compare=False)
    """end offsets and times of complete transfers; at most 256, over the whole capture"""
    reported: tuple[Point, ...] = field(default=(), compare=False)
    """reported offsets and times; at most as many"""


def first_of(replications: list[Replication]) -> list[Replication]:
    """Return the listed connections, by conversation number."""
    return sorted(replications, key=attrgetter("conversation"))[:MAX_REPLICATIONS]


@dataclass(slots=True)
class _Seen:
    """Counters and evidence of a reading."""

    slave_id: str | None = None
    state: int = HaState.TRANSFER
    first_ts: int = 0
    last_ts: int = 0
    first: int | None = None
    """physical offset of the first byte"""
    last: int = 0
    """physical offset after the last byte"""
    complete_to: int = 0
    """physical offset after the last complete transfer"""
    expected: int = -1
    """physical offset of the next header; -1 before the first one"""
    size: int = 0
    """size in the last header"""
    bytes: int = 0
    missing: int = 0
    transfers: int = 0
    largest: int = 0
    heartbeats: int = 0
    reports: int = 0
    acknowledged: int | None = None
    largest_lag: int = 0
    unreported: deque[tuple[int, int]] = field(default_factory=deque)
    """end and time of unreported transfers"""
    lags: Histogram = field(default_factory=Histogram)
    epochs: dict[int, int] = field(default_factory=dict)
    confirm: int = -1
    records: int = 0
    """transfers that begin with a stored message at their offset"""
    links: int = 0
    """headers that continue a transfer"""
    beat: int = -1
    """offset of the last heartbeat"""
    beats: int = 0
    """consecutive heartbeats with that offset"""
    agreeing: int = 0
    """consecutive equal reports"""
    answered: bool = False
    """the master has sent its epochs"""
    transferred: Passed = field(default_factory=Passed)
    reported: Passed = field(default_factory=Passed)


class Reading:
    """A conversation read as replication of one kind, with one end as master. A `Listener`."""

    def __init__(self, conversation: int, auto_switch: bool, master_first: bool) -> None:
        self.master_first = master_first
        """the master sends the first direction"""
        self.refuted = False
        """the conversation contradicts this reading"""
        self.certain = False
        """the conversation matches no other reading"""
        self.findings: list[Finding] = []
        """list for findings, once certain"""
        self.gaps = 0
        self._conversation = conversation
        self._auto = auto_switch
        self._whole = True
        self._said = 0
        self._seen = _Seen()
        self._master = MasterStream(auto_switch, self)
        self._slave = SlaveStream(auto_switch, self)

    def receive(
        self, first: bool, data: bytes, offset: int, packet: int, ts: int, started: bool
    ) -> None:
        """Receive the next bytes of a direction; `started`: the stream begins at offset 0."""
        stream = self._master if first == self.master_first else self._slave
        if not stream.begun:
            stream.synchronized = started and offset == 0
            self._whole = self._whole and stream.synchronized
        stream.receive(data, offset, packet, ts)

    def receive_gap(self, first: bool, length: int) -> None:
        """Note a hole in a direction; length 0: unknown."""
        self.gaps += 1
        self._whole = False
        if first == self.master_first:
            self._master.receive_gap(length)
        else:
            self._slave.receive_gap(length)
            self._seen.unreported.clear()  # the report may be in the hole

    def value(self, first: str, second: str) -> Replication:
        """Return the current state; the arguments are the senders of both directions."""
        known = self._seen.acknowledged is not None
        ends = (first, second) if self.master_first else (second, first)
        return Replication(
            conversation=self._conversation,
            kind=AUTO_SWITCH if self._auto else CLASSIC,
            master=ends[0],
            slave=ends[1],
            slave_id=self._seen.slave_id,
            state=HaState(self._seen.state).name,
            first_time=self._seen.first_ts,
            last_time=self._seen.last_ts,
            first_offset=self._seen.first,
            last_offset=self._seen.last if self._seen.first is not None else None,
            bytes=self._seen.bytes,
            missing=self._seen.missing,
            transfers=self._seen.transfers,
            largest_transfer=self._seen.largest,
            heartbeats=self._seen.heartbeats,
            reports=self._seen.reports,
            acknowledged=self._seen.acknowledged,
            lag_bytes=self._lag_bytes() if known else None,
            largest_lag_bytes=self._seen.largest_lag if known else None,
            lags=self._seen.lags.count,
            lag_p50_us=self._seen.lags.percentile(50),
            largest_lag_us=self._seen.lags.maximum,
            gaps=self.gaps,
            epochs=tuple(sorted(self._seen.epochs.items())),
            confirm_offset=self._seen.confirm if self._seen.confirm >= 0 else None,
            transferred=self._seen.transferred.points,
            reported=self._seen.reported.points,
        )

    # -- stream events --------------------------------------------------------------------------

    def header(self, header: Header, packet: int, ts: int, adrift: bool) -> bool:
        """Begin a transfer or heartbeat."""
        expected = self._seen.expected
        if expected >= 0 and header.offset != expected:
            detail = f"offset {header.offset}, expected {expected}"
            # After a loss, a larger offset only tells how much is missing.
            if not self.certain and (not adrift or header.offset < expected):
                self.bad(detail, packet, ts, -1)
                if not adrift:
                    return False
            elif not adrift or header.offset < expected:
                self._say(detail, packet, ts, -1)
        elif expected >= 0 and self._seen.size and not adrift:
            self._seen.links += 1
        if self._seen.first is not None and header.offset >= 0:
            if adrift and header.offset > self._seen.last:
                self._seen.missing += header.offset - self._seen.last
            self._seen.last = header.offset
        self._note(ts)
        self._seen.state = header.state
        self._seen.expected = header.offset + header.size
        self._seen.size = header.size
        if header.epoch >= 0:
            self._note_epoch(header.epoch, header.epoch_start)
        self._seen.confirm = max(self._seen.confirm, header.confirm)
        if header.size:
            self._seen.transfers += 1
            self._seen.largest = max(self._seen.largest, header.size)
            if self._seen.first is None:
                self._seen.first = header.offset
                self._seen.last = header.offset
                self._seen.complete_to = header.offset
        else:
            self._seen.heartbeats += 1
            self._seen.beats = self._seen.beats + 1 if self._seen.beat == header.offset else 1
            self._seen.beat = header.offset
        self._judge()
        return True

    def data(self, length: int, missing: bool) -> None:
        """Count bytes of a transfer."""
        self._seen.last += length
        if missing:
            self._seen.missing += length
        else:
            self._seen.bytes += length

    def record(self) -> None:
        """Handle a transfer that starts with a stored message at its offset."""
        self._seen.records += 1
        self._judge()

    def complete(self, ts: int | None) -> None:
        """Handle a complete transfer."""
        self._seen.complete_to = self._seen.last
        if ts is not None:
            self._note(ts)
            self._seen.transferred.note(self._seen.last, ts)
        behind = self._lag_bytes()
        self._seen.largest_lag = max(self._seen.largest_lag, behind)
        if ts is not None and behind and len(self._seen.unreported) < MAX_UNREPORTED:
            self._seen.unreported.append((self._seen.last, ts))

    def report(self, offset: int, state: int, packet: int, ts: int) -> bool:
        """Record the slave's largest offset; return False if it is impossible."""
        before = self._seen.acknowledged
        if before is not None and offset < before:
            if not self.certain:
                return False
            self._say(f"report of {offset} after {before}", packet, ts, -1)
        self._note(ts)
        self._seen.state = state
        self._seen.reports += 1
        self._seen.agreeing = self._seen.agreeing + 1 if offset == before else 1
        self._seen.acknowledged = offset
        self._seen.reported.note(offset, ts)
        waiting = self._seen.unreported
        while waiting and waiting[0][0] <= offset:
            self._seen.lags.add(max(ts - waiting.popleft()[1], 0) // 1000)
        self._judge()
        return True

    def handshake(self, slave: str) -> None:
        """Handle the handshake of the slave."""
        self._seen.slave_id = slave
        self._seen.state = HaState.HANDSHAKE
        self._judge()

    def respond(self, entries: list[tuple[int, int]]) -> None:
        """Handle the master's list of epochs."""
        self._seen.answered = self._seen.answered or len(entries) > 0
        self._seen.state = HaState.HANDSHAKE
        for epoch, start in entries[-MAX_EPOCHS:]:
            self._note_epoch(epoch, start)
        self._judge()

    def bad(self, detail: str, packet: int, ts: int, offset: int) -> None:
        """Handle invalid bytes, which refute a reading that is not certain."""
        if self.certain:
            self._say(detail, packet, ts, offset)
        elif self._whole:
            self.refuted = True
        else:  # bytes were lost, so the stream may have been read from a wrong place
            self._seen = _Seen()

    # -- internals ------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Decide whether the evidence so far makes this reading certain."""
        # A transfer whose data is a stored message with its physical offset; headers that continue
        # each other; an AutoSwitch handshake with its response; on an idle connection, heartbeats
        # and reports that agree.
        if self.certain:
            return
        idle = (
            self._seen.beats >= IDLE_ROUNDS
            and self._seen.agreeing >= IDLE_ROUNDS
            and self._seen.beat >= MIN_RECORD
            and self._seen.beat == self._seen.acknowledged
        )
        handshake = self._seen.answered and self._seen.slave_id is not None
        self.certain = self._seen.records > 0 or self._seen.links >= 2 or idle or handshake

    def _lag_bytes(self) -> int:
        """Return the bytes transferred but not reported; a slave without data reports 0."""
        if self._seen.first is None:
            return 0
        return max(self._seen.complete_to - max(self._seen.acknowledged or 0, self._seen.first), 0)

    def _note(self, ts: int) -> None:
        if not self._seen.first_ts or ts < self._seen.first_ts:
            self._seen.first_ts = ts
        self._seen.last_ts = max(self._seen.last_ts, ts)

    def _note_epoch(self, epoch: int, start: int) -> None:
        if epoch not in self._seen.epochs:
            self._seen.epochs[epoch] = start
            if len(self._seen.epochs) > MAX_EPOCHS:
                del self._seen.epochs[min(self._seen.epochs)]

    def _say(self, detail: str, packet: int, ts: int, offset: int) -> None:
        self._said += 1
        if self._said <= MAX_BAD:
            kind = FindingKind.BAD_REPLICATION
            self.findings.append(Finding(kind, detail, ts, packet, self._conversation, offset))


class ReplicationFinder:
    """Tries the four readings of an unknown conversation in parallel.

    Each is dropped at the first bytes that contradict it.
    """

    def __init__(self, conversation: int) -> None:
        self._readings = [
            Reading(conversation, auto_switch, master_first)
            for auto_switch in (False, True)
            for master_first in (False, True)
        ]

    @property
    def possible(self) -> bool:
        """Whether a reading is left."""
        return len(self._readings) > 0

    def receive(
        self, first: bool, data: bytes, offset: int, packet: int, ts: int, started: bool
    ) -> Reading | None:
        """Receive the next bytes of a direction; return the reading that becomes certain."""
        for reading in self._readings:
            reading.receive(first, data, offset, packet, ts, started)
            if reading.certain:
                return reading
        self._readings = [left for left in self._readings if not left.refuted]
        return None

    def receive_gap(self, first: bool, length: int) -> None:
        """Note a hole in a direction; length 0: unknown."""
        for reading in self._readings:
            reading.receive_gap(first, length)
