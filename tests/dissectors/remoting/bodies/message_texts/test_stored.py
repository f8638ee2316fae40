"""Messages written from their records are what decoding and showing them gives."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from dissectors.decode.command_row import CommandLineWriter, command_row_of
from dissectors.decode.pipeline import Decode
from dissectors.remoting.bodies.body import Body, BodyInput
from dissectors.remoting.bodies.custom import NamedDecoder, decoding_with
from dissectors.remoting.bodies.message_texts import text_of_stored
from dissectors.remoting.bodies.messages import decode_stored_messages
from dissectors.remoting.messages.message import StoredMessage, encode_message
from tests.dissectors.stored_records import MESSAGES
from tests.sources import ROOT

from .shown import NEAR_MS, UNIQUE_KEY, shown

SAMPLES = sorted((ROOT / "samples").glob("*.pcap"))


def decoded(body: bytes) -> Body:
    return decode_stored_messages(BodyInput("stored-messages", 11, True, body, {}))


def holds(body: bytes) -> bool:
    """Return whether a body was written; both ways must agree about it."""
    text = text_of_stored(body, NEAR_MS)
    if text is None:
        return False
    whole = decoded(body)
    assert text == shown(whole)
    assert (whole.problem, whole.notes, whole.sound) == (None, (), True)
    return True


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_lines_of_commands_are_those_of_rows(path: Path) -> None:
    run = Decode([str(path)])
    writer = CommandLineWriter(run.sources)
    for batch in run.commands():
        for one in batch:
            line = writer.line_of(one)
            assert line == msgspec.json.encode(command_row_of(one, run.sources)) + b"\n"


CHECK_POINT = "0 1700000000000 60000 1 0 broker-a 0 5"
WITH_PARTS = StoredMessage(
    "Orders",
    b'say "so" \xc3\xbc',
    {"UNIQ_KEY": UNIQUE_KEY, "POP_CK": CHECK_POINT, "KEYS": " a  b ", "TAGS": "t"},
    born_timestamp=NEAR_MS,
).sealed()


@given(st.lists(MESSAGES, min_size=1, max_size=4), st.booleans())
@example([WITH_PARTS], False)
@example([replace(WITH_PARTS, born_timestamp=0)], True)
def test_any_messages(messages: list[StoredMessage], unset: bool) -> None:
    if unset:
        messages = [replace(message, body_crc=0) for message in messages]
    body = b"".join(map(encode_message, messages))
    compressed = any(message.compression is not None for message in messages)
    assert holds(body) is not compressed


@given(MESSAGES, st.binary(max_size=60))
@example(StoredMessage("T"), b"KEYS\x01a\x02KEYS\x01b\x02TAGS\x01\x02\x01x\x02\x02UNIQ_KEY")
@example(StoredMessage("T"), b"KEYS\x01\xff\xfe\x02TAGS\x01\xc3\x02PGROUP\x01\x01")
def test_any_bytes_of_properties(message: StoredMessage, properties: bytes) -> None:
    message.properties.clear()
    body = bytearray(encode_message(message))
    body[-2:] = len(properties).to_bytes(2, "big") + properties
    body[:4] = len(body).to_bytes(4, "big")
    holds(bytes(body))


@given(st.lists(MESSAGES, min_size=1, max_size=2), st.integers(0, 600), st.integers(0, 255))
def test_damaged_records_are_left_or_written_alike(
    messages: list[StoredMessage], at: int, value: int
) -> None:
    body = bytearray(b"".join(map(encode_message, messages)))
    body[at % len(body)] = value
    holds(bytes(body))


@given(MESSAGES, st.integers(1, 90))
def test_what_is_cut_is_left(message: StoredMessage, missing: int) -> None:
    assert not holds(encode_message(message)[:-missing])


@pytest.mark.parametrize(
    "message",
    [
        StoredMessage("RMQ_SYS_TRACE_TOPIC", b"Pub\x011\x01x"),
        StoredMessage("MyTrace", b"Pub\x011\x01x"),
        StoredMessage("rmq_sys_REVIVE_LOG_c", b"{}", {"TAGS": "ck"}),
        StoredMessage("OFFSET_MOVED_EVENT", b"{}"),
        StoredMessage("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"1,2"),
        StoredMessage("T", zlib.compress(b"text"), sys_flag=1),
        replace(StoredMessage("T", b"text"), body_crc=1),
    ],
    ids=lambda message: message.topic,
)
def test_what_needs_more_than_copying_is_left(message: StoredMessage) -> None:
    if not message.body_crc:
        message = message.sealed()
    assert not holds(encode_message(StoredMessage("T", b"x").sealed()) + encode_message(message))


def test_a_wrong_crc_of_properties_is_left() -> None:
    message = StoredMessage("T", b"x", {"a": "b", "__CRC32#": "0000000000"})
    body = bytearray(encode_message(message.sealed()))
    assert holds(bytes(body))
    body[-2] ^= 1
    assert decoded(bytes(body)).problem is not None
    assert not holds(bytes(body))


def test_decoders_of_a_user_are_asked() -> None:
    body = encode_message(StoredMessage("T", b"x").sealed())
    assert holds(body)
    with decoding_with([NamedDecoder("mine", lambda _: {"is": "mine"})]):
        assert not holds(body)


@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    holds(body)
