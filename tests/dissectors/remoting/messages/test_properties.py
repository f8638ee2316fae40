"""Message properties: the text form in both directions, and the names RocketMQ reserves."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.remoting.messages.properties import (
    PROPERTIES,
    PropertyType,
    decode_properties,
    encode_properties,
    property_of,
    value_in,
)

from ..protocol_facts import table

TEXT = "UNIQ_KEY\x017F0000010D9C18B4AAC27B1C3D5C0000\x02WAIT\x01true\x02TAGS\x01TagA\x02"
DECODED = {"UNIQ_KEY": "7F0000010D9C18B4AAC27B1C3D5C0000", "WAIT": "true", "TAGS": "TagA"}


def test_both_directions_with_and_without_the_final_separator() -> None:
    assert decode_properties(TEXT) == decode_properties(TEXT[:-1]) == DECODED
    assert encode_properties(DECODED) == TEXT
    assert encode_properties(DECODED, final_separator=False) == TEXT[:-1]
    assert decode_properties("") == {}
    assert encode_properties({}) == encode_properties({"KEYS": None}) == ""


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a\x011\x02a\x012\x02", {"a": "2"}),
        ("a\x01b\x01c\x02", {"a": "b\x01c"}),
        ("\x01v\x02a\x01\x02b\x02\x02c\x01d", {"c": "d"}),
        ("a=b", {}),
        ("\x01\x02\x01\x02", {}),
        ("k\x01\u4f60\u597d \U0001f680\x02", {"k": "\u4f60\u597d \U0001f680"}),
    ],
)
def test_reading_is_as_tolerant_as_java(text: str, properties: dict[str, str]) -> None:
    assert decode_properties(text) == properties


@pytest.mark.parametrize(
    "properties", [{"a\x01": "1"}, {"a\x02": "1"}, {"a": "1\x02"}, {"a": "1\x02b\x012"}]
)
def test_a_separator_that_would_tear_an_entry_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="separator"):
        encode_properties(properties)


_NAMES = st.text(st.characters(exclude_characters="\x01\x02"), min_size=1)
_VALUES = st.text(st.characters(exclude_characters="\x02"), min_size=1)


@given(st.dictionaries(_NAMES, _VALUES), st.booleans())
def test_properties_come_back(properties: dict[str, str], final: bool) -> None:
    text = encode_properties(properties, final_separator=final)
    assert decode_properties(text) == properties
    assert list(decode_properties(text)) == list(properties)


def java_reading(text: str) -> dict[str, str]:
    """The rule of the layout told by positions, as an oracle for the split."""
    found: dict[str, str] = {}
    start = 0
    while start < len(text):
        end = text.find("\x02", start)
        end = len(text) if end < 0 else end
        middle = text.find("\x01", start)
        if start < middle < end - 1:
            found[text[start:middle]] = text[middle + 1 : end]
        start = end + 1
    return found


@given(st.text(st.sampled_from("ab\x01\x02")))
def test_any_text_is_read_by_the_rule(text: str) -> None:
    assert decode_properties(text) == java_reading(text)


@given(st.text(st.sampled_from("ab\x01\x02")), st.sampled_from(["a", "b", "ab"]))
@example("a\x01a\x02a\x01b\x02a\x01", "a")
def test_one_value_is_that_of_all(text: str, name: str) -> None:
    assert value_in(text, name) == decode_properties(text).get(name)


def test_known_names() -> None:
    unique = property_of("UNIQ_KEY")
    assert unique is not None
    assert unique.constant == "PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX"
    assert unique.reserved
    delay = property_of("DELAY")
    assert delay is not None
    assert delay.type is PropertyType.INT
    sharding = property_of("__SHARDINGKEY")
    assert sharding is not None
    assert not sharding.reserved
    assert property_of("my-own") is None


def test_names_are_unique_and_have_a_meaning() -> None:
    assert len({item.name for item in PROPERTIES}) == len(PROPERTIES)
    assert all(item.meaning for item in PROPERTIES)


def test_names_are_those_of_the_protocol() -> None:
    facts = table("constants.json")["message_properties"]
    ours = {item.constant: item.name for item in PROPERTIES if not item.since}
    ours |= {"KEY_SEPARATOR": " ", "PROPERTY_TRANSIENT_PREFIX": "__RMQ.TRANSIENT."}  # no names
    assert ours == facts
