"""Bodies made of messages: sends, batches, stored records, and how they are shown."""

from __future__ import annotations

import json
import time

import pytest
from msgspec.structs import replace

from dissectors.remoting.bodies.body import RAW, BodyInput
from dissectors.remoting.bodies.messages import (
    PROBLEMS_LIMIT,
    decode_batch_messages,
    decode_raw_message,
    decode_stored_messages,
    message_value,
)
from dissectors.remoting.messages.compression import compress
from dissectors.remoting.messages.message import StoredMessage, encode_message

from ..vectors import BATCH, STORED_V4, STORED_V6

LONG_NAMES = {
    "producerGroup": "PG",
    "topic": "T",
    "queueId": "3",
    "sysFlag": "0",
    "bornTimestamp": "1700000000000",
    "flag": "9",
    "properties": "KEYS\x01k1 k2\x02TAGS\x01A",
    "reconsumeTimes": "2",
}
LETTERS = {
    "a": "PG",
    "b": "T",
    "e": "3",
    "f": "0",
    "g": "1700000000000",
    "h": "9",
    "i": "KEYS\x01k1 k2\x02TAGS\x01A",
    "j": "2",
}


@pytest.mark.parametrize(("code", "header"), [(10, LONG_NAMES), (310, LETTERS), (325, LETTERS)])
def test_a_sent_message(code: int, header: dict[str, str]) -> None:
    body = decode_raw_message(BodyInput("raw-message", code, False, b"hello", header))
    (message,) = body.messages
    assert body.problem is None
    assert (message.topic, message.queue_id, message.flag) == ("T", 3, 9)
    assert (message.born_timestamp, message.reconsume_times) == (1700000000000, 2)
    assert (message.tags, message.keys, message.body) == ("A", ("k1", "k2"), b"hello")
    value = message_value(message)
    assert value["body"] == "hello"
    assert "storeHost" not in value


def test_a_sent_message_without_a_readable_header() -> None:
    body = decode_raw_message(BodyInput("raw-message", 310, False, b"x", {"e": "?", "f": "-"}))
    assert body.messages[0].topic == ""
    assert body.messages[0].queue_id == 0


def test_a_compressed_message() -> None:
    packed = compress(b"hello" * 100, "zlib")
    given = BodyInput("raw-message", 310, False, packed, {**LETTERS, "f": "1"})
    body = decode_raw_message(given)
    assert body.problem is None
    value = message_value(body.messages[0], 8)
    assert (value["body"], value["bodyTruncated"]) == ("hellohel", True)
    assert (value["compression"], value["bodySize"]) == ("zlib", len(packed))
    damaged = decode_raw_message(given._replace(body=packed[:-3]))
    assert damaged.problem == "the compressed data ends too soon"
    assert message_value(damaged.messages[0])["bodyProblem"] == damaged.problem


def test_a_batch() -> None:
    body = decode_batch_messages(BodyInput("batch-messages", 320, False, BATCH, LETTERS))
    assert [message.body for message in body.messages] == [b"one", b"two"]
    assert {message.topic for message in body.messages} == {"T"}
    assert [message.tags for message in body.messages] == ["TagA", "TagB"]
    assert (body.problem, body.messages[1].queue_id) == (None, 3)
    cut = decode_batch_messages(BodyInput("batch-messages", 320, False, BATCH[:-1], LETTERS))
    assert cut.problem == "item of 45 bytes is cut after 44 (at 53)"
    assert decode_batch_messages(BodyInput("batch-messages", 320, False, b"x", LETTERS)).kind == RAW


def stored(body: bytes) -> BodyInput:
    return BodyInput("stored-messages", 11, True, body, {})


def test_stored_messages() -> None:
    body = decode_stored_messages(stored(STORED_V4 + STORED_V6))
    assert len(body.messages) == 2
    assert (body.kind, body.problem, body.notes) == ("stored-messages", None, ())
    value = message_value(body.messages[1])
    assert value["bornHost"] == "[fd00::9]:51234"
    assert value["crcOk"] is True
    json.dumps(value)


def test_what_is_wrong_with_stored_messages() -> None:
    damaged = STORED_V4.replace(b"hello", b"jello")
    body = decode_stored_messages(stored(damaged + STORED_V6[:-1]))
    assert body.problem == (
        "the body does not have the record's CRC (at 0); "
        "record of 181 bytes is cut after 180 (at 157)"
    )
    assert len(body.messages) == 2
    assert decode_stored_messages(stored(b"nothing at all")).kind == RAW
    many = decode_stored_messages(stored(damaged * 50)).problem
    assert many is not None
    assert many.endswith(f"and {50 - PROBLEMS_LIMIT} more")


def test_inner_batches_are_taken_apart() -> None:
    record = StoredMessage("T", BATCH, sys_flag=0xC0, queue_offset=5).sealed()
    body = decode_stored_messages(stored(encode_message(record) + STORED_V4))
    assert [message.body for message in body.messages] == [b"one", b"two", b"hello"]
    assert body.notes == ("the record at 0 holds 2 messages",)


def test_many_bombs_cost_no_more_than_one() -> None:
    bomb = StoredMessage("T", compress(bytes(4 << 20), "zstd"), sys_flag=0x201).sealed()
    record = encode_message(bomb)
    start = time.process_time()
    body = decode_stored_messages(stored(record * 20_000))
    assert len(body.messages) == 20_000
    assert time.process_time() - start < 10  # 80 GB would take minutes


@pytest.mark.parametrize(
    ("data", "shown", "form"),
    [
        (b"hello", "hello", "text"),
        ("集群".encode(), "集群", "text"),
        (b"\xff\xfe", "//4=", "base64"),
        (b"a\0b", "YQBi", "base64"),
        (b"", "", "text"),
    ],
)
def test_bodies_as_text_or_base64(data: bytes, shown: str, form: str) -> None:
    value = message_value(StoredMessage("T", data))
    assert (value["body"], value["bodyForm"]) == (shown, form)


def test_a_character_that_the_preview_cuts_is_left_out() -> None:
    value = message_value(StoredMessage("T", "集群".encode()), 4)
    assert (value["body"], value["bodyForm"], value["bodyTruncated"]) == ("集", "text", True)


def test_what_rocketmq_wrote_itself_is_shown_taken_apart() -> None:
    message = StoredMessage("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"12,13,")
    assert message_value(message)["content"] == {"kind": "queue-offsets", "value": [12, 13]}
    assert "content" not in message_value(replace(message, topic="T"))
