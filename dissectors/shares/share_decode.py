"""Decode one share of the connections from the packets that the readers of ranges packed for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from ..decode.pipeline import Decode, DecodeOptions
from ..decode.secrets import left_out_of
from ..decode.stages import Stages
from ..expert import ExpertInfo, ExpertKind
from ..tcp.capture import Packet
from ..tcp.source import CHUNK, BytesSource
from .packed import FRAGMENT, SECRETS, Unpacker, share_of
from .summary import RunLayout

END = sys.maxsize
"""behind all packets"""
MAX_LINKTYPES = 64
"""link types that are said not to be decoded: as many as by one process"""

RangeBytes = tuple[tuple[int, int], bytes]
"""capture and start of a range, and the next bytes that it has for the share"""


class ShareDecode(Decode):
    """A run over one share; all else is as in `Decode`.

    A conversation's number is the id of its first packet: the order of numbers is that of one
    process, which counts them. Limits of memory are those of the share.
    """

    def __init__(
        self,
        names: Sequence[str],
        options: DecodeOptions,
        layout: RunLayout,
        share: int,
        shares: int,
        stream: Iterable[RangeBytes],
    ) -> None:
        """`names`: what rows call the captures; `stream`: in the order of the ranges."""
        super().__init__([BytesSource(name, b"") for name in names], options)
        self._layout = layout
        self._share = share
        self._shares = shares
        self._stream = stream
        self._sweeps = iter(layout.sweeps)
        self._next = next(self._sweeps, None)

    def take_experts(self) -> list[ExpertInfo]:
        """Return the findings since the last call; those of no connection in the first share."""
        found = super().take_experts()
        return [info for info in found if self._share == 0 or info.conversation >= 0]

    def _drive(self, stages: Stages) -> Iterator[None]:
        self._stages = stages
        stages.table.numbers_are_packets = True
        unpacker = Unpacker()
        read: tuple[int, int] | None = None
        for place, data in self._stream:
            before = self._layout.before.get(place)
            if before is None:
                continue  # the task of the range before has read it, too
            if place != read:
                unpacker = Unpacker()
                read = place
            unpacker.receive(data)
            self._take(stages, unpacker, before)
            self._collect_experts(stages, [])
            yield
        self._sweep_before(stages, END)
        stages.finish()
        self._collect_experts(stages, _once(self._layout.findings) + left_out_of(self._secrets))
        self._count(stages)
        yield

    def _take(self, stages: Stages, unpacker: Unpacker, before: int) -> None:
        """Take the packets that are there, and sweep where one process does."""
        while True:
            last = END if self._next is None else self._next.packet
            stages.take(unpacker.packets(before, last))
            other = unpacker.other
            if other is not None:
                self._take_other(stages, unpacker.kind, other)
            elif unpacker.is_behind(before, last):
                self._sweep_before(stages, last + 1)
            else:
                return

    def _take_other(self, stages: Stages, kind: int, record: Packet) -> None:
        if kind == SECRETS:
            self._secrets.add_from_capture(record.data[record.start : record.end])
        elif kind == FRAGMENT:
            segment = stages.segments.segment_of(record)
            by_hosts = self._layout.by_hosts
            if segment and share_of(segment.key, by_hosts, self._shares) == self._share:
                stages.take_segment(segment)

    def _sweep_before(self, stages: Stages, packet: int) -> None:
        """Sweep as one process has done before a packet."""
        while self._next is not None and self._next.packet < packet:
            stages.sweep(self._next.time, self._next.packet)
            self._next = next(self._sweeps, None)


def joined(pieces: Iterable[RangeBytes]) -> Iterator[RangeBytes]:
    """Yield pieces of a stream as chunks that are worth a call."""
    place: tuple[int, int] | None = None
    parts: list[bytes] = []
    size = 0
    for where, data in pieces:
        if parts and (where != place or size >= CHUNK):
            assert place is not None
            yield place, b"".join(parts)
            parts, size = [], 0
        place = where
        parts.append(data)
        size += len(data)
    if parts and place is not None:
        yield place, b"".join(parts)


def _once(found: Sequence[ExpertInfo]) -> list[ExpertInfo]:
    """Return findings of ranges; each link type is said once, as by one process."""
    linktypes: set[str] = set()
    kept = []
    for info in found:
        if info.kind is ExpertKind.UNSUPPORTED_LINKTYPE:
            if info.detail in linktypes or len(linktypes) >= MAX_LINKTYPES:
                continue
            linktypes.add(info.detail)
        kept.append(info)
    return kept
