"""The table of messages: one row for each message in each exchange that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dissectors.decode.pipeline import Decode
from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.where.fields import FieldSet
from dissectors.where.message_fields import message_fields

from .table import Table


def messages_of(
    decode: Decode, exchanges: Sequence[ExchangeRecord], some: bool
) -> list[MessageRecord]:
    """Return the messages of the exchanges that were chosen; `some`: others came with them."""
    carried = decode.take_messages()
    if some:
        numbers = set(map(id, exchanges))
        carried = [one for one in carried if id(one.exchange) in numbers]
    return [row for one in carried for row in one.messages]


def _batches(decode: Decode) -> Iterator[Sequence[MessageRecord]]:
    for _ in decode.records():
        yield [row for carried in decode.take_messages() for row in carried.messages]


def _fields(_captures: Sequence[str]) -> FieldSet:
    return message_fields()


MESSAGES: Final[Table[MessageRecord]] = Table(
    "messages", MESSAGE_COLUMNS, _batches, _fields, lambda row: row.time
)
