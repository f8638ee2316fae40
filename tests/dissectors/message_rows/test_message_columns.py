"""Columns of messages are those that their rows give, whatever the records hold."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

import pyarrow
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dissectors.message_rows.message_columns import MessageColumns
from dissectors.message_rows.seen_exchange import Facts, row_of
from dissectors.message_rows.stored import facts_of
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.records import decode_messages
from dissectors.rows.message_record import DELIVERED, MessageRecord
from dissectors.rows.parquet import message_table, record_batch_of
from tests.dissectors.stored_records import MESSAGES

from .seen import a_delivery

SEEN = a_delivery()
LARGE = 2_000_000


def taken(columns: MessageColumns) -> list[pyarrow.RecordBatch]:
    """Return what waits, as Arrow has it."""
    return [record_batch_of(part, message_table().schema) for part in columns.take()]


def assert_rows(columns: MessageColumns, rows: list[MessageRecord]) -> None:
    """Compare what waits with rows."""
    assert columns.waiting == len(rows)
    found = pyarrow.Table.from_batches(taken(columns), message_table().schema).combine_chunks()
    found.validate(full=True)
    assert columns.waiting == 0
    expected = message_table().batch_of(rows)
    for name, column in zip(found.schema.names, found.columns, strict=True):
        assert column.combine_chunks().equals(expected[name]), name


def rows_of(body: bytes, group: str | None) -> list[MessageRecord]:
    """Return the rows of a body's records."""
    found = [facts_of(one, group, 0) for one in decode_messages(body).messages]
    return [row_of(SEEN, DELIVERED, at, one) for at, one in enumerate(found)]


@given(st.lists(MESSAGES, max_size=12), st.sampled_from(["group", "ü", None]), st.booleans())
def test_any_messages(messages: list[StoredMessage], group: str | None, unset: bool) -> None:
    if unset:
        messages = [replace(message, body_crc=0) for message in messages]
    body = b"".join(map(encode_message, messages))
    columns = MessageColumns()
    assert columns.add_whole(SEEN, DELIVERED, body, group)
    assert_rows(columns, rows_of(body, group))


@given(MESSAGES, st.binary(max_size=60))
def test_any_bytes_of_properties(message: StoredMessage, properties: bytes) -> None:
    message.properties.clear()
    body = bytearray(encode_message(message))
    body[-2:] = len(properties).to_bytes(2, "big") + properties
    body[:4] = len(body).to_bytes(4, "big")
    columns = MessageColumns()
    assert columns.add_whole(SEEN, DELIVERED, bytes(body), "group")
    assert_rows(columns, rows_of(bytes(body), "group"))


@given(st.lists(MESSAGES, max_size=9))
def test_rows_are_added_as_they_are(messages: list[StoredMessage]) -> None:
    rows = rows_of(b"".join(map(encode_message, messages)), None)
    columns = MessageColumns()
    columns.add(rows)
    assert_rows(columns, rows)


def test_what_is_odd_leaves_nothing_behind() -> None:
    good = encode_message(StoredMessage("T", b"body", {"KEYS": "k"}))
    columns = MessageColumns()
    assert columns.add_whole(SEEN, DELIVERED, good, None)
    assert not columns.add_whole(SEEN, DELIVERED, good + good[:-1], None)
    assert_rows(columns, rows_of(good, None))
    assert columns.take() == []


def test_long_texts_are_ended_before_their_offsets_are() -> None:
    """A remark that thousands of records of an answer share would have no end."""
    good = encode_message(StoredMessage("T", b"", {}))
    row = row_of(SEEN, DELIVERED, 0, Facts())
    row.remark = "r" * LARGE
    long = SEEN._replace(row=replace(SEEN.row, remark="r" * LARGE))
    columns = MessageColumns()
    assert columns.add_whole(long, DELIVERED, good, None)
    assert not columns.add_whole(long, DELIVERED, good * 9, None)
    columns.add([row] * 9)
    assert columns.is_full
    parts = taken(columns)
    assert [part.num_rows for part in parts] == [9, 1]
    assert not columns.is_full
    assert all(part.column("remark").null_count == 0 for part in parts)
