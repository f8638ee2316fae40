"""Trace records: Java's texts both ways, the forms of older releases, noise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.bodies.trace import decode_trace, encode_trace

from ..vectors import text_vectors

PUB = (
    "Pub\x011700000000000\x01DefaultRegion\x01GRP\x01TopicTest\x01MSGID\x01TagA\x01k1 k2\x01"
    "10.0.0.1:10911\x015\x0112\x010\x01OFFID\x01true\x02"
)


def test_a_pub_record() -> None:
    found = decode_trace(PUB.encode())
    assert found.problem is None
    assert found.records == (
        {
            "kind": "Pub",
            "timeStamp": 1700000000000,
            "regionId": "DefaultRegion",
            "group": "GRP",
            "topic": "TopicTest",
            "msgId": "MSGID",
            "tags": "TagA",
            "keys": "k1 k2",
            "storeHost": "10.0.0.1:10911",
            "bodyLength": 5,
            "costTime": 12,
            "msgType": "Normal_Msg",
            "offsetMsgId": "OFFID",
            "success": True,
        },
    )
    assert encode_trace(found.records) == PUB.encode()


def test_the_records_of_java_in_both_directions() -> None:
    texts = [text for name, text in text_vectors().items() if name.startswith("trace_")]
    assert len(texts) == 5
    for text in [*texts, "".join(texts)]:
        found = decode_trace(text.encode())
        assert found.problem is None
        assert encode_trace(found.records) == text.encode()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (PUB.replace("\x01OFFID", ""), {"success": True, "msgType": "Normal_Msg"}),
        (PUB.replace("true\x02", "true\x0110.0.0.9\x02"), {"clientHost": "10.0.0.9"}),
        (PUB.replace("true\x02", "true\x01h\x01more\x02"), {"clientHost": "h", "success": True}),
        (PUB.replace("TagA", "null"), {"tags": None}),
        (PUB.replace("\x010\x01", "\x0177\x01"), {"msgType": 77}),
        ("SubAfter\x01R\x01M\x0112\x01true\x01k\x02", {"costTime": 12}),
        ("SubAfter\x01R\x01M\x0112\x01true\x01k\x014\x02", {"contextCode": "FAILED"}),
        ("SubAfter\x01R\x01M\x0112\x01true\x01k\x014\x01\x02", {"contextCode": "FAILED"}),
        ("SubBefore\x015\x01R\x01G\x01Q\x01M\x010\x01k\x01h\x02", {"keys": "k", "clientHost": "h"}),
        ("SubBefore\x015\x01R\x01G\x01Q\x01M\x010\x01k\x01h\x01m\x02", {"clientHost": "h"}),
        ("Recall\x015\x01R\x01G\x01T\x01M\x01true\x01more\x02", {"success": True}),
    ],
)
def test_other_forms(text: str, part: dict[str, object]) -> None:
    found = decode_trace(text.encode())
    assert found.problem is None
    assert part.items() <= found.records[0].items()


def test_what_is_strange_is_kept_and_said() -> None:
    found = decode_trace(b"Pub\x01x\x02New\x01a\x02" + PUB.encode() + b"Sub")
    assert found.problem == "2 records have not the fields of their kind"
    assert found.records[0] == {"kind": "Pub", "fields": ["x"]}
    assert found.records[1] == {"kind": "New", "fields": ["a"]}
    assert found.records[2]["kind"] == "Pub"
    assert found.records[3] == {"kind": "Sub", "fields": ["Sub"]}


def test_a_cut_body() -> None:
    for size in range(1, len(PUB)):
        found = decode_trace(PUB.encode()[:size])
        assert found.problem == "the last record has no end"
    with pytest.raises(ValueError, match="no Pub record"):
        encode_trace([{"kind": "Pub", "x": 1}])


@given(st.binary(max_size=100) | st.text("PubSAfter\x01\x02null01", max_size=60).map(str.encode))
def test_any_bytes(body: bytes) -> None:
    decode_trace(body)
