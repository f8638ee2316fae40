"""POP receipts and lists: Java's strings both ways, noise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from dissectors.remoting.ids.pop_receipts import (
    PopEntry,
    PopList,
    PopReceipt,
    PopRecordId,
    decode_bit_set,
    decode_pop_list,
    decode_pop_receipt,
    decode_pop_record_id,
    encode_bit_set,
    encode_pop_list,
)

from ..vectors import text_vectors

RECEIPT = "100 1700000000000 60000 3 0 broker-a 1 103"


def test_a_receipt() -> None:
    receipt = PopReceipt(100, 1700000000000, 60000, 3, "0", "broker-a", 1, 103)
    assert decode_pop_receipt(RECEIPT) == receipt
    assert receipt.retry_topic("G", "T") == "T"


def test_a_receipt_of_a_proxy() -> None:
    """ReceiptHandle.decode takes eight fields or more, the ninth is in the commit log."""
    receipt = decode_pop_receipt(RECEIPT + " 4711")
    assert receipt is not None
    assert (receipt.queue_offset, receipt.commit_log_offset) == (103, 4711)
    assert decode_pop_receipt(RECEIPT + " 4711 more of it") == receipt
    assert decode_pop_receipt(RECEIPT + "  ") == decode_pop_receipt(RECEIPT)


def test_a_receipt_of_a_range() -> None:
    receipt = decode_pop_receipt(RECEIPT.removesuffix(" 103"))
    assert receipt is not None
    assert receipt.queue_offset is None


def test_the_receipts_of_java() -> None:
    topics = []
    for name in ("pop_extra_info", "pop_extra_info_retry", "pop_extra_info_retry_v2"):
        text = text_vectors()[name]
        receipt = decode_pop_receipt(text)
        assert receipt is not None
        assert [str(field) for field in astuple(receipt) if field is not None] == text.split()
        topics.append(receipt.retry_topic("G", "T"))
    assert topics == ["T", "%RETRY%G_T", "%RETRY%G+T"]


@pytest.mark.parametrize(
    "text", ["", "1 2 3", "a 2 3 4 0 b 6", "1 2 3 4 0 b x", "1 2 3 4 0 b 6 y", RECEIPT + " y"]
)
def test_what_is_no_receipt(text: str) -> None:
    assert decode_pop_receipt(text) is None


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("0 1 100;1 0 5", (PopEntry("0", 1, (100,)), PopEntry("1", 0, (5,)))),
        ("0 1 100,103;1 0 5", (PopEntry("0", 1, (100, 103)), PopEntry("1", 0, (5,)))),
        ("0 1 2;0 qo1%103 2", (PopEntry("0", 1, (2,)), PopEntry("0", 1, (2,), 103))),
        ("", ()),
    ],
)
def test_the_lists(text: str, entries: tuple[PopEntry, ...]) -> None:
    assert decode_pop_list(text) == PopList(entries)
    assert encode_pop_list(entries) == text


def test_the_lists_of_java() -> None:
    for name in ("pop_startOffsetInfo", "pop_msgOffsetInfo", "pop_orderCountInfo"):
        text = text_vectors()[name]
        found = decode_pop_list(text)
        assert found.unreadable == 0
        assert encode_pop_list(found.entries) == text


def test_entries_that_make_no_sense_are_counted() -> None:
    found = decode_pop_list("0 1 100;x;0 qo1 2;0 q 1;0 1 a,b;;1 0 5")
    assert [entry.queue_id for entry in found.entries] == [1, 0]
    assert found.unreadable == 4


def test_the_bits_of_a_batch_ack() -> None:
    assert decode_bit_set("CQI=") == (0, 3, 9)
    assert encode_bit_set((0, 3, 9)) == "CQI="
    assert decode_bit_set("") == ()
    assert encode_bit_set(()) == ""
    assert decode_bit_set("?") is None
    assert len(decode_bit_set("/" * 1_000_000) or ()) == 65544
    for wrong in ((-1,), (1 << 40,)):
        with pytest.raises(ValueError, match="no bit"):
            encode_bit_set(wrong)


def test_the_ids_of_records_in_the_revive_topic() -> None:
    assert decode_pop_record_id("T@1@100@GID@1700000000000@broker-a@ck") == PopRecordId(
        "ck", "T", 1, "100", "GID", 1700000000000, "broker-a"
    )
    assert decode_pop_record_id("T@1@[100, 103]@GID@1700000000000@bAck") == PopRecordId(
        "bAck", "T", 1, "[100, 103]", "GID", 1700000000000
    )
    assert decode_pop_record_id("7F0000010D9C18B4AAC27B1C3D5C0000") is None
    assert decode_pop_record_id("T@x@100@GID@1@b@ck") is None


@given(st.text(max_size=60) | st.text("0123 ;,%qo@ck", max_size=40))
def test_any_text(text: str) -> None:
    decode_pop_receipt(text)
    decode_pop_list(text)
    decode_bit_set(text)
    decode_pop_record_id(text)
