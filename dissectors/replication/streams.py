"""The two byte streams of a broker's HA connection, sans-IO: slave and master.

Each stream receives data and gaps and notifies a `Listener`. Commit log bytes are counted, not
kept. After a loss, the master's stream is searched for a certain header: the record after it has
its physical offset, or the next header continues it.
RocketMQ: DefaultHAClient, DefaultHAConnection, AutoSwitchHAClient, AutoSwitchHAConnection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from .layouts import (
    AUTO_HEADER,
    AUTO_REPORT,
    CLASSIC_HEADER,
    CLASSIC_REPORT,
    HANDSHAKE,
    INT,
    MAX_OFFSET,
    MIN_RECORD,
    OLD_HANDSHAKE,
    RECORD_HEAD,
    RECORD_MAGIC,
    HaState,
    Header,
    entries_of,
    is_auto_switch_at,
    is_record_at,
    need_of_response,
    read_auto_switch,
    read_classic,
    slave_of,
)

MAX_CANDIDATES: Final = 8
"""maximum header candidates at a time"""


class Listener(Protocol):
    """Receives the events of a connection's streams."""

    def header(self, header: Header, packet: int, ts: int, adrift: bool) -> bool:
        """Begin a transfer or heartbeat; `adrift`: bytes before it were lost. Return False if it is
        impossible.
        """

    def data(self, length: int, missing: bool) -> None:
        """Handle bytes of the transfer; `missing`: not captured."""

    def record(self) -> None:
        """Handle a transfer that starts with a stored message at its offset."""

    def complete(self, ts: int | None) -> None:
        """Handle a transfer complete at this time, or None if its last bytes were not captured."""

    def report(self, offset: int, state: int, packet: int, ts: int) -> bool:
        """Handle the slave's largest offset; return False if it is impossible."""

    def handshake(self, slave: str) -> None:
        """Handle the handshake of the slave."""

    def respond(self, entries: list[tuple[int, int]]) -> None:
        """Handle the master's epochs with their start offsets."""

    def bad(self, detail: str, packet: int, ts: int, offset: int) -> None:
        """Handle invalid bytes; `offset` is that in the stream."""


class _Candidate:
    """A possible header, confirmed if the next header continues it."""

    __slots__ = ("at", "done_ts", "header", "next", "packet", "ts")

    def __init__(self, at: int, size: int, header: Header, packet: int, ts: int) -> None:
        self.at = at
        self.header = header
        self.next = at + size + header.size
        self.packet = packet
        self.ts = ts
        self.done_ts = -1


