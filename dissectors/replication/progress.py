"""Replication between brokers: what a slave fetched from its master, and how far behind it was.

An HA connection is recognised by its framing, never by its port: a transfer of which the data is
a stored message with the transfer's own physical offset; headers of which each continues the one
before; an AutoSwitch handshake with its answer; or, while nothing is sent, heartbeats and reports
that agree. Until then up to four readings of a conversation are tried side by side (classic or
AutoSwitch, either end the master), and each is dropped with the first bytes that contradict it.
Memory does not depend on what is transferred.

RocketMQ: DefaultHAClient, DefaultHAConnection, AutoSwitchHAClient, AutoSwitchHAConnection.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from ..expert import ExpertInfo, ExpertKind
from ..histogram import Histogram
from .layouts import MIN_RECORD, HaState, Header
from .passed import Passed, Point
from .streams import MasterStream, SlaveStream

CLASSIC: Final = "classic"
AUTO_SWITCH: Final = "autoswitch"
MAX_UNREPORTED: Final = 64
"""most transfers that wait for their report; the lag of those that come then is not measured"""
IDLE_ROUNDS: Final = 3
"""equal reports and heartbeats that are believed while nothing is transferred"""
MAX_REPLICATIONS: Final = 4096
"""connections that are listed; more are counted"""
MAX_EPOCHS: Final = 64
"""epochs that are listed, the newest"""
MAX_BAD: Final = 100
"""findings of one connection"""


@dataclass(frozen=True, slots=True)
class Replication:
    """One connection between a slave and its master."""

    conversation: int
    """number of the conversation"""
    kind: str
    """`classic` or `autoswitch`"""
    master: str
    """`address:port`"""
    slave: str
    """`address:port`"""
    slave_id: str | None
    """broker id, or address, that an AutoSwitch slave gave in its handshake"""
    state: str
    """last state that either end said, HAConnectionState; a classic one is always TRANSFER"""
    first_time: int
    """time of the first message, nanoseconds since the epoch"""
    last_time: int
    """time of the last message"""
    first_offset: int | None
    """physical offset of the first byte transferred; None: nothing was transferred"""
    last_offset: int | None
    """physical offset behind the last one"""
    bytes: int
    """commit log bytes captured"""
    missing: int
    """commit log bytes that were transferred and not captured"""
    transfers: int
    """transfers captured, whole or in part"""
    largest_transfer: int
    """bytes of the largest"""
    heartbeats: int
    """transfers of nothing"""
    reports: int
    """reports of the slave"""
    acknowledged: int | None
    """the last offset reported; None: no report was captured"""
    lag_bytes: int | None
    """bytes transferred and not yet reported, at the end; None: no report was captured"""
    largest_lag_bytes: int | None
    """the most that it was; a report that the capture does not have makes it larger"""
    lags: int
    """transfers of which the report that covers them was captured"""
    lag_p50_us: int | None
    """median time from a transfer to that report, microseconds"""
    largest_lag_us: int | None
    """the longest"""
    gaps: int
    """holes in both streams"""
    epochs: tuple[tuple[int, int], ...]
    """epochs seen and the physical offset where each begins"""
    confirm_offset: int | None
    """the last confirm offset of an AutoSwitch master"""
    transferred: tuple[Point, ...] = field(default=(), compare=False)
    """offsets behind whole transfers, and when; at most 256 over all of the time"""
    reported: tuple[Point, ...] = field(default=(), compare=False)
    """offsets that the slave reported, and when; as many"""


def first_of(found: list[Replication]) -> list[Replication]:
    """Return those that are listed, by number of the conversation."""
    return sorted(found, key=attrgetter("conversation"))[:MAX_REPLICATIONS]


@dataclass(slots=True)
class _Seen:
    """What a reading has counted, and what speaks for it."""

    slave_id: str | None = None
    state: int = HaState.TRANSFER
    first_ts: int = 0
    last_ts: int = 0
    first: int | None = None
    """physical offset of the first byte"""
    last: int = 0
    """physical offset behind the last byte"""
    complete_to: int = 0
    """physical offset behind the last whole transfer"""
    expected: int = -1
    """physical offset of the next header; -1: there was none yet"""
    size: int = 0
    """of the last header"""
    bytes: int = 0
    missing: int = 0
    transfers: int = 0
    largest: int = 0
    heartbeats: int = 0
    reports: int = 0
    acknowledged: int | None = None
    largest_lag: int = 0
    unreported: deque[tuple[int, int]] = field(default_factory=deque)
    """end and time of transfers that wait for their report"""
    lags: Histogram = field(default_factory=Histogram)
    epochs: dict[int, int] = field(default_factory=dict)
    confirm: int = -1
    records: int = 0
    """transfers that begin with a stored message of their offset"""
    links: int = 0
    """headers that continue a transfer"""
    beat: int = -1
    """offset of the last heartbeat"""
    beats: int = 0
    """heartbeats in a row that have it"""
    agreeing: int = 0
    """reports in a row that are equal"""
    answered: bool = False
    """the master has listed epochs"""
    transferred: Passed = field(default_factory=Passed)
    reported: Passed = field(default_factory=Passed)


class Reading:
    """A conversation read as replication: one kind, one end the master. A `Listener`."""

    def __init__(self, conversation: int, auto_switch: bool, master_first: bool) -> None:
        self.master_first = master_first
        """the first direction of the conversation is the master's"""
        self.refuted = False
        """it cannot be read like this"""
        self.certain = False
        """nothing else looks like this"""
        self.experts: list[ExpertInfo] = []
        """where findings are put, once it is certain"""
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
        """Receive the next bytes of a direction; `started`: offset 0 is where the stream begins."""
        stream = self._master if first == self.master_first else self._slave
        if not stream.begun:
            stream.synchronized = started and offset == 0
            self._whole = self._whole and stream.synchronized
        stream.receive(data, offset, packet, ts)

    def receive_gap(self, first: bool, length: int) -> None:
        """Note bytes of a direction that the capture does not have; 0: how many is not known."""
        self.gaps += 1
        self._whole = False
        if first == self.master_first:
            self._master.receive_gap(length)
        else:
            self._slave.receive_gap(length)
            self._seen.unreported.clear()  # the report that covers them may be among what is lost

    def value(self, first: str, second: str) -> Replication:
        """Return what is known by now; the arguments are the senders of both directions."""
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

    # -- what the streams tell ------------------------------------------------------------------

    def header(self, header: Header, packet: int, ts: int, adrift: bool) -> bool:
        """Begin a transfer or heartbeat."""
        expected = self._seen.expected
        if expected >= 0 and header.offset != expected:
            detail = f"offset {header.offset}, expected {expected}"
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
        """Handle the start of a transfer: a stored message that has its offset."""
        self._seen.records += 1
        self._judge()

    def complete(self, ts: int | None) -> None:
        """Handle a transfer that is whole."""
        self._seen.complete_to = self._seen.last
        if ts is not None:
            self._note(ts)
            self._seen.transferred.note(self._seen.last, ts)
        behind = self._lag_bytes()
        self._seen.largest_lag = max(self._seen.largest_lag, behind)
        if ts is not None and behind and len(self._seen.unreported) < MAX_UNREPORTED:
            self._seen.unreported.append((self._seen.last, ts))

    def report(self, offset: int, state: int, packet: int, ts: int) -> bool:
        """Note the slave's largest offset; return False where it cannot be."""
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

    def answer(self, entries: list[tuple[int, int]]) -> None:
        """Handle the master's list of epochs."""
        self._seen.answered = self._seen.answered or len(entries) > 0
        self._seen.state = HaState.HANDSHAKE
        for epoch, start in entries[-MAX_EPOCHS:]:
            self._note_epoch(epoch, start)
        self._judge()

    def bad(self, detail: str, packet: int, ts: int, offset: int) -> None:
        """Handle bytes that can be no message: nothing that is not certain survives them."""
        if self.certain:
            self._say(detail, packet, ts, offset)
        elif self._whole:
            self.refuted = True
        else:
            self._seen = _Seen()

    # -- inside ---------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Judge whether what was seen by now can be nothing else."""
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
        """Return the bytes transferred and not yet reported; a slave that has nothing reports 0."""
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
            kind = ExpertKind.BAD_REPLICATION
            self.experts.append(ExpertInfo(kind, detail, ts, packet, self._conversation, offset))
