"""Stored messages: both directions against Java's bytes, every cut, damage, noise."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dissectors.remoting.messages.compression import compress
from dissectors.remoting.messages.message import COMPARED, StoredMessage, encode_message
from dissectors.remoting.messages.record_layout import MAGIC_V2, count_messages
from dissectors.remoting.messages.records import MessageList, decode_messages

from ..vectors import STORED_V4, STORED_V6, stored_vectors

TWO = STORED_V4 + STORED_V6


def one(body: bytes) -> StoredMessage:
    found = decode_messages(body)
    assert found.problems == ()
    assert found.rest == b""
    (message,) = found.messages
    return message


def test_a_record_with_ipv4_hosts() -> None:
    message = one(STORED_V4)
    assert message == StoredMessage(
        topic="TopicTest",
        body=b"hello",
        properties={"UNIQ_KEY": "7F0000010D9C18B4AAC27B1C3D5C0000", "TAGS": "TagA"},
        total_size=157,
        body_crc=907060870,
        queue_id=3,
        queue_offset=42,
        physical_offset=123456789,
        born_timestamp=1700000000000,
        born_host="10.0.0.9:51234",
        store_timestamp=1700000000123,
        store_host="10.0.0.1:10911",
    )
    assert message.offset_msg_id == "0A00000100002A9F00000000075BCD15"
    assert message.unique_key == "7F0000010D9C18B4AAC27B1C3D5C0000"
    assert (message.tags, message.keys, message.version) == ("TagA", (), 1)
    assert (message.crc_ok, message.transaction, message.compression) == (True, "none", None)
    assert encode_message(message) == STORED_V4


def test_a_record_with_ipv6_hosts() -> None:
    message = one(STORED_V6)
    assert (message.born_host, message.store_host) == ("[fd00::9]:51234", "[fd00::1]:10911")
    assert message.offset_msg_id == "FD00000000000000000000000000000100002A9F00000000075BCD15"
    assert encode_message(message) == STORED_V6


def test_the_records_of_java_in_both_directions() -> None:
    for vector in stored_vectors():
        data = bytes.fromhex(vector["hex"])
        message = one(data)
        assert encode_message(message) == data, vector["name"]
        assert message.offset_msg_id == vector.get("offsetMsgId", message.offset_msg_id)
        assert decode_messages(data * 3).messages == (message, message, message)
    assert {one(bytes.fromhex(v["hex"])).version for v in stored_vectors()} == {1, 2}


def test_a_compressed_record_whose_crc_is_wrong() -> None:
    (vector,) = [vector for vector in stored_vectors() if "zlib" in vector["name"]]
    message = one(bytes.fromhex(vector["hex"]))
    assert message.compression == "zlib"
    assert message.crc_ok is False
    assert message.decompressed().data == b"x" * 5000
    assert message.decompressed(10).data == b"x" * 10
    assert message.decompressed(10).truncated


def is_part_of(part: StoredMessage, whole: StoredMessage) -> bool:
    """Whether a cut record only lacks what the whole one has: nothing in it may differ."""
    empty = StoredMessage("", born_host="", store_host="", magic=whole.magic)
    for name in StoredMessage.__struct_fields__:
        found, full = getattr(part, name), getattr(whole, name)
        if name == "properties":
            if not found.items() <= full.items():
                return False
        elif name == "body":
            if not full.startswith(found):
                return False
        elif name in COMPARED and found not in (full, getattr(empty, name)):
            return False
    return True


@pytest.mark.parametrize("whole", [STORED_V4, STORED_V6], ids=["ipv4", "ipv6"])
def test_a_cut_removes_and_never_alters(whole: bytes) -> None:
    full = one(whole)
    for size in range(len(whole)):
        found = decode_messages(STORED_V4 + whole[:size])
        assert found.messages[0] == one(STORED_V4)
        assert len(found.problems) == (size > 0)
        if size < 8:
            assert found.rest == whole[:size]
            assert len(found.messages) == 1
        else:
            part = found.messages[1]
            assert part.missing == len(whole) - size
            assert part.offset == len(STORED_V4)
            assert part.crc_ok is None
            assert is_part_of(part, full), size
            with pytest.raises(ValueError, match="missing"):
                encode_message(part)


def test_fields_of_a_cut_record_are_there_as_soon_as_they_can_be() -> None:
    part = decode_messages(STORED_V4[:87]).messages[0]
    assert (part.queue_offset, part.store_host) == (42, "10.0.0.1:10911")
    assert decode_messages(STORED_V4[:93]).messages[0].body == b"hello"
    assert decode_messages(STORED_V4[:103]).messages[0].topic == "TopicTest"
    assert decode_messages(STORED_V4[:-1]).messages[0].properties == {
        "UNIQ_KEY": "7F0000010D9C18B4AAC27B1C3D5C0000"
    }
    assert decode_messages(STORED_V4[:54]).messages[0].born_host == ""


@pytest.mark.parametrize(
    ("at", "value", "problem"),
    [
        (84, b"\x7f\xff\xff\xff", "body length 2147483647 does not fit the record"),
        (84, b"\xff\xff\xff\xff", "body length -1 does not fit the record"),
        (93, b"\xff", "topic length 255 does not fit the record"),
        (103, b"\xff\xff", "properties length 65535 does not fit the record"),
        (103, b"\x00\x33", "1 bytes follow the properties inside the record"),
    ],
)
def test_a_damaged_length_is_said_and_the_next_record_is_read(
    at: int, value: bytes, problem: str
) -> None:
    damaged = STORED_V4[:at] + value + STORED_V4[at + len(value) :]
    found = decode_messages(damaged + STORED_V6)
    assert found.problems == ((0, problem),)
    assert found.messages[0].physical_offset == 123456789
    assert found.messages[1] == one(STORED_V6)


@pytest.mark.parametrize(
    ("junk", "problem"),
    [
        (b"\0\0\0\x9d" + b"\xda\xa3\x20\xa8" + bytes(200), "magic 0xdaa320a8 marks no message"),
        (b"\0\0\0\x09" + b"\xda\xa3\x20\xa7" + bytes(200), "size 9 is too small for a record"),
        (b"\xff\0\0\x09" + b"\xda\xa3\x20\xa7", "size -16777207 is too small for a record"),
        (b"HTTP", "4 bytes are too few for a record"),
    ],
)
def test_where_the_chain_breaks_the_rest_is_handed_out(junk: bytes, problem: str) -> None:
    found = decode_messages(STORED_V4 + junk)
    assert found == MessageList((one(STORED_V4),), ((len(STORED_V4), problem),), junk)


def test_the_filler_at_the_end_of_a_file() -> None:
    filler = b"\0\0\0\x10" + b"\xcb\xd4\x31\x94" + bytes(8)
    found = decode_messages(STORED_V4 + filler + STORED_V6)
    assert found.messages == (one(STORED_V4), one(STORED_V6))
    assert found.problems == ((len(STORED_V4), "file end filler of 16 bytes"),)
    assert count_messages(STORED_V4 + filler + STORED_V6) == 2
    assert decode_messages(b"\0\0\0\x01" + b"\xcb\xd4\x31\x94").rest


def test_counting_agrees_with_decoding() -> None:
    for size in range(len(TWO) + 1):
        whole = [item for item in decode_messages(TWO[:size]).messages if not item.missing]
        assert count_messages(TWO[:size]) == len(whole)
        # A record that is cut counts when the missing bytes can hold its rest.
        begun = sum(size >= start + 8 for start in (0, len(STORED_V4)))
        assert count_messages(TWO[:size], len(TWO) - size) == begun


def java_crc_digits(data: bytes) -> str:
    """As UtilAll and MessageDecoder.createCrc32 write it: ten digits, the least one first."""
    crc = zlib.crc32(data) & 0x7FFFFFFF
    digits = ""
    for _ in range(10):
        digits += str(crc % 10)
        crc //= 10
    return digits


def test_the_crc_in_the_properties() -> None:
    message = replace(one(STORED_V4), properties={"__CRC32#": "?", "TAGS": "TagA"}).sealed()
    data = encode_message(message)
    assert data[-20:-11] == b"__CRC32#\x01"
    assert data[-11:-1].decode() == java_crc_digits(data[:-20])
    assert list(message.properties) == ["TAGS", "__CRC32#"]
    decoded = one(data)
    assert decoded == message
    assert decoded.properties_crc_ok is True
    damaged = data.replace(b"hello", b"jello")
    assert one(damaged).properties_crc_ok is False
    assert one(STORED_V4).properties_crc_ok is None


def test_sealing_sets_what_follows_from_the_parts() -> None:
    message = StoredMessage("t" * 128, b"x", born_host="[::1]:1", store_host="10.0.0.1:2").sealed()
    assert (message.magic, message.sys_flag, message.crc_ok) == (MAGIC_V2, 0x10, True)
    assert one(encode_message(message)) == message
    assert one(encode_message(replace(message, sys_flag=0x14))).transaction == "prepared"


def test_what_cannot_be_encoded() -> None:
    message = StoredMessage("T")
    for wrong in (
        replace(message, topic="t" * 256),
        replace(message, properties={"k": "v" * 70000}),
        replace(message, sys_flag=0x10),
        replace(message, born_host="nowhere"),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - each says what it is
            encode_message(wrong)


def test_a_body_without_crc_is_not_judged() -> None:
    assert one(encode_message(StoredMessage("T", b"x"))).crc_ok is None
    assert one(encode_message(StoredMessage("T", b""))).crc_ok is True


@pytest.mark.parametrize(("kind", "bits"), [("zlib", 1), ("zlib", 0x301), ("lz4", 0x101)])
def test_a_compressed_body(kind: str, bits: int) -> None:
    message = StoredMessage("T", compress(b"hello" * 9, kind), sys_flag=bits).sealed()
    assert one(encode_message(message)).decompressed().data == b"hello" * 9


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=9)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
hosts = st.builds("{}:{}".format, st.ip_addresses(v=4), st.integers(0, 65535)) | st.builds(
    "[{}]:{}".format, st.ip_addresses(v=6), st.integers(0, 65535)
)
messages = st.builds(
    StoredMessage,
    topic=st.text(st.characters(codec="utf-8"), max_size=60),
    body=st.binary(max_size=99),
    properties=st.dictionaries(texts, texts, max_size=4),
    queue_id=int32,
    flag=int32,
    queue_offset=int64,
    physical_offset=int64,
    sys_flag=st.sampled_from([0, 1, 4, 8, 12, 0x301]),
    born_timestamp=int64,
    born_host=hosts,
    store_timestamp=int64,
    store_host=hosts,
    reconsume_times=int32,
    prepared_transaction_offset=int64,
).map(StoredMessage.sealed)


@given(st.lists(messages, max_size=4))
def test_every_message_survives_both_directions(given_messages: list[StoredMessage]) -> None:
    body = b"".join(map(encode_message, given_messages))
    found = decode_messages(body)
    assert list(found.messages) == given_messages
    assert (found.problems, found.rest) == ((), b"")
    assert b"".join(map(encode_message, found.messages)) == body
    assert count_messages(body) == len(given_messages)


def check_any(body: bytes) -> None:
    found = decode_messages(body)
    assert count_messages(body) <= len(found.messages)
    offsets = [message.offset for message in found.messages]
    assert offsets == sorted(set(offsets))
    for message in found.messages:
        assert message.missing >= 0
        assert message.decompressed(100).data is not None
        assert (message.offset_msg_id is None) == (message.store_host == "")


@given(st.binary(max_size=400))
def test_any_bytes(body: bytes) -> None:
    check_any(body)
    check_any(STORED_V4 + body)


@given(st.data())
def test_any_damage(data: st.DataObject) -> None:
    body = bytearray(TWO)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    check_any(bytes(body))
