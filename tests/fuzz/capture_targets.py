"""What is fuzzed of captures: files, packets, segments, streams and frames, through all stages."""

from __future__ import annotations

import struct
from collections.abc import Callable

from dissectors.decode.command_order import CommandStages
from dissectors.decode.command_row import CommandLineWriter
from dissectors.decode.exchange import Exchange
from dissectors.decode.exchange_row import record_of
from dissectors.decode.pipeline import CommandSeen
from dissectors.decode.stages import ExchangeStages
from dissectors.findings import Finding
from dissectors.grpc.definition import METHODS
from dissectors.message_rows.message_table import MessageTable
from dissectors.remoting.framing.frame import Frame
from dissectors.remoting.framing.frame_decoder import KEEP_ALL, KEEP_MESSAGES, FrameDecoder
from dissectors.remoting.header_codec import decode_header
from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.record import STATUSES, ExchangeRecord
from dissectors.rows.tables import csv_of, jsonl_of, row_encoder
from dissectors.tcp.capture import CaptureReader, Packet
from dissectors.tcp.formats import PCAP_HEADER, reader_of
from dissectors.tcp.reassembly import Data, Piece, StreamReassembler
from dissectors.tcp.segment import Segment
from dissectors.tcp.segment_reader import SegmentReader
from rmqtool.decode.tree import Tree
from tests.traffic.captures import pcap_of
from tests.traffic.http2 import Http2Writer
from tests.traffic.talk import Talk


def capture(data: bytes) -> None:
    """Bytes as a capture file, in chunks of a size that they say themselves."""
    reader = reader_of(0, data[:PCAP_HEADER])
    if reader is None:
        return
    step = 1 + data[-1] * 16
    _through(reader, data[PCAP_HEADER:], step)


def said(data: bytes) -> bytes:
    """A capture of what two ends say to each other: the first byte says where it is cut."""
    if len(data) < 4:
        return b""
    size = 1 + data[0]
    talk = Talk().open() if data[1] & 1 else Talk()
    for index, at in enumerate(range(2, len(data), size)):
        talk.say(index & 1 if data[1] & 2 else 0, data[at : at + size])
    return pcap_of(talk.segments)


def stream(data: bytes) -> None:
    """Bytes as what two ends say to each other."""
    capture(said(data))


def called(data: bytes) -> bytes:
    """A capture of a call of gRPC: method, how its answer is made and cut, what is lost; the texts.

    With a method beyond 127 the first bytes of both ends were not captured.
    """
    if len(data) < 4:
        return b""
    method = METHODS[data[0] % len(METHODS)].name
    at = 4 + data[2]
    client, server = Http2Writer(), Http2Writer(is_client=False)
    joined = data[0] > 127
    if joined:
        client.data.clear()
        server.data.clear()
    client.call(1, method, data[4:at])
    if data[1] & 1:
        server.answer(1, data[at:], str(data[1] >> 4))
    else:
        server.headers(1, [(":status", "200"), ("grpc-encoding", "gzip")])
        server.data += data[at:]
    asked = bytearray(client.data)
    if data[1] & 2:
        asked[data[3] % len(asked)] ^= data[1]
    talk = Talk(mss=1 + 16 * (data[1] >> 2)).open() if data[1] & 8 and not joined else Talk()
    sides = (0, 1) if data[3] & 0x40 == 0 else (1, 0)  # answers may be captured first
    for side in sides:
        talk.say(side, (bytes(asked), bytes(server.data))[side])
    seen = talk.close().segments
    if data[3] & 0x80 and len(seen) > 4:
        del seen[4 + (data[3] & 0x7F) % (len(seen) - 4)]
    return pcap_of(seen)


def calls(data: bytes) -> None:
    """A call of gRPC."""
    capture(called(data))


def packets(data: bytes) -> None:
    """A link type, then packets, each behind its length."""
    reader = SegmentReader()
    reader.acks_wanted = True
    linktype = (1, 113, 276, 0, 101, 108, 228, 229)[data[0] & 7] if data else 1
    at = 1
    number = 0
    while at + 2 <= len(data):
        (size,) = struct.unpack_from(">H", data, at)
        end = min(at + 2 + (size & 0x7FF), len(data))
        number += 1
        packet = Packet(number, number, linktype, data, at + 2, end, end - at - 2 + (size >> 13))
        found = reader.segment_of(packet)
        if found is not None:
            assert 0 <= found.start <= found.end <= len(found.data)
            assert found.missing >= 0
        at = end
    reader.finish()


