"""Reassembly of one direction of a TCP connection: data in order, and gaps for capture holes.

Rules: the first copy of a byte wins; a byte is emitted once. A hole becomes a gap only when waiting
is useless: the receiver has acknowledged past it and later packets came without it, the connection
ends, or a limit is reached; until then it counts as reordering.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from ..findings import Finding, FindingKind
from .segment import ACK, Segment

PIECE_COST: Final = 256
"""memory overhead of a piece, bytes; dominant for tiny segments"""


# In C, the garbage collector does not track it, and the next one reuses its memory.
@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Data:
    """Bytes of a stream, in order: a range of the packet that carried them."""

    __slots__ = ("data", "end", "offset", "packet", "start", "ts")

    def __init__(
        self, offset: i64, packet: i64, ts: i64, data: bytes, start: i64, end: i64
    ) -> None:
        self.offset: i64 = offset
        """stream offset of the first byte"""
        self.packet: i64 = packet
        self.ts: i64 = ts
        self.data = data
        self.start: i64 = start
        self.end: i64 = end


@final
@mypyc_attr(acyclic=True)
class Gap:
    """A range of the stream that is missing in the capture."""

    __slots__ = ("length", "offset", "packet", "ts")

    def __init__(self, offset: i64, packet: i64, ts: i64, length: i64) -> None:
        self.offset: i64 = offset
        """stream offset of the first missing byte"""
        self.packet: i64 = packet
        """the packet after the hole"""
        self.ts: i64 = ts
        self.length: i64 = length
        """missing bytes; 0 if unknown"""


Piece = Data | Gap


def agree(segment: Segment, offset: i64, piece: Data) -> bool:
    """Return whether the overlapping bytes of a segment and a piece are equal."""
    if not piece.data:  # known to be missing
        return True
    low: i64 = max(offset, piece.offset)
    high: i64 = min(offset + segment.end - segment.start, piece.offset + piece.end)
    shift: i64 = segment.start - offset
    mine = segment.data[low + shift : high + shift]
    return low >= high or mine == piece.data[low - piece.offset : high - piece.offset]


LEAST_REPEATS: Final[i64] = 3
LEAST_NS: Final[i64] = 500_000_000
"""nanoseconds from the first retransmission to the last one of a stall"""
PROBE_BYTES: Final = 1
MAX_STALLS: Final = 8
"""stalls remembered per direction: the first ones"""


@final
class Repeats:
    """The stalls of one direction."""

    __slots__ = ("_count", "_first", "_last", "_offset", "_size", "_stalls")

    def __init__(self) -> None:
        self._stalls: list[tuple[int, int, int, int]] = []
        self._offset: i64 = -1
        self._first: i64 = 0
        self._last: i64 = 0
        self._count: i64 = 0
        self._size: i64 = 0

    def note(self, offset: i64, size: i64, ts: i64) -> None:
        """Record a segment that was sent before in full, by the offset of its first byte."""
        if offset == self._offset:
            self._count += 1
            self._last = ts
            return
        self._end_run()
        self._offset = offset
        self._first = self._last = ts
        self._count = 1
        self._size = size

    def stalls(self) -> list[tuple[int, int, int, int]]:
        """Return (first and last retransmission, count, bytes) of each stall; times in ns."""
        stalls = self._stalls[:]
        if self._is_stall():
            stalls.append((self._first, self._last, self._count, self._size))
        return stalls

    def _end_run(self) -> None:
        if self._is_stall():
            self._stalls.append((self._first, self._last, self._count, self._size))

    def _is_stall(self) -> bool:
        """Return whether the retransmissions since the last stall are another stall."""
        lasted: i64 = self._last - self._first
        long = self._count >= LEAST_REPEATS and lasted >= LEAST_NS
        return long and len(self._stalls) < MAX_STALLS


def noted(repeats: Repeats | None, offset: i64, size: i64, ts: i64) -> Repeats | None:
    """Record a segment with `Repeats.note`, unless it may be a zero-window probe.

    Some systems send one byte repeatedly as a probe, which the other end acknowledges. `repeats` is
    None before the first retransmission.
    """
    if size <= PROBE_BYTES:
        return repeats
    if repeats is None:
        repeats = Repeats()
    repeats.note(offset, size, ts)
    return repeats


HOLD_SEGMENTS: Final = 32
"""packets of the connection that a hole waits for after its bytes were acknowledged"""
HOLD_TIME: Final = 1_000_000_000
"""maximum wait after the acknowledgement, nanoseconds"""
UNACKED_SEGMENTS: Final = 1024
"""packets that a hole waits for if no acknowledgement is seen (one direction captured)"""
UNACKED_TIME: Final = 10_000_000_000
"""maximum wait if no acknowledgement is seen, nanoseconds"""
KEEP_ALIVE_IDLE: Final = 1_000_000_000
"""nanoseconds of silence before a keep-alive; TCP stacks wait a second or more"""
MAX_PENDING: Final = 2 * 1024 * 1024
"""maximum bytes of one direction held behind a hole; receive windows are rarely larger"""
MAX_DISTANCE: Final = 1 << 30
"""plausible distance of a segment, bytes: the largest TCP window (RFC 7323, 2.3); beyond is another
connection"""
MAX_RETRANSMISSION: Final = 64 * 1024 * 1024
"""plausible distance backwards, bytes: more than any sender keeps for retransmission"""
FAR_SEGMENTS: Final = 8
"""consecutive implausible segments after which they are accepted"""

_NOTHING: Final[list[Data]] = []
"""shared empty list for the many streams without holes; never modified"""
START: Final = 1 << 33
"""offset of the first segment seen, so that earlier ones have offsets above zero"""


@final
class StreamReassembler:
    """Reassembler of one direction of a TCP connection: segments in, ordered pieces out."""

    __slots__ = (
        "_ack_mark",
        "_acked",
        "_base",
        "_began",
        "_expected",
        "_far",
        "_far_from",
        "_findings",
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

    def __init__(self, conversation: i64, findings: list[Finding]) -> None:
        self.conversation: i64 = conversation
        self.waiting = False
        """data waits behind a hole"""
        self.isn: i64 = -1
        """sequence number of the SYN; -1: not seen"""
        self.pending_bytes: i64 = 0
        """bytes held behind a hole"""
        self.gaps: i64 = 0
        self.gap_bytes: i64 = 0
        self.retransmissions: i64 = 0
        """segments whose bytes were all seen before"""
        self.repeats: Repeats | None = None  # created at the first retransmission
        self._findings = findings
        self._pending = _NOTHING  # held pieces in order, without overlaps
        # Offsets are sequence numbers extended to 64 bits, so wrap-around needs no special case.
        self._base: i64 = -1  # offset of the first byte of the stream; -1: not yet known
        self._expected: i64 = START  # offset of the next byte in order
        self._sequence: i64 = -1  # its sequence number; -1: no segment was seen
        self._acked: i64 = -1  # offset up to which the other end has acknowledged
        self._last_ts: i64 = 0  # time of the last segment with data
        self._far: i64 = 0  # implausible segments in a row
        self._far_from: i64 = 0  # `_expected` when the first of them came
        self._mark: i64 = 0  # holes before this offset share one wait
        self._waited: i64 = 0  # packets since that wait began
        self._began: i64 = 0  # time when it began
        self._since_ack: i64 = 0  # `_waited` when the hole was acknowledged; -1: it was not
        self._since_ack_ts: i64 = 0  # time of that acknowledgement
        self._ack_mark: i64 = 0  # offset that it acknowledged

    @property
    def empty(self) -> bool:
        """Whether nothing was emitted yet."""
        return self._base < 0 or self._expected == self._base

    @property
    def held_bytes(self) -> i64:
        """Approximate memory of the held pieces, bytes."""
        return self.pending_bytes + PIECE_COST * len(self._pending)

    @property
    def earliest_held(self) -> i64:
        """Id of the earliest packet held behind a hole, or -1."""
        earliest: i64 = -1
        for piece in self._pending:
            if earliest < 0 or piece.packet < earliest:
                earliest = piece.packet
        return earliest

    def sequence_at(self, offset: i64) -> i64:
        """Return the sequence number of a stream offset."""
        return (self._sequence - (self._expected - self._base - offset)) & 0xFFFFFFFF

    def is_next(self, sequence: i64) -> bool:
        """Return whether a sequence number continues the stream, and is no retransmission."""
        return self._sequence < 0 or sequence == self._sequence

    def synchronize(self, segment: Segment, out: list[Piece]) -> None:
        """Receive the SYN of this direction, which sets the sequence number of the first byte."""
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
        """Append the pieces that this segment puts in order."""
        start: i64 = segment.start
        end: i64 = segment.end
        if segment.seq == self._sequence and self._base >= 0 and not self.waiting:
            # Fast path for nearly all segments: in order, nothing held.
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
        """Check whether a segment of the other direction acknowledges the current hole."""
        if not segment.flags & ACK:
            return
        acked: i64 = self._place(segment.ack)
        # A number far beyond is of another connection on these ports, or damaged.
        if acked - self._expected < MAX_DISTANCE:
            self._acked = max(self._acked, acked)
        self._give_up_waiting(segment.ts, out)

    def finish(self, out: list[Piece]) -> None:
        """Emit everything held, with holes as gaps: the stream has ended."""
        while self._pending:
            self._skip_hole(out)

    def lost_before(self, sequence: i64) -> i64:
        """Return the bytes before a sequence number that were sent but never seen.

        For the end of a stream, after `finish`: a FIN reveals how many bytes preceded it.
        """
        if self._base < 0:
            return 0
        lost: i64 = self._place(sequence) - self._expected
        return lost if 0 < lost < MAX_PENDING else 0

    def forget(self) -> None:
        """Drop all held data: the stream is no longer needed."""
        self._pending = _NOTHING
        self.pending_bytes = 0
        self.waiting = False

    # -- internals ------------------------------------------------------------------------------

    def _place(self, sequence: i64) -> i64:
        """Return the 64-bit offset of a sequence number, near the expected one."""
        distance: i64 = (sequence - self._sequence) & 0xFFFFFFFF
        if distance >= 0x80000000:
            distance -= 0x100000000
        return self._expected + distance

    def _hole(self, segment: Segment, out: list[Piece]) -> None:
        """Record a gap of known length: the snap length cut the end of a segment."""
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
            self._report(FindingKind.RETRANSMISSION, segment, f"{size} bytes", offset)
            return
        if self._base >= 0 and self._pending and offset < self._pending[0].offset:
            self._report(FindingKind.OUT_OF_ORDER, segment, f"{size} bytes", offset)
        if self._insert(segment, offset, end, False):
            self._report(FindingKind.OVERLAP_MISMATCH, segment, "the first copy is used", offset)
        if segment.missing:
            self._insert(segment, end, end + segment.missing, True)
        if self._base >= 0:
            self._deliver(out)
        if self._pending:
            self._wait(segment, out)

    def _is_far(self, offset: i64) -> bool:
        """Return whether an offset is implausible for this connection."""
        distance: i64 = offset - self._expected
        return distance > MAX_DISTANCE or distance < -MAX_RETRANSMISSION

    def _restart(self, segment: Segment, out: list[Piece]) -> bool:
        """Restart after several implausible segments: a new connection without a SYN."""
        if self._far_from != self._expected:  # the stream went on in between
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
        self._report(
            FindingKind.GAP, segment, "another connection on the same ports", self._expected
        )
        self._sequence = segment.seq
        self._acked = -1
        return True

    def _is_keep_alive(self, segment: Segment, end: i64) -> bool:
        """Return whether this is a keep-alive: one byte of any value, acknowledged before."""
        # RFC 9293 (3.8.4): one sequence number before the next byte, with one garbage byte or none.
        if segment.end - segment.start != 1 or segment.missing:
            return False
        if end == self._expected:
            return self._base >= 0
        # If the real byte was not captured, only the silence before tells it from data.
        return self._last_ts != 0 and segment.ts - self._last_ts >= KEEP_ALIVE_IDLE

    def _insert(self, segment: Segment, offset: i64, end: i64, hole: bool) -> bool:
        """Insert the new bytes into the held pieces; return whether known bytes differ.

        `hole`: the bytes are known to be missing, and are held as a piece without data.
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
                # A copy: the larger chunk behind the packet must not be kept alive.
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
        """Return the index of the first held piece that ends after an offset."""
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
        """Emit the held pieces that are now in order."""
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
                else:  # cut off by the snap length
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
        """Wait for the hole before this offset."""
        # Holes that existed when the wait began share its start: separate waits would let ever
        # more bytes pile up behind many holes.
        if offset > self._mark:
            last = self._pending[len(self._pending) - 1]
            self._mark = last.offset
            self._waited = 0
            self._began = last.ts
            self._since_ack = -1
        elif offset > self._ack_mark:  # the bytes in this hole may not have been acknowledged
            self._since_ack = -1

    def _give_up_waiting(self, ts: i64, out: list[Piece]) -> None:
        """Turn the first hole into a gap if waiting for it is useless."""
        self._waited += 1
        while self.waiting and self._in_vain(ts):
            self._skip_hole(out)

    def _in_vain(self, ts: i64) -> bool:
        """Return whether the bytes of the first hole will not come any more."""
        if self.pending_bytes > MAX_PENDING:
            return True
        # Not acknowledged: the sender will retransmit them, unless the acknowledgements are not in
        # the capture, which only many packets or much time can tell.
        if self._acked < self._pending[0].offset or (self._base < 0 and self._acked < 0):
            return self._waited > UNACKED_SEGMENTS or ts - self._began > UNACKED_TIME
        # Acknowledged: the receiver has them, so they come only if they were captured out of order.
        if self._since_ack < 0:
            self._since_ack = self._waited
            self._since_ack_ts = ts
            self._ack_mark = self._acked
        return (
            self._waited - self._since_ack >= HOLD_SEGMENTS or ts - self._since_ack_ts > HOLD_TIME
        )

    def _skip_hole(self, out: list[Piece]) -> None:
        """Turn the first hole into a gap, or drop it if the start was not captured."""
        first = self._pending[0]
        length: i64 = first.offset - self._expected
        self._sequence = (self._sequence + length) & 0xFFFFFFFF
        if self._base < 0:  # captured midway: the stream begins here
            self._base = first.offset
            self._expected = first.offset
        else:
            place: i64 = self._expected - self._base
            kind, number = FindingKind.GAP, self.conversation
            info = Finding(kind, f"{length} bytes", first.ts, first.packet, number, place)
            self._findings.append(info)
            self._gap(first.packet, first.ts, length, out)
        self._deliver(out)

    def _report(self, kind: FindingKind, segment: Segment, detail: str, offset: i64) -> None:
        place: i64 = offset - self._base if self._base >= 0 else 0
        self._findings.append(
            Finding(kind, detail, segment.ts, segment.packet, self.conversation, place)
        )
