"""The record layout against the offsets of the facts."""

from __future__ import annotations

import pytest

from dissectors.remoting.messages.record_layout import (
    BORN_PORT,
    FIELD_ENDS,
    FIXED,
    FIXED_PART,
    STORE_PORT,
    SYS_FLAG_AT,
    address_of,
    encode_properties_bytes,
    host_of,
    properties_of,
)

# Offsets of layouts.md, section 5, for IPv4 hosts.
STARTS = {
    "total_size": 0,
    "magic": 4,
    "body_crc": 8,
    "queue_id": 12,
    "flag": 16,
    "queue_offset": 20,
    "physical_offset": 28,
    "sys_flag": 36,
    "born_timestamp": 40,
    "born_address": 48,
    "store_timestamp": 56,
    "store_address": 64,
    "reconsume_times": 72,
    "prepared_transaction_offset": 76,
    "body_length": 84,
}


def test_every_field_starts_where_the_facts_say() -> None:
    starts = dict(zip((name for name, _ in FIXED_PART), FIELD_ENDS[0], strict=False))
    assert STARTS.items() <= starts.items()
    assert [fixed.size for fixed in FIXED] == [88, 100, 100, 112]
    assert [ends[-1] for ends in FIELD_ENDS] == [88, 100, 100, 112]
    assert starts["sys_flag"] == SYS_FLAG_AT
    assert (FIELD_ENDS[0][BORN_PORT], FIELD_ENDS[0][STORE_PORT]) == (56, 72)


@pytest.mark.parametrize(
    ("address", "port", "host"),
    [(b"\x0a\0\0\x09", 51234, "10.0.0.9:51234"), (bytes(15) + b"\1", -1, "[::1]:-1")],
)
def test_hosts(address: bytes, port: int, host: str) -> None:
    assert host_of(address, port) == host
    assert address_of(host) == (address, port)


def test_properties_keep_their_spelling() -> None:
    raw = b"a\x011\x02\x02b\x012"
    assert properties_of(raw) == {"a": "1", "b": "2"}
    assert properties_of(raw, cut=True) == {"a": "1"}
    assert encode_properties_bytes({"a": "1", "b": "2"}, raw) == raw
    assert encode_properties_bytes({"a": "1"}, raw) == b"a\x011\x02"
    assert encode_properties_bytes({"a": "1"}, None) == b"a\x011\x02"
