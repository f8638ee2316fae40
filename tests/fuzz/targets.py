"""What is fuzzed: any bytes in, only the declared types out, and never an exception.

Each target takes bytes and raises AssertionError where something undeclared comes out. They run
under the fuzzer (`python -m tests.fuzz`) and, over the kept corpus, as a test.
"""

from __future__ import annotations

import gzip
import lzma
import struct
from collections.abc import Callable
from io import BytesIO
from tempfile import NamedTemporaryFile

import lz4.frame
import zstandard

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.problem import as_json
from analytics.diagnosis.registry import rules
from dissectors.decode.command_row import command_row_of, json_of
from dissectors.decode.exchange import Exchange
from dissectors.decode.exchange_row import record_of
from dissectors.decode.pipeline import CommandSeen, Decode, DecodeOptions
from dissectors.decode.stages import CommandStages, ExchangeStages
from dissectors.expert import ExpertInfo
from dissectors.remoting.bodies import body_value, decode_body
from dissectors.remoting.bodies.secrets import text_without_secrets
from dissectors.remoting.broker_addresses import broker_addresses_of
from dissectors.remoting.code_names import OPERATIONS
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.framing.frame import Frame
from dissectors.remoting.framing.frame_decoder import KEEP_ALL, KEEP_MESSAGES, FrameDecoder
from dissectors.remoting.header_codec import decode_header, encode_header, is_header
from dissectors.remoting.headers import header_fields, header_name, typed_header
from dissectors.remoting.ids.parts import PROPERTIES, property_parts
from dissectors.remoting.messages.compression import compress
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.properties import decode_properties
from dissectors.remoting.row_facts import bodies, ext_fields, heartbeats, names, routes
from dissectors.remoting.sysflag import SysFlag
from dissectors.rows.record import STATUSES, ExchangeRecord
from dissectors.rows.tables import csv_of, jsonl_of
from dissectors.tcp.capture import CaptureReader, Packet
from dissectors.tcp.decompression import COMPRESSIONS, DecompressedStream
from dissectors.tcp.formats import PCAP_HEADER, reader_of
from dissectors.tcp.pieces import Data, Piece
from dissectors.tcp.reassembly import StreamReassembler
from dissectors.tcp.segment import Segment
from dissectors.tcp.segment_reader import SegmentReader
from replay.captured.source import CapturedSource
from replay.plan.planner import Planner, PlanOptions
from rmqtool.decode.tree import Tree
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, frame
from tests.traffic.talk import Talk

from . import peer_targets
from .tokens import expanded

