"""Tables about consumers and delivery, folded from captures without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from analytics.consuming import delivery, delivery_tables, group_tables
from analytics.consuming.group_fold import fold_groups
from analytics.consuming.group_items import items_of_connections, items_of_group_exchanges
from analytics.consuming.items import Item, items_of_exchanges, items_of_messages
from analytics.consuming.known import Known
from analytics.report import ReportTable
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.message_record import MessageRecord
from dissectors.rows.record import ExchangeRecord

from .reported import Tables

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows_of(
    files: Sequence[str],
) -> tuple[list[ExchangeRecord], list[MessageRecord], list[ConversationRecord]]:
    """Return the exchanges, messages and connections of captures; those of the last call stay."""
    return _rows_of(tuple(files))


@lru_cache(maxsize=1)
def _rows_of(
    files: tuple[str, ...],
) -> tuple[list[ExchangeRecord], list[MessageRecord], list[ConversationRecord]]:
    exchanges: list[ExchangeRecord] = []
    messages: list[MessageRecord] = []
    connections: list[ConversationRecord] = []
    for file in files:
        decode = Decode([file], DecodeOptions(messages=True, conversations=True))
        for records in decode.records():
            exchanges += records
            for carried in decode.take_messages():
                messages += carried.messages
            connections += decode.take_conversations()
    return exchanges, messages, connections


def delivery_of(files: Sequence[str]) -> Tables:
    """Return the tables of the report `delivery`."""
    from analytics.sql.windows import window_of

    exchanges, messages, _ = rows_of(files)
    known = Known()
    known.add_exchanges(exchanges)
    first, last = known.context.first_time, known.context.last_time
    known.window_us = window_of(((last or 0) - (first or 0)) // 1000)
    items: list[Item] = [
        *items_of_exchanges(exchanges, known),
        *items_of_messages(messages, known),
    ]
    sums = delivery.fold_items(sorted(items), known)
    return typed(delivery.tables_of(sums, known), delivery_tables.TABLES)


def consumers_of(files: Sequence[str]) -> Tables:
    """Return the tables of the report `consumers`."""
    exchanges, _, connections = rows_of(files)
    known = Known(with_connections=True)
    known.add_exchanges(exchanges)
    items = [
        *items_of_group_exchanges(exchanges, known),
        *items_of_connections(connections, known),
    ]
    found = fold_groups(sorted(items), known).tables
    every = {table.name: found.get(table.name, []) for table in group_tables.TABLES}
    return typed(every, group_tables.TABLES)


def typed(rows: Tables, tables: Sequence[ReportTable]) -> Tables:
    """Return rows with all their columns, times as Spark has them."""
    return {
        table.name: [
            {
                column.name: time_as_spark(row.get(column.name))
                if column.type == "time"
                else row.get(column.name)
                for column in table.columns
            }
            for row in rows[table.name]
        ]
        for table in tables
    }


def time_as_spark(value: object) -> object:
    """Return microseconds as `collect` gives a time; other values as they are."""
    if not isinstance(value, int):
        return value
    # `collect` gives times of the local zone without saying so.
    return (_EPOCH + timedelta(microseconds=value)).astimezone().replace(tzinfo=None)
