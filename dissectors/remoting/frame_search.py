"""Looking for a frame in a stream of which the frame boundary is not known.

What is searched is kept only as long as it may become a frame. A frame is certain when prefix and
header agree: JSON that parses and has `code` and `opaque`, or a binary header whose lengths add
up. Bytes are kept with the packet that brought them, so that what is found is found in its packet.
"""

from __future__ import annotations

import re
from typing import Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64

from .frame_layout import PREFIX, header_length_of, is_prefix, type_of
from .header_codec import is_header

MAX_SOUGHT_HEADER: Final = 64 * 1024
"""largest header that is believed while looking for a frame; properties are at most 32 KiB"""

_CANDIDATE: Final = re.compile(rb"(?=\x00[\x00-\xff]{3}(?:\x00[\x00-\xff]{3}\{|\x01\x00))")
"""what a frame begins with: total length below 16 MiB, type, header length, first byte"""


@final
class Range:
    """Bytes of a stream that are to be read once more."""

    __slots__ = ("at", "data", "end", "offset", "packet", "ts")

    def __init__(self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64) -> None:
        self.data = data
        self.at: i64 = at
        self.end: i64 = end
        self.offset: i64 = offset
        """offset in the stream of `data[at]`"""
        self.packet: i64 = packet
        self.ts: i64 = ts


@final
class FrameSearch:
    """Bytes in; the ranges from the first certain frame on out."""

    __slots__ = ("_from", "_pieces", "_window", "searched", "started")

    def __init__(self) -> None:
        self.searched: i64 = 0
        """bytes that were searched in vain since the last frame"""
        self.started = False
        """offset 0 is known to be where the stream starts"""
        self._window = b""
        self._pieces: list[tuple[int, int, int]] = []
        self._from: i64 = 0

    @property
    def held_bytes(self) -> i64:
        """Bytes that are kept because they may become a frame."""
        return len(self._window)

    def clear(self) -> None:
        """Forgets what is kept: the stream goes on elsewhere."""
        self._window = b""
        self._pieces = []

    def receive(
        self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64
    ) -> list[Range]:
        """The ranges to read from a certain frame on; none where there is no such frame yet."""
        if not self._window:
            self._from = offset
            self._window = data[at:end]
        else:
            self._window = self._window + data[at:end]
        self._pieces.append((offset, packet, ts))
        self.searched += end - at
        return self._scan(0, False)

    def settle(self) -> list[Range]:
        """What seemed to be a frame will not be completed: the ranges from the next one on."""
        return self._scan(1, True) if len(self._window) > PREFIX else []

    def _scan(self, place: i64, final: bool) -> list[Range]:
        """Looks through what is kept; `final`: what is not whole by now will never be."""
        window = self._window
        while True:
            found = _CANDIDATE.search(window, place)
            if found is None:
                place = max(place, len(window) - PREFIX)  # a prefix may straddle two pieces
                break
            place = found.start()
            # At the start of a stream a frame is expected: its header may be any that Java reads.
            tolerant = self.started and self._from + place == 0
            verdict: i64 = _certain(window, place, tolerant)
            if verdict > 0:
                return self._ranges_from(place)
            if verdict < 0 and not final:
                break
            place += 1
        self._window = window[place:]
        self._from += place
        pieces = self._pieces
        passed: i64 = 0
        while passed + 1 < len(pieces) and pieces[passed + 1][0] <= self._from:
            passed += 1
        if passed:
            del pieces[:passed]
        return []

    def _ranges_from(self, place: i64) -> list[Range]:
        """What is kept from this place on, each part with the packet that brought it."""
        window = self._window
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


def _certain(window: bytes, place: i64, tolerant: bool) -> i64:
    """1: a frame's prefix and header stand here; 0: they do not; -1: more bytes must tell."""
    if place + PREFIX > len(window):
        return -1
    prefix = read_i64_be(window, place)
    size: i64 = header_length_of(prefix)
    if not is_prefix(prefix) or size > MAX_SOUGHT_HEADER:
        return 0
    end: i64 = place + PREFIX + size
    if end > len(window):
        return -1
    return 1 if is_header(type_of(prefix), window[place + PREFIX : end], tolerant) else 0
