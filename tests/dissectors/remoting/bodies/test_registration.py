"""Registrations: Java's bytes both ways, every cut, damage."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.bodies.body import Body, BodyInput
from dissectors.remoting.bodies.registration import decode_registration, decode_topic_config

from ..registrations import encode_registration, encode_topic_config
from ..vectors import REGISTRATION, json_vectors, other_vectors

PLAIN = zlib.decompress(REGISTRATION)


def decoded(body: bytes, **header: str) -> Body:
    return decode_registration(BodyInput("RegisterBrokerBody", 103, False, body, header))


def test_the_compressed_form_in_both_directions() -> None:
    body = decoded(REGISTRATION)
    assert (body.kind, body.problem, body.notes) == ("RegisterBrokerBody", None, ())
    assert body.value == {
        "filterServerList": [],
        "topicConfigSerializeWrapper": {
            "dataVersion": {"counter": 0, "stateVersion": 0, "timestamp": 1700000000000},
            "topicConfigTable": {
                "TopicTest": {
                    "topicName": "TopicTest",
                    "readQueueNums": 4,
                    "writeQueueNums": 4,
                    "perm": 6,
                    "topicFilterType": "SINGLE_TAG",
                    "attributes": {},
                }
            },
            "topicQueueMappingInfoMap": {},
        },
    }
    assert zlib.decompress(encode_registration(body.value, compressed=True)) == PLAIN


def test_the_bytes_of_java() -> None:
    vector = other_vectors()["register_broker_body_compressed"]
    assert bytes.fromhex(vector["hex"]) == REGISTRATION


def test_the_json_form_and_the_way_from_it_to_the_other() -> None:
    (vector,) = [vector for vector in json_vectors() if vector["name"] == "RegisterBrokerBody"]
    body = decoded(vector["text"].encode())
    assert (body.problem, body.notes) == (None, ())
    assert encode_registration(body.value).decode() == vector["text"]
    packed = decoded(encode_registration(body.value, compressed=True))
    assert packed.problem is None
    wrapper = "topicConfigSerializeWrapper"
    assert isinstance(packed.value, dict)
    assert isinstance(body.value, dict)
    for part in ("dataVersion", "topicQueueMappingInfoMap"):
        assert packed.value[wrapper][part] == body.value[wrapper][part]


def test_a_registration_of_4x_ends_before_the_queue_mappings() -> None:
    value = decoded(REGISTRATION).value
    old = encode_registration(value, compressed=True, queue_mappings=False)
    assert zlib.decompress(old) == PLAIN[:-4]
    body = decoded(old)
    assert body.problem is None
    assert "topicQueueMappingInfoMap" not in str(body.value)


def test_the_crc_of_the_header() -> None:
    right = str(zlib.crc32(REGISTRATION) & 0x7FFFFFFF)
    assert decoded(REGISTRATION, bodyCrc32=right).notes == ()
    assert decoded(REGISTRATION, bodyCrc32="0").notes == ()
    assert decoded(REGISTRATION, bodyCrc32="1").notes == ("bodyCrc32 does not fit the body",)


def test_every_cut_is_a_problem() -> None:
    for size in range(1, len(REGISTRATION)):
        assert decoded(REGISTRATION[:size]).problem is not None
    old_end = len(PLAIN) - 4
    for size in range(len(PLAIN)):
        problem = decoded(zlib.compress(PLAIN[:size])).problem
        assert (problem is None) == (size == old_end), size


@pytest.mark.parametrize(
    ("plain", "problem"),
    [
        (PLAIN + b"x", "1 bytes follow the registration"),
        (b"\0\0\0\x02{}" + b"\x7f\xff\xff\xff", "2147483647 entries are not from 0 to 200000"),
        (b"\0\0\0\x02{}" + b"\xff\xff\xff\xff", "-1 entries are not from 0 to 200000"),
        (b"\0\0\0\x02{}" + b"\0\0\0\1\0\0\0\1x", "a topic before 15 has not its five fields"),
        (b"\xff\xff\xff\xff", "a text of -1 bytes at 4 does not fit the registration"),
        (b"\0\0\0\1[" + bytes(12), "the text ends at 1"),
    ],
)
def test_damage(plain: bytes, problem: str) -> None:
    assert decoded(zlib.compress(plain)).problem == problem


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (
            'T 4 4 6 SINGLE_TAG {"+cleanup.policy":"DELETE"}',
            {"perm": 6, "attributes": {"+cleanup.policy": "DELETE"}},
        ),
        ("T 4 4 6 MULTI_TAG", {"topicFilterType": "MULTI_TAG"}),
    ],
)
def test_topic_configs(text: str, config: dict[str, object]) -> None:
    found = decode_topic_config(text)
    assert found is not None
    assert config.items() <= found.items()
    assert encode_topic_config(found).removesuffix(" {}") == text


@pytest.mark.parametrize("text", ["", "T 4 4 6", "T x 4 6 SINGLE_TAG", "T 99999999999999 4 6 S"])
def test_what_is_no_topic_config(text: str) -> None:
    assert decode_topic_config(text) is None


def test_what_cannot_be_encoded() -> None:
    for value in (None, {}, {"topicConfigSerializeWrapper": 1}):
        with pytest.raises(ValueError, match="registration"):
            encode_registration(value, compressed=True)


@given(st.binary(max_size=100), st.integers(0, len(PLAIN)))
def test_any_bytes(noise: bytes, at: int) -> None:
    decoded(b"x" + noise)
    decoded(b"{" + noise)
    decoded(zlib.compress(PLAIN[:at] + noise))
