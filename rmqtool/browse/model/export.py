"""Export of selected rows to files and to command lines.

Rules: existing files are not replaced. Only the user can read the files: they have message bodies.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final

from dissectors.endpoint import host_and_port_text
from dissectors.rows.tables import row_encoder
from dissectors.tcp.capture import Packet
from dissectors.tcp.decompression import MOST_TIMES
from dissectors.tcp.formats import PCAP_HEADER, reader_of
from dissectors.tcp.pcapng_writer import PcapngWriter
from dissectors.tcp.segment import SYN
from dissectors.tcp.segment_reader import SegmentReader
from dissectors.tcp.source import StoredSource, sources_of
from dissectors.temporary import PRIVATE, create_new, remove, temporary_beside

from ...api.packet_filters import packet_filters
from ...ui.console import one_line
from ...ui.json_array import ArrayText
from .columns import COLUMNS_OF
from .disk import RowStore
from .frames import KeptExchange, KeptFrame

_BATCH: Final = 1000
MOST_NUMBERS: Final = 1000
"""most rows that an expression lists individually"""


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that gets its name once it is complete; raise OSError if the name exists."""
    temporary = temporary_beside(path)
    try:
        with create_new(temporary, PRIVATE) as file:
            yield file
        try:
            os.link(temporary, path)  # fails if the name exists; a rename would replace that file
        except FileExistsError:
            raise
        except OSError:  # a file system without links, such as vfat: replace only what we create
            create_new(path, PRIVATE).close()
            os.replace(temporary, path)
    finally:
        remove(temporary)


def write_rows(store: RowStore[Any], numbers: Sequence[int], table: str, path: Path) -> int:
    """Write rows as JSON or Parquet, by the file's name; return how many. Raise OSError."""
    types = [(column.name, column.type) for column in COLUMNS_OF[table]]
    written = 0
    with new_file(path) as file:
        if path.suffix == ".parquet":
            from dissectors.rows.parquet import ParquetRows, RowTable

            form = RowTable((name, kind, attrgetter(name)) for name, kind in types)
            parquet = ParquetRows(file, form)
            for rows in _batches(store, numbers):
                parquet.write(rows)
                written += len(rows)
            parquet.finish()
        else:
            encode = row_encoder(types)
            array = ArrayText() if path.suffix == ".json" else None
            for rows in _batches(store, numbers):
                lines = encode(rows)
                file.write(lines if array is None else array.rows(lines))
                written += len(rows)
            if array is not None:
                file.write(array.end())
    return written


def _batches(store: RowStore[Any], numbers: Sequence[int]) -> Iterator[list[Any]]:
    for start in range(0, len(numbers), _BATCH):
        some = numbers[start : start + _BATCH]
        yield [row for number in some if (row := store.row(number)) is not None]


def command_of(names: Sequence[str], read: Sequence[str], table: str, where: str) -> str:
    """Return the command line that lists the same rows; `read`: input options."""
    view = {"messages": " --list-messages"}.get(table, "")
    option = f" --where {shlex.quote(where)}" if where else ""
    return f"rmqtool decode pcap {shlex.join((*names, *read))}{view}{option}"


def replay_of(names: Sequence[str], read: Sequence[str], where: str) -> list[str]:
    """Return the arguments that replay the sends, without a target."""
    return ["rmqtool", "replay", *names, *read, *(["--where", where] if where else [])]


def wireshark_of(rows: Sequence[Any]) -> list[str]:
    """Return a display filter per capture: for the packets of rows, or their connections."""
    filters = packet_filters(rows)
    if not filters:
        pairs = dict.fromkeys((row.client_address, row.server_address) for row in rows)
        return [" or ".join(f"({_ends(*pair)})" for pair in pairs)]
    if len(filters) == 1:
        return list(filters.values())
    return [f"{one_line(name)}: {text}" for name, text in filters.items()]


def _ends(*ends: str) -> str:
    """Return the display filter of a connection by its ends: Wireshark has other numbers."""
    terms = []
    for end in ends:
        host, port = host_and_port_text(end)
        terms.append(f"{'ipv6' if ':' in host else 'ip'}.addr == {host} and tcp.port == {port}")
    return " and ".join(terms)


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def where_of(rows: Sequence[Any], table: str) -> str:
    """Return the expression for single rows: by connection, packet, and request id."""
    if table == "connections":
        return f"conversation in ({_listed(row.conversation for row in rows)})"
    by_conversation: dict[int, list[Any]] = {}
    for row in rows:
        by_conversation.setdefault(row.conversation, []).append(row)
    parts = []
    for conversation, matches in by_conversation.items():
        packets = dict.fromkeys(
            number for row in matches if (number := _packet_of(row)) is not None
        )
        # A packet alone is not enough: each capture has one of that number, with many requests in
        # it.
        part = f"conversation == {conversation} and packet in ({_listed(packets)})"
        if table == "exchanges":
            part += f" and opaque in ({_listed(dict.fromkeys(row.opaque for row in matches))})"
        parts.append(part)
    return parts[0] if len(parts) == 1 else " or ".join(f"({part})" for part in parts)


