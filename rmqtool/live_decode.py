"""`Decode` over bytes that are no file: a live capture, a stream that was typed in.

The source gives the bytes of a capture, chunk by chunk, like `ByteSource`; everything behind it is
the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

from dissectors.pipeline import CaptureStats, Decode, DecodeOptions
from dissectors.stages import Stages
from dissectors.tcp.source import ByteSource


class Source(Protocol):
    """What `Decode` needs of a source; see `ByteSource`."""

    name: str
    """what rows call the capture"""
    problem: str | None
    """why it ended by itself; None: it was its end"""
    bytes_read: int
    """bytes given so far"""

    def chunks(self) -> Iterator[bytes]:
        """The bytes of a pcap or pcapng in order; an empty chunk: there is nothing new yet."""

    def close(self) -> None:
        """Nothing more is read."""


class SourceDecode(Decode):
    """One run over one source. It is closed when it was read, or with `close`."""

    def __init__(self, source: Source, options: DecodeOptions | None = None) -> None:
        super().__init__(["-"], options)
        self.sources = [source.name]
        self._given = source

    def close(self) -> None:
        """Reads nothing more."""
        self._given.close()

    def _read(self, stages: Stages, index: int) -> Iterator[None]:
        source = self._given
        stats = CaptureStats(source.name)
        self.stats.captures.append(stats)
        self._source = cast(ByteSource, source)
        try:
            yield from self._read_chunks(stages, index, cast(ByteSource, source), stats)
        finally:
            stats.bytes = source.bytes_read
            self.read_before = source.bytes_read
            self._source = None
            source.close()
            stats.skipped = dict(stages.segments.skipped)
            self._count(stages)
