"""Packet sources: interfaces, or a capture that another program writes.

Rules: `Decode` reads a feed as one capture until its clock jumps, then again as a new one. An
interface that goes down is reported and awaited. `keep` gets all packets before they are decoded.
"""

from __future__ import annotations

import io
import os
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from dissectors.findings import Finding
from dissectors.live.interface import WAIT, LiveCapture, LiveError, pcap_head, pcap_records
from dissectors.live.packet_ring import RingPacket
from dissectors.tcp.capture import CaptureReader, Packet
from dissectors.tcp.formats import PCAP_HEADER, reader_of
from dissectors.tcp.pcapng_writer import PcapngWriter
from dissectors.tcp.source import STDIN, CaptureError, source_of
from dissectors.times import SECOND

from ..ui.status import CommandError

JUMP: Final = 5 * SECOND
"""smallest clock jump in ns; packets of interfaces are out of order by less"""
RETRY: Final = 1.0
"""seconds between checks for a missing interface"""
MOST_SECRETS: Final = 1 << 23
"""maximum bytes of a key log in a capture; a pcapng block has room for them"""
BOUNDARY: Final = 10.0
"""seconds after which a clock jump counts even without a packet that shows it"""


class PacketFeed(ABC):
    """A packet stream as captures for `Decode`: a new capture starts at each clock jump."""

    compression = None
    size = None

    def __init__(self, name: str, keep: Callable[[Sequence[RingPacket]], None]) -> None:
        self.name = name
        """name of the capture in rows"""
        self.problem: str | None = None
        """why the packets ended early"""
        self.bytes_read = 0
        """bytes of the captures so far"""
        self.packets = 0
        """packets so far"""
        self.last_ts = 0
        """time of the latest packet, ns"""
        self.jumped = 0
        """ns by which the clock jumped at the end of the last capture; 0: no jump"""
        self.linktype: int | None = None
        """LINKTYPE_ number of the packets; None: not known yet"""
        self._keep = keep
        self._held: list[RingPacket] = []
        self._stream: Iterator[list[RingPacket]] | None = None

    def chunks(self) -> Iterator[bytes]:
        """Yield pcap header and records until the clock jumps; an empty chunk: no new packets."""
        self.jumped = 0
        stream = self._stream = self._stream or self._batches()
        held, self._held = self._held, []
        has_head = False
        for batch in chain([held], stream):
            if self.linktype is None:  # nothing has come that a head could describe
                yield b""
                continue
            if not has_head:
                has_head = True
                yield self._counted(self._head(self.linktype))
            # The capture ends at a jump, so that pending requests are not judged by the new clock.
            at = self._jump_in(batch) if batch else None
            if at is not None:
                # The first packets of the next capture.
                self._held = batch[at:]
                if at:
                    yield self._encoded(batch[:at])
                self.last_ts = 0
                return
            if not batch and self._has_jumped():
                self.last_ts = 0
                return
            yield self._encoded(batch)

    def close(self) -> None:  # noqa: B027 (a `Source` has it)
        """Do nothing: the feed is read again after a clock jump."""

    @abstractmethod
    def end(self) -> None:
        """Close all open inputs."""

    @property
    def is_open(self) -> bool:
        """Whether the feed can still deliver packets."""
        return True

    @abstractmethod
    def _batches(self) -> Iterator[list[RingPacket]]:
        """Yield packets as they arrive; an empty list when idle."""

    def _head(self, linktype: int) -> bytes:
        """Return the start of a capture."""
        return pcap_head(linktype)

    def _records(self, packets: list[RingPacket]) -> bytes:
        """Return packets as they follow the start; `packets` counts those before."""
        return pcap_records(packets)

    def take_findings(self) -> list[Finding]:
        """Return damage of the capture since the last call."""
        return []

    def _encoded(self, packets: list[RingPacket]) -> bytes:
        encoded = self._records(packets)
        if packets:
            self.packets += len(packets)
            self.last_ts = max(self.last_ts, packets[-1].ts)
            self._keep(packets)
        return self._counted(encoded)

    def _counted(self, chunk: bytes) -> bytes:
        self.bytes_read += len(chunk)
        return chunk

    def _jump_in(self, packets: list[RingPacket]) -> int | None:
        """Return the index of the first packet after a clock jump, or None."""
        last = self.last_ts or packets[0].ts
        # Nearly always the earliest packet shows that there is none, without a look at each.
        if min(packets, key=_ts_of).ts >= max(last, max(packets, key=_ts_of).ts) - JUMP:
            return None
        for at, packet in enumerate(packets):
            if packet.ts < last - JUMP:
                self.jumped = packet.ts - last
                return at
            last = max(last, packet.ts)
        return None

    def _has_jumped(self) -> bool:
        """Return whether the clock jumped although no packet shows it."""
        return False


