"""Search for a frame in a stream with an unknown frame boundary.

Bytes are kept only while they may become a frame. A frame is certain if prefix and header agree:
JSON that parses and has `code` and `opaque`, or a binary header whose lengths add up. Bytes keep
the id of their packet, so frames are reported with the right packet.
"""

from __future__ import annotations

import re
from typing import Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64

from ..header_codec import is_header
from .frame import PREFIX, header_length_of, is_prefix, type_of

MAX_SOUGHT_HEADER: Final = 64 * 1024
"""maximum header bytes accepted in a search; properties are at most 32 KiB"""

WORK_PER_BYTE: Final = 16
"""header bytes earned per skipped byte: a few times the needs of real traffic"""
FREE_WORK: Final = 16 * MAX_SOUGHT_HEADER
"""header bytes at the start of a stream, before any byte was skipped"""

PART_COST: Final = 128
"""memory overhead of a kept part: dominates for tiny parts"""

_NO_PARTS: Final[list[bytes]] = []
_NO_PIECES: Final[list[tuple[int, int, int]]] = []
"""shared empty list, never modified: most streams keep nothing"""
_CANDIDATE: Final = re.compile(
    rb"(?=\x00[\x00-\xff]{3}(?:\x00[\x00-\xff]{3}(?:\{|[\t\n\r ]{1,16}(?:\{|\Z))|\x01\x00))"
)
"""start of a frame: total length below 16 MiB, type, header length, first byte, which may follow
white space in some clients
"""


@final
class Range:
    """Bytes of a stream to read again."""

    __slots__ = ("at", "data", "end", "offset", "packet", "ts")

    def __init__(self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64) -> None:
        self.data = data
        self.at: i64 = at
        self.end: i64 = end
        self.offset: i64 = offset
        """stream offset of `data[at]`"""
        self.packet: i64 = packet
        self.ts: i64 = ts


