"""Rows of stored records are those of the messages that they decode to, in every form."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.message_rows.message_table import MessageTable
from dissectors.message_rows.message_writer import FactsReader, MessageWriter
from dissectors.message_rows.seen_exchange import Facts, MessageEvent
from dissectors.remoting.messages.batch import unwrap_inner_batch
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.records import decode_messages
from dissectors.rows.column_bytes import ArrowSink
from dissectors.rows.message_record import DELIVERED, MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.parquet import batches_of, message_table
from dissectors.rows.row_sink import JsonSink, ObjectSink, RowSink
from dissectors.rows.tables import row_encoder
from tests.dissectors.rows.named_sink import NamedSink
from tests.dissectors.stored_records import MESSAGES
from tests.pure import implementation

from .seen import SAMPLES, a_delivery, rows_of_run

OPTIONS = DecodeOptions(messages=True)
PATTERNS = ("push-*", "pop-*", "pull-*", "lite-*", "ipv6-*", "admin-*", "send-comp*", "snap*")
NAMES = sorted(path for name in PATTERNS for path in SAMPLES.glob(f"{name}.pcap"))
SEEN = a_delivery()
LARGE = 2_000_000
by_column = row_encoder((column.name, column.type) for column in MESSAGE_COLUMNS)
groups = st.sampled_from(["group", 'g"', "ü", None])


def facts_of(message: StoredMessage, group: str | None) -> Facts:
    return FactsReader(group).facts_of(message, 0)


def rows_of(messages: list[StoredMessage], group: str | None) -> list[MessageRecord]:
    """Return the rows of messages that were decoded."""
    sink = ObjectSink(MessageRecord)
    writer = MessageWriter(sink)
    for place, message in enumerate(messages):
        writer.write(SEEN, MessageEvent(DELIVERED, place, facts_of(message, group)))
    return sink.take()


def batch_of(columns: ArrowSink) -> pyarrow.RecordBatch:
    (batch,) = batches_of(columns.take(), message_table().schema)
    batch.validate(full=True)
    return batch


def written(body: bytes, group: str | None) -> list[MessageRecord] | None:
    """Return the rows of a body, the same in all forms; None where a record is not whole."""
    objects, lines = ObjectSink(MessageRecord), JsonSink(MESSAGE_COLUMNS)
    columns = ArrowSink(MESSAGE_COLUMNS)
    sinks: tuple[RowSink, ...] = (objects, lines, columns)
    found = {MessageWriter(sink).write_body(SEEN, DELIVERED, body, group) for sink in sinks}
    rows: list[MessageRecord] = objects.take()
    assert found == {True} or not rows
    assert lines.take() == by_column(rows)
    assert batch_of(columns).equals(message_table().batch_of(rows))
    return rows if found == {True} else None


@pytest.mark.parametrize("path", NAMES, ids=lambda path: path.stem)
def test_lines_are_those_of_the_rows(path: Path) -> None:
    run = Decode([str(path)], OPTIONS)
    rows = rows_of_run(run)
    lines = Decode([str(path)], OPTIONS)
    found = list(lines.message_lines())
    assert b"".join(one.data for one in found) == by_column(rows)
    assert sum(sum(one.counts) for one in found) == len(rows)
    assert lines.take_findings() == run.take_findings()


@pytest.mark.skipif(implementation() == "compiled", reason="compiled: no sinks of others")
@pytest.mark.parametrize("name", ["pop-calls-5x", "transaction-5x", "admin-5x", "send-batch-5x"])
def test_each_value_is_that_of_its_column(name: str) -> None:
    path = str(SAMPLES / f"{name}.pcap")
    sink = NamedSink(MESSAGE_COLUMNS)
    table = MessageTable()
    table._take_sink(sink)
    run = Decode([path])
    for batch in run.exchanges():
        for one, row in zip(batch, run.rows_of(batch), strict=True):
            table.rows_of(one.request, one.response, row, [])
    assert sink.rows == [asdict(row) for row in rows_of_run(Decode([path], OPTIONS))]


@given(st.lists(MESSAGES, max_size=4), groups, st.booleans())
def test_any_messages(messages: list[StoredMessage], group: str | None, unset: bool) -> None:
    if unset:
        messages = [replace(message, body_crc=0) for message in messages]
    body = b"".join(map(encode_message, messages))
    assert written(body, group) == rows_of(decode_messages(body).messages, group)


@given(MESSAGES, st.binary(max_size=60))
@example(
    StoredMessage("T", b"", {}), b"KEYS\x01a\x02KEYS\x01b\x02TAGS\x01\x02\x01x\x02\x02UNIQ_KEY"
)
@example(StoredMessage("T", b"", {}), b"KEYS\x01\xff\xfe\x02TAGS\x01\xc3\x02PGROUP\x01\x01")
def test_any_bytes_of_properties(message: StoredMessage, properties: bytes) -> None:
    message.properties.clear()
    data = bytearray(encode_message(message))
    data[-2:] = len(properties).to_bytes(2, "big") + properties
    data[:4] = len(data).to_bytes(4, "big")
    body = bytes(data)
    assert written(body, "group") == rows_of(decode_messages(body).messages, "group")


@given(MESSAGES, MESSAGES, st.integers(0, 600), st.integers(0, 255))
def test_a_damaged_record_is_left_or_read_alike(
    first: StoredMessage, second: StoredMessage, at: int, value: int
) -> None:
    data = bytearray(encode_message(first) + encode_message(second))
    data[at % len(data)] = value
    rows = written(bytes(data), "group")
    if rows is not None:
        records = decode_messages(bytes(data)).messages
        inner = [one for record in records for one in unwrap_inner_batch(record)]
        assert rows == rows_of(inner, "group")


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    written(data, None)


def test_a_message_says_what_its_record_does() -> None:
    """The values of one message, spelled out: both ways could be wrong alike."""
    message = StoredMessage(
        "%RETRY%g", b"body", {"KEYS": "k", "RETRY_TOPIC": "Orders", "DELAY": "3", "UNIQ_KEY": "U"},
        queue_id=2, queue_offset=7, physical_offset=255, born_timestamp=5, store_timestamp=6,
        store_host="10.0.0.1:10911", reconsume_times=1,
    ).sealed()  # fmt: skip
    (row,) = written(encode_message(message), "g") or []
    assert (row.topic, row.original_topic, row.queue_id, row.queue_offset) == (
        *("%RETRY%g", "Orders"),
        *(2, 7),
    )
    assert row.offset_msg_id == "0A00000100002A9F00000000000000FF"
    assert (row.born_time, row.store_time, row.deliver_time) == (5_000_000, 6_000_000, None)
    assert (row.keys, row.unique_key, row.tags, row.consumer_group) == ("k", "U", None, "g")
    assert (row.delay_level, row.reconsume_times, row.commit_log_offset) == (3, 1, 255)
    assert (row.body_bytes, row.crc_ok, row.body) == (4, True, None)


def test_what_is_odd_leaves_nothing_behind() -> None:
    good = encode_message(StoredMessage("T", b"body", {"KEYS": "k"}))
    lines = JsonSink(MESSAGE_COLUMNS)
    writer = MessageWriter(lines)
    assert writer.write_body(SEEN, DELIVERED, good, None)
    assert not writer.write_body(SEEN, DELIVERED, good + good[:-1], None)
    assert lines.waiting == 1
    assert lines.take().count(b"\n") == 1
    assert (lines.waiting, lines.take()) == (0, b"")


def test_long_texts_are_ended_before_their_offsets_are() -> None:
    """A remark that thousands of records of an answer share would have no end."""
    good = encode_message(StoredMessage("T", b"", {}))
    long = SEEN._replace(row=replace(SEEN.row, remark="r" * LARGE))
    columns = ArrowSink(MESSAGE_COLUMNS)
    writer = MessageWriter(columns)
    assert writer.write_body(long, DELIVERED, good, None)
    assert writer.write_body(long, DELIVERED, good * 40, None)
    assert columns.is_full
    assert columns.waiting == 41
    parts = batches_of(columns.take(), message_table().schema)
    assert len(parts) > 1
    assert sum(part.num_rows for part in parts) == 41
    assert not columns.is_full
    for part in parts:
        part.validate(full=True)
        assert part.column("remark").null_count == 0