CODES = sorted(OPERATIONS)
MAX_FIELD = 30_000
"""characters of it in a field, which the binary form bounds"""
TOPICS = (
    *("Orders", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_REVIVE_LOG_c_0", "OFFSET_MOVED_EVENT"),
    *("RMQ_SYS_TRANS_OP_HALF_TOPIC", "rmq_sys_TRACE_DATA_x"),
)
TAGS = ("ck", "ack", "bAck", "d")


def capture(data: bytes) -> None:
    """Bytes as a capture file, in chunks of a size that they say themselves."""
    reader = reader_of(0, data[:PCAP_HEADER])
    if reader is None:
        return
    step = 1 + data[-1] * 16
    _through(reader, data[PCAP_HEADER:], step)


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
    assert not (found.problem or "").startswith("not decoded"), found.problem
    body_value(found, 256)
    broker_addresses_of(data[2:])
    text_without_secrets(data[2:].decode("utf-8", "replace"))
    for facts in (
        bodies.request_body_facts(code, data[2:]),
        bodies.response_body_facts(data[2:]),
        bodies.message_facts(data[2:]),
    ):
        assert len(facts) <= names.MAX_FACTS
        assert all(len(one) < names.MAX_VALUE + 32 for one in facts)
        for read in _READERS:
            read(facts)


_READERS = (
    *(routes.routed_brokers_in, routes.slaves_in),
    *(heartbeats.subscriptions_in, heartbeats.consumers_in, ext_fields.offsets_in),
)


def commands(data: bytes) -> None:
    """A request and its answer: the code, what carries the text, then the text (`expanded`)."""
    if len(data) >= 3:
        _whole(_spoken(data))


def readers(data: bytes) -> None:
    """What reads rows and sends of a capture: message rows, the diagnosis, the plan of a replay."""
    if len(data) < 3:
        return
    with NamedTemporaryFile(suffix=".pcap") as file:
        file.write(_spoken(data))
        file.flush()
        decode = Decode(
            [file.name], DecodeOptions(messages=True, conversations=True, body_limit=data[1] & 32)
        )
        engine = Engine(rules())
        for rows in decode.records():
            engine.add_exchanges(rows)
            decode.take_messages()
        engine.add_connections(decode.take_conversations())
        for info in decode.take_experts():
            assert not info.detail.startswith("not decoded"), info
        for problem in engine.diagnosis().problems:
            as_json(problem)
        planner = Planner(PlanOptions())
        for batch in CapturedSource([file.name]).batches():
            for _ in planner.steps(batch):
                pass


def archives(data: bytes) -> None:
    """A compressed capture that is damaged: how, where and what, then the text."""
    if len(data) < 4:
        return
    which = data[0] % len(COMPRESSIONS)
    kind = COMPRESSIONS[which][1]
    text = expanded(data[4:])
    if data[0] & 4:
        packed = text
    else:
        pack = {"gzip": gzip.compress, "xz": lzma.compress, "lz4": lz4.frame.compress}
        packed = pack.get(kind, zstandard.ZstdCompressor().compress)(text)
    whole = bytearray(packed * (1 + (data[0] >> 6)))
    if whole:
        whole[int.from_bytes(data[1:3], "big") % len(whole)] ^= data[3]
    stream = DecompressedStream(BytesIO(bytes(whole)), which)
    while stream.read(4096):
        pass


def _spoken(data: bytes) -> bytes:
    """Return a capture of a request, its answer and the request again."""
    code, how, text = CODES[data[0] % len(CODES)], data[1], expanded(data[2:])
    words = text.decode("utf-8", "replace")
    names = [field.wire for field in header_fields(header_name(code, False) or "")]
    answers = [field.wire for field in header_fields(header_name(code, True) or "")]
    ext = dict.fromkeys(names, words[:MAX_FIELD]) if how & 1 else {"topic": "T", "queueId": "1"}
    answered = dict.fromkeys(answers, words[:MAX_FIELD]) if how & 2 else {}
    binary = bool(how & 4)
    asked = Command(code, 7, ext=ext, body=text if how & 8 else b"", binary=binary)
    body = encode_message(StoredMessage("T", text, {}, born_timestamp=1)) if how & 64 else text
    answer = Command(0, 7, 1, ext=answered, body=body if how & 16 else b"", binary=binary)
    request = frame(text, b"x") if how & 32 else asked.frame
    talk = Talk(mss=32_000).open().say(0, request).say(1, answer.frame)
    return pcap_of(talk.say(0, asked.frame).close().segments)


def messages(data: bytes) -> None:
    """A pulled message: topic and properties that RocketMQ gives a meaning, and its body."""
    if len(data) < 4:
        return
    topic = TOPICS[data[0] % len(TOPICS)]
    text = expanded(data[3:])
    words = text.decode("utf-8", "replace")[:MAX_FIELD].replace("\1", "").replace("\2", "")
    names = tuple(PROPERTIES)
    properties = {"TAGS": TAGS[data[1] % len(TAGS)], names[data[2] % len(names)]: words}
    sys_flag = (data[1] >> 5) << 8 | data[1] & 1
    message = StoredMessage(topic, text, properties, sys_flag=sys_flag, born_timestamp=1)
    for code, body in ((11, encode_message(message)), (310, text)):
        found = decode_body(code, code == 11, 0, body, {"i": words, "f": str(sys_flag), "b": topic})
        body_value(found, 256)
        for one in found.messages:
            property_parts(one.properties, 1)
    decode_properties(words)


def packed(data: bytes) -> None:
    """Stored messages whose bodies are compressed, batched or both, and whose bytes are damaged.

    How, three damages (where, what), then the text; lengths and checksums are hit, too.
    """
    if len(data) < 8:
        return
    how, damages, text = data[0], data[1:7], expanded(data[7:])
    kind = ("lz4", "zstd", "zlib")[how % 3]
    body, sys_flag = text, 0
    if how & 4:
        inner = [StoredMessage("T", text[:100], {"a": "b"}, born_timestamp=1)] * 3
        body, sys_flag = b"".join(map(encode_message, inner)), sys_flag | SysFlag.INNER_BATCH
    if how & 8:
        body, sys_flag = compress(body, kind), sys_flag | 1 | (how % 3 + 1) << 8
    record = bytearray(encode_message(StoredMessage("T", body, {}, sys_flag=sys_flag)))
    for place, value in zip(damages[::2], damages[1::2], strict=True):
        record[place * 4 % len(record) if how & 16 else place % len(record)] ^= value
    cut = len(record) - (damages[0] if how & 32 else 0)
    whole = bytes(record[:cut]) * (1 + (how >> 6))
    ext = {"f": str(sys_flag), "b": "T"}
    for code, sent_body in ((11, whole), (310, body), (320, whole), (326, body)):
        for response in (False, True):
            found = decode_body(code, response, 0, sent_body, ext)
            assert not (found.problem or "").startswith("not decoded"), found.problem
            body_value(found, 256)


def replicas(data: bytes) -> None:
    """What a slave and its master write: a side, a length, and the bytes; again and again."""
    talk = Talk().open()
    at = 0
    while at + 3 <= len(data):
        side, size = data[at] & 1, struct.unpack_from(">H", data, at + 1)[0]
        talk.say(side, data[at + 3 : at + 3 + size] or b"\0")
        at += 3 + size
    _whole(pcap_of(talk.segments))


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


def _whole(data: bytes) -> None:
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
    for info in reader.take_experts():
        assert isinstance(info, ExpertInfo)
    rows, whole = ExchangeStages(frozenset(), KEEP_MESSAGES), CommandStages(frozenset())
    for stages in (rows, whole):
        stages.receive(packets)
        stages.finish()
        for info in stages.take_experts():
            assert isinstance(info, ExpertInfo)
            assert not info.detail.startswith("not decoded"), info
    _look_at_rows(rows.take_exchanges())
    _look_at_commands(whole.take_commands())


def _look_at_commands(commands: list[CommandSeen]) -> None:
    for one in commands:
        json_of(command_row_of(one, ["x"], 256))
        for info in one.pdu.expert or ():
            assert not info.detail.startswith("not decoded"), info
    for one in commands:
        exchange = Exchange(one.request, one.pdu) if one.pdu.flag & 1 else Exchange(one.pdu, None)
        Tree(["x"], True, 256).exchange(exchange)


def _look_at_rows(exchanges: list[Exchange]) -> None:
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
    "commands": commands,
    "messages": messages,
    "replicas": replicas,
    "packed": packed,
    "readers": readers,
    "archives": archives,
    **peer_targets.TARGETS,
}
"""name and what takes the bytes"""
