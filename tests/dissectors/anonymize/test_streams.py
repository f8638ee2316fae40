"""What connections without remoting commands become: calls, header blocks, and commit logs."""

from __future__ import annotations

import hashlib
import io
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hpack import Decoder, Encoder

from dissectors.anonymize import capture
from dissectors.anonymize.calls import CallRewriter, rewritten_block
from dissectors.anonymize.capture import CaptureAnonymizer
from dissectors.anonymize.frames import FrameRewriter
from dissectors.anonymize.pseudonyms import Pseudonyms
from dissectors.anonymize.streams import CallStreams
from dissectors.conversations.conversation_table import ConversationTable
from dissectors.findings import Finding
from dissectors.foreign import Unreadable
from dissectors.grpc.call_stream import HeldBytes
from dissectors.grpc.tree import decode_message, text_at, trees_at
from dissectors.grpc.wire import varint
from dissectors.http2.connection import Happening, StreamEvent
from dissectors.http2.frame import StreamPlace
from dissectors.tcp.segment_reader import SegmentReader
from tests.expected import SAMPLES

NAMES = Pseudonyms(b"a secret of 16 b")


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def rewriter() -> tuple[CallRewriter, FrameRewriter]:
    frames = FrameRewriter(NAMES)
    return CallRewriter(NAMES, frames), frames


def test_a_message_keeps_its_lengths_and_matches_its_digest() -> None:
    calls, _ = rewriter()
    body = b"forty-two oranges"
    digest = field(1, 2) + field(2, hashlib.md5(body).hexdigest().upper())
    system = field(1, "TagA") + field(2, "order-4711") + field(4, digest) + field(7, field(1, 9))
    message = field(1, field(2, "Orders")) + field(3, system) + field(4, body)
    data = field(1, message)
    new = calls.message("SendMessageRequest", data)
    assert len(new) == len(data)
    (tree,) = trees_at(decode_message("SendMessageRequest", new).tree, "messages")
    assert text_at(tree, "topic", "name") == NAMES.name("Orders")
    assert text_at(tree, "system_properties", "tag") == NAMES.name("TagA")
    assert tree["system_properties"]["keys"] == [NAMES.name("order-4711")]  # type: ignore[index]
    assert tree["system_properties"]["born_timestamp"] == {"seconds": 9}  # type: ignore[index]
    other = tree["body"]
    assert isinstance(other, bytes)
    assert other != body
    checksum = text_at(tree, "system_properties", "body_digest", "checksum")
    assert checksum == hashlib.md5(other).hexdigest().upper()


def test_fields_that_nobody_knows_become_zeros() -> None:
    calls, frames = rewriter()
    data = field(77, "a hidden name") + field(78, 123456) + field(1, field(2, "Orders"))
    new = calls.message("QueryRouteRequest", data)
    assert len(new) == len(data)
    assert b"hidden" not in new
    assert new.endswith(field(1, field(2, NAMES.name("Orders"))))
    assert frames.dropped == {"fields of gRPC messages that no definition has": 16}


@pytest.mark.parametrize("size", range(1, 24))
def test_a_message_that_is_cut_shows_nothing_of_the_field_that_is(size: int) -> None:
    calls, _ = rewriter()
    data = (field(1, field(2, "Orders-of-Anne")) + field(2, field(2, "Bob")))[:size]
    new = calls.message("QueryAssignmentRequest", data)
    assert len(new) == size
    assert not any(word in new for word in (b"Orde", b"Anne", b"Bob"))


def test_metadata_is_rewritten_by_its_names() -> None:
    calls, _ = rewriter()
    for name, text in (
        (":path", "/apache.rocketmq.v2.MessagingService/SendMessage"),
        ("user-agent", "grpc-java-netty/1.50.0"),
        ("x-mq-client-version", "5.0.1-rc1"),
        ("content-type", "application/grpc"),
    ):
        assert calls.header(name, text) == text
    signed = calls.header(
        "authorization", "MQv2-HMAC-SHA1 Credential=annes-key, SignedHeaders=x-mq, Signature=AB12"
    )
    assert "annes-key" not in signed
    assert signed.endswith("SignedHeaders=x-mq, Signature=xxxx")
    for secret in ("Bearer eyJhbGci.secret", "Basic dXNlcjpwYXNz", "abc Signature=AB12"):
        assert calls.header("authorization", secret) == "x" * len(secret)
    assert calls.header("proxy-authorization", "Basic dXNl") == "x" * 10
    assert calls.header("x-mq-client-id", "anne@1@2@3") == NAMES.name("anne@1@2@3")
    said = calls.header("grpc-message", "no topic Ord%C3%A9rs%25")
    assert said.startswith("no topic ")
    assert "Ord" not in said
    assert len(said) == len("no topic Ord%C3%A9rs%25")
    assert calls.header_name("x-anne") == NAMES.name("x-anne")


def changed(texts: dict[str, str], name: str, value: str) -> tuple[str, str, bool]:
    return name, texts[value], True


