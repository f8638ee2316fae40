"""Headers read where they stand: the same as of the header decoded whole, whatever is in it."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.conversations.header_scan import scanned
from dissectors.conversations.header_view import (
    PLAIN,
    RESPONSE,
    SENT,
    HeaderView,
    view_of_command,
)
from dissectors.decode.exchange_row import records_of
from dissectors.decode.pipeline import Decode
from dissectors.remoting.header_codec import BINARY_TYPE, JSON_TYPE, decode_header
from dissectors.remoting.messages.properties import decode_properties
from tests.traffic.commands import Command, send

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
NAMES = (
    "a", "b", "c", "e", "f", "g", "i", "j", "l", "n", "bname", "brokerName", "topic",
    "originTopic", "group", "producerGroup", "consumerGroup", "queueId", "queueOffset",
    "commitOffset", "offset", "msgId", "nextBeginOffset", "minOffset", "maxOffset",
    "suggestWhichBrokerId", "properties", "x", "bornTimestamp", "maxReconsumeTimes",
)  # fmt: skip
COMMON = ("code", "flag", "language", "opaque", "remark", "version")
PLACES = (
    "requested_offset", "born_timestamp", "broker_name", "commit_offset", "group", "max_offset",
    "max_reconsume_times", "min_offset", "msg_id", "next_offset", "offset", "queue_id",
    "queue_offset", "recall_handle", "reconsume_times", "suggested_broker", "sys_flag", "topic",
)  # fmt: skip
KEYS = ("UNIQ_KEY", "KEYS", "TAGS")
values = st.text(max_size=8) | st.sampled_from(["0", "7", "{", "[", '"', "KEYS\x01k\x02TAGS\x01t"])
raw_values = values.map(str.encode) | st.binary(max_size=6)
odd_values = st.none() | st.booleans() | st.integers() | st.just([[1]]) | st.just({"a": {"b": 1}})


def check(found: HeaderView, header: bytes, form: int = JSON_TYPE) -> None:
    """Hold what was read to the header decoded whole."""
    command = decode_header(form, header)
    assert command is not None
    whole = view_of_command(command)
    whole.fill(command)
    assert found.kind == whole.kind
    assert found.serialize_type == whole.serialize_type
    assert [getattr(found, name) for name in COMMON] == [getattr(whole, name) for name in COMMON]
    for name in PLACES:
        assert found.text(getattr(found, name)) == whole.text(getattr(whole, name)), name
        numbers = found.number(getattr(found, name)), whole.number(getattr(whole, name))
        assert numbers[0] == numbers[1], name
    for name in ("unique_key", "keys", "tags"):
        mine = found.text(getattr(found, name)) or None
        assert mine == (whole.text(getattr(whole, name)) or None), name
    if found.kind == SENT:
        fields = command.ext_fields
        properties = decode_properties(
            fields.get("properties" if command.code == 10 else "i") or ""
        )
        for key, place in zip(KEYS, (found.unique_key, found.keys, found.tags), strict=True):
            assert (found.text(place) or None) == properties.get(key), key


@given(
    st.sampled_from([0, 1, 2, 10, 11, 14, 34, 36, 105, 310, 320, 325, 200050, -1, 99999999]),
    st.integers(0, 3),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=8),
    st.dictionaries(st.sampled_from(NAMES), odd_values, max_size=1),
    st.none() | values,
    st.booleans(),
)
def test_any_header(
    code: int,
    flag: int,
    fields: dict[str, str],
    odd: dict[str, object],
    remark: str | None,
    behind: bool,
) -> None:
    members: dict[str, object] = {"code": code, "flag": flag, "language": "JAVA", "opaque": 7}
    members |= {"remark": remark, "version": 401, "extFields": fields | odd}
    if not behind:
        members = {"code": code, "extFields": members.pop("extFields"), **members}
    header = json.dumps(members, separators=(",", ":")).encode("utf-8", "surrogatepass")
    found = scanned(JSON_TYPE, header)
    if found is not None:
        check(found, header)


@given(st.data())
def test_a_damaged_header_is_taken_only_where_it_is_one(data: st.DataObject) -> None:
    header = bytearray(send(5).header)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(header) - 1))
        header[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    found = scanned(JSON_TYPE, bytes(header))
    if found is not None:
        check(found, bytes(header))


@given(
    st.sampled_from([0, 1, 2, 10, 11, 14, 34, 36, 105, 310, 320, 325, 200050, 40000]),
    st.integers(0, 3),
    st.lists(st.tuples(st.sampled_from(NAMES).map(str.encode), raw_values), max_size=8),
    st.binary(max_size=4),
    st.integers(0, 255),
    st.binary(max_size=3),
)
def test_any_binary_header(
    code: int,
    flag: int,
    fields: list[tuple[bytes, bytes]],
    remark: bytes,
    language: int,
    behind: bytes,
) -> None:
    ext = b"".join(
        struct.pack(">H", len(name)) + name + struct.pack(">I", len(value)) + value
        for name, value in fields
    )
    fixed = struct.pack(">HBHiiI", code & 0xFFFF, language, 401, 7, flag, len(remark))
    header = fixed + remark + struct.pack(">I", len(ext)) + ext + behind
    found = scanned(BINARY_TYPE, header)
    if found is not None:
        check(found, header, BINARY_TYPE)


@given(st.data())
def test_a_damaged_binary_header_is_taken_only_where_it_is_one(data: st.DataObject) -> None:
    header = bytearray(send(5, binary=True).header)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(header) - 1))
        header[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    found = scanned(BINARY_TYPE, bytes(header))
    if found is not None:
        check(found, bytes(header), BINARY_TYPE)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (send(1), SENT),
        (Command(10, 1, ext={"topic": "T"}), SENT),
        (Command(10, 1, ext={"properties": "KEYS\x01k"}, remark="", language="GO"), SENT),
        (send(1).answer(0, remark="FOUND"), RESPONSE),
        (Command(11, 1, ext={"topic": "T", "suspendTimeoutMillis": "1"}), PLAIN),
        (send(1).answer(1, remark="no"), RESPONSE),
        (Command(11, 1, ext={"topic": "T"}).answer(19, ext={"maxOffset": "7"}), RESPONSE),
        (send(1).answer(0, ext={"msgId": "x", "suggestWhichBrokerId": "0"}), RESPONSE),
    ],
)
def test_headers_as_java_writes_them_are_not_decoded_whole(command: Command, kind: int) -> None:
    binary = replace(command, binary=True, language="JAVA")
    for form, header in ((JSON_TYPE, command.header), (BINARY_TYPE, binary.header)):
        found = scanned(form, header)
        assert found is not None
        assert found.kind == kind
        check(found, header, form)


@given(
    st.lists(
        st.tuples(st.sampled_from([*KEYS, "WAIT", "", "KEYSX"]), st.text("ab\x01", max_size=9))
    ),
    st.booleans(),
    st.booleans(),
)
def test_any_properties(pairs: list[tuple[str, str]], first: bool, last: bool) -> None:
    text = "\x02".join(f"{name}\x01{value}" for name, value in pairs)
    text = "\x02" * first + text + "\x02" * last
    command = Command(310, 1, ext={"a": "g", "b": "t", "e": "0", "i": text})
    header = json.dumps(
        {"code": 310, "extFields": command.ext, "flag": 0, "language": "GO", "opaque": 1},
        separators=(",", ":"),
    ).encode()
    found = scanned(JSON_TYPE, header)
    assert (found is None) == any("\x01" in value for _, value in pairs)
    if found is not None:
        check(found, header)


@pytest.mark.parametrize(
    "header",
    [
        b'{"code":0,"extFields":{"msgId":"T"},"flag":0,"opaque":1}',
        b'{"code":11,"extFields":{"topic":"T"},"flag":0}',
        b'{"code":11,"extFields":{"topic":"T"},"flag":0,"opaque":2147483648}',
        b'{"code":11,"extFields":{"topic":"T"},"flag":00,"opaque":1}',
        b'{"code":11,"extFields":{"topic":"T"},"extFields":{"topic":"U"},"opaque":1}',
        b'{"code":11,"extFields":{"topic":null},"opaque":1}',
        b'{"code":11,"extFields":{"topic":"\xc3\xa9"},"opaque":1}',
        b'{"code":11,"extFields":{"topic":"\\u0041"},"opaque":1}',
        b'{"code":11,"opaque":1,"remark":1}',
        b'{"code":11,"opaque":1,"remark":"\\n"}',
        b'{"code":11,"opaque":1} ',
        b'{"code":11,"opaque":1,"code":12}',
        b'{"code":11,"opaque":1',
        b'{"code":11,',
        b'{"code":11',
        b'{"code":',
        b"",
    ],
)
def test_what_is_not_plain_is_left_to_the_reader_of_json(header: bytes) -> None:
    assert scanned(JSON_TYPE, header) is None


def test_of_ext_fields_that_come_twice_the_last_one_counts() -> None:
    header = (
        b'{"code":310,"extFields":{"b":"T","i":"KEYS\\u0001k\\u0002TAGS\\u0001t","b":"U",'
        b'"i":"TAGS\\u0001u"},"flag":0,"language":"JAVA","opaque":1}'
    )
    found = scanned(JSON_TYPE, header)
    assert found is not None
    check(found, header)


def test_of_properties_that_come_twice_the_last_one_with_a_value_counts() -> None:
    """As in Java, and as for stored messages."""
    twice = b"UNIQ_KEY\x01a\x02KEYS\x01k\x02TAGS\x01t\x02UNIQ_KEY\x01b\x02KEYS\x01l\x02TAGS\x01"
    fields = {"b": "T", "i": twice.decode()}
    members = {"code": 310, "extFields": fields, "flag": 0, "language": "JAVA", "opaque": 1}
    ext = b"\0\1i" + struct.pack(">I", len(twice)) + twice
    binary = struct.pack(">HBHiiI", 310, 0, 401, 7, 0, 0) + struct.pack(">I", len(ext)) + ext
    for form, header in (
        (JSON_TYPE, json.dumps(members, separators=(",", ":")).encode()),
        (BINARY_TYPE, binary),
    ):
        found = scanned(form, header)
        assert found is not None
        check(found, header, form)
        texts = [found.text(place) for place in (found.unique_key, found.keys, found.tags)]
        assert texts == ["b", "l", "t"]


def test_each_byte_that_is_cut_off_is_missed() -> None:
    header = send(5).header
    assert scanned(JSON_TYPE, header) is not None
    assert not [at for at in range(len(header)) if scanned(JSON_TYPE, header[:at]) is not None]


def test_a_nested_value_that_would_be_passed_over_is_decoded_whole() -> None:
    nested = b'{"code":310,"extFields":{"x":' + b"[" * 70 + b"]" * 70 + b'},"opaque":1}'
    assert scanned(JSON_TYPE, nested) is None
    assert scanned(JSON_TYPE, nested.replace(b"[", b'{"a":').replace(b"]", b"}")) is None


@pytest.mark.parametrize("name", ["acl-5x", "dead-letters-4x", "cut-short-5x", "consumer-lag-5x"])
def test_rows_are_those_of_commands_decoded_whole(name: str) -> None:
    path = str(SAMPLES / f"{name}.pcap")
    run = Decode([path])
    whole = [row for batch in run.exchanges() for row in records_of(batch, run.sources, [])]
    assert [row for batch in Decode([path]).records() for row in batch] == whole
