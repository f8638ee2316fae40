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
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.remoting.bodies.body import Body
from dissectors.remoting.bodies.custom import (
    MessageBody,
    NamedDecoder,
    decoded_text,
    decoding_with,
    take_problems,
)
from dissectors.remoting.bodies.messages import message_value
from dissectors.remoting.bodies.registry import body_value, decode_body
from dissectors.remoting.bodies.secrets import text_without_secrets
from dissectors.remoting.broker_addresses import broker_addresses_of
from dissectors.remoting.code_names import OPERATIONS
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.header_codec import decode_header, encode_header, is_header
from dissectors.remoting.headers import header_fields, header_name, typed_header
from dissectors.remoting.ids.parts import PROPERTIES, property_parts
from dissectors.remoting.messages.compression import compress
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.properties import decode_properties
from dissectors.remoting.row_facts import bodies, ext_fields, heartbeats, names, routes
from dissectors.remoting.sysflag import SysFlag
from dissectors.tcp.decompression import COMPRESSIONS, DecompressedStream
from replay.captured.source import CapturedSource
from replay.plan.planner import Planner, PlanOptions
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, frame
from tests.traffic.talk import Talk

from . import capture_targets, peer_targets, rewriting_targets, sandbox_targets, tls_targets
from .capture_targets import whole
from .tokens import expanded

CODES = sorted(OPERATIONS)
MAX_FIELD = 30_000
"""characters of it in a field, which the binary form bounds"""
TOPICS = (
    *("Orders", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_REVIVE_LOG_c_0", "OFFSET_MOVED_EVENT"),
    *("RMQ_SYS_TRANS_OP_HALF_TOPIC", "rmq_sys_TRACE_DATA_x"),
)
TAGS = ("ck", "ack", "bAck", "d")


def header(data: bytes) -> None:
    """Bytes as a header, in both serializations; what decodes encodes to what decodes equal."""
    for serialize_type in (0, 1):
        command = decode_header(serialize_type, data)
        if command is None:
            assert not is_header(serialize_type, data)
            continue
        assert isinstance(command, RemotingCommand)
        typed_header(command.code, command.is_response, command.ext_fields)
        try:
            again = decode_header(serialize_type, encode_header(command, serialize_type))
        except (ValueError, OverflowError):
            continue  # what the form cannot carry
        assert again is not None
        assert again.opaque == command.opaque


def _show(found: Body) -> None:
    body_value(found)
    for message in found.messages:
        message_value(message, 256)


def body(data: bytes) -> None:
    """Bytes as the body of an operation that the first two say."""
    if len(data) < 3:
        return
    code = CODES[data[0] % len(CODES)]
    found = decode_body(code, bool(data[1] & 1), 0, data[2:], {})
    assert not (found.problem or "").startswith("not decoded"), found.problem
    _show(found)
    broker_addresses_of(data[2:])
    text_without_secrets(data[2:].decode("utf-8", "replace"))
    for facts in (
        bodies.request_body_facts(code, data[2:]),
        bodies.response_body_facts(data[2:]),
        bodies.message_facts(data[2:]),
    ):
        assert len(facts) <= names.MAX_FACTS + 1  # and the client id
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
        whole(_spoken(data))


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
        for info in decode.take_findings():
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
        _show(found)
        with decoding_with([NamedDecoder("fuzzed", _plugin)]):
            for one in found.messages:
                decoded_text(message_value(one, 256).get("content"))
            take_problems()
        for one in found.messages:
            property_parts(one.properties, 1)
    decode_properties(words)


def _plugin(message: MessageBody) -> object:
    """Decode a body, or fail, as a plug-in of a user might."""
    if len(message.body) % 2:
        raise ValueError(message.topic)
    return {"tags": message.tags, "size": len(message.body)}


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
            _show(found)


def replicas(data: bytes) -> None:
    """What a slave and its master write: a side, a length, and the bytes; again and again."""
    talk = Talk().open()
    at = 0
    while at + 3 <= len(data):
        side, size = data[at] & 1, struct.unpack_from(">H", data, at + 1)[0]
        talk.say(side, data[at + 3 : at + 3 + size] or b"\0")
        at += 3 + size
    whole(pcap_of(talk.segments))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "header": header,
    "body": body,
    "commands": commands,
    "messages": messages,
    "replicas": replicas,
    "packed": packed,
    "readers": readers,
    "archives": archives,
    **capture_targets.TARGETS,
    **peer_targets.TARGETS,
    **rewriting_targets.TARGETS,
    **sandbox_targets.TARGETS,
    **tls_targets.TARGETS,
}
"""name and what takes the bytes"""