def segments(data: bytes) -> None:
    """Segments of one stream, nine bytes each: where, how long, how much later, what it is."""
    stream = bytes(range(256)) * 300
    machine = StreamReassembler(0, [])
    given = 0
    for at in range(0, len(data) - 8, 9):
        place, size, later, kind = struct.unpack_from(">HHIB", data, at)
        out: list[Piece] = []
        seq = (0xFFFFF000 + place) & 0xFFFFFFFF
        signed = ((seq ^ 0x80000000) - 0x80000000) << 32
        end = max(place, min(place + (size & 0xFFF), 70_000))
        flags = 2 if kind & 15 == 0 else 16
        ts = at * 1000 + (later & 0xFFFF) * 1_000_000
        missing = (kind >> 6) * 50
        segment = Segment(at, ts, b"", signed | seq, flags, 0, stream, place, end, missing)
        if flags == 2:
            machine.synchronize(segment, out)
        elif kind & 16 and machine.waiting:
            machine.acknowledge(segment, out)
        elif kind & 32 and kind & 15 == 1:
            machine.finish(out)
        else:
            machine.receive(segment, out)
        for piece in out:
            assert piece.offset == given
            if isinstance(piece, Data):
                assert piece.end > piece.start
                given += piece.end - piece.start
            else:
                given += piece.length
    assert machine.pending_bytes >= 0


def frames(data: bytes) -> None:
    """Parts of a stream, each behind a byte that says its size, or that it is a gap."""
    found: list[Frame] = []
    decoder = FrameDecoder(0, [], KEEP_ALL, bool(data[:1] and data[0] & 1))
    decoder.search.started = bool(data[:1] and data[0] & 2)
    at = 1
    offset = 0
    number = 0
    while at < len(data):
        size = data[at]
        number += 1
        if size >= 250:
            decoder.receive_gap((size - 250) * 40, number, number, found)
            offset += (size - 250) * 40
            at += 1
            continue
        end = min(at + 1 + size, len(data))
        decoder.receive(data, at + 1, end, offset, number, number, found)
        offset += end - at - 1
        at = end
    decoder.finish(found)
    assert decoder.held_bytes == 0
    for one in found:
        assert 0 <= one.missing <= one.body_length
        assert len(one.body) + one.missing <= one.body_length
        decode_header(one.serialize_type, one.header)


def whole(data: bytes) -> None:
    """A capture in one chunk."""
    reader = reader_of(0, data[:PCAP_HEADER])
    assert reader is not None
    _through(reader, data[PCAP_HEADER:], len(data))


def _through(reader: CaptureReader, data: bytes, step: int) -> None:
    """Through all stages, once as rows and once as commands taken apart."""
    packets = []
    for at in range(0, len(data), step):
        packets += reader.receive(data[at : at + step])
    packets += reader.finish()
    for info in reader.take_findings():
        assert isinstance(info, Finding)
    rows, whole = ExchangeStages(frozenset(), KEEP_MESSAGES), CommandStages(frozenset())
    kept = ExchangeStages(frozenset(), KEEP_MESSAGES, messages=True)
    for stages in (rows, kept, whole):
        stages.receive(packets)
        stages.finish()
        for info in stages.take_findings():
            assert isinstance(info, Finding)
            assert not info.detail.startswith("not decoded"), info
    _look_at_rows(rows.take_exchanges())
    _look_at_rows(kept.take_exchanges())
    _look_at_commands(whole.take_commands())


def _look_at_commands(commands: list[CommandSeen]) -> None:
    for one in commands:
        CommandLineWriter(["x"], 256).line_of(one)
        for info in one.pdu.findings or ():
            assert not info.detail.startswith("not decoded"), info
    for one in commands:
        exchange = Exchange(one.request, one.pdu) if one.pdu.flag & 1 else Exchange(one.pdu, None)
        Tree(["x"], True, 256).exchange(exchange)


def _look_at_rows(exchanges: list[Exchange]) -> None:
    records = [record_of(one, "x") for one in exchanges]
    table, findings = MessageTable(body_limit=64), list[Finding]()
    for one, record in zip(exchanges, records, strict=True):
        for row in table.rows_of(one.request, one.response, record, findings):
            assert isinstance(row, MessageRecord)
    _look_at_lines(exchanges, records, findings)
    assert not any(info.detail.startswith("not decoded") for info in findings), findings
    for record in records:
        assert isinstance(record, ExchangeRecord)
        assert record.status in STATUSES
    jsonl_of(records)
    csv_of(records)


def _look_at_lines(
    exchanges: list[Exchange], records: list[ExchangeRecord], findings: list[Finding]
) -> None:
    """Messages as lines are those of their rows."""
    table, lines = MessageTable(), MessageTable()
    written = lines.as_lines()
    rows = []
    for one, record in zip(exchanges, records, strict=True):
        rows += table.rows_of(one.request, one.response, record, findings)
        assert not lines.rows_of(one.request, one.response, record, findings)
    assert written.waiting == len(rows)
    assert written.take() == _MESSAGE_LINES(rows)


_MESSAGE_LINES = row_encoder((column.name, column.type) for column in MESSAGE_COLUMNS)
TARGETS: dict[str, Callable[[bytes], None]] = {
    "capture": capture,
    "packets": packets,
    "segments": segments,
    "frames": frames,
    "stream": stream,
    "calls": calls,
}
"""name and what takes the bytes"""
