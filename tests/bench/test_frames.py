"""The generator's encoder against bytes that the Java classes wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.captures.frames import (
    Fields,
    Writer,
    encode_command,
    encode_stored_message,
    stored_crc,
)

VECTORS = Path(__file__).resolve().parents[2].parent / "shared" / "protocol" / "vectors.json"

UNIQUE = b"7F0000010D9C18B4AAC27B1C3D5C0000"
SEND_FIELDS: Fields = [
    (b"a", b"PG"), (b"b", b"TopicTest"), (b"c", b"TBW102"), (b"d", b"4"), (b"e", b"1"),
    (b"f", b"0"), (b"g", b"1700000000000"), (b"h", b"0"),
    (b"i", b"UNIQ_KEY\x01" + UNIQUE + b"\x02TAGS\x01TagA\x02WAIT\x01true\x02"),
    (b"j", b"0"), (b"k", b"false"), (b"m", b"false"), (b"n", b"broker-a"),
]  # fmt: skip
OFFSET_FIELDS: Fields = [
    (b"queueId", b"0"), (b"bname", b"broker-a"), (b"commitOffset", b"12"),
    (b"topic", b"TopicTest"), (b"consumerGroup", b"GID"),
]  # fmt: skip
COMMANDS: dict[str, tuple[int, int, int, Fields, bytes, bytes]] = {
    "route_request": (105, 0, 7, [(b"topic", b"TopicTest")], b"", b""),
    "send_v2_request": (310, 0, 8, SEND_FIELDS, b"", b"hello"),
    "route_response_error": (17, 1, 7, [], b"No topic route info", b""),
    "oneway_update_offset": (15, 2, 9, OFFSET_FIELDS, b"", b""),
}


@pytest.fixture(scope="module")
def vectors() -> dict[str, str]:
    """Name -> hexadecimal bytes."""
    if not VECTORS.exists():
        pytest.skip(f"no {VECTORS}: the bytes of the Java classes are not beside this repository")
    read = json.loads(VECTORS.read_text())
    return {entry["name"]: entry["hex"] for entry in read["frames"] + read["stored_messages"]}


@pytest.mark.parametrize("form", ["JSON", "ROCKETMQ"])
@pytest.mark.parametrize("name", list(COMMANDS))
def test_frame_is_as_java_writes_it(vectors: dict[str, str], name: str, form: str) -> None:
    writer = Writer(b"JAVA", 0, 479, form == "ROCKETMQ")
    assert encode_command(writer, *COMMANDS[name]).hex() == vectors[f"{name}_{form}"]


def test_stored_message_is_as_the_broker_writes_it(vectors: dict[str, str]) -> None:
    want = bytes.fromhex(vectors["stored_message_v1_ipv4"])
    born = bytes.fromhex("0a0000090000c822")
    store = bytes.fromhex("0a00000100002a9f")
    properties = b"UNIQ_KEY\x01" + UNIQUE + b"\x02TAGS\x01TagA\x02"
    got = encode_stored_message(
        b"TopicTest", 3, 42, 123456789, 1700000000000, born, store, properties,
        (b"hello", stored_crc(b"hello")),
    )  # fmt: skip
    # the sample is of a message consumed before and stored 122 ms later than here
    times = slice(56, 64)
    assert len(got) == len(want)
    assert got[:56] == want[:56]
    assert got[times] != want[times]
    assert got[64:] == want[64:]
