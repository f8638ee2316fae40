"""Values read by the class tables: what is odd is kept and said; the way back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.bodies.classes import CLASSES, java_type_of
from dissectors.remoting.bodies.json_body import NOTES_LIMIT, TypedReader, wire_value
from dissectors.remoting.fastjson.codec import decode_json, encode_json
from dissectors.remoting.fastjson.reader import PairMap


def read(java_type: str, value: object) -> tuple[object, tuple[str, ...]]:
    reader = TypedReader()
    return reader.read(value, java_type_of(java_type), java_type), reader.notes


def test_a_class_as_expected() -> None:
    value = {"brokerName": "b", "perm": 6, "readQueueNums": 4, "topicSysFlag": 0}
    assert read("QueueData", value) == (value, ())  # writeQueueNums is absent: null to Java


def test_what_is_odd_is_kept_and_said() -> None:
    value = {
        "brokerName": 5,
        "perm": True,
        "readQueueNums": "4",
        "writeQueueNums": [1],
        "later": {"x": 1},
    }
    assert read("QueueData", value) == (
        value,
        (
            "QueueData.brokerName: a number where a string is expected",
            "QueueData.perm: a boolean where an integer is expected",
            "QueueData.readQueueNums: a string where an integer is expected",
            "QueueData.writeQueueNums: a list where an integer is expected",
            "QueueData.later is not known",
        ),
    )


@pytest.mark.parametrize(
    ("java_type", "value", "note"),
    [
        ("QueueData", [], "QueueData: a list where an object is expected"),
        ("List<String>", {}, "List<String>: an object where a list is expected"),
        ("Map<String, String>", [], "Map<String, String>: a list where a map is expected"),
        ("MessageModel", "NO", "MessageModel: 'NO' is not a value of MessageModel"),
        ("MessageModel", 1, "MessageModel: a number where an enum name is expected"),
        ("BitSet", "?", "BitSet: a string where a bit set in base64 is expected"),
        ("Map<Long, String>", {"x": "a"}, "Map<Long, String>: the key 'x' is not an integer"),
        ("boolean", 1, "boolean: a number where a boolean is expected"),
    ],
)
def test_other_shapes(java_type: str, value: object, note: str) -> None:
    assert read(java_type, value) == (value, (note,))


def test_notes_are_bounded_and_not_repeated() -> None:
    rows = [{"perm": "x", f"m{number}": 1} for number in range(100)]
    assert len(read("List<QueueData>", rows)[1]) == NOTES_LIMIT
    assert len(read("List<QueueData>", [{"perm": "x"}] * 100)[1]) == 1


def test_maps_with_object_keys_are_always_lists() -> None:
    queue = {"brokerName": "b", "queueId": 1, "topic": "T"}
    assert read("Map<MessageQueue, Long>", PairMap([(queue, 7)])) == (
        [{"key": queue, "value": 7}],
        (),
    )
    assert read("Map<MessageQueue, Long>", {}) == ([], ())


def test_short_names_become_long_ones() -> None:
    value, notes = read("BatchAck", {"c": "G", "b": "CQI=", "so": 100, "topic": "T"})
    assert value == {
        "consumerGroup": "G",
        "bitSet": [0, 3, 9],
        "startOffset": 100,
        "topic": "T",
    }
    assert notes == ()


def test_a_kept_reference_is_not_odd() -> None:
    assert read("QueueData", {"$ref": ".."}) == ({"$ref": ".."}, ())


@pytest.mark.parametrize(
    ("java_type", "value", "text"),
    [
        ("Map<Long, String>", {"0": "a", "7": "b"}, '{0:"a",7:"b"}'),
        ("Map<Long, String>", {0: "a"}, '{0:"a"}'),
        ("Map<Long, String>", {"x": "a"}, '{"x":"a"}'),
        ("Map<MessageQueue, Long>", [], "{}"),
        ("Map<MessageQueue, Long>", [{"key": {"topic": "T"}, "value": 1}], '{{"topic":"T"}:1}'),
        ("ConsumeStats", {"consumeTps": 0}, '{"consumeTps":0.0}'),
        ("QueueData", {"perm": 6, "brokerName": "b", "zz": None}, '{"brokerName":"b","perm":6}'),
        ("BatchAck", {"topic": "T", "bitSet": [0, 3, 9]}, '{"b":"CQI=","t":"T"}'),
        ("BatchAck", {"b": "CQI="}, '{"b":"CQI="}'),
    ],
)
def test_the_way_back(java_type: str, value: object, text: str) -> None:
    assert encode_json(wire_value(value, java_type_of(java_type))) == text.encode()


def test_the_standard_form_is_quoted_and_sorted() -> None:
    value = {"10": "a", "9": "b"}
    wire = wire_value(value, java_type_of("Map<Long, String>"), standard=True)
    assert encode_json(wire) == b'{"9":"b","10":"a"}'
    wire = wire_value({"b": 1, "a": 2}, java_type_of("Map<String, Long>"), standard=True)
    assert encode_json(wire) == b'{"a":2,"b":1}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 1 << 62) | st.text("ab", max_size=3) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([name for members in CLASSES.values() for name in members]), inner
        )
        | st.lists(st.tuples(inner, inner), max_size=3).map(PairMap)
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(CLASSES)), json_values)
def test_any_value_for_any_class(name: str, value: object) -> None:
    found, _ = read(name, value)
    json.dumps(found, allow_nan=False)
    again = encode_json(wire_value(found, java_type_of(name)))
    assert decode_json(again).problem is None
