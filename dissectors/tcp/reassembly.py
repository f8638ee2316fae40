"""Segments of one direction as its bytes in order: data, and gaps where the capture has a hole.

Rules. Sequence numbers are compared modulo 2³² and kept as 64-bit offsets, so a wrap is nothing
special. The first copy of a byte wins; a byte is given out once. A hole becomes a gap only when
waiting is useless: the receiver has acknowledged past it and later packets have come without it,
or the connection ends, or a limit is reached; before that it is reordering. A connection whose
start was not captured starts by waiting a little, too: its first packets may come out of order.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..expert import ExpertInfo, ExpertKind
from .pieces import PIECE_COST, Data, Gap, Piece, agree
from .repeats import Repeats, noted
from .segment import ACK, Segment

HOLD_SEGMENTS: Final = 32
"""packets of the connection that a hole waits after its bytes were acknowledged"""
HOLD_TIME: Final = 1_000_000_000
"""nanoseconds that it waits at most after that"""
UNACKED_SEGMENTS: Final = 1024
"""packets that a hole waits where no acknowledgement is seen (one direction captured)"""
UNACKED_TIME: Final = 10_000_000_000
"""nanoseconds that it waits at most where no acknowledgement is seen"""
KEEP_ALIVE_IDLE: Final = 1_000_000_000
"""nanoseconds of silence before a keep-alive; stacks wait a second and more"""
MAX_PENDING: Final = 2 * 1024 * 1024
"""bytes of one direction that wait behind a hole; a receive window is rarely larger"""
MAX_DISTANCE: Final = 1 << 30
"""bytes that a segment may be off: the largest TCP window; farther is another connection"""

MAX_RETRANSMISSION: Final = 64 * 1024 * 1024
"""bytes that a segment may be behind: more than any sender keeps for a retransmission"""
FAR_SEGMENTS: Final = 8
"""segments in a row that are far off, until they are believed"""

_NOTHING: Final[list[Data]] = []
"""nothing waits: one list for all streams, which nobody adds to, because most have no holes"""
START: Final = 1 << 33
"""offset given to the first segment seen, so that earlier ones have offsets above zero"""


@final
class StreamReassembler:
    """One direction of a TCP connection. Segments in, pieces in order out."""

    __slots__ = (
        "_ack_mark",
        "_acked",
        "_base",
        "_began",
        "_expected",
        "_experts",
        "_far",
        "_far_from",
        "_last_ts",
        "_mark",
        "_pending",
        "_sequence",
        "_since_ack",
        "_since_ack_ts",
        "_waited",
        "conversation",
        "gap_bytes",
        "gaps",
        "isn",
        "pending_bytes",
        "repeats",
        "retransmissions",
        "waiting",
    )

    def __init__(self, conversation: i64, experts: list[ExpertInfo]) -> None:
        self.conversation: i64 = conversation
        self.waiting = False
        """something waits for a hole to be filled"""
        self.isn: i64 = -1
        """sequence number of the SYN; -1: none seen"""
        self.pending_bytes: i64 = 0
        """bytes that wait behind a hole"""
        self.gaps: i64 = 0
        self.gap_bytes: i64 = 0
        self.retransmissions: i64 = 0
        """segments of which every byte was there already"""
        self.repeats: Repeats | None = None  # made with the first of them
        self._experts = experts
        self._pending = _NOTHING
        self._base: i64 = -1
        self._expected: i64 = START
        self._sequence: i64 = -1
        self._acked: i64 = -1
        self._waited: i64 = 0
        self._began: i64 = 0
        self._last_ts: i64 = 0
        self._far: i64 = 0
        self._far_from: i64 = 0
        self._mark: i64 = 0
        self._ack_mark: i64 = 0
        self._since_ack: i64 = 0
        self._since_ack_ts: i64 = 0

    @property
    def empty(self) -> bool:
        """Whether no byte was given out yet."""
        return self._base < 0 or self._expected == self._base

    @property
    def held_bytes(self) -> i64:
        """Bytes of memory that what waits takes, about."""
        return self.pending_bytes + PIECE_COST * len(self._pending)

    @property
    def earliest_held(self) -> i64:
        """Id of the earliest packet that waits behind a hole; -1: none does."""
        earliest: i64 = -1
        for piece in self._pending:
            if earliest < 0 or piece.packet < earliest:
                earliest = piece.packet
        return earliest

    def synchronize(self, segment: Segment, out: list[Piece]) -> None:
        """Take the SYN of this direction: the first byte has the number after it."""
        if self.isn >= 0:
            return
        self.isn = segment.seq
        if self._sequence < 0:
            self._sequence = (segment.seq + 1) & 0xFFFFFFFF
            self._base = START
        elif self._base < 0:
            # The SYN came after the first data: now the start is known.
            self._expected = self._place((segment.seq + 1) & 0xFFFFFFFF)
            self._sequence = (segment.seq + 1) & 0xFFFFFFFF
            self._base = self._expected
            self._deliver(out)

    def receive(self, segment: Segment, out: list[Piece]) -> None:
        """Append the pieces that are in order with this segment."""
        start: i64 = segment.start
        end: i64 = segment.end
        if segment.seq == self._sequence and self._base >= 0 and not self.waiting:
            # In order and nothing waits: nearly all segments take this way.
            offset: i64 = self._expected
            if end > start:
                place: i64 = offset - self._base
                out.append(Data(place, segment.packet, segment.ts, segment.data, start, end))
                self._expected = offset + end - start
                self._sequence = (self._sequence + end - start) & 0xFFFFFFFF
                self._last_ts = segment.ts
            if segment.missing:
                self._hole(segment, out)
            return
        self._receive_out_of_order(segment, out)
        self._last_ts = segment.ts

    def acknowledge(self, segment: Segment, out: list[Piece]) -> None:
        """Check whether a segment of the other direction acknowledges the hole waited for."""
        if not segment.flags & ACK:
            return
        acked: i64 = self._place(segment.ack)
        if acked - self._expected < MAX_DISTANCE:
            self._acked = max(self._acked, acked)
        self._give_up_waiting(segment.ts, out)

    def finish(self, out: list[Piece]) -> None:
        """Give out what waits, holes as gaps, as no more segments come."""
        while self._pending:
            self._skip_hole(out)

    def lost_before(self, sequence: i64) -> i64:
        """Return the bytes before a sequence number that were sent and never seen; 0: none.

        For the end of a stream, after `finish`: a FIN tells how many bytes came before it.
        """
        if self._base < 0:
            return 0
        lost: i64 = self._place(sequence) - self._expected
        return lost if 0 < lost < MAX_PENDING else 0

    def forget(self) -> None:
        """Let go of what waits, as nobody wants the stream any more."""
        self._pending = _NOTHING
        self.pending_bytes = 0
        self.waiting = False

    # -- inside ---------------------------------------------------------------------------------

    def _place(self, sequence: i64) -> i64:
        """Return the 64-bit offset of a sequence number, near the expected one."""
        distance: i64 = (sequence - self._sequence) & 0xFFFFFFFF
        if distance >= 0x80000000:
            distance -= 0x100000000
        return self._expected + distance

    def _hole(self, segment: Segment, out: list[Piece]) -> None:
        """Note a gap of known length: the snap length cut off the end of a segment."""
        self._gap(segment.packet, segment.ts, segment.missing, out)
        self._sequence = (self._sequence + segment.missing) & 0xFFFFFFFF

    def _gap(self, packet: i64, ts: i64, length: i64, out: list[Piece]) -> None:
        out.append(Gap(self._expected - self._base, packet, ts, length))
        self._expected += length
        self.gaps += 1
        self.gap_bytes += length

    def _receive_out_of_order(self, segment: Segment, out: list[Piece]) -> None:
        if self._sequence < 0:
            self._sequence = segment.seq
        offset: i64 = self._place(segment.seq)
        size: i64 = segment.end - segment.start
        if (size == 0 and segment.missing == 0) or self._is_keep_alive(segment, offset + size):
            return
        if self._is_far(offset):
            if not self._restart(segment, out):
                return
            offset = self._expected
        end: i64 = offset + size
        if end + segment.missing <= self._expected and self._base >= 0:
            self.retransmissions += 1
            self.repeats = noted(self.repeats, offset, size, segment.ts)
            self._say(ExpertKind.RETRANSMISSION, segment, f"{size} bytes", offset)
            return
        if self._base >= 0 and self._pending and offset < self._pending[0].offset:
            self._say(ExpertKind.OUT_OF_ORDER, segment, f"{size} bytes", offset)
        if self._insert(segment, offset, end, False):
            self._say(ExpertKind.OVERLAP_MISMATCH, segment, "the first copy is used", offset)
        if segment.missing:
            self._insert(segment, end, end + segment.missing, True)
        if self._base >= 0:
            self._deliver(out)
        if self._pending:
            self._wait(segment, out)

    def _is_far(self, offset: i64) -> bool:
        """Return whether an offset is where no segment of this connection can be."""
        distance: i64 = offset - self._expected
        return distance > MAX_DISTANCE or distance < -MAX_RETRANSMISSION

    def _restart(self, segment: Segment, out: list[Piece]) -> bool:
        """Start anew where segments are far off again and again: a connection without a SYN."""
        if self._far_from != self._expected:
            self._far_from = self._expected
            self._far = 0
        self._far += 1
        if self._far < FAR_SEGMENTS:
            return False
        self._far = 0
        self.finish(out)
        if self._base < 0:
            self._base = self._expected
        out.append(Gap(self._expected - self._base, segment.packet, segment.ts, 0))
        self.gaps += 1
        self._say(ExpertKind.GAP, segment, "another connection on the same ports", self._expected)
        self._sequence = segment.seq
        self._acked = -1
        return True

    def _is_keep_alive(self, segment: Segment, end: i64) -> bool:
        """Return whether this is a probe: one byte, sent and acknowledged before, of any value.

        Where the real byte was not captured only the silence before it tells it from data.
        """
        if segment.end - segment.start != 1 or segment.missing:
            return False
        if end == self._expected:
            return self._base >= 0
        return self._last_ts != 0 and segment.ts - self._last_ts >= KEEP_ALIVE_IDLE

    def _insert(self, segment: Segment, offset: i64, end: i64, hole: bool) -> bool:
        """Put the bytes that are not there yet among those that wait.

        `hole`: they are known to be missing, and wait as a piece without data. Gives whether bytes
        that are there already differ.
        """
        if self._pending is _NOTHING:
            self._pending = []
        pending = self._pending
        index: i64 = self._first_after(offset)
        at: i64 = offset
        shift: i64 = segment.start - offset
        differs = False
        while at < end:
            stop: i64 = end
            if index < len(pending):
                stop = min(end, pending[index].offset)
            if at < stop:
                # A copy: the chunk that the packet is a range of is larger and must not stay.
                data = b"" if hole else segment.data[at + shift : stop + shift]
                pending.insert(index, Data(at, segment.packet, segment.ts, data, 0, stop - at))
                self.pending_bytes += len(data)
                index += 1
                at = stop
            if at < end:
                there = pending[index]
                differs = differs or not (hole or agree(segment, offset, there))
                at = there.offset + there.end
                index += 1
        return differs

    def _first_after(self, offset: i64) -> i64:
        """Return the index of the first waiting piece that ends behind an offset."""
        pending = self._pending
        low: i64 = 0
        high: i64 = len(pending)
        while low < high:
            middle: i64 = (low + high) >> 1
            piece = pending[middle]
            if piece.offset + piece.end <= offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _deliver(self, out: list[Piece]) -> None:
        """Give out what waits and is in order by now."""
        pending = self._pending
        used: i64 = 0
        before: i64 = self._expected
        for piece in pending:
            if piece.offset > self._expected:
                break
            used += 1
            self.pending_bytes -= len(piece.data)
            skip: i64 = self._expected - piece.offset
            if skip < piece.end:
                if piece.data:
                    offset: i64 = self._expected - self._base
                    out.append(Data(offset, piece.packet, piece.ts, piece.data, skip, piece.end))
                    self._expected = piece.offset + piece.end
                else:
                    self._gap(piece.packet, piece.ts, piece.end - skip, out)
        del pending[:used]
        self._sequence = (self._sequence + (self._expected - before)) & 0xFFFFFFFF
        if not pending:
            self.waiting = False
        elif used:
            self._next_hole(pending[0].offset)

    def _wait(self, segment: Segment, out: list[Piece]) -> None:
        if not self.waiting:
            self.waiting = True
            self._mark = -1
            self._ack_mark = -1
            self._next_hole(self._pending[0].offset)
        self._give_up_waiting(segment.ts, out)

    def _next_hole(self, offset: i64) -> None:
        """Wait for the hole before this offset.

        Holes that were there when the waiting began have waited as long as the first of them:
        each waiting anew would let ever more bytes wait behind many holes.
        """
        if offset > self._mark:
            last = self._pending[len(self._pending) - 1]
            self._mark = last.offset
            self._waited = 0
            self._began = last.ts
            self._since_ack = -1
        elif offset > self._ack_mark:
            self._since_ack = -1

    def _give_up_waiting(self, ts: i64, out: list[Piece]) -> None:
        """Declare the first hole a gap when it will not be filled any more."""
        self._waited += 1
        while self.waiting and self._in_vain(ts):
            self._skip_hole(out)

    def _in_vain(self, ts: i64) -> bool:
        if self.pending_bytes > MAX_PENDING:
            return True
        if self._acked < self._pending[0].offset or (self._base < 0 and self._acked < 0):
            return self._waited > UNACKED_SEGMENTS or ts - self._began > UNACKED_TIME
        if self._since_ack < 0:
            self._since_ack = self._waited
            self._since_ack_ts = ts
            self._ack_mark = self._acked
        return (
            self._waited - self._since_ack >= HOLD_SEGMENTS or ts - self._since_ack_ts > HOLD_TIME
        )

    def _skip_hole(self, out: list[Piece]) -> None:
        """Turn the first hole into a gap, or drop it where the start was not captured."""
        first = self._pending[0]
        length: i64 = first.offset - self._expected
        self._sequence = (self._sequence + length) & 0xFFFFFFFF
        if self._base < 0:
            self._base = first.offset
            self._expected = first.offset
        else:
            place: i64 = self._expected - self._base
            kind, number = ExpertKind.GAP, self.conversation
            info = ExpertInfo(kind, f"{length} bytes", first.ts, first.packet, number, place)
            self._experts.append(info)
            self._gap(first.packet, first.ts, length, out)
        self._deliver(out)

    def _say(self, kind: ExpertKind, segment: Segment, detail: str, offset: i64) -> None:
        place: i64 = offset - self._base if self._base >= 0 else 0
        self._experts.append(
            ExpertInfo(kind, detail, segment.ts, segment.packet, self.conversation, place)
        )
