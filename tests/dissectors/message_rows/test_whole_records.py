"""The fast way gives what decoding gives, and leaves to it what is odd."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.decode.pipeline import Decode
from dissectors.message_rows.stored import facts_of
from dissectors.message_rows.whole_records import facts_of_whole
from dissectors.remoting.messages.batch import unwrap_inner_batch
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.records import decode_messages

from .seen import SAMPLES

NAMES = sorted(
    path
    for pattern in (
        "push-*",
        "pop-*",
        "pull-*",
        "lite-*",
        "ipv6-*",
        "admin-*",
        "send-comp*",
        "snap*",
    )
    for path in SAMPLES.glob(f"{pattern}.pcap")
)


@pytest.mark.parametrize("path", NAMES, ids=lambda path: path.stem)
def test_both_ways_give_the_same(path: Path) -> None:
    for batch in Decode([str(path)]).exchanges():
        for one in batch:
            if one.response is None or one.request is None or not one.response.body:
                continue
            records = decode_messages(one.response.body)
            whole = facts_of_whole(one.response.body, "group")
            if not records.messages:
                assert whole is None
                continue
            if not records.problems and not records.rest:
                assert whole == [facts_of(message, "group", 0) for message in records.messages]


MESSAGES = st.builds(
    StoredMessage,
    topic=st.sampled_from(["Orders", "%RETRY%group", "ü" * 40, ""]),
    body=st.binary(max_size=40),
    properties=st.dictionaries(
        st.sampled_from(["KEYS", "UNIQ_KEY", "TAGS", "RETRY_TOPIC", "POP_CK", "DELAY", "x"]),
        st.sampled_from(["a", "1", "0 1 2 0 1 broker-a 0 5", "-7", "9" * 30]),
    ),
    queue_id=st.integers(0, 9),
    queue_offset=st.integers(-(1 << 63), (1 << 63) - 1),
    physical_offset=st.integers(-(1 << 63), (1 << 63) - 1),
    sys_flag=st.sampled_from([0, 1, 4, 0x40]),
    born_timestamp=st.integers(-(1 << 63), (1 << 63) - 1),
    born_host=st.sampled_from(["10.0.0.1:1234", "[fd00::1]:1"]),
    store_host=st.sampled_from(["10.0.0.9:10911", "[fd00::9]:10911"]),
    reconsume_times=st.integers(0, 3),
).map(lambda message: message.sealed())


@given(st.lists(MESSAGES, max_size=3))
def test_any_messages_are_read_alike(messages: list[StoredMessage]) -> None:
    body = b"".join(map(encode_message, messages))
    assert facts_of_whole(body, "group") == [facts_of(one, "group", 0) for one in messages]


@given(MESSAGES, st.integers(0, 300), st.integers(0, 255))
def test_a_damaged_record_is_left_or_read_alike(
    message: StoredMessage, at: int, value: int
) -> None:
    data = bytearray(encode_message(message))
    data[at % len(data)] = value
    whole = facts_of_whole(bytes(data), "group")
    if whole is not None:
        records = decode_messages(bytes(data)).messages
        inner = [one for record in records for one in unwrap_inner_batch(record)]
        assert whole == [facts_of(one, "group", 0) for one in inner]


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    whole = facts_of_whole(data, None)
    assert whole is None or data == b"" or whole
