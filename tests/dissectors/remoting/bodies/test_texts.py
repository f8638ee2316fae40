"""Properties, plain text and the timer check point."""

from __future__ import annotations

import struct

import pytest

from dissectors.remoting.bodies.body import RAW, Body, BodyInput
from dissectors.remoting.bodies.registry import (
    decode_properties_text,
    decode_text,
    decode_timer_checkpoint,
    encode_properties_text,
    encode_text,
    encode_timer_checkpoint,
)


def given(form: str, body: bytes) -> BodyInput:
    return BodyInput(form, 25, False, body, {})


def test_body_of_properties_is_read() -> None:
    text = b"brokerName=broker-a\nnamesrvAddr=a:1;b:2\nempty=\n"
    body = decode_properties_text(given("properties-text", text))
    assert body.value == {"brokerName": "broker-a", "namesrvAddr": "a:1;b:2", "empty": ""}
    assert encode_properties_text(body.value) == text


def test_properties_as_people_write_them() -> None:
    body = decode_properties_text(given("properties-text", b"# c\n! d\r\n\n a = b=c \njunk\n"))
    assert body == Body(
        "properties-text", {"a": "b=c", "junk": ""}, notes=("1 lines without = or :",)
    )
    bad = decode_properties_text(given("properties-text", b"a=\xff"))
    assert (bad.value, bad.problem) == ({"a": "\ufffd"}, "invalid UTF-8 at byte 2")


def test_properties_with_colons() -> None:
    text = b"brokerName:broker-a\nnamesrvAddr: a:1;b:2\nurl=http://x:1/?a=b\nodd\x0b\x1cvalue=1\n"
    assert decode_properties_text(given("properties-text", text)).value == {
        "brokerName": "broker-a",
        "namesrvAddr": "a:1;b:2",
        "url": "http://x:1/?a=b",
        "odd\x0b\x1cvalue": "1",
    }


def test_text() -> None:
    assert decode_text(given("text", "组".encode())) == Body("text", "组")
    assert decode_text(given("text", b"\xff")).problem == "invalid UTF-8 at byte 0"
    assert encode_text("组") == "组".encode()


def test_a_timer_check_point() -> None:
    data = struct.pack(">7q", 1700000000000, 2, 3, 4, 5, 6, 7)
    body = decode_timer_checkpoint(given("timer-checkpoint", data))
    assert body.problem is None
    assert body.value == {
        "lastReadTimeMs": 1700000000000,
        "lastTimerLogFlushPos": 2,
        "lastTimerQueueOffset": 3,
        "masterTimerQueueOffset": 4,
        "dataVersionStateVersion": 5,
        "dataVersionTimestamp": 6,
        "dataVersionCounter": 7,
    }
    assert encode_timer_checkpoint(body.value) == data
    for size in range(len(data)):
        cut = decode_timer_checkpoint(given("timer-checkpoint", data[:size]))
        assert cut.problem is not None
        assert (cut.kind == RAW) == (size < 8)
    assert decode_timer_checkpoint(given("timer-checkpoint", data + b"x")).problem


def test_what_cannot_be_encoded() -> None:
    for call in (encode_text, encode_properties_text, encode_timer_checkpoint):
        with pytest.raises(ValueError, match="not list"):
            call([])
    with pytest.raises(ValueError, match="line end"):
        encode_properties_text({"a": "b\nc"})
    with pytest.raises(ValueError, match="not a timer check point"):
        encode_timer_checkpoint({})
