"""Lines of messages are those that their rows give, whatever the records hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.message_rows.message_lines import MessageLines
from dissectors.message_rows.seen_exchange import Facts, row_of
from dissectors.message_rows.stored import facts_of
from dissectors.remoting.messages.batch import unwrap_inner_batch
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.records import decode_messages
from dissectors.rows.json_rows import row_encoder
from dissectors.rows.message_record import DELIVERED, MESSAGE_COLUMNS
from tests.dissectors.stored_records import MESSAGES

from .seen import a_delivery, rows_of_run
from .test_whole_records import NAMES

OPTIONS = DecodeOptions(messages=True)
by_column = row_encoder((column.name, column.type) for column in MESSAGE_COLUMNS)


@pytest.mark.parametrize("path", NAMES, ids=lambda path: path.stem)
def test_lines_are_those_of_the_rows(path: Path) -> None:
    run = Decode([str(path)], OPTIONS)
    rows = rows_of_run(run)
    lines = Decode([str(path)], OPTIONS)
    found = list(lines.message_lines())
    assert b"".join(one.data for one in found) == by_column(rows)
    assert sum(sum(one.counts) for one in found) == len(rows)
    assert lines.take_experts() == run.take_experts()


SEEN_DELIVERY = a_delivery()
PLAIN = StoredMessage("T", b"", {})


def lines_of(body: bytes, group: str | None) -> bytes | None:
    """Return the lines of a body; None where it is left to rows."""
    lines = MessageLines()
    return lines.take()[1] if lines.add_whole(SEEN_DELIVERY, DELIVERED, body, group) else None


def rows_of(found: list[Facts]) -> bytes:
    """Return the lines of what records say, by way of rows."""
    return by_column([row_of(SEEN_DELIVERY, DELIVERED, at, one) for at, one in enumerate(found)])


@given(st.lists(MESSAGES, max_size=4), st.sampled_from(["group", 'g"', "ü", None]), st.booleans())
def test_any_messages(messages: list[StoredMessage], group: str | None, unset: bool) -> None:
    if unset:
        messages = [replace(message, body_crc=0) for message in messages]
    body = b"".join(map(encode_message, messages))
    found = [facts_of(one, group, 0) for one in decode_messages(body).messages]
    assert lines_of(body, group) == rows_of(found)


@given(MESSAGES, st.binary(max_size=60))
@example(
    StoredMessage("T", b"", {}), b"KEYS\x01a\x02KEYS\x01b\x02TAGS\x01\x02\x01x\x02\x02UNIQ_KEY"
)
@example(PLAIN, b"KEYS\x01\xff\xfe\x02TAGS\x01\xc3\x02PGROUP\x01\x01")
def test_any_bytes_of_properties(message: StoredMessage, properties: bytes) -> None:
    message.properties.clear()
    body = bytearray(encode_message(message))
    body[-2:] = len(properties).to_bytes(2, "big") + properties
    body[:4] = len(body).to_bytes(4, "big")
    found = [facts_of(one, "group", 0) for one in decode_messages(bytes(body)).messages]
    assert lines_of(bytes(body), "group") == rows_of(found)


@given(MESSAGES, MESSAGES, st.integers(0, 600), st.integers(0, 255))
def test_a_damaged_record_is_left_or_read_alike(
    first: StoredMessage, second: StoredMessage, at: int, value: int
) -> None:
    data = bytearray(encode_message(first) + encode_message(second))
    data[at % len(data)] = value
    lines = lines_of(bytes(data), "group")
    if lines is not None:
        records = decode_messages(bytes(data)).messages
        inner = [one for record in records for one in unwrap_inner_batch(record)]
        assert lines == rows_of([facts_of(one, "group", 0) for one in inner])


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    lines_of(data, None)


def test_what_is_odd_leaves_nothing_behind() -> None:
    good = encode_message(StoredMessage("T", b"body", {"KEYS": "k"}))
    lines = MessageLines()
    assert lines.add_whole(SEEN_DELIVERY, DELIVERED, good, None)
    assert not lines.add_whole(SEEN_DELIVERY, DELIVERED, good + good[:-1], None)
    count, data = lines.take()
    assert (count, data.count(b"\n")) == (1, 1)
    assert lines.take() == (0, b"")
