"""Packets, and what the readers of both capture formats share: bytes in, packets out, no I/O.

A reader is given the file's bytes in chunks of any size (`receive`) and gives the packets that are
complete. A packet does not copy its bytes: it names a range of the chunk it came with. Damaged
bytes are skipped to the next plausible record and said with their offset; a file that ends inside
a record is said to be truncated.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, final

from librt.strings import read_i32_be, read_i32_le, read_i64_be, read_i64_le
from mypy_extensions import i64, mypyc_attr

from ..expert import ExpertInfo, ExpertKind
from .passed_flows import PassedFlows

MAX_PACKET: Final = 1024 * 1024
"""largest captured packet, bytes: four times tcpdump's largest snap length, room for BIG TCP"""
LINKTYPE_ETHERNET: Final = 1
ORDINARY_PACKET: Final = 128 * 1024
"""bytes: a longer captured packet is so rare that what follows it must prove it"""

CAPTURE_SHIFT: Final = 40
"""a packet id is the capture's index shifted by this, plus the packet's number in it"""

NANOSECONDS: Final = 1_000_000_000


def packet_number(packet: int) -> int:
    """Return the number of a packet in its capture file, as in Wireshark's `frame.number`."""
    return packet & ((1 << CAPTURE_SHIFT) - 1)


def capture_index(packet: int) -> int:
    """Return the index of a packet's capture file in the run."""
    return packet >> CAPTURE_SHIFT


class RecordCheck(Enum):
    """Whether records stand where they are looked for."""

    RECORDS = "as many in a row as prove each other"
    NO_RECORDS = "the bytes are something else"
    UNDECIDED = "the bytes that follow must tell"


@final
@mypyc_attr(acyclic=True)
class Packet:
    """One captured packet: a range of the chunk that it was read with."""

    __slots__ = ("data", "end", "length", "linktype", "packet", "start", "ts")

    def __init__(
        self, packet: i64, ts: i64, linktype: i64, data: bytes, start: i64, end: i64, length: i64
    ) -> None:
        self.packet: i64 = packet
        """packet id: capture index and number"""
        self.ts: i64 = ts
        """nanoseconds since the epoch"""
        self.linktype: i64 = linktype
        """LINKTYPE_ number of its interface"""
        self.data = data
        """the bytes that hold it"""
        self.start: i64 = start
        """where it begins in `data`"""
        self.end: i64 = end
        """where its captured bytes end in `data`"""
        self.length: i64 = length
        """its length on the wire; more than was captured where the snap length cut it"""


def read_u32(data: bytes, at: i64, big: bool) -> i64:
    """Return an unsigned 32-bit integer in the byte order given."""
    return i64(read_i32_be(data, at) if big else read_i32_le(data, at)) & 0xFFFFFFFF


def read_u32_pair(data: bytes, at: i64, big: bool) -> tuple[i64, i64]:
    """Return two unsigned 32-bit integers that follow each other, with one look at the bytes."""
    if big:
        both = read_i64_be(data, at)
        return (both >> 32) & 0xFFFFFFFF, both & 0xFFFFFFFF
    both = read_i64_le(data, at)
    return both & 0xFFFFFFFF, (both >> 32) & 0xFFFFFFFF


class CaptureReader:
    """What both formats share: the bytes not yet used, their place in the file, the findings."""

    def __init__(self, index: int, head: bytes) -> None:
        """`head`: what was read already, behind which `receive` goes on."""
        self.format = ""
        self.packets: i64 = 0
        """packets so far"""
        self.passed: PassedFlows | None = None
        """packets of these are counted, but not given out, unless they are the first or the last
        that come together"""
        self.experts: list[ExpertInfo] = []
        """findings that were not taken yet"""
        self.secrets: list[bytes] = []
        """secrets of TLS in the file, as key logs, that were not taken yet"""
        self.last_ts: i64 = 0
        """time of the last packet"""
        self._last: Packet | None = None
        self._first_id: i64 = index << CAPTURE_SHIFT
        self._rest = head
        self._offset: i64 = 0
        self._lost: i64 = -1
        self._ended = False

    def receive(self, data: bytes) -> list[Packet]:
        """Return the packets that are complete with these bytes."""
        found: list[Packet] = []
        if self.passed is not None:
            self.passed.begin()
        at: i64 = 0
        if self._rest:
            first = self._completed(data)
            if first:  # else all bytes would have to be copied behind those of one record
                at = len(first) - len(self._rest)
                self._offset += self._packets_of(first, 0, found) - at
            else:
                data = self._rest + data
        used: i64 = self._packets_of(data, at, found)
        self._give_last(found)
        self._rest = data[used:]
        self._offset += used
        return found

    @property
    def waiting(self) -> i64:
        """Bytes of a record that is not complete yet."""
        return len(self._rest)

    def begin_at(self, offset: i64) -> None:
        """Go on at a record that begins at another place of the file; nothing waits."""
        self._offset = offset

    def is_alike(self, other: CaptureReader) -> bool:
        """Return whether both would read the next bytes alike: nothing waits, no damage is passed,
        the same byte order and interfaces.
        """
        mine = not self._rest and self._lost < 0 and self.format == other.format
        return mine and self._context() == other._context()

    def _context(self) -> list[tuple[int, ...]]:
        """Return what earlier bytes tell of how the next ones are read."""
        return []

    def take_experts(self) -> list[ExpertInfo]:
        """Return the findings since the last call."""
        taken = self.experts
        self.experts = []
        return taken

    def finish(self, problem: str | None = None) -> list[Packet]:
        """Finish the file; `problem` says why, where it was not by itself.

        Gives the packets that stand behind damage near the end: more cannot come to prove them.
        """
        found: list[Packet] = []
        self._ended = True
        data = self._rest
        used: i64 = self._packets_of(data, 0, found)
        self._give_last(found)
        self._rest = b""
        self._offset += used
        left: i64 = len(data) - used
        if self._lost >= 0:
            end: i64 = self._offset + left
            self._damaged(self._lost, f"{end - self._lost} bytes up to the end are not a packet")
            left = 0
        if problem is not None or left:
            detail = problem or f"{left} bytes of a packet that is cut off"
            self._say(ExpertKind.CAPTURE_TRUNCATED, detail, self._offset)
        return found

    def _give_last(self, found: list[Packet]) -> None:
        """Append the last packet, where it was passed over."""
        if self._last is not None:
            found.append(self._last)
            self._last = None

    def _completed(self, data: bytes) -> bytes:
        """Return the record that waits, completed by the first of these bytes; empty where that is
        not certain.
        """
        raise NotImplementedError

    def _packets_of(self, data: bytes, at: i64, found: list[Packet]) -> i64:
        """Append the packets from a place on that are complete; give the place behind what was
        used.
        """
        raise NotImplementedError

    def _damaged(self, offset: i64, detail: str) -> None:
        self._say(ExpertKind.CAPTURE_DAMAGED, detail, offset)

    def _say(self, kind: ExpertKind, detail: str, offset: i64) -> None:
        packet: i64 = self._first_id + self.packets
        self.experts.append(ExpertInfo(kind, detail, self.last_ts, packet, -1, offset))

    def _lose(self, at: i64) -> None:
        """Begin the search for the next record, as the bytes from here on are none."""
        if self._lost < 0:
            self._lost = self._offset + at

    def _found_again(self, at: i64) -> None:
        if self._lost >= 0:
            end: i64 = self._offset + at
            self._damaged(self._lost, f"{end - self._lost} bytes are not a packet and were skipped")
            self._lost = -1
