"""Headers read where they stand: the same as of the header decoded whole, whatever is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.conversations.header_scan import scanned
from dissectors.conversations.row_header import (
    AnswerHeader,
    PlainHeader,
    SentHeader,
    header_of_command,
)
from dissectors.conversations.scanned_header import ANSWER, PLAIN, SENT, ScannedHeader
from dissectors.decode.exchange_row import records_of
from dissectors.decode.pipeline import Decode
from dissectors.decode.row_fields import property_of
from dissectors.remoting.header_codec import JSON_TYPE, decode_header
from dissectors.remoting.send_fields import send_fields_of
from tests.traffic.commands import Command, send

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
NAMES = (
    "a", "b", "c", "e", "f", "g", "i", "j", "l", "n", "bname", "brokerName", "topic",
    "originTopic", "group", "producerGroup", "consumerGroup", "queueId", "queueOffset",
    "commitOffset", "offset", "msgId", "nextBeginOffset", "minOffset", "maxOffset",
    "suggestWhichBrokerId", "properties", "x", "bornTimestamp", "maxReconsumeTimes",
)  # fmt: skip
COMMON = ("code", "flag", "language", "opaque", "remark", "version")
PARTS = {
    SENT: ("broker_name", "group", "queue_id", "reconsume_times", "sys_flag", "topic"),
    PLAIN: ("broker_name", "group", "queue_id", "topic", "asked_offset", "offset"),
    ANSWER: (
        "max_offset", "min_offset", "msg_id", "next_offset", "queue_id", "queue_offset",
        "suggested_broker",
    ),
}  # fmt: skip
"""what each kind of header has"""
CLASSES = {SENT: SentHeader, PLAIN: PlainHeader, ANSWER: AnswerHeader}
KEYS = ("UNIQ_KEY", "KEYS", "TAGS")
values = st.text(max_size=8) | st.sampled_from(["0", "7", "{", "[", '"', "KEYS\x01k\x02TAGS\x01t"])
odd_values = st.none() | st.booleans() | st.integers() | st.just([[1]]) | st.just({"a": {"b": 1}})


def check(found: ScannedHeader, header: bytes) -> None:
    """Hold what was read to the header decoded whole."""
    command = decode_header(JSON_TYPE, header)
    assert command is not None
    whole = header_of_command(command)
    assert isinstance(whole, CLASSES[found.kind])
    assert [getattr(found, name) for name in COMMON] == [getattr(whole, name) for name in COMMON]
    for name in PARTS[found.kind]:
        assert found.text(getattr(found, name)) == getattr(whole, name), name
    if isinstance(whole, SentHeader):
        escaped = found.text(found.properties)
        assert (escaped is None) == (whole.properties is None)
        names = send_fields_of(command.code)
        assert found.text(found.born_timestamp) == command.ext_fields.get(names.born_timestamp)
        most = command.ext_fields.get(names.max_reconsume_times)
        assert found.text(found.max_reconsume_times) == most
        properties = whole.properties or ""
        assert json.loads(f'"{escaped or ""}"') == properties
        for key, place in zip(KEYS, (found.unique_key, found.keys, found.tags), strict=True):
            value = property_of(properties, f"\x02{key}\x01") if properties else None
            assert (found.text(place) or None) == value, key


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


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (send(1), SENT),
        (Command(10, 1, ext={"topic": "T"}), SENT),
        (Command(10, 1, ext={"properties": "KEYS\x01k"}, remark="", language="GO"), SENT),
        (send(1).answer(0, remark="FOUND"), ANSWER),
        (Command(11, 1, ext={"topic": "T", "suspendTimeoutMillis": "1"}), PLAIN),
        (send(1).answer(0, ext={"msgId": "x", "suggestWhichBrokerId": "0"}), ANSWER),
    ],
)
def test_headers_as_java_writes_them_are_not_decoded_whole(command: Command, kind: int) -> None:
    found = scanned(JSON_TYPE, command.header)
    assert found is not None
    assert found.kind == kind
    check(found, command.header)


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
        b'{"code":310,"extFields":{"b":"T"},"flag":1,"opaque":1}',
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