def test_a_header_block_never_becomes_longer() -> None:
    rng = random.Random(1)
    for _ in range(500):
        encoder, decoder = Encoder(), Decoder()
        given = [
            (f"x-{rng.randrange(3)}", "".join(rng.choices("abzZQ19-&;", k=rng.randrange(150))))
            for _ in range(4)
        ]
        block = encoder.encode(given, huffman=rng.random() < 0.7)
        headers = [(str(name), str(value)) for name, value in decoder.decode(block)]
        texts = {value: "".join(rng.choices("Z&;q1", k=len(value))) for _, value in headers}
        new, cut = rewritten_block(block, headers, partial(changed, texts))
        assert len(new) <= len(block)
        assert not cut
        for (name, value), (old_name, old) in zip(Decoder().decode(new), headers, strict=True):
            assert name == old_name
            assert texts[old].startswith(str(value))


def test_a_text_that_cannot_be_shorter_is_cut_and_counted() -> None:
    block = Encoder().encode([("x", "aaaa")])
    new, cut = rewritten_block(block, [("x", "aaaa")], lambda name, _: (name, "&&&&", False))
    assert (len(new), cut) == (len(block), 1)
    with pytest.raises(Unreadable):
        rewritten_block(block[:-1], [("x", "aaaa")], lambda name, value: (name, value + "b", False))


@pytest.mark.parametrize(
    "name", ["grpc-send-5x.pcap", "grpc-go-keys-53.pcapng", "ha-replication-4x.pcap"]
)
def test_damaged_captures_are_rewritten_as_far_as_they_can_be(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(error: Exception) -> str:
        raise error

    monkeypatch.setattr("dissectors.anonymize.capture.undecoded", fail)
    whole = (SAMPLES / name).read_bytes()
    rng = random.Random(name)
    path = tmp_path / "damaged"
    for _ in range(12):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 20, 200))):
            data[rng.randrange(2000, len(data))] = rng.randrange(256)
        path.write_bytes(data)
        out = io.BytesIO()
        done = CaptureAnonymizer(NAMES).write(str(path), out)
        assert done.packets > 0
        assert out.getvalue()


def test_findings_do_not_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a capture with every packet twice, and a malformed one behind each."""
    whole = (SAMPLES / "grpc-send-5x.pcap").read_bytes()
    parts, at = [whole[:24]], 24
    while at < len(whole):
        size = 16 + int.from_bytes(whole[at + 8 : at + 12], "little")
        record = whole[at : at + size]
        parts += [record, record, record[:8] + (b"\5\0\0\0" * 2) + record[16:21]]
        at += size
    path = tmp_path / "twice.pcap"
    path.write_bytes(b"".join(parts))
    kept: list[list[Finding]] = []

    def reader() -> SegmentReader:
        segments = SegmentReader()
        kept.append(segments.findings)
        return segments

    def table(*args: Any) -> ConversationTable:
        kept.append(args[2])
        return ConversationTable(*args)

    monkeypatch.setattr(capture, "SegmentReader", reader)
    monkeypatch.setattr(capture, "ConversationTable", table)
    assert CaptureAnonymizer(NAMES).write(str(path), io.BytesIO()).packets == len(parts) - 1
    assert len(kept) == 3
    assert max(map(len, kept)) < 4


def test_a_number_that_is_no_number_becomes_zeros() -> None:
    calls, frames = rewriter()
    for data in (field(5, "Secret"), varint(1 << 3 | 1) + b"MySecret"):
        new = calls.message("SystemProperties", data)
        assert len(new) == len(data)
        assert b"Secret" not in new
    assert sum(frames.dropped.values()) == 14
    types = field(5, bytes((1, 2)))
    assert calls.message("MessageQueue", types) == types


def unused(_offset: int, _data: bytes, _packet: int) -> None:
    raise AssertionError


def test_metadata_that_is_no_text_does_not_stay() -> None:
    frames = FrameRewriter(NAMES)
    streams = CallStreams(NAMES, frames, HeldBytes(), unused, unused)
    given = [(b"x-mq-namespace", b"\xc4\xe3\xba\xc3"), (b"x-\xc4\xe3", b"text")]
    block = Encoder().encode(given, huffman=False)
    headers = [
        (name.decode(errors="replace"), text.decode(errors="replace")) for name, text in given
    ]
    event = StreamEvent(Happening.HEADERS, 1, False, headers, b"", 0, 0, "", StreamPlace(0, 0, 0))
    new = streams.block(block, event)
    assert len(new) <= len(block)
    assert [name for name, _ in Decoder().decode(new)] == ["x-mq-namespace", "xxxx"]
    assert b"\xc4\xe3" not in new
    assert frames.dropped["texts that are not UTF-8"] == 7


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("user-agent", "13800138000"), ("x-mq-language", "ACME_TEAM")),
        *(("x-mq-protocol", "ACME"), ("content-type", "ACME")),
        ("authorization", "MQv2-HMAC-SHA1 SignedHeaders=my-secret-name"),
    ],
)
def test_metadata_with_keywords_may_have_any_text(name: str, text: str) -> None:
    calls, _ = rewriter()
    new = calls.header(name, text)
    assert len(new) == len(text)
    for word in ("1380", "ACME", "secret"):
        assert word not in new
    signed = "MQv2-HMAC-SHA1 SignedHeaders=x-mq-date-time;X-MQ-Language"
    assert calls.header("authorization", signed) == signed
    for name, text in (("x-mq-language", "JAVA"), ("x-mq-protocol", "GRPC_V2"), ("te", "trailers")):
        assert calls.header(name, text) == text
