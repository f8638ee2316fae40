"""What is fuzzed: any bytes in, only the declared types out, and never an exception.

Each target takes bytes and raises AssertionError where something undeclared comes out. They run
under the fuzzer (`python -m tests.fuzz`) and, over the kept corpus, as a test.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from dissectors.command_row import command_row_of, json_of
from dissectors.exchange import Exchange
from dissectors.expert import ExpertInfo
from dissectors.pipeline import CommandSeen
from dissectors.record import STATUSES, ExchangeRecord
from dissectors.remoting.bodies import body_value, decode_body
from dissectors.remoting.codes import OPERATIONS
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.frame import KEEP_ALL, KEEP_MESSAGES, Frame, FrameDecoder
from dissectors.remoting.header_codec import decode_header, encode_header, is_header
from dissectors.remoting.headers import typed_header
from dissectors.row import record_of
from dissectors.stages import Stages
from dissectors.tables import csv_of, jsonl_of
from dissectors.tcp.capture import CaptureReader, Packet
from dissectors.tcp.formats import PCAP_HEADER, PcapReader, reader_of
from dissectors.tcp.reassembly import Data, Piece, StreamReassembler
from dissectors.tcp.segment import Segment, SegmentReader
from tests.traffic.captures import pcap_of
from tests.traffic.talk import Talk

CODES = sorted(OPERATIONS)


def capture(data: bytes) -> None:
    """Bytes as a capture file, in chunks of a size that they say themselves."""
    reader = reader_of(0, data)
    if reader is None:
        return
    step = 1 + data[-1] * 16
    _through(reader, data[PCAP_HEADER:] if isinstance(reader, PcapReader) else data, step)


def stream(data: bytes) -> None:
    """Bytes as what two ends say to each other: the first one says where it is cut."""
    if len(data) < 4:
        return
    size = 1 + data[0]
    talk = Talk().open() if data[1] & 1 else Talk()
    for index, at in enumerate(range(2, len(data), size)):
        talk.say(index & 1 if data[1] & 2 else 0, data[at : at + size])
    capture(pcap_of(talk.segments))


def header(data: bytes) -> None:
    """Bytes as a header, in both serializations; what decodes encodes to what decodes equal."""
    for serialize_type in (0, 1):
        command = decode_header(serialize_type, data)
        if command is None:
            assert not is_header(serialize_type, data)
            continue
        assert isinstance(command, RemotingCommand)
        typed_header(command.code, command.is_response, command.ext_fields, command.version)
        try:
            again = decode_header(serialize_type, encode_header(command, serialize_type))
        except (ValueError, OverflowError):
            continue  # what the form cannot carry
        assert again is not None
        assert again.opaque == command.opaque


def body(data: bytes) -> None:
    """Bytes as the body of an operation that the first two say."""
    if len(data) < 3:
        return
    code = CODES[data[0] % len(CODES)]
    found = decode_body(code, bool(data[1] & 1), 0, data[2:], {})
    body_value(found, 256)


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
    decoder.started = bool(data[:1] and data[0] & 2)
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


def _through(reader: CaptureReader, data: bytes, step: int) -> None:
    """Through all stages, once as rows and once as commands taken apart."""
    packets = []
    for at in range(0, len(data), step):
        packets += reader.receive(data[at : at + step])
    packets += reader.finish()
    for info in reader.take_experts():
        assert isinstance(info, ExpertInfo)
    for keep, commands in ((KEEP_MESSAGES, False), (KEEP_ALL, True)):
        stages = Stages(frozenset(), keep, commands)
        stages.receive(packets)
        stages.finish()
        _look_at(stages.take_exchanges(), commands)
        for info in stages.take_experts():
            assert isinstance(info, ExpertInfo)


def _look_at(exchanges: list[Exchange], commands: bool) -> None:
    if commands:
        for one in exchanges:
            pdu = one.response or one.request
            assert pdu is not None
            request = one.request if one.response is not None else None
            json_of(command_row_of(CommandSeen(pdu, request, one.latency), ["x"], 256))
        return
    records = [record_of(one, "x") for one in exchanges]
    for record in records:
        assert isinstance(record, ExchangeRecord)
        assert record.status in STATUSES
    jsonl_of(records)
    csv_of(records)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "capture": capture,
    "packets": packets,
    "segments": segments,
    "frames": frames,
    "stream": stream,
    "header": header,
    "body": body,
}
"""name and what takes the bytes"""
