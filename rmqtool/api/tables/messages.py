"""The table of messages: one row for each message in each exchange that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dissectors.decode.pipeline import Decode
from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.where.fields import message_fields

from .table import Table


def messages_of(
    decode: Decode, exchanges: Sequence[ExchangeRecord], some: bool
) -> list[MessageRecord]:
    """Return the messages of the chosen exchanges; `some`: not all exchanges are chosen."""
    carried = decode.take_messages()
    if some:
        numbers = set(map(id, exchanges))
        carried = [messages for messages in carried if id(messages.exchange) in numbers]
    return [row for messages in carried for row in messages.messages]


def _batches(decode: Decode) -> Iterator[Sequence[MessageRecord]]:
    for _ in decode.records():
        yield [row for carried in decode.take_messages() for row in carried.messages]


MESSAGES: Final[Table[MessageRecord]] = Table(
    "messages",
    MESSAGE_COLUMNS,
    _batches,
    lambda _captures: message_fields(),
    lambda row: row.time,
    windowed=False,
)
