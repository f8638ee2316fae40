"""Parse and validate the rows of a store file.

A file may be damaged or untrusted, so every value is validated.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dissectors.foreign import Unreadable, integer_of, json_of
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.records import decode_messages

from .shelf import StoredRecord

OFFSET_LIMIT: Final = 1 << 62
"""offsets are below: there is room to go on behind them"""
_QUEUES: Final = 1 << 31


class DamagedRow(Exception):
    """A row that cannot be used; the text says why."""


def record_of_row(row: tuple[object, ...]) -> tuple[StoredRecord, str | None]:
    """Return the record of a row of `message`, and the errors of its columns.

    The columns are data, topic, queue_id, queue_offset, physical_offset, store_ms, tag. Raise
    DamagedRow if the record itself is unreadable.
    """
    data, *columns = row
    if not isinstance(data, bytes):
        raise DamagedRow("its data is not a record")
    message = _message_of(data)
    tag = message.properties.get("TAGS", "")
    expected = [
        *(message.topic, message.queue_id, message.queue_offset),
        *(message.physical_offset, message.store_timestamp, tag),
    ]
    # The record wins over columns that contradict it: its bytes are what a pull delivers.
    record = StoredRecord(
        data,
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.physical_offset,
        message.store_timestamp,
        tag,
    )
    if columns == expected:
        return record, None
    names = ("topic", "queue_id", "queue_offset", "physical_offset", "store_ms", "tag")
    wrong = [
        f"{name} is {_shown(column)}, the record says {_shown(value)}"
        for name, column, value in zip(names, columns, expected, strict=True)
        if column != value
    ]
    return record, "; ".join(wrong)


def _message_of(data: bytes) -> StoredMessage:
    messages = decode_messages(data).messages
    if len(messages) != 1 or messages[0].missing or messages[0].total_size != len(data):
        raise DamagedRow("its data is not a whole record")
    message = messages[0]
    offsets = (message.physical_offset, message.queue_offset, message.store_timestamp)
    if not all(0 <= offset < OFFSET_LIMIT for offset in offsets):
        raise DamagedRow("its record has an impossible offset or time")
    if not message.topic or not 0 <= message.queue_id < _QUEUES:
        raise DamagedRow("its record has no topic or queue")
    return message


def object_of_text(value: object) -> dict[str, object]:
    """Parse a JSON object; DamagedRow if invalid."""
    parsed = _json_of(value)
    if not isinstance(parsed, dict):
        raise DamagedRow(f"{_shown(value)} is not a JSON object")
    return parsed


def place_of_text(value: object, names: int) -> tuple[list[str], int]:
    """Parse a JSON list of names and a queue id."""
    parsed = _json_of(value)
    if not isinstance(parsed, list) or len(parsed) != names + 1:
        raise DamagedRow(f"{_shown(value)} names no queue")
    *texts, queue_id = parsed
    if not all(isinstance(text, str) for text in texts):
        raise DamagedRow(f"{_shown(value)} names no queue")
    if type(queue_id) is not int or not 0 <= queue_id < _QUEUES:
        raise DamagedRow(f"{_shown(value)} names no queue")
    return texts, queue_id


def offset_of_text(value: object) -> int:
    """Parse an offset; DamagedRow if invalid."""
    number = integer_of(value) if isinstance(value, str) else None
    if number is not None and 0 <= number < OFFSET_LIMIT:
        return number
    raise DamagedRow(f"{_shown(value)} is not an offset")


_JSON: Final = msgspec.json.Decoder()


def _json_of(value: object) -> object:
    if not isinstance(value, str):
        raise DamagedRow(f"{_shown(value)} is not text")
    try:
        return json_of(_JSON, value)
    except Unreadable:
        raise DamagedRow(f"{_shown(value)} is not JSON") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