class MasterStream:
    """Stream of a master: transfers and heartbeats, in AutoSwitch after a handshake."""

    def __init__(self, auto_switch: bool, listener: Listener) -> None:
        self.synchronized = False
        """the next byte is known to belong to a message"""
        self.begun = False
        """a byte or a hole was received"""
        self._auto = auto_switch
        self._size = AUTO_HEADER.size if auto_switch else CLASSIC_HEADER.size
        self._read: Callable[[bytes, int], Header | None]
        self._read = read_auto_switch if auto_switch else read_classic
        self._listener = listener
        self._head = b""
        self._record: bytes | None = None
        self._offset = 0
        self._left = 0
        self._adrift = False
        self._window = b""
        self._starts: list[int] = []
        self._shift: int | None = None
        self._candidates: list[_Candidate] = []

    def receive(self, data: bytes, offset: int, packet: int, ts: int) -> None:
        """Receive the next bytes of the stream, at `offset`."""
        self.begun = True
        at = 0
        while at < len(data):
            if self._left:
                at = self._receive_data(data, at, offset, ts)
            elif self.synchronized:
                at = self._receive_head(data, at, offset, packet, ts)
            else:
                rest = self._search(data[at:], offset + at, packet, ts)
                data, offset, at = rest, offset + len(data) - len(rest), 0

    def receive_gap(self, length: int) -> None:
        """Note bytes that were not captured; 0: unknown number."""
        self.begun = True
        if self._left and 0 < length <= self._left:  # inside a transfer: its end is known
            self._record = None
            self._left -= length
            self._listener.data(length, True)
            if not self._left:
                self._listener.complete(None)
            return
        if 0 < self._left < length:
            self._listener.data(self._left, True)
            self._listener.complete(None)
        self.lose()

    def lose(self) -> None:
        """Search for the boundary, which is lost."""
        self.synchronized = False
        self._adrift = True
        self._head = b""
        self._left = 0
        self._record = None
        self._forget_search()

    # -- internals ------------------------------------------------------------------------------

    def _receive_data(self, data: bytes, at: int, offset: int, ts: int) -> int:  # noqa: ARG002 - for those that read it
        take = min(self._left, len(data) - at)
        if self._record is not None:
            self._record += data[at : at + min(take, RECORD_HEAD - len(self._record))]
            if len(self._record) == RECORD_HEAD:
                if is_record_at(self._record, 0, self._offset):
                    self._listener.record()
                self._record = None
        self._left -= take
        self._listener.data(take, False)
        if not self._left:
            self._listener.complete(ts)
        return at + take

    def _receive_head(self, data: bytes, at: int, offset: int, packet: int, ts: int) -> int:
        take = min(self._need(self._head) - len(self._head), len(data) - at)
        head = self._head + data[at : at + take]
        at += take
        self._head = head
        if self._need(head) > len(head):
            return at
        self._head = b""
        if self._auto and INT.unpack_from(head)[0] == HaState.HANDSHAKE:
            self._receive_response(head, offset + at - len(head), packet, ts)
            return at
        header = self._read(head, 0)
        if header is None:
            detail = f"no header: {head[:20].hex()}"
            self._listener.bad(detail, packet, ts, offset + at - len(head))
            self.lose()
        else:
            self._begin(header, packet, ts)
        return at

    def _need(self, head: bytes) -> int:
        """Return the length of the message that begins so, as far as known."""
        if not self._auto or len(head) < 4:
            return 4 if self._auto else self._size
        if INT.unpack_from(head)[0] != HaState.HANDSHAKE:
            return self._size
        return need_of_response(head)

    def _receive_response(self, head: bytes, offset: int, packet: int, ts: int) -> None:
        entries = entries_of(head)
        if entries is None:
            self._listener.bad(f"no handshake: {head[:36].hex()}", packet, ts, offset)
            self.lose()
            return
        self._listener.respond(entries)

    def _begin(self, header: Header, packet: int, ts: int) -> None:
        """Begin a transfer with a certain header."""
        adrift = self._adrift
        self._adrift = False
        if not self._listener.header(header, packet, ts, adrift):
            self.lose()
            return
        self.synchronized = True
        self._offset = header.offset
        self._left = header.size
        self._record = b"" if header.size >= RECORD_HEAD else None

    def _search(self, data: bytes, offset: int, packet: int, ts: int) -> bytes:
        """Search for a certain header; return the bytes after it, or nothing."""
        self._starts.append(offset)
        window = self._window + data
        base = offset - len(self._window)
        begin = self._by_record(window)
        if begin >= 0:
            header = self._read(window, begin)
            if header is not None:
                self._forget_search()
                self._begin(header, packet, ts)
                return window[begin + self._size :]
        self._note_places(window, base, offset)
        candidate = self._by_chain(window, base, packet, ts)
        if candidate is not None:
            self._forget_search()
            self._begin(candidate.header, candidate.packet, candidate.ts)
            if self._left:
                self._left = 0
                self._record = None
                self._listener.data(candidate.header.size, False)
                self._listener.complete(candidate.done_ts)
            return window[candidate.next - base :]
        keep = self._size + RECORD_HEAD - 1
        self._window = window[-keep:]
        return b""

    def _by_record(self, window: bytes) -> int:
        """Return the place of a header followed by a stored message with its offset, or -1."""
        for match in RECORD_MAGIC.finditer(window):
            record = match.start() - 4
            at = record - self._size
            if at < 0 or record + RECORD_HEAD > len(window):
                continue
            header = self._read(window, at)
            if header is None or header.size < RECORD_HEAD:
                continue
            if is_record_at(window, record, header.offset) and not (
                not self._auto and is_auto_switch_at(window, record, header.offset)
            ):
                return at
        return -1

    def _note_places(self, window: bytes, base: int, offset: int) -> None:
        """Note header candidates inside a packet: bytes that contain the offset of their own place.

        A stored message tells the physical offset of each place up to the next header.
        """
        low = max(offset - base - self._size + 1, 0)
        for match in RECORD_MAGIC.finditer(window):
            record = match.start() - 4
            if record < 0 or record + RECORD_HEAD > len(window):
                continue
            physical: int = CLASSIC_REPORT.unpack_from(window, record + 28)[0]
            if 0 <= physical < MAX_OFFSET and is_record_at(window, record, physical):
                self._note_between(window, base, low, record)
                self._shift = physical - base - record
                low = max(low, record)
        self._note_between(window, base, low, len(window))

    def _note_between(self, window: bytes, base: int, low: int, high: int) -> None:
        """Note candidates in a range, by the stored message before it."""
        shift = self._shift
        if shift is None or base + low + shift < 0:
            return
        # The high bytes of the offset hardly ever change within the range, so they can be searched
        # for; then the whole offset is compared.
        field = 8 if self._auto else 0
        sign = CLASSIC_REPORT.pack(base + low + shift)[:5]
        at = window.find(sign, low + field, high + field)
        while at >= 0 and at + 8 <= len(window) and len(self._starts) < MAX_CANDIDATES:
            start = base + at - field
            if CLASSIC_REPORT.unpack_from(window, at)[0] == start + shift:
                self._starts.append(start)
            at = window.find(sign, at + 1, high + field)

    def _by_chain(self, window: bytes, base: int, packet: int, ts: int) -> _Candidate | None:
        """Return a header at the start of a packet that the next header continues."""
        end = base + len(window)
        waiting: list[int] = []
        for start in self._starts:
            if start + self._size > end:
                waiting.append(start)
                continue
            header = self._read(window, start - base)
            if header is not None and (header.size or header.offset >= MIN_RECORD):
                candidate = _Candidate(start, self._size, header, packet, ts)
                self._candidates.append(candidate)
        self._starts = waiting
        del self._candidates[:-MAX_CANDIDATES]
        for candidate in list(self._candidates):
            if candidate.done_ts < 0 and candidate.next <= end:
                candidate.done_ts = ts
            if candidate.next + self._size > end:
                continue
            following = self._read(window, candidate.next - base)
            if (
                following is not None
                and following.offset == candidate.header.offset + candidate.header.size
            ):
                return candidate
            self._candidates.remove(candidate)
        return None

    def _forget_search(self) -> None:
        self._window = b""
        self._starts = []
        self._shift = None
        self._candidates = []


