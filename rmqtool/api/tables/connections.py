"""The table of TCP connections; a row comes when its connection has ended, or the capture has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dissectors.decode.pipeline import Decode
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord

from .table import Table, column_fields


def _batches(decode: Decode) -> Iterator[Sequence[ConversationRecord]]:
    for _ in decode.records():
        decode.take_findings()
        yield decode.take_conversations()
    yield decode.take_conversations()


CONNECTIONS: Final[Table[ConversationRecord]] = Table(
    "connections",
    CONVERSATION_COLUMNS,
    _batches,
    lambda _captures: column_fields(CONVERSATION_COLUMNS),
    lambda row: row.start_time,
    windowed=False,
)
