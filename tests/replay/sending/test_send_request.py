"""Requests of sends against the bytes that Java clients sent: the samples, and vectors.json."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dissectors.remoting.framing.frame import MAX_FRAME, encode_frame
from dissectors.remoting.header_codec import decode_header, encode_header
from dissectors.remoting.messages.batch import decode_batch
from dissectors.remoting.messages.compression import decompress
from dissectors.remoting.messages.properties import decode_properties
from dissectors.remoting.sysflag import compression_of
from replay.config import ProducerConfig
from replay.message import Message, MessageQueue
from replay.sending.send_request import SendEncoder
from replay.unique_id import UniqueIds
from tests.cases import in_one
from tests.replay.java_sends import VECTORS, Sent, java_sends, request_again

QUEUE = MessageQueue("TopicTest", "broker-a", 1)


@in_one(java_sends, lambda sent: sent.capture)
def test_a_request_is_what_java_sent(sent: Sent) -> None:
    request = request_again(sent)
    frame = request.encode(sent.command.opaque)
    size = int.from_bytes(frame[5:8], "big")
    assert frame[4] == sent.frame[4]
    ours = decode_header(frame[4], frame[8 : 8 + size])
    assert ours is not None
    expected = dict(sent.command.ext_fields)
    signed = {name: expected.pop(name) for name in list(expected) if len(name) > 1}
    assert set(signed) <= {"AccessKey", "Signature", "ns", "nsd"}
    theirs_i, ours_i = expected.pop("i"), ours.ext_fields.pop("i")
    auto = sent.command.code == 320 and "TAGS" in theirs_i
    if sent.command.code == 320:
        # The outer id is a new one, and the accumulator gives the outer message keys and tags.
        dropped = ("UNIQ_KEY", "TAGS", "KEYS") if auto else ("UNIQ_KEY",)
        theirs = {n: v for n, v in decode_properties(theirs_i).items() if n not in dropped}
        mine = {n: v for n, v in decode_properties(ours_i).items() if n != "UNIQ_KEY"}
        assert theirs == mine
        assert ("UNIQ_KEY" in theirs_i) == ("UNIQ_KEY" in ours_i)
    else:
        assert decode_properties(ours_i) == decode_properties(theirs_i)
        assert len(ours_i) == len(theirs_i)
    assert ours.ext_fields == expected
    assert (ours.code, ours.flag, ours.version) == (
        sent.command.code,
        sent.command.flag,
        sent.command.version,
    )
    _compare_bodies(sent, frame[8 + size :])


def _compare_bodies(sent: Sent, body: bytes) -> None:
    kind = compression_of(int(sent.command.ext_fields["f"]))
    if kind is not None:  # other compressors, other bytes
        assert decompress(body, kind) == decompress(sent.body, kind)
    elif sent.command.code == 320:
        ours, theirs = decode_batch(body), decode_batch(sent.body)
        assert ours.problems == theirs.problems == ()
        assert ours.items == theirs.items
        assert len(body) == len(sent.body)
    else:
        assert body == sent.body


def test_the_samples_have_every_kind_of_send() -> None:
    kinds = {(s.command.code, s.command.serialize_type, s.command.flag) for s in java_sends()}
    assert kinds >= {(310, "JSON", 0), (310, "JSON", 2), (310, "ROCKETMQ", 0), (320, "JSON", 0)}
    assert (325, "JSON", 0) in kinds
    flags = {int(sent.command.ext_fields["f"]) for sent in java_sends()}
    assert flags == {0, 4, 0x101, 0x201, 0x301}
    assert len(java_sends()) > 500


@pytest.mark.parametrize("kind", ["JSON", "ROCKETMQ"])
@pytest.mark.skipif(not VECTORS.exists(), reason="the protocol's test vectors are not here")
def test_a_frame_is_the_bytes_of_the_java_classes(kind: str) -> None:
    vectors = json.loads(VECTORS.read_text())["frames"]
    expected = next(v["hex"] for v in vectors if v["name"] == f"send_v2_request_{kind}")
    config = ProducerConfig("PG", client_version=479, language="JAVA", serialize_type=kind)
    encoder = SendEncoder(config, UniqueIds("192.0.2.10", 1, 1))
    properties = {"UNIQ_KEY": "7F000001" + "0D9C18B4AAC27B1C3D5C0000"}
    text = bytes.fromhex(expected)
    unique = text[text.index(b"UNIQ_KEY") :]
    at = unique.index(b"7F")
    properties["UNIQ_KEY"] = unique[at : at + 32].decode()
    message = Message("TopicTest", b"hello", "TagA", None, properties)
    request = encoder.request(encoder.prepare(message, 0), QUEUE, 1700000000000)
    assert request.encode(8).hex() == expected


BODIES = [b"x", b"y" * 5000]


@pytest.mark.parametrize("kind", ["JSON", "ROCKETMQ"])
@pytest.mark.parametrize("smart", [True, False])
@pytest.mark.parametrize("version", [393, 395, 401, 409, 441, 453, 513])
@pytest.mark.parametrize("oneway", [True, False])
def test_the_fast_way_and_the_command_give_the_same_bytes(
    kind: str, smart: bool, version: int, oneway: bool
) -> None:
    config = ProducerConfig(
        "group",
        client_version=version,
        language="JAVA",
        serialize_type=kind,
        smart_msg=smart,
        create_topic_key='topic"Ω',
        namespace="ns",
        unit_mode=True,
    )
    encoder = SendEncoder(config, UniqueIds("fd00::1", 77, 5))
    queue = MessageQueue("ns%Topic", 'broker\\"\x01ü', 7)
    for body in BODIES:
        for extra in ({}, {"MSG_TYPE": "reply"}, {"quote": '"\\/消息\x7f\u2028'}):
            message = Message("Topic", body, "Tag", "k1 k2", dict(extra), flag=-3)
            prepared = encoder.prepare(message, 1_700_000_000_000, half=not extra)
            for opaque in (0, 1, -1, 2**31 - 1, -(2**31)):
                request = encoder.request(prepared, queue, 17, oneway=oneway)
                fast = request.encode(opaque)
                command = request.command(opaque)
                assert request.encode(opaque) == fast  # now by way of the fields
                assert fast == encode_frame(fast[4], encode_header(command), prepared.body)
                decoded = decode_header(fast[4], fast[8 : 8 + int.from_bytes(fast[5:8], "big")])
                assert decoded == command


def test_the_form_follows_the_release() -> None:
    def fields(version: int) -> dict[str, str]:
        encoder = SendEncoder(
            ProducerConfig("g", client_version=version), UniqueIds("192.0.2.10", 1, 1)
        )
        prepared = encoder.prepare(Message("T", b"z" * 4096), 0)
        return encoder.request(prepared, QUEUE, 0).fields()

    assert [version for version in range(380, 514) if "n" not in fields(version)] == [
        *range(380, 403)
    ]
    assert {fields(version)["f"] for version in range(380, 401)} == {"1"}
    assert {fields(version)["f"] for version in range(401, 514)} == {str(0x301)}
    without = [v for v in range(380, 514) if not fields(v)["i"].endswith("\x02")]
    assert without == [*range(394, 453)]


def test_a_resend_keeps_its_id_and_no_two_messages_share_one() -> None:
    encoder = SendEncoder(ProducerConfig("g"), UniqueIds("192.0.2.10", 1, 1))
    message = Message("T", b"b")
    first = encoder.prepare(message, 1000)
    again = encoder.prepare(message, 9_000_000)
    assert first.unique_key == again.unique_key == message.unique_key
    assert first.properties == again.properties
    assert encoder.prepare(Message("T", b"b"), 1000).unique_key != first.unique_key


def test_a_half_message_is_not_delayed_and_says_its_group() -> None:
    encoder = SendEncoder(ProducerConfig("g"), UniqueIds("192.0.2.10", 1, 1))
    message = Message("T", b"b").with_delay_level(3)
    half = encoder.prepare(message, 0, half=True)
    assert half.sys_flag == 4
    properties = decode_properties(half.properties)
    assert properties["TRAN_MSG"] == "true"
    assert properties["PGROUP"] == "g"
    assert "DELAY" not in properties
    assert decode_properties(encoder.prepare(message, 0).properties)["DELAY"] == "3"


def test_a_retry_topic_says_its_deliveries_in_the_header() -> None:
    encoder = SendEncoder(ProducerConfig("g"), UniqueIds("192.0.2.10", 1, 1))
    properties = {"RECONSUME_TIME": "2", "MAX_RECONSUME_TIMES": "16"}
    message = Message("%RETRY%g", b"b", properties=dict(properties))
    prepared = encoder.prepare(message, 0)
    request = encoder.request(prepared, MessageQueue("%RETRY%g", "b", 0), 0)
    fast = decode_header(0, request.encode(1)[8:-1])
    assert fast is not None
    assert (fast.ext_fields["j"], fast.ext_fields["l"]) == ("2", "16")
    assert "RECONSUME" not in fast.ext_fields["i"]
    other = encoder.prepare(Message("T", b"b", properties=dict(properties)), 0)
    assert decode_properties(other.properties)["RECONSUME_TIME"] == "2"


def test_a_batch_counts_its_messages_and_joins_their_ids() -> None:
    encoder = SendEncoder(ProducerConfig("g", client_version=409), UniqueIds("192.0.2.10", 1, 1))
    messages = [Message("T", b"z" * 5000) for _ in range(3)]
    prepared = encoder.prepare_batch(messages, 0)
    assert prepared.message_count == 3
    assert prepared.unique_key.split(",") == [message.unique_key for message in messages]
    assert prepared.sys_flag == 0  # not compressed
    assert prepared.properties == "WAIT\x01true"
    assert encoder.request(prepared, QUEUE, 0).fields()["m"] == "true"


def test_what_cannot_be_encoded_raises_value_error() -> None:
    encoder = SendEncoder(ProducerConfig("g"), UniqueIds("192.0.2.10", 1, 1))
    with pytest.raises(ValueError, match="separator"):
        encoder.prepare(Message("T", b"b", tags="a\x02b"), 0)
    config = replace(encoder.config, compress_over=1 << 30)
    large = SendEncoder(config, UniqueIds("192.0.2.10", 1, 1))
    prepared = large.prepare(Message("T", bytes(MAX_FRAME)), 0)
    with pytest.raises(ValueError, match="at most"):
        large.request(prepared, QUEUE, 0).encode(1)


def test_a_changed_field_changes_the_frame() -> None:
    encoder = SendEncoder(ProducerConfig("g"), UniqueIds("192.0.2.10", 1, 1))
    request = encoder.request(encoder.prepare(Message("T", b"b"), 0), QUEUE, 0)
    request.fields()["ns"] = "mine"
    assert b'"ns":"mine"' in request.encode(1)