class SlaveStream:
    """Stream of a slave: reports, in AutoSwitch after a handshake."""

    def __init__(self, auto_switch: bool, listener: Listener) -> None:
        self.synchronized = False
        """the next byte is known to belong to a message"""
        self.begun = False
        """a byte or a hole was received"""
        self._auto = auto_switch
        self._unit = AUTO_REPORT.size if auto_switch else CLASSIC_REPORT.size
        self._listener = listener
        self._head = b""
        self._skip = 0
        self._met = not auto_switch

    def receive(self, data: bytes, offset: int, packet: int, ts: int) -> None:
        """Receive the next bytes of the stream, at `offset`."""
        self.begun = True
        if not self.synchronized:
            if len(data) % self._unit:  # wait for a packet of whole reports, as slaves write them
                return
            self.synchronized = True
        at = min(self._skip, len(data))
        self._skip -= at
        while at < len(data) and self.synchronized:
            need = self._need(self._head)
            take = min(need - len(self._head), len(data) - at)
            self._head += data[at : at + take]
            at += take
            if self._need(self._head) > len(self._head):
                continue
            head, self._head = self._head, b""
            self._take(head, offset + at - len(head), packet, ts)

    def receive_gap(self, length: int) -> None:
        """Note bytes that were not captured; 0: unknown number."""
        self.begun = True
        known = length > 0 and self.synchronized and self._met
        if not known or self._need(self._head) > self._unit:
            self.lose()  # message boundaries are unknown
            return
        # All reports have the same length, so the next one begins after a multiple of it.
        behind = (len(self._head) + length - self._skip) % self._unit
        self._head = b""
        self._skip = -behind % self._unit

    def lose(self) -> None:
        """Search for the boundary: a packet of whole reports restores it."""
        self.synchronized = False
        self._head = b""
        self._skip = 0

    def _need(self, head: bytes) -> int:
        if not self._auto or len(head) < 4:
            return 4 if self._auto else self._unit
        if INT.unpack_from(head)[0] != HaState.HANDSHAKE:
            return self._unit
        if len(head) < 12:
            return 12
        # In the old form this is the length of an address, in the new one the upper half of a
        # broker id, which is 0.
        length = INT.unpack_from(head, 8)[0]
        return OLD_HANDSHAKE.size if length else HANDSHAKE.size

    def _take(self, head: bytes, offset: int, packet: int, ts: int) -> None:
        self._met = True
        if not self._auto:
            largest = CLASSIC_REPORT.unpack(head)[0]
            fits = 0 <= largest < MAX_OFFSET
            fits = fits and self._listener.report(largest, HaState.TRANSFER, packet, ts)
        elif len(head) == AUTO_REPORT.size:
            state, largest = AUTO_REPORT.unpack(head)
            fits = HaState.TRANSFER <= state <= HaState.SHUTDOWN and 0 <= largest < MAX_OFFSET
            fits = fits and self._listener.report(largest, state, packet, ts)
        else:
            slave = slave_of(head)
            fits = slave is not None
            if slave is not None:
                self._listener.handshake(slave)
        if not fits:
            self._listener.bad(f"no report: {head[:16].hex()}", packet, ts, offset)
            self.lose()
