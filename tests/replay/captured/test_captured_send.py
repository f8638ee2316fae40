"""What was sent, out of the headers and bodies of send requests."""

from __future__ import annotations

import zlib

import pytest

from dissectors.remoting.messages.compression import compress
from replay.captured.captured_send import (
    BODY_LIMIT,
    CapturedHeader,
    Refusal,
    SkipReason,
    any_header_of,
    messages_of,
    send_header_of,
)
from replay.message import Message

from ..replayed import batch, captured, seen


def messages(request: object) -> tuple[Message, ...] | Refusal:
    one = captured(request)  # type: ignore[arg-type]
    return messages_of(one.seen, one.header)


def test_a_message_is_the_applications() -> None:
    properties = {"TAGS": "paid", "KEYS": "a b", "shop": "7", "PGROUP": "g", "TRAN_MSG": "true"}
    assert messages(seen(body=b"\x00\xff", properties=properties)) == (
        Message("Orders", b"\x00\xff", "paid", "a b", {"UNIQ_KEY": "K1", "shop": "7"}, 7),
    )


def test_both_header_versions_say_the_same() -> None:
    second = send_header_of(seen(queue=3))
    assert isinstance(second, CapturedHeader)
    names = {
        "a": "producerGroup",
        "b": "topic",
        "e": "queueId",
        "f": "sysFlag",
        "g": "bornTimestamp",
        "h": "flag",
        "i": "properties",
        "m": "batch",
        "n": "bname",
    }
    first = seen(queue=3, code=10)
    fields = first.command.ext_fields
    first.command.ext_fields = {names[name]: text for name, text in fields.items()}
    assert send_header_of(first) == second


@pytest.mark.parametrize("kind", ["zlib", "lz4", "zstd"])
def test_bodies_are_decompressed(kind: str) -> None:
    bits = {"zlib": 0x301, "lz4": 0x101, "zstd": 0x201}[kind]
    (message,) = messages(seen(body=compress(b"x" * 9000, kind), sys_flag=bits))
    assert isinstance(message, Message)
    assert message.body == b"x" * 9000


def test_a_batch_is_its_messages() -> None:
    body = batch(("A", b"1"), ("B", b"22"))
    found = messages(seen(key="outer", code=320, body=body))
    assert not isinstance(found, Refusal)
    assert [(one.unique_key, one.body) for one in found] == [("A", b"1"), ("B", b"22")]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (seen(missing=3), SkipReason.CUT),
        (seen(body=b"no zlib", sys_flag=1), SkipReason.DAMAGED),
        (seen(body=zlib.compress(bytes(BODY_LIMIT + 1)), sys_flag=1), SkipReason.DAMAGED),
        (seen(body=b"no batch", code=320), SkipReason.DAMAGED),
        (seen(body=batch(("A", b"1"))[:-1], code=320), SkipReason.DAMAGED),
        (seen(body=b"", code=320), SkipReason.DAMAGED),
    ],
)
def test_what_cannot_be_replayed_has_a_reason(request_: object, why: SkipReason) -> None:
    found = messages(request_)
    assert isinstance(found, Refusal)
    assert found.why is why
    assert found.detail


@pytest.mark.parametrize("fields", [{"b": ""}, {"e": "one"}, {"f": "9" * 30}, {"h": "x"}])
def test_a_header_that_cannot_be_read_is_a_reason(fields: dict[str, str]) -> None:
    request = seen()
    request.command.ext_fields |= fields
    found = send_header_of(request)
    assert isinstance(found, Refusal)
    assert found.why is SkipReason.DAMAGED


def test_half_messages_and_replies_are_known_by_either_sign() -> None:
    assert captured(seen(sys_flag=4)).header.is_half
    assert captured(seen(properties={"TRAN_MSG": "true"})).header.is_half
    assert not captured(seen(sys_flag=8)).header.is_half
    assert captured(seen(code=325)).header.is_reply
    assert captured(seen(properties={"MSG_TYPE": "reply"})).header.is_reply


def test_any_header_has_topic_group_and_queue_for_the_raw_mode() -> None:
    request = seen(code=11)
    request.command.ext_fields = {"topic": "T", "consumerGroup": "G", "queueId": "5", "bname": "b"}
    header = any_header_of(request)
    assert (header.topic, header.group, header.queue_id, header.broker_name) == ("T", "G", 5, "b")
    request.command.ext_fields = {"queueId": "five"}
    assert any_header_of(request).queue_id == -1