def _ts_of(packet: RingPacket) -> int:
    return packet.ts


@dataclass(slots=True)
class _Interface:
    """A captured interface."""

    capture: LiveCapture
    why: str = ""
    """reason why it delivers no packets; empty: it works"""


class LiveFeed(PacketFeed):
    """Interfaces of this machine, as one capture."""

    def __init__(
        self,
        captures: Sequence[LiveCapture],
        keep: Callable[[Sequence[RingPacket]], None],
        notice: Callable[[str, str], None],
        duration: float | None = None,
    ) -> None:
        """`notice(interface, reason)` is called for a lost interface, with no reason on return.

        `duration` in seconds; None: unlimited. Raise CommandError for interfaces with different
        link types.
        """
        super().__init__(", ".join(capture.interface for capture in captures), keep)
        kinds = {capture.linktype for capture in captures}
        if len(kinds) > 1:
            raise CommandError(
                f"{self.name}: these interfaces have different link types",
                "start one rmqtool watch for each",
            )
        self.linktype = kinds.pop()
        self._interfaces = [_Interface(capture) for capture in captures]
        self._notice = notice
        self._end = None if duration is None else time.monotonic() + duration
        self._offset = clock_offset()
        self._ahead = 0
        self._ahead_since = 0.0
        self._retry = 0.0
        self._poll = select.poll()
        for capture in captures:
            self._poll.register(capture.fileno(), select.POLLIN | select.POLLERR)

    @property
    def is_open(self) -> bool:
        """Whether packets can come from at least one interface."""
        return any(not interface.why for interface in self._interfaces)

    @property
    def states(self) -> dict[str, str]:
        """Interface -> `up`, or the reason why it delivers no packets."""
        return {
            interface.capture.interface: interface.why or "up" for interface in self._interfaces
        }

    @property
    def received(self) -> int:
        """Packets that passed the filter, by the last call of `count`."""
        return sum(interface.capture.received for interface in self._interfaces)

    @property
    def dropped(self) -> int:
        """Packets that the kernel dropped, by the last call of `count`."""
        return sum(interface.capture.dropped for interface in self._interfaces)

    def count(self) -> tuple[int, int]:
        """Update and return `received` and `dropped`."""
        for interface in self._interfaces:
            interface.capture.count()
        return self.received, self.dropped

    def end(self) -> None:
        """Close the interfaces."""
        for interface in self._interfaces:
            interface.capture.close()

    def _batches(self) -> Iterator[list[RingPacket]]:
        while self._end is None or time.monotonic() < self._end:
            yield self._next()

    def _next(self) -> list[RingPacket]:
        working = [interface for interface in self._interfaces if not interface.why]
        if len(working) < len(self._interfaces):
            self._look_for_lost()
        if len(working) == 1:
            return self._receive(working[0], WAIT)
        if not working:
            time.sleep(WAIT)
            return []
        self._poll.poll(WAIT * 1000)
        packets = [packet for interface in working for packet in self._receive(interface, 0)]
        packets.sort(key=_ts_of)  # stable: packets of one interface stay in their order
        return packets

    def _receive(self, interface: _Interface, wait: float) -> list[RingPacket]:
        try:
            return interface.capture.receive(wait)
        except LiveError as error:
            interface.why = error.reason
            self._poll.unregister(interface.capture.fileno())
            self._notice(interface.capture.interface, error.reason)
            return []

    def _look_for_lost(self) -> None:
        now = time.monotonic()
        if now < self._retry:
            return
        self._retry = now + RETRY
        for interface in self._interfaces:
            if interface.why and _is_up(interface.capture.interface):
                try:
                    interface.capture.bind_again()
                except LiveError:
                    continue
                interface.why = ""
                self._poll.register(interface.capture.fileno(), select.POLLIN | select.POLLERR)
                self._notice(interface.capture.interface, "")

    def _jump_in(self, packets: list[RingPacket]) -> int | None:
        self._compare_clocks()
        if self._ahead and self.last_ts:
            # Half of the jump tells packets behind it from earlier ones that were still buffered.
            for at, packet in enumerate(packets):
                if packet.ts > self.last_ts + self._ahead // 2:
                    self.jumped, self._ahead = self._ahead, 0
                    return at
        return super()._jump_in(packets)

    def _has_jumped(self) -> bool:
        self._compare_clocks()
        if self._ahead and time.monotonic() - self._ahead_since > BOUNDARY:
            self.jumped, self._ahead = self._ahead, 0
            return True
        return False

    def _compare_clocks(self) -> None:
        """Detect that the clock was set ahead; packets show a clock that was set back."""
        offset = clock_offset()
        if abs(offset - self._offset) > JUMP:
            self._ahead = max(self._ahead + offset - self._offset, 0)
            self._ahead_since = time.monotonic()
            self._offset = offset


