"""Rows of a store file as values: what a row must be, and what is wrong with one that is not.

Rules: a file may be damaged or made by somebody else, so no value of it is taken as it is. A stored
record says itself where it belongs; where a column of its row does not, the record counts.
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
    """Return the record of a row of `message`, and what was wrong with its columns.

    The columns are data, topic, queue_id, queue_offset, physical_offset, store_ms, tag. Raise
    DamagedRow where the record itself cannot be read.
    """
    data, *columns = row
    if not isinstance(data, bytes):
        raise DamagedRow("its data is not a record")
    message = _message_of(data)
    tag = message.properties.get("TAGS", "")
    told = [
        *(message.topic, message.queue_id, message.queue_offset),
        *(message.physical_offset, message.store_timestamp, tag),
    ]
    record = StoredRecord(
        data,
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.physical_offset,
        message.store_timestamp,
        tag,
    )
    if columns == told:
        return record, None
    names = ("topic", "queue_id", "queue_offset", "physical_offset", "store_ms", "tag")
    wrong = [
        f"{name} is {_shown(column)}, the record says {_shown(value)}"
        for name, column, value in zip(names, columns, told, strict=True)
        if column != value
    ]
    return record, "; ".join(wrong)


def _message_of(data: bytes) -> StoredMessage:
    found = decode_messages(data).messages
    if len(found) != 1 or found[0].missing or found[0].total_size != len(data):
        raise DamagedRow("its data is not a whole record")
    message = found[0]
    offsets = (message.physical_offset, message.queue_offset, message.store_timestamp)
    if not all(0 <= one < OFFSET_LIMIT for one in offsets):
        raise DamagedRow("its record has an offset or a time that cannot be")
    if not message.topic or not 0 <= message.queue_id < _QUEUES:
        raise DamagedRow("its record has no topic or queue")
    return message


def object_of_text(value: object) -> dict[str, object]:
    """Return the members of a JSON object; raise DamagedRow where the text is none."""
    found = _json_of(value)
    if not isinstance(found, dict):
        raise DamagedRow(f"{_shown(value)} is not a JSON object")
    return found


def place_of_text(value: object, names: int) -> tuple[list[str], int]:
    """Return the names and the queue of a JSON list of a number of names and a queue."""
    found = _json_of(value)
    if not isinstance(found, list) or len(found) != names + 1:
        raise DamagedRow(f"{_shown(value)} names no queue")
    *texts, queue_id = found
    if not all(isinstance(one, str) for one in texts):
        raise DamagedRow(f"{_shown(value)} names no queue")
    if type(queue_id) is not int or not 0 <= queue_id < _QUEUES:
        raise DamagedRow(f"{_shown(value)} names no queue")
    return texts, queue_id


def offset_of_text(value: object) -> int:
    """Return an offset; raise DamagedRow where the text is none."""
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
