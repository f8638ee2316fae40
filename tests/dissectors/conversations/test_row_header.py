"""Headers read for a row: the same as of the header decoded whole, whatever is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.conversations.row_header import (
    AnswerHeader,
    PlainHeader,
    RowHeader,
    SentHeader,
    header_of_command,
    row_header_of,
)
from dissectors.decode.exchange_row import records_of
from dissectors.decode.pipeline import Decode
from dissectors.remoting.header_codec import JSON_TYPE, decode_header
from tests.traffic.commands import Command, send

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
NAMES = (
    "a", "b", "c", "e", "f", "i", "j", "n", "bname", "brokerName", "topic", "originTopic", "group",
    "producerGroup", "consumerGroup", "queueId", "queueOffset", "commitOffset", "offset", "msgId",
    "nextBeginOffset", "minOffset", "maxOffset", "suggestWhichBrokerId", "properties", "x",
)  # fmt: skip
PARTS = (
    "code", "flag", "language", "opaque", "remark", "version", "broker_name", "group", "properties",
    "queue_id", "reconsume_times", "sys_flag", "topic", "asked_offset", "offset", "max_offset",
    "min_offset", "msg_id", "next_offset", "queue_offset", "suggested_broker",
)  # fmt: skip
values = st.text(max_size=8) | st.sampled_from(["0", "7", "{", "[", '"', "KEYS\x01k\x02TAGS\x01t"])
odd_values = st.none() | st.booleans() | st.integers() | st.just([[1]]) | st.just({"a": {"b": 1}})


def parts(header: RowHeader | None) -> dict[str, object]:
    assert header is not None
    found = {name: getattr(header, name) for name in PARTS if hasattr(header, name)}
    return {"class": type(header).__name__, **found}


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
    found = row_header_of(JSON_TYPE, header)
    if found is not None:
        whole = decode_header(JSON_TYPE, header)
        assert whole is not None
        assert parts(found) == parts(header_of_command(whole))


@given(st.data())
def test_a_damaged_header_is_taken_only_where_it_is_one(data: st.DataObject) -> None:
    header = bytearray(send(5).header)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(header) - 1))
        header[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    found = row_header_of(JSON_TYPE, bytes(header))
    if found is not None:
        whole = decode_header(JSON_TYPE, bytes(header))
        assert whole is not None
        assert parts(found) == parts(header_of_command(whole))


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (send(1), SentHeader),
        (Command(10, 1, ext={"topic": "T"}), SentHeader),
        (Command(11, 1, ext={"topic": "T"}), PlainHeader),
        (send(1).answer(0, ext={"msgId": "x"}), AnswerHeader),
    ],
)
def test_headers_as_java_writes_them_are_not_decoded_whole(command: Command, kind: type) -> None:
    assert isinstance(row_header_of(JSON_TYPE, command.header), kind)


def test_a_nested_value_that_would_be_passed_over_is_decoded_whole() -> None:
    nested = b'{"code":310,"extFields":{"x":' + b"[" * 70 + b"]" * 70 + b'},"opaque":1}'
    assert row_header_of(JSON_TYPE, nested) is None
    assert row_header_of(JSON_TYPE, nested.replace(b"[", b'{"a":').replace(b"]", b"}")) is None


@pytest.mark.parametrize("name", ["acl-5x", "dead-letters-4x", "cut-short-5x", "consumer-lag-5x"])
def test_rows_are_those_of_commands_decoded_whole(name: str) -> None:
    path = str(SAMPLES / f"{name}.pcap")
    run = Decode([path])
    whole = [row for batch in run.exchanges() for row in records_of(batch, run.sources, [])]
    assert [row for batch in Decode([path]).records() for row in batch] == whole
