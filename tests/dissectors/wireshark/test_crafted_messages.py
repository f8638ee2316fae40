"""The Lua dissector on crafted messages: versions, compression, batches, damage."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from dissectors.remoting.messages.batch import BatchItem, encode_batch
from dissectors.remoting.messages.compression import compress
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.properties import encode_properties
from dissectors.remoting.messages.record_layout import MAGIC_V1, MAGIC_V2
from tests.traffic.commands import Command, send, sent
from tests.traffic.talk import End, Talk

from .crafted import PULL, Capture, all_of, talked
from .tshark import commands_of, experts_of, layer_of, run_tshark, text_of, texts_of

pytestmark = pytest.mark.tshark
CLIENT_OF_IRC = End("10.0.0.5", 57000)


def stored(body: bytes, **members: object) -> StoredMessage:
    message = StoredMessage("Orders", body, {"UNIQ_KEY": "K1", "mine": "value"}, **members)  # type: ignore[arg-type]
    return message.sealed()


def pulled(*messages: StoredMessage) -> Talk:
    request = Command(PULL, 5, ext={"topic": "Orders", "queueId": "3", "consumerGroup": "g"})
    body = b"".join(map(encode_message, messages))
    ext = {"suggestWhichBrokerId": "0", "nextBeginOffset": "9", "minOffset": "0", "maxOffset": "9"}
    return talked((0, request), (1, request.answer(ext=ext, body=body)))


def test_both_versions_and_families(dissector: Path, capture: Capture) -> None:
    messages = [
        stored(b"one", queue_id=3, queue_offset=7, physical_offset=2**40),
        structs.replace(stored(b"two"), topic="T" * 200).sealed(),
        stored(b"three", born_host="[2001:db8::1]:5", store_host="10.0.0.1:10911"),
        stored(b"four", born_host="[2001:db8::1]:5", store_host="[2001:db8::2]:10911"),
    ]
    assert [one.magic for one in messages] == [MAGIC_V1, MAGIC_V2, MAGIC_V1, MAGIC_V1]
    answer = all_of(commands_of(dissector, capture(pulled(*messages).segments)))[1]
    assert text_of(answer, "rocketmq.message_count") == "4"
    assert texts_of(answer, "rocketmq.message.text") == ["one", "two", "three", "four"]
    assert texts_of(answer, "rocketmq.message.topic") == [one.topic for one in messages]
    assert texts_of(answer, "rocketmq.message.born_host") == [one.born_host for one in messages]
    assert texts_of(answer, "rocketmq.message.store_host") == [one.store_host for one in messages]
    assert texts_of(answer, "rocketmq.message.physical_offset")[0] == str(2**40)
    assert texts_of(answer, "rocketmq.property.UNIQ_KEY") == ["K1"] * 4
    assert texts_of(answer, "rocketmq.property") == ["mine=value"] * 4
    assert "bad_message" not in experts_of(answer)


@pytest.mark.parametrize(
    "text", [b"short", b"text " * 400, b"a" * 70_000, bytes(range(32, 127)) * 9]
)
def test_compressed_bodies(dissector: Path, capture: Capture, text: bytes) -> None:
    kinds = {"zlib": 0x301, "lz4": 0x101, "zstd": 0x201}
    messages = [stored(compress(text, kind), sys_flag=flag) for kind, flag in kinds.items()]
    answer = all_of(commands_of(dissector, capture(pulled(*messages).segments)))[1]
    assert texts_of(answer, "rocketmq.message.compression") == list(kinds)
    assert texts_of(answer, "rocketmq.message.text") == [text.decode()] * 2
    request = send(1, compress(text, "zlib"))
    request = replace(request, ext=request.ext | {"f": "1"})
    one = all_of(commands_of(dissector, capture(talked((0, request)).segments)))[0]
    assert texts_of(one, "rocketmq.message.text") == [text.decode()]


def test_damaged_compression(dissector: Path, capture: Capture) -> None:
    text = b"some text " * 50
    messages = [
        stored(compress(text, kind)[:-9], sys_flag=flag)
        for kind, flag in {"zlib": 0x301, "lz4": 0x101, "zstd": 0x201}.items()
    ]
    messages.append(stored(b"\x04\x22\x4d\x18" + bytes(30), sys_flag=0x101))
    answer = all_of(commands_of(dissector, capture(pulled(*messages).segments)))[1]
    assert text_of(answer, "rocketmq.message_count") == "4"


@pytest.mark.parametrize("packed", [False, True])
def test_inner_batches(dissector: Path, capture: Capture, packed: bool) -> None:
    items = [BatchItem(b"item %d" % index, {"UNIQ_KEY": f"I{index}"}) for index in range(3)]
    body = encode_batch(items)
    if packed:
        body = zlib.compress(body)
    outer = stored(body, sys_flag=0xC0 | (0x301 if packed else 0))
    answer = all_of(commands_of(dissector, capture(pulled(outer, stored(b"x")).segments)))[1]
    assert text_of(answer, "rocketmq.message_count") == "2"
    first = layer_of(layer_of(answer, "rocketmq.body"), "rocketmq.message")
    assert texts_of(first, "rocketmq.message.text")[-3:] == ["item 0", "item 1", "item 2"]
    assert texts_of(first, "rocketmq.property.UNIQ_KEY") == ["K1", "I0", "I1", "I2"]


def test_batches(dissector: Path, capture: Capture) -> None:
    items = [
        BatchItem(bytes([65 + index]) * 5, {"KEYS": f"k{index}"}, flag=index) for index in range(4)
    ]
    request = replace(send(1), code=320, body=encode_batch(items))
    one = all_of(commands_of(dissector, capture(talked((0, request)).segments)))[0]
    assert text_of(one, "rocketmq.message_count") == "4"
    assert texts_of(one, "rocketmq.property.KEYS") == ["k0", "k1", "k2", "k3"]
    assert texts_of(one, "rocketmq.message.flag") == ["0", "1", "2", "3"]
    assert texts_of(one, "rocketmq.message.text") == ["AAAAA", "BBBBB", "CCCCC", "DDDDD"]


def test_messages_that_break_off(dissector: Path, capture: Capture) -> None:
    whole = encode_message(stored(b"one"))
    for body, count in (
        (whole + whole[:50], 1),
        (whole + b"\0" * 20, 1),
        (whole[:4] + b"\xff" * 4 + whole[8:], 0),
        (whole[:84] + b"\x7f" + whole[85:], 1),
        (whole + b"\0\0\0\x5a" + whole[4:], 1),
        (whole + b"\0\0\0\x0c\xcb\xd4\x31\x94" + bytes(4) + whole, 2),
    ):
        request = Command(PULL, 5)
        path = capture(talked((0, request), (1, request.answer(body=body))).segments)
        answer = all_of(commands_of(dissector, path))[1]
        assert "bad_message" in experts_of(answer), body
        assert text_of(answer, "rocketmq.message_count") == str(count), body


def test_message_properties_are_shown(dissector: Path, capture: Capture) -> None:
    properties = {
        "UNIQ_KEY": "0A000005",
        "KEYS": "a b c",
        "WAIT": "true",
        "DELAY": "three",
        "TIMER_DELIVER_MS": "1700000000000",
        "traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
        "text": 'quote " backslash \\ \\u0041 \\n 中文 😀',
        "with": "more \x01 of it",
    }
    request = send(1)
    for binary in (False, True):
        ext = request.ext | {
            "i": encode_properties(properties) + "\x02=\x01\x02broken\x02\x01x\x02"
        }
        path = capture(talked((0, replace(request, ext=ext, binary=binary))).segments)
        one = all_of(commands_of(dissector, path))[0]
        assert text_of(one, "rocketmq.property.KEYS") == "a b c"
        assert text_of(one, "rocketmq.property.WAIT") == "1"
        assert text_of(one, "rocketmq.property.TIMER_DELIVER_MS") == "1700000000000"
        assert text_of(one, "rocketmq.property.traceparent") == properties["traceparent"]
        assert texts_of(one, "rocketmq.property") == [
            "DELAY=three",
            f"text={properties['text']}",
            "with=more \x01 of it",
        ]


def test_more_fields_than_a_tree_may_have(dissector: Path, capture: Capture) -> None:
    """Wireshark gives up a packet with a million items; ours has an end before that."""
    items = encode_batch([BatchItem(b"", {"k": "v"})] * 90_000)
    many = "".join(f"k{number}\x01v\x02" for number in range(250_000))
    talk = talked((0, send(1)))
    talk.say(0, replace(send(2), code=320, body=items).frame)
    talk.say(0, replace(send(3), ext={"b": "Orders", "i": many}).frame)
    talk.say(0, replace(send(4), ext={"b": "Orders", "i": "\x02" * 2_000_000}).frame)
    talk.say(0, send(5).frame)
    path = capture(talk.segments)
    out = run_tshark(dissector, path, "-V", "-Y", "rocketmq")
    assert out.count("[not all fields are shown]") == 2
    assert "Malformed" not in out
    assert "SEND_BATCH_MESSAGE Orders[2], 90000 messages #2" in out
    assert "#5" in out


def test_a_client_port_of_another_protocol(dissector: Path, capture: Capture) -> None:
    """57000 is registered for IRC, whose dissector takes everything."""
    path = capture(talked((0, send(1)), (1, sent(1)), client=CLIENT_OF_IRC, port=20911).segments)
    assert len(all_of(commands_of(dissector, path))) == 2
    off = ("-o", "rocketmq.heuristics_first:FALSE")
    assert commands_of(dissector, path, *off) == {}
    assert not list(dissector.parent.rglob("preferences")), "a setting was written"
