"""Batches: Java's bytes both ways, every cut, damage, inner batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dissectors.remoting.messages.batch import (
    BatchItem,
    decode_batch,
    encode_batch,
    is_inner_batch,
    unwrap_inner_batch,
)
from dissectors.remoting.messages.compression import compress
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.record_layout import count_batch

from ..vectors import BATCH, other_vectors

ITEMS = (
    BatchItem(b"one", {"KEYS": "k1", "WAIT": "true", "TAGS": "TagA"}),
    BatchItem(b"two", {"WAIT": "true", "TAGS": "TagB"}),
)


def test_both_directions() -> None:
    found = decode_batch(BATCH)
    assert (found.items, found.problems, found.rest) == (ITEMS, (), b"")
    assert encode_batch(ITEMS) == encode_batch(found.items) == BATCH
    assert count_batch(BATCH) == 2


def test_the_batch_of_java() -> None:
    assert bytes.fromhex(other_vectors()["batch_body"]["hex"]) == BATCH


def test_every_cut() -> None:
    for size in range(len(BATCH)):
        found = decode_batch(BATCH[:size])
        whole = [item for item in found.items if not item.missing]
        assert tuple(whole) == ITEMS[: len(whole)]
        assert count_batch(BATCH[:size]) == len(whole)
        assert len(found.problems) == (size not in (0, 53))
        for place, item in enumerate(found.items):
            assert ITEMS[place].body.startswith(item.body)
            assert item.properties.items() <= ITEMS[place].properties.items()
        assert count_batch(BATCH[:size], len(BATCH) - size) == (size >= 8) + (size >= 61)


@pytest.mark.parametrize(
    ("at", "value", "problem"),
    [
        (16, b"\xff\xff\xff\xff", "body length -1 does not fit the item"),
        (16, b"\x00\x00\x01\x00", "body length 256 does not fit the item"),
        (23, b"\x7f\xff", "properties length 32767 does not fit the item"),
        (23, b"\x00\x1b", "1 bytes follow the properties inside the item"),
    ],
)
def test_damaged_lengths(at: int, value: bytes, problem: str) -> None:
    found = decode_batch(BATCH[:at] + value + BATCH[at + len(value) :])
    assert found.problems == ((0, problem),)
    assert found.items[1] == ITEMS[1]


def test_what_is_no_batch() -> None:
    assert decode_batch(b"hello").rest == b"hello"
    assert decode_batch(bytes(30)).problems == ((0, "size 0 is too small for an item"),)
    assert decode_batch(b"\0\0\0\x16\0\0\0\x01" + bytes(20)).items == ()
    with pytest.raises(ValueError, match="cut"):
        encode_batch([BatchItem(b"x", missing=1)])


OUTER = StoredMessage("T", BATCH, queue_offset=70, sys_flag=0xC0, queue_id=2, physical_offset=9)


def test_an_inner_batch_is_taken_apart() -> None:
    assert is_inner_batch(OUTER)
    first, second = unwrap_inner_batch(OUTER)
    assert (first.body, first.queue_offset, first.tags) == (b"one", 70, "TagA")
    assert (second.body, second.queue_offset, second.tags) == (b"two", 71, "TagB")
    assert (second.topic, second.queue_id, second.physical_offset) == ("T", 2, 9)
    assert second.sys_flag == 0xC0


def test_a_compressed_inner_batch() -> None:
    packed = replace(OUTER, body=compress(BATCH, "zstd"), sys_flag=0xC0 | 0x201)
    first, second = unwrap_inner_batch(packed)
    assert (first.decompressed().data, second.decompressed().data) == (b"one", b"two")


def test_what_is_no_inner_batch_stays() -> None:
    for message in (
        replace(OUTER, sys_flag=0x80),
        replace(OUTER, body=b"plain"),
        replace(OUTER, sys_flag=0xC1),
    ):
        assert unwrap_inner_batch(message) == [message]


@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    for data in (body, BATCH + body, body + BATCH):
        found = decode_batch(data)
        assert count_batch(data) <= len(found.items)
        unwrap_inner_batch(replace(OUTER, body=data))


@given(
    st.lists(
        st.builds(
            BatchItem,
            body=st.binary(max_size=50),
            properties=st.dictionaries(
                st.sampled_from(["KEYS", "TAGS", "x"]), st.text("abc", min_size=1), max_size=3
            ),
            flag=st.integers(-(1 << 31), (1 << 31) - 1),
        ),
        max_size=5,
    )
)
def test_every_batch_survives_both_directions(items: list[BatchItem]) -> None:
    body = encode_batch(items)
    assert list(decode_batch(body).items) == items
    assert count_batch(body) == len(items)
