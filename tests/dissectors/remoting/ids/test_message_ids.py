"""Ids taken apart: Java's examples, both directions, noise."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.foreign import integer_of
from dissectors.remoting.ids.message_ids import (
    OffsetId,
    RecallHandle,
    UniqueKey,
    created_at,
    decode_offset_id,
    decode_recall_handle,
    decode_unique_key,
    encode_offset_id,
    encode_recall_handle,
    key_time_of,
    physical_offset_at,
    physical_offset_of,
)

from ..vectors import other_vectors, text_vectors

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "host", "offset"),
    [
        ("0A00000100002A9F00000000075BCD15", "10.0.0.1:10911", 123456789),
        (
            "FD00000000000000000000000000000100002A9F00000000075BCD15",
            "[fd00::1]:10911",
            123456789,
        ),
    ],
)
def test_an_offset_id(text: str, host: str, offset: int) -> None:
    assert physical_offset_of(text) == offset
    assert decode_offset_id(text) == OffsetId(host, offset)
    assert encode_offset_id(host, offset) == text


@pytest.mark.parametrize("text", ["", "0A", "0A00000100002A9F00000000075BCDXX", "7" * 33])
def test_what_is_no_offset_id(text: str) -> None:
    assert physical_offset_of(text) is None
    assert decode_offset_id(text) is None


def test_a_client_id_is_no_offset_id() -> None:
    assert decode_offset_id("7F0000010D9C18B4AAC27B1C3D5C0000") is None


@pytest.mark.parametrize(
    ("host", "offset"), [("", 0), ("x:1", 0), ("1.2.3.4:x", 0), ("1.2.3.4", 0)]
)
def test_an_offset_id_of_nothing(host: str, offset: int) -> None:
    assert encode_offset_id(host, offset) is None


def test_a_client_id() -> None:
    key = decode_unique_key("7F0000010D9C18B4AAC27B1C3D5C0001")
    assert key == UniqueKey("127.0.0.1", 0x0D9C, 0x18B4AAC2, 0x7B1C3D5C, 1)


def test_a_client_id_with_an_ipv6_address() -> None:
    key = decode_unique_key(other_vectors()["uniq_id_example"]["value"])
    assert key == UniqueKey("fd00::2", 0x539F, 0x30946E09, 0x654D697F, 0)


def test_a_client_id_of_the_last_days_of_a_month() -> None:
    """As MessageClientIDSetter.getNearlyTimeFromID of 5.5.0 reads it in November 2026, in UTC."""
    key = decode_unique_key("0A0000050D9C18B4AAC28F1C3D5C0000")
    assert key is not None
    assert key.month_offset > 27 * DAY
    assert created_at(key.month_offset, 1793213792604 + DAY) == 1793213792604


@pytest.mark.parametrize("text", ["", "abc", "1" * 31, "g" * 32, "1" * 40, "1" * 64])
def test_what_is_no_client_id(text: str) -> None:
    assert decode_unique_key(text) is None


@pytest.mark.parametrize(
    ("month_offset", "reference", "expected"),
    [
        # 2023-11-14T22:13:20Z is 13 days, 22:13:20 after the month began
        (13 * DAY + 80_000_000, 1700000000000, 1700000000000),
        # made at the very end of October, seen in November
        (31 * DAY - 5000, 1698796800000 + 1000, 1698796800000 - 5000),
        # made in November by a clock ahead of the one that saw it in October
        (2000, 1698796800000 - 1000, 1698796800000 + 2000),
    ],
)
def test_the_time_of_a_client_id(month_offset: int, reference: int, expected: int) -> None:
    assert created_at(month_offset, reference) == expected


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers())
def test_the_time_of_any_client_id(month_offset: int, reference: int) -> None:
    assert isinstance(created_at(month_offset, reference), int)


def test_a_recall_handle() -> None:
    handle = RecallHandle(
        "v1", "TopicTest", "broker-a", 1700000000001, "7F0000010D9C18B4AAC27B1C3D5C0000"
    )
    text = (
        "djEgVG9waWNUZXN0IGJyb2tlci1hIDE3MDAwMDAwMDAwMDEg"
        "N0YwMDAwMDEwRDlDMThCNEFBQzI3QjFDM0Q1QzAwMDA="
    )
    assert decode_recall_handle(text) == decode_recall_handle(text.rstrip("=")) == handle
    assert encode_recall_handle(handle) == text
    assert text_vectors()["recall_handle"] == text


@pytest.mark.parametrize("text", ["", "djE=", "%%%", "djIgYSBiIDEgYw==", "djEgYSBiIHggYw==", "é"])
def test_what_is_no_recall_handle(text: str) -> None:
    assert decode_recall_handle(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-1", -1),
        ("9223372036854775807", (1 << 63) - 1),
        ("9223372036854775808", None),
        ("", None),
        ("-", None),
        ("1.0", None),
        (" 1", None),
        ("٣", None),
        ("1" * 5000, None),
    ],
)
def test_number_of_text(text: str, number: int | None) -> None:
    assert integer_of(text) == number


@given(st.text(max_size=80) | st.text("0123456789ABCDEF", min_size=30, max_size=58))
def test_any_text(text: str) -> None:
    decode_offset_id(text)
    decode_unique_key(text)
    decode_recall_handle(text)


@given(
    st.text("0123456789ABCDEFabcdefxgG_ ", max_size=60)
    | st.from_regex("[0-9A-Fa-f]{8}0000[0-9a-fA-F]{4}[0-9a-fA-F]{16}", fullmatch=True)
    | st.from_regex("[0-9A-F]{8}0000[0-9A-F]{4}[0-9a-fA-Fx_]{16}", fullmatch=True),
    st.binary(max_size=5),
)
def test_an_offset_is_the_same_within_other_bytes(text: str, around: bytes) -> None:
    at = len(around)
    found = physical_offset_at(around + text.encode() + around, at, at + len(text))
    taken = decode_offset_id(text)
    assert found == (-1 if taken is None else taken.physical_offset)
    assert found == (-1 if (offset := physical_offset_of(text)) is None else offset)


KEY = "7F00000100002A9F00000000000186A0"


def test_a_key_tells_when_its_message_was_created() -> None:
    """The month begins at another time in each zone, by whole quarters of an hour."""
    key = decode_unique_key(KEY)
    assert key is not None
    assert key.month_offset == 1
    for zone in (0, 15, 330, -210):
        created = (1 + zone * 60_000) * 1000
        assert key_time_of(KEY, created + 7000) == created
        assert key_time_of(KEY, created - 999_000) == created, "a clock that steps"


@given(st.integers(0, 2**32 - 1), st.integers(-(2**60), 2**60))
def test_a_message_is_created_within_15_minutes_before_its_request(offset: int, asked: int) -> None:
    created = key_time_of(f"{KEY[:20]}{offset:08x}0001", asked)
    assert created is not None
    assert -1_000_000 <= asked - created < 15 * 60_000_000 - 1_000_000
    assert (created - offset * 1000) % (15 * 60_000_000) == 0


@given(st.text(max_size=60))
@example("7F00000100002A9F-FFFFFFF000186A0")
@example("7F00000100002A9F00000000000186AG")
@example("é" * 16)
@example("\ud800" * 32)
def test_other_keys_tell_nothing(key: str) -> None:
    end = key[-12:]
    is_key = len(key) in (32, 56) and all(char in "0123456789abcdefABCDEF" for char in end)
    assert key_time_of(key, 0) is None or is_key
