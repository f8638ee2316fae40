"""JSON as bodies have it: Java's own texts, every cut, noise; no exception, always bounded."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.fastjson.codec import decode_json, to_json_value
from dissectors.remoting.fastjson.reader import (
    DEPTH_LIMIT,
    EXPANSION_LIMIT,
    VALUE_LIMIT,
    FastjsonReader,
    JsonResult,
    PairMap,
)

from ..vectors import POP_TABLES, RESET_OFFSET, ROUTE, json_vectors


def test_strict_json_is_read_as_it_is() -> None:
    text = '{"a":[1,-2.5,true,null,"\\u96C6"],"l":9223372036854775807}'
    assert decode_json(text.encode()) == JsonResult(json.loads(text))


def test_bare_integer_keys() -> None:
    found = decode_json(ROUTE.encode())
    assert found.problem is None
    assert found == decode_json(ROUTE.replace("{0:", '{"0":').replace(",1:", ',"1":').encode())


def test_object_keys() -> None:
    queue = {"brokerName": "broker-a", "queueId": 2, "topic": "TopicTest"}
    found = decode_json(RESET_OFFSET.encode())
    assert found.value == {"offsetTable": PairMap([(queue, 123)])}
    assert to_json_value(found.value) == {"offsetTable": [{"key": queue, "value": 123}]}


def test_a_reference_to_a_key() -> None:
    found = decode_json(POP_TABLES.encode())
    queue = {"brokerName": "b", "queueId": 2, "topic": "T"}
    assert found.value == {
        "mqPopTable": PairMap([(queue, {"droped": False})]),
        "mqTable": PairMap([(queue, {"locked": True})]),
    }
    assert found.problem is None


def test_the_texts_of_java() -> None:
    for vector in json_vectors():
        if vector["name"] == "TopicConfig.encode":
            continue  # a text of its own, not JSON
        found = decode_json(vector["text"].encode())
        assert found.problem is None, vector["name"]
        assert "$ref" not in str(found.value), vector["name"]
        json.dumps(to_json_value(found.value), allow_nan=False)
        try:
            expected = json.loads(vector["text"])
        except ValueError:
            continue
        if "$ref" not in vector["text"]:
            assert found.value == expected


def is_part_of(part: object, whole: object) -> bool:
    """Whether a value that was cut has nothing that the whole one has not."""
    if isinstance(part, PairMap) and isinstance(whole, PairMap):
        return all(
            key == other_key and is_part_of(item, other)
            for (key, item), (other_key, other) in zip(part, whole, strict=False)
        )
    if isinstance(part, dict) and isinstance(whole, (dict, PairMap)):
        known = dict(whole) if isinstance(whole, dict) else {}
        return all(name in known and is_part_of(item, known[name]) for name, item in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return all(is_part_of(item, other) for item, other in zip(part, whole, strict=False))
    return part == whole


@pytest.mark.parametrize("text", [ROUTE, RESET_OFFSET, '{"a":[1,{"b":"c\\n"},12.5],"n":null}'])
def test_every_cut_removes_and_never_alters(text: str) -> None:
    data = text.encode()
    whole = decode_json(data).value
    for size in range(len(data)):
        found = decode_json(data[:size])
        assert found.problem is not None, size
        assert found.value is None or is_part_of(found.value, whole), size


def test_invalid_utf8_is_replaced_and_said() -> None:
    found = decode_json(b'{"a":"x\xff"}')
    assert found == JsonResult({"a": "x\ufffd"}, "invalid UTF-8 at byte 7")


def test_what_follows_is_said() -> None:
    assert decode_json(b'{"a":1} x') == JsonResult({"a": 1}, "1 characters follow the value at 8")
    assert decode_json(b"[1]\n\t ").problem is None
    assert decode_json(b"\xef\xbb\xbf[1]") == JsonResult([1])


def test_a_limit_in_bytes() -> None:
    found = decode_json(b"[1,2,3,4,5]", 5)
    assert found.value == [1, 2]
    assert found.problem == "only 5 of 11 bytes were read; the text ends at 5"


@pytest.mark.parametrize("opening", ["[", '{"a":', "{{", "[{a:"])
def test_depth_is_bounded(opening: str) -> None:
    for data in ((opening * 5000).encode(), (opening * 300).encode()):
        found = decode_json(data)
        assert found.problem is not None
        assert depth_of(found.value) <= DEPTH_LIMIT
        json.dumps(to_json_value(found.value))


@pytest.mark.slow
def test_strict_json_is_bounded_like_the_rest() -> None:
    deep = b"[" * (DEPTH_LIMIT + 1) + b"]" * (DEPTH_LIMIT + 1)
    assert decode_json(deep[1:-1]).problem is None
    assert decode_json(deep).problem == f"more than {DEPTH_LIMIT} levels at {DEPTH_LIMIT}"
    assert depth_of(decode_json(deep).value) == DEPTH_LIMIT
    wide = b"[" + b"0," * VALUE_LIMIT + b"0]"
    assert decode_json(wide).problem == f"more than {VALUE_LIMIT} values at {2 * VALUE_LIMIT - 1}"


def depth_of(value: object) -> int:
    if isinstance(value, PairMap):
        return 1 + max((depth_of(part) for pair in value for part in pair), default=0)
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        b'"' + b'\\"' * 500_000,
        b"'" + b"\\'" * 500_000,
        b'{"$ref":1,' + b'"a":1,' * 100_000,
        b"[/*" + b"*a" * 500_000,
        b"[" + b"/**/" * 200_000,
        b"{" + b'"\\u0041":{"$ref":"$.A"},' * 50_000,
        b'{"$ref":"' + b"." * 1_000_000 + b'"}',
        b'{"$ref":"$' + b".a" * 500_000 + b'"}',
        b'{"a":' + b"9" * 1_000_000 + b"}",
        b"-" * 1_000_000,
        b"[1 " * 300_000,
        b'{0:"' + b'",1:"' * 200_001,
        b"{" + b"0:" * 500_000,
    ],
    ids=range(13),
)
def test_time_is_bounded(data: bytes) -> None:
    start = time.process_time()
    to_json_value(decode_json(data).value)
    assert time.process_time() - start < 5  # quadratic work would take minutes


def test_references_cannot_blow_a_text_up() -> None:
    names = "abcdefghijklmnop"
    lines = ['"a":[1,2,3,4,5,6,7,8,9]']
    for before, name in pairwise(names):
        lines.append(f'"{name}":[{",".join([f"""{{"$ref":"$.{before}"}}"""] * 10)}]')
    found = decode_json(("{" + ",".join(lines) + "}").encode())
    assert found.problem is None
    assert str(found.value).count("$ref") > 50
    assert len(json.dumps(to_json_value(found.value))) < 12 * EXPANSION_LIMIT


def test_json_values_are_plain() -> None:
    value = {1: b"\x01", "t": (1, 2.5), "inf": float("inf"), "o": {1}.__class__}
    assert to_json_value(value) == {"1": "AQ==", "t": [1, 2.5], "inf": "inf", "o": "<class 'set'>"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
def test_valid_json_is_read_alike_by_both_readers(value: object) -> None:
    for text in (json.dumps(value, ensure_ascii=False), json.dumps(value, indent=1)):
        if "$ref" in text:
            continue
        try:
            data = text.encode()
        except UnicodeEncodeError:
            continue
        assert decode_json(data) == JsonResult(value)
        reader = FastjsonReader(text)
        assert reader.read() == value
        assert reader.problem is None


def with_bare_keys(value: object) -> str:
    """The text of a value as fastjson writes it: integer keys have no quotes."""
    if isinstance(value, dict):
        members = (
            f"{name if isinstance(name, int) else json.dumps(name, ensure_ascii=False)}"
            f":{with_bare_keys(item)}"
            for name, item in value.items()
        )
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(with_bare_keys, value))}]"
    return json.dumps(value, ensure_ascii=False)


# strings that look like keys outside of them
likely_text = st.text(max_size=8) | st.text('{}[],:0123456789-"', max_size=8)
values_with_bare_keys = st.recursive(
    st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | likely_text,
    lambda inner: st.lists(inner) | st.dictionaries(st.integers(-99, 1 << 40) | likely_text, inner),
    max_leaves=20,
)


@given(values_with_bare_keys)
def test_bare_keys_are_read_as_by_the_tolerant_reader(value: object) -> None:
    text = with_bare_keys(value)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    if "$ref" in text:
        return
    reader = FastjsonReader(text)
    assert decode_json(data) == JsonResult(reader.read())
    assert reader.problem is None


def check_any(data: bytes) -> None:
    found = decode_json(data)
    json.dumps(to_json_value(found.value), allow_nan=False).encode()


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    check_any(data)


@given(st.text("{}[]\"':,\\/*$ref.0129-+eEu \nabnull@", max_size=60))
def test_any_text_of_its_characters(text: str) -> None:
    check_any(text.encode())


@given(st.data())
def test_any_damage(data: st.DataObject) -> None:
    text = bytearray((POP_TABLES + ROUTE).encode() if data.draw(st.booleans()) else ROUTE.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    check_any(bytes(text))
