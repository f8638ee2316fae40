"""Read one range of a capture: its packets for the shares, and what there is to say about it.

The bytes come in the chunks of one process, as far as the range goes, so that `RunLayout` can say
what one process would have done when.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..expert import ExpertInfo, ExpertKind
from ..tcp.capture import CAPTURE_SHIFT, CaptureReader, Packet
from ..tcp.decompression import MOST_TIMES
from ..tcp.formats import PCAP_HEADER, reader_of
from ..tcp.no_capture import what_it_is
from ..tcp.source import CHUNK, FIRST_READ, HEAD, CaptureError, FileSource
from .packed import Packer
from .ranges import CaptureRange
from .summary import RangeSummary, chunks_of

Piece = tuple[int, bytes]
"""a share, and the next bytes of its stream"""


class RangeReader:
    """Reads one range, once."""

    def __init__(
        self, given: CaptureRange, shares: int, by_hosts: bool, max_ratio: int = MOST_TIMES
    ) -> None:
        """`max_ratio`: bytes that each byte of a compressed capture may become."""
        self._range = given
        self._packer = Packer(shares, by_hosts)
        self._by_hosts = by_hosts
        self._source = FileSource(given.name)
        self._source.max_ratio = max_ratio
        self._reader: CaptureReader | None = None
        self._end = given.start
        self._bytes = 0
        self._head = b""
        self._chunks: list[tuple[int, int, int, int]] = []
        self._found: list[ExpertInfo] = []
        self._has_secrets = False

    def pieces(self) -> Iterator[Piece]:
        """Yield pieces of the shares' streams as they fill; raise CaptureError as a run does."""
        given = self._range
        if given.start:
            self._reader = self._begun()
            self._reader.begin_at(given.start)
        try:
            number = -1
            chunks = enumerate(self._source.chunks()) if given.is_whole else self._file_chunks()
            for number, chunk in chunks:
                self._receive(number, chunk)
                yield from self._packer.pieces()
            self._finish(number)
        finally:
            self._source.close()
        yield from self._packer.rest()

    def summary(self) -> RangeSummary:
        """Return what was read, when all of it was."""
        given = self._range
        read = self._source.bytes_read if given.is_whole else self._bytes
        return RangeSummary(
            capture=given.capture,
            start=given.start,
            end=given.start + read,
            bytes=read,
            packets=self._reader.packets if self._reader is not None else 0,
            chunks=chunks_of(self._chunks),
            by_hosts=self._by_hosts,
            has_secrets=self._has_secrets,
            findings=[(info.kind.name, *info[1:]) for info in self._found],
        )

    def _begun(self) -> CaptureReader:
        """Return a reader that has read what is before the first packet, and nothing else."""
        reader = reader_of(self._range.capture, self._range.head)
        assert reader is not None
        reader.receive(b"")
        return reader

    def _file_chunks(self) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes up to the end of the range, in the chunks of one process, numbered."""
        ends = iter(self._range.ends)
        end = next(ends, None)
        at = self._range.start
        with open(self._range.name, "rb", buffering=0) as file:
            file.seek(at)
            while True:
                number, stop = _chunk_at(at)
                chunk = file.read((stop if end is None else min(stop, end)) - at)
                if not chunk:
                    return
                at += len(chunk)
                self._bytes += len(chunk)
                yield number, chunk
                if at == end:
                    assert self._reader is not None
                    if self._reader.is_alike(self._begun()):
                        return
                    end = next(ends, None)

    def _receive(self, number: int, chunk: bytes) -> None:
        reader = self._reader
        if reader is None:
            self._head += chunk
            if len(self._head) < PCAP_HEADER:
                return
            reader = self._reader = reader_of(self._range.capture, self._head)
            if reader is None:
                return
            chunk = b""  # the reader has it
        size = reader.waiting + len(chunk)
        self._note(number, size, reader, reader.receive(chunk))

    def _note(self, number: int, size: int, reader: CaptureReader, packets: list[Packet]) -> None:
        """Pack the packets of a chunk, and what comes with them."""
        self._pack_secrets(reader, packets)
        self._packer.pack(packets)
        self._found += reader.take_experts()
        self._found += self._packer.segments.experts
        self._packer.segments.experts.clear()
        last = packets[-1].ts if packets else 0
        if self._chunks and self._chunks[-1][0] == number:
            had = self._chunks.pop()
            self._chunks.append((number, had[1] + len(packets), had[2] + size, last or had[3]))
        else:
            self._chunks.append((number, len(packets), size, last))

    def _pack_secrets(self, reader: CaptureReader, packets: list[Packet]) -> None:
        """Pack secrets: in one process a chunk's are known before its packets."""
        if not reader.secrets:
            return
        self._has_secrets = True
        first = (self._range.capture << CAPTURE_SHIFT) + reader.packets - len(packets) + 1
        for text in reader.secrets:
            self._packer.pack_secrets(Packet(first, 0, 0, b"", 0, 0, 0), text)
        reader.secrets.clear()

    def _finish(self, number: int) -> None:
        """Finish behind the last chunk; a range that ends where another begins needs nothing."""
        given = self._range
        reader = self._reader
        if reader is None:
            self._refuse()
        elif given.is_whole or self._is_at_end():
            size = reader.waiting
            self._note(number + 1, size, reader, reader.finish(self._source.problem))

    def _is_at_end(self) -> bool:
        """Return whether the file was read up to its end."""
        return not self._range.ends or self._range.start + self._bytes not in self._range.ends

    def _refuse(self) -> None:
        """Say that a file is no capture: an error where it is the only one, else a finding."""
        reason, hint = what_it_is(self._head, self._source.problem)
        if self._range.is_alone:
            raise CaptureError(self._range.name, reason, 0, hint)
        detail = f"{self._range.name}: {reason}"
        self._found.append(ExpertInfo(ExpertKind.CAPTURE_DAMAGED, detail, 0, 0, -1, 0))


def _chunk_at(offset: int) -> tuple[int, int]:
    """Return the number and the end of the chunk that a byte of a file is in."""
    if offset < HEAD:
        return 0, HEAD
    if offset < FIRST_READ:
        return 1, FIRST_READ
    place = (offset - FIRST_READ) // CHUNK
    return 2 + place, FIRST_READ + (place + 1) * CHUNK
