"""Rows are declared once: columns follow from the fields, and fast paths agree with them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from dissectors.message_rows.seen_exchange import Facts
from dissectors.rows.column import Column, Description, columns_of
from dissectors.rows.command_record import COMMAND_COLUMNS, CommandRow
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.record import COLUMNS, ExchangeRecord

SOURCES = Path(__file__).resolve().parents[3] / "dissectors"


class Made(msgspec.Struct):
    """A row with a field of each type."""

    name: Annotated[str | None, Description("its name", "here")]
    took: Annotated[int, Description("how long", "clock", unit="µs")]
    at: Annotated[int | None, Description("when", "clock", type="time")]
    tags: Annotated[list[str], Description("several", "there")]
    more: Annotated[dict[str, object] | None, Description("anything", "there")] = None


def test_columns_follow_from_the_fields() -> None:
    assert columns_of(Made) == (
        Column("name", "string", "", "its name", "here"),
        Column("took", "int", "µs", "how long", "clock"),
        Column("at", "time", "", "when", "clock"),
        Column("tags", "list", "", "several", "there"),
        Column("more", "object", "", "anything", "there"),
    )


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        (ExchangeRecord, COLUMNS),
        (ConversationRecord, CONVERSATION_COLUMNS),
        (CommandRow, COMMAND_COLUMNS),
        (MessageRecord, MESSAGE_COLUMNS),
    ],
)
def test_every_field_is_described(row: type[msgspec.Struct], columns: tuple[Column, ...]) -> None:
    assert tuple(column.name for column in columns) == row.__struct_fields__
    assert all(column.meaning and column.source for column in columns)


def _calls_of(module: str, name: str) -> list[ast.Call]:
    """Return the calls of a class in a module's source, which may run compiled."""
    tree = ast.parse((SOURCES / f"{module}.py").read_text(encoding="utf-8"))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name
    ]


def test_what_makers_say_of_a_message_are_the_last_of_its_columns() -> None:
    assert MessageRecord.__struct_fields__[-len(Facts._fields) :] == Facts._fields


def test_other_rows_are_made_by_keyword() -> None:
    (call,) = _calls_of("conversations/conversation_row", "ConversationRecord")
    assert not call.args
