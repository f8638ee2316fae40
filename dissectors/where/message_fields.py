"""Filter fields of messages: the columns of `MessageRecord`, and aliases.

Rules: a name that exchange filters also have means the same for messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Final, cast

from ..endpoint import host_of
from ..rows.message_record import EVENTS, MESSAGE_COLUMNS, MessageRecord
from ..rows.outcome import is_failure
from .fields import FieldSet, WhereField, exchange_fields, field_of_column

_Get = Callable[[MessageRecord], object]


def _ends(address: str) -> list[str]:
    return [host_of(address), address]


def _broker(row: MessageRecord) -> list[str]:
    ends = _ends(row.server_address)
    return ends if row.broker_name is None else [row.broker_name, *ends]


def _client(row: MessageRecord) -> list[str]:
    ends = _ends(row.client_address)
    return ends if row.client_id is None else [row.client_id, *ends]


def _groups(row: MessageRecord) -> list[str]:
    return [group for group in (row.producer_group, row.consumer_group) if group is not None]


def _ids(row: MessageRecord) -> list[str]:
    named = [name for name in (row.unique_key, row.offset_msg_id) if name is not None]
    return named + (row.keys.split() if row.keys else [])


_SAME: Final = {
    "request": "request_name",
    "operation": "request_name",
    "response": "response_name",
    "answer": "response_name",
    "code": "response_code",
    "queue": "queue_id",
    "note": "remark",
}
"""name → column"""
_MORE: Final[tuple[tuple[str, str, str, _Get], ...]] = (
    ("id", "unique key, offset message id, and each of the keys", "list", _ids),
    ("group", "producer group and consumer group", "list", _groups),
    ("broker", "name of the broker, and its address with and without port", "list", _broker),
    ("client", "client id, and the client's address with and without port", "list", _client),
    ("ip", "addresses of both ends, without port", "list",
     lambda row: [host_of(row.client_address), host_of(row.server_address)]),
    ("failed", "whether the response is an error", "bool",
     lambda row: is_failure(row.response_name)),
)  # fmt: skip
MESSAGE_ALIASES: Final = (
    ("latency", "`latency_us`, with a unit"),
    *((name, f"`{column}`") for name, column in _SAME.items()),
    *((name, meaning) for name, meaning, _, _ in _MORE),
)
"""Aliases beside the columns."""


def message_fields() -> FieldSet:
    """Return the filter fields of messages."""
    columns = {
        c.name: field_of_column(c.name, c.type, c.unit, attrgetter(c.name)) for c in MESSAGE_COLUMNS
    }
    columns["event"] = replace(columns["event"], known=lambda: EVENTS)
    fields = [
        *columns.values(),
        replace(columns["latency_us"], name="latency", needs_unit=True),
        *(replace(columns[column], name=name) for name, column in _SAME.items()),
        *(WhereField(name, type_, _of_row(get)) for name, _, type_, get in _MORE),
    ]
    elsewhere = dict.fromkeys(exchange_fields().names, "exchanges have it; messages do not")
    return FieldSet(fields, None, elsewhere)


def _of_row(get: _Get) -> Callable[[object], object]:
    return lambda row: get(cast(MessageRecord, row))