def _packet_of(row: Any) -> int | None:
    for name in ("request_packet", "response_packet") if hasattr(row, "status") else ("packet",):
        number: int | None = getattr(row, name)
        if number is not None:
            return number
    return None


_PREFIX = 8
"""bytes of a frame before its header: two lengths, of which the second has the type in it"""
_WRAP = 1 << 32
"""TCP numbers bytes modulo this"""


def packets_in(names: Sequence[str], max_ratio: int = MOST_TIMES) -> Iterator[Packet]:
    """Yield all packets of captures, with the ids that a decode run assigns.

    `max_ratio`: bytes that each byte of a compressed capture may become.
    """
    for index, source in enumerate(sources_of(names)):
        if isinstance(source, StoredSource):
            source.max_ratio = max_ratio
        head, reader = b"", None
        try:
            for chunk in source.chunks():
                if reader is not None:
                    yield from reader.receive(chunk)
                    continue
                head += chunk
                if len(head) >= PCAP_HEADER:
                    reader = reader_of(index, head)
                    if reader is None:
                        break
                    yield from reader.receive(b"")
            if reader is not None:
                yield from reader.finish(source.problem)
        finally:
            source.close()


class _Direction:
    """The frames to find in one direction."""

    def __init__(self) -> None:
        self.frames: list[KeptFrame] = []
        self.base: int | None = None
        """sequence number of the first byte, from which frames have their offsets"""
        self.isn: int | None = None
        """initial sequence number, which tells a new connection from a repeated SYN"""
        self.found: dict[int, set[int]] = {}
        """place of a frame → packets that may carry it"""

    def receive(self, packet: int, seq: int, length: int) -> Iterator[int]:
        """Add a segment; yield the packets of the frames that it completes."""
        if self.base is None:
            self.base = seq
        start = (seq - self.base) % _WRAP
        for place, frame in enumerate(self.frames):
            if packet > frame.packet:  # the frame was complete
                continue
            first = frame.offset % _WRAP
            size = _PREFIX + len(frame.header) + frame.body_length
            # The frame, the segment, or both may cross the wrap.
            if (start - first) % _WRAP < size or (first - start) % _WRAP < length:
                self.found.setdefault(place, set()).add(packet)
            if packet == frame.packet:
                yield packet
                yield from self.found.pop(place, ())


def packet_ids(names: Sequence[str], chosen: Sequence[KeptExchange], max_ratio: int) -> set[int]:
    """Return the ids of the packets that carried these exchanges."""
    directions: dict[bytes, _Direction] = {}
    last = -1
    for exchange in chosen:
        for frame in (exchange.request, exchange.response):
            if frame is not None:
                directions.setdefault(frame.key, _Direction()).frames.append(frame)
                last = max(last, frame.packet)
    segments = SegmentReader()
    ids: set[int] = set()
    for packet in packets_in(names, max_ratio):
        # Ids only grow, so the rest of the captures need not be read.
        if packet.packet > last:
            break
        segment = segments.segment_of(packet)
        direction = None if segment is None else directions.get(segment.key)
        if segment is None or direction is None:
            continue
        if segment.flags & SYN and segment.seq != direction.isn:
            direction.isn = segment.seq
            direction.base = (segment.seq + 1) % _WRAP
            direction.found.clear()  # of another connection with the same ports
        length = segment.end - segment.start + segment.missing
        if length:
            ids.update(direction.receive(packet.packet, segment.seq, length))
    return ids | {
        sought.packet
        for of in directions.values()
        for sought in of.frames
        if sought.packet not in ids
    }


def write_packets(
    names: Sequence[str],
    chosen: Sequence[KeptExchange],
    path: Path,
    max_ratio: int = MOST_TIMES,
) -> int:
    """Write the packets of exchanges; return how many. Raise OSError, CaptureError.

    The captures are read twice: to find the packets of each frame, and to write them. In decrypted
    streams (TLS) only the packet that completed the frame is written.
    """
    ids = packet_ids(names, chosen, max_ratio)
    writer: PcapngWriter | None = None
    with new_file(path) as file:
        for packet in packets_in(names, max_ratio):
            if packet.packet in ids:
                if writer is None:
                    writer = PcapngWriter(file, packet.linktype)
                data = packet.data[packet.start : packet.end]
                interface = writer.interface_of(packet.linktype)  # captures may differ
                writer.write(packet.ts, data, packet.length, interface=interface)
    return 0 if writer is None else writer.packets
