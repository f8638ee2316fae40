"""The store against a plain list, and its records against the decoder and encoder of messages."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.messages.message import encode_message
from dissectors.remoting.messages.records import decode_messages
from replay.sandbox.room import Room
from replay.sandbox.store.memory import MessageStore, NewMessage, StoreFull
from replay.sandbox.store.shelf import Shelf, StoredQueue, StoredRecord
from tests.profiles import examples


def record(number: int, store_ms: int = 0) -> StoredRecord:
    return StoredRecord(b"", "T", 0, number, number * 10, store_ms, "")


@given(st.lists(st.booleans(), max_size=300))
def test_a_shelf_is_a_list_that_forgets_its_front(steps: list[bool]) -> None:
    shelf, plain = Shelf(), []
    for number, drop in enumerate(steps):
        if drop and plain:
            assert shelf.drop_first() is plain.pop(0)
        else:
            plain.append(record(number))
            shelf.append(plain[-1])
        assert len(shelf) == len(plain)
        assert [shelf[place] for place in range(len(shelf))] == plain
    for item in plain:
        assert shelf.place_of(item.physical_offset, lambda r: r.physical_offset) == plain.index(
            item
        )


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60).map(sorted), st.integers(-1, 51))
def test_offsets_at_a_time(times: list[int], wanted: int) -> None:
    queue = StoredQueue()
    queue.min_offset = 100
    for number, time in enumerate(times):
        queue.records.append(record(number, time))
    first = next((place for place, time in enumerate(times) if time >= wanted), len(times))
    assert queue.offset_at(wanted) == 100 + first
    last = max((place for place, time in enumerate(times) if time <= wanted), default=0)
    assert queue.offset_at(wanted, upper=True) == 100 + last


topics = st.text("abcXYZ_-%", min_size=1, max_size=200)
hosts = st.sampled_from(["10.0.0.1:1", "[::1]:65535", "255.255.255.255:0"])


@pytest.mark.slow
@examples(3)
@given(
    topics,
    st.binary(max_size=50),
    st.dictionaries(st.text("abc", min_size=1), st.text("xyz", min_size=1), max_size=4),
    st.integers(-(1 << 31), (1 << 31) - 1),
    hosts,
    hosts,
)
def test_a_record_is_what_the_encoder_of_messages_writes(
    topic: str, body: bytes, properties: dict[str, str], flag: int, born: str, stored: str
) -> None:
    store = MessageStore(stored, 1 << 20)
    store.put(NewMessage("other", 0, b"before", {}), 1)
    new = NewMessage(topic, 3, body, properties, flag, 0x301, 1234, born, 2, 99)
    put = store.put(new, 5678)
    decoded = decode_messages(put.data)
    assert decoded.problems == ()
    (message,) = decoded.messages
    assert encode_message(message) == put.data
    assert message.crc_ok
    assert message == message.sealed()
    assert (message.topic, message.queue_id, message.body) == (topic, 3, body)
    assert (message.properties, message.flag) == (properties, flag)
    assert (message.born_host, message.store_host) == (born, stored)
    assert (message.born_timestamp, message.store_timestamp) == (1234, 5678)
    assert (message.reconsume_times, message.prepared_transaction_offset) == (2, 99)
    assert message.sys_flag & 0xF0F == 0x301
    assert message.physical_offset == put.physical_offset > 0
    assert store.at(put.physical_offset) is put
    assert message.offset_msg_id == store.offset_id(put)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=60))
def test_a_store_that_forgets_keeps_its_limit_and_its_offsets(sizes: list[int]) -> None:
    store = MessageStore("127.0.0.1:1", 3000, drop_oldest=True)
    for number, size in enumerate(sizes):
        put = store.put(NewMessage("T", 0, b"x" * size, {"KEYS": f"k{number}"}), number)
        assert put.queue_offset == number
        assert store.held_bytes <= 3000
        queue = store.queue("T", 0)
        assert queue.max_offset == number + 1
        assert queue.at(number) is put
        assert queue.at(queue.min_offset - 1) is None
        assert store.begin_offset <= put.physical_offset
        assert store.find("T", f"k{number}", 32, 0, 1000) == [put]
    for number in range(len(sizes)):
        found = store.find("T", f"k{number}", 32, 0, 1000)
        assert len(found) == (1 if number >= store.queue("T", 0).min_offset else 0)
    assert sum(map(len, store.index.values())) == len(store)


def test_a_message_that_never_fits() -> None:
    store = MessageStore("127.0.0.1:1", 1000, drop_oldest=True)
    for body in (b"x" * 10, b"x" * 2000):
        try:
            store.put(NewMessage("T", 0, body, {}), 1)
            assert len(body) == 10
        except StoreFull:
            assert len(body) == 2000
    assert len(store) == 1


def test_the_index_by_key_counts_against_the_limit() -> None:
    keys = " ".join(f"k{number}" for number in range(1000))
    store = MessageStore("127.0.0.1:1", 20_000)
    put = store.put(NewMessage("T", 0, b"x", {"KEYS": keys}), 1)
    with pytest.raises(StoreFull):
        store.find("T", "k1", 32, 0, 10)
    store = MessageStore("127.0.0.1:1", 300_000, drop_oldest=True)
    for number in range(3):
        put = store.put(NewMessage("T", 0, b"x", {"KEYS": keys}), number)
        assert store.find("T", "k1", 32, 0, 10) == [put]
        assert store.held_bytes <= 300_000
    assert len(store) == 1


def test_a_tag_and_queues_count() -> None:
    room = Room(4000)
    store = MessageStore("127.0.0.1:1", 10_000, room=room)
    store.put(NewMessage("T", 0, b"x", {"TAGS": "t" * 1000}), 1)
    assert store.held_bytes > 2 * 1000
    made = 1
    with contextlib.suppress(StoreFull):
        while made < 10:
            store.put(NewMessage("T", made, b"x", {}), 1)
            made += 1
    assert made == 4
    assert room.used <= 4000
    store.drop_topic("T")
    assert room.used == 0


@pytest.mark.parametrize("bad", [{"k": "v" * 70_000}, None])
def test_a_batch_is_stored_as_a_whole_or_not_at_all(bad: dict[str, str] | None) -> None:
    good = [NewMessage("T", 1, b"body %d" % number, {"n": str(number)}) for number in range(3)]
    one_by_one, together = (MessageStore("10.0.0.1:10911", 2000) for _ in range(2))
    expected = [one_by_one.put(message, 5) for message in good]
    assert [one.data for one in together.put_all(good, 5)] == [one.data for one in expected]
    assert together.queue("T", 1).max_offset == 3
    # one that is invalid, or more than the store takes
    more = [*good, NewMessage("T", 1, b"", bad)] if bad else good * 9
    before = together.end_offset, together.held_bytes
    with pytest.raises((ValueError, StoreFull)):
        together.put_all(more, 5)
    assert (together.end_offset, together.held_bytes) == before
    assert together.queue("T", 1).max_offset == 3