def clock_offset() -> int:
    """Return by how many ns the clock is ahead of the steady one; setting it changes that."""
    return time.time_ns() - time.monotonic_ns()


def _is_up(interface: str) -> bool:
    try:
        state = Path("/sys/class/net", interface, "operstate").read_text()
    except (OSError, ValueError):
        return False
    return state.strip() != "down"  # `lo` and tunnels are always `unknown`


class StoredFeed(PacketFeed):
    """A capture file, or standard input; a pcapng keeps its secrets and marks of faults."""

    def __init__(self, name: str, keep: Callable[[Sequence[RingPacket]], None]) -> None:
        """Raise CaptureError if the file does not exist."""
        super().__init__(name, keep)
        if name != STDIN and not os.path.exists(name):
            raise CaptureError(name, "no such file")
        self._source = source_of(name)
        self.is_file = os.path.isfile(name)
        """False: a pipe"""
        self.is_at_end = False
        """the rest of a file was read: what follows is decided by its end"""
        self._reader: CaptureReader | None = None
        self._buffer = io.BytesIO()
        self._writer: PcapngWriter | None = None
        self._read = 0
        """packets read; some of them may be held"""
        self._faults: dict[int, str] = {}
        """number of a packet -> fault that rmqtool injected there"""
        self._secrets = bytearray()
        """latest TLS secrets, as a key log: a capture after a clock jump needs them again"""
        self._new_secrets = bytearray()
        """those that `chunks` has not yielded"""

    def end(self) -> None:
        """Close the file."""
        self._source.close()

    def take_findings(self) -> list[Finding]:
        """Return damage of the capture since the last call: its packets are encoded again."""
        return [] if self._reader is None else self._reader.take_findings()

    def _head(self, linktype: int) -> bytes:
        if self._reader is None or self._reader.format != "pcapng":
            return super()._head(linktype)
        self._writer, self._new_secrets = PcapngWriter(self._buffer, linktype), self._secrets[:]
        return self._written()

    def _records(self, packets: list[RingPacket]) -> bytes:
        writer = self._writer
        if writer is None:
            return super()._records(packets)
        if self._new_secrets:
            writer.write_secrets(bytes(self._new_secrets))
            self._new_secrets.clear()
        if self._faults:
            for number, (ts, data, length) in enumerate(packets, self.packets):
                writer.write(ts, data, length, self._faults.pop(number, ""))
        else:
            writer.write_all(packets)
        return self._written()

    def _written(self) -> bytes:
        data = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return data

    def _batches(self) -> Iterator[list[RingPacket]]:
        head, reader = b"", None
        for chunk in self._chunks():
            if reader is None:
                head += chunk
                if len(head) < PCAP_HEADER:
                    yield []
                    continue
                reader = self._reader = reader_of(0, head)
                if reader is None:
                    break
                chunk = b""  # it was in the head
            yield self._taken(reader, reader.receive(chunk))
        if reader is None:
            raise CaptureError(self.name, "not a capture", 0, "give a pcap or pcapng file")
        self.problem = self._source.problem
        yield self._taken(reader, reader.finish())

    def _chunks(self) -> Iterator[bytes]:
        if not self.is_file:  # packets must not wait for later ones
            yield from self._source.chunks()
            return
        # One chunk behind, so that `is_at_end` is set before the last packets are decoded.
        latest: bytes | None = None
        for chunk in self._source.chunks():
            if latest is not None:
                yield latest
            latest = chunk
        self.is_at_end = True
        if latest is not None:
            yield latest

    def _taken(self, reader: CaptureReader, packets: list[Packet]) -> list[RingPacket]:
        """Return packets of the first link type; take what the capture says about them."""
        if packets and self.linktype is None:
            self.linktype = packets[0].linktype
        of_link = [packet for packet in packets if packet.linktype == self.linktype]
        if reader.marks:
            for number, packet in enumerate(of_link, self._read):
                if packet.packet in reader.marks:
                    self._faults[number] = reader.marks[packet.packet]
            reader.marks.clear()
        self._read += len(of_link)
        if reader.secrets:
            for kept in (self._secrets, self._new_secrets):
                kept += b"\n".join([*reader.secrets, b""])
                del kept[:-MOST_SECRETS]
            reader.secrets.clear()
        return [
            RingPacket(packet.ts, packet.data[packet.start : packet.end], packet.length)
            for packet in of_link
        ]