@final
class FrameSearch:
    """Searches bytes; returns the ranges from the first certain frame on.

    A candidate must pay for the header length that it claims, from the credit of skipped bytes,
    before it is kept or judged; otherwise it is no candidate. Work and copies stay linear in the
    stream, and results do not depend on packet boundaries.
    """

    __slots__ = (
        "_from",
        "_held",
        "_kept",
        "_need",
        "_paid",
        "_parts",
        "_passed",
        "_pieces",
        "_spent",
        "searched",
        "started",
        "work",
    )

    def __init__(self) -> None:
        self.searched: i64 = 0
        """bytes searched without success since the last frame"""
        self.started = False
        """the stream is known to start at offset 0"""
        self.work: i64 = 0
        """bytes examined, joined, or judged since the start of the stream"""
        self._parts = _NO_PARTS
        self._held: i64 = 0
        self._pieces = _NO_PIECES
        self._from: i64 = 0  # stream offset of the kept bytes
        self._need: i64 = 0  # bytes needed before the candidate at their start is judged
        self._kept: i64 = 0  # start of the kept part in the scanned bytes
        self._paid: i64 = -1  # stream offset of the kept candidate that has paid
        self._passed: i64 = 0  # bytes skipped since the start of the stream
        self._spent: i64 = 0

    @property
    def held_bytes(self) -> i64:
        """Bytes kept because they may become a frame."""
        return self._held

    @property
    def held_parts(self) -> i64:
        """Number of kept parts."""
        return len(self._parts) + len(self._pieces)

    @property
    def earliest_held(self) -> i64:
        """Packet id of the earliest undecided candidate, or -1."""
        if self._need <= PREFIX or not self._pieces:
            return -1
        return self._pieces[0][1]

    def clear(self) -> None:
        """Drop kept bytes: the stream continues elsewhere."""
        self._parts = _NO_PARTS
        self._held = 0
        self._pieces = _NO_PIECES
        self._need = 0
        self._paid = -1

    def receive(
        self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64
    ) -> list[Range]:
        """Return the ranges from a certain frame on, or none if there is none yet."""
        self.searched += end - at
        if not self._held:
            place = self._scan(data, at, at, end, offset, False)
            if place >= 0:
                self.clear()
                self.searched = 0
                return [Range(data, place, end, offset + place - at, packet, ts)]
            self._keep(data[self._kept : end], offset + self._kept - at)
            self._pieces = [(int(self._from), int(packet), int(ts))] if self._held else _NO_PIECES
            return []
        self._parts.append(data[at:end])
        self._held += end - at
        self.work += end - at
        self._pieces.append((int(offset), int(packet), int(ts)))
        return self._scan_kept(0, False) if self._held >= self._need else []

    def settle(self) -> list[Range]:
        """Return the ranges from the next frame on; incomplete candidates are dropped."""
        # From 1: the kept bytes begin with the candidate that will not be completed.
        return self._scan_kept(1, True) if self._held > PREFIX else []

    def _scan_kept(self, place: i64, final: bool) -> list[Range]:
        window = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self.work += len(window)
        found = self._scan(window, 0, place, len(window), self._from, final)
        if found >= 0:
            return self._ranges_from(window, found)
        self._keep(window[self._kept :], self._from + self._kept)
        pieces = self._pieces
        passed: i64 = 0
        # Packets whose bytes are all dropped are no longer needed.
        while passed + 1 < len(pieces) and pieces[passed + 1][0] <= self._from:
            passed += 1
        if passed:
            del pieces[:passed]
        return []

    def _keep(self, rest: bytes, offset: i64) -> None:
        self._parts = [rest] if rest else _NO_PARTS
        self._held = len(rest)
        self.work += self._held
        self._from = offset

    def _scan(
        self, window: bytes, start: i64, place: i64, end: i64, offset: i64, final: bool
    ) -> i64:
        """Return the place of a certain frame in `window[place:end]`, or -1.

        `offset` is that of `window[start]`. Sets the bytes to keep and the number needed; `final`:
        incomplete candidates are dropped.
        """
        self._need = 0
        first: i64 = place
        while True:
            found = _CANDIDATE.search(window, place, end)
            if found is None:
                place = max(place, end - PREFIX)  # a prefix may straddle two pieces
                break
            place = found.start()
            if place + PREFIX > end:
                if not final:
                    self._need = PREFIX
                    break
            elif self._may_begin(window, start, place, offset):
                prefix = read_i64_be(window, place)
                stop: i64 = place + PREFIX + header_length_of(prefix)
                if stop <= end:
                    # At the start of a stream a frame is expected: any header that Java reads.
                    tolerant = self.started and offset + place == start
                    if is_header(type_of(prefix), window[place + PREFIX : stop], tolerant):
                        self._passed += place - start
                        self.work += place - first
                        return place
                elif not final:
                    self._need = stop - place
                    break
            place += 1
        self._passed += place - start
        self.work += end - first
        self._kept = place
        return -1

    def _may_begin(self, window: bytes, start: i64, place: i64, offset: i64) -> bool:
        """Return whether a prefix is here, and its header can be paid for."""
        prefix = read_i64_be(window, place)
        size: i64 = header_length_of(prefix)
        if not is_prefix(prefix) or size > MAX_SOUGHT_HEADER:
            return False
        where: i64 = offset + place - start
        if where == self._paid:  # when it was first seen
            return True
        passed: i64 = self._passed + place - start
        # Otherwise each of many hostile bytes could claim 64 KiB to be kept and judged.
        if self._spent + size > FREE_WORK + WORK_PER_BYTE * passed:
            return False
        self._spent += size
        self._paid = where
        self.work += size
        return True

    def _ranges_from(self, window: bytes, place: i64) -> list[Range]:
        """Return the kept bytes from this place on, by packet."""
        pieces = self._pieces
        start: i64 = self._from
        self.clear()
        self.searched = 0
        ranges: list[Range] = []
        for index in range(len(pieces)):
            offset, packet, ts = pieces[index]
            low: i64 = max(place, offset - start)
            high: i64 = len(window)
            if index + 1 < len(pieces):
                high = pieces[index + 1][0] - start
            if low < high:
                ranges.append(Range(window, low, high, start + low, packet, ts))
        return ranges
