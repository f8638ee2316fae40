"""The table of commands: whole headers and decoded bodies.

Rules: in Arrow nested values (header fields, bodies, messages, findings) are JSON text, because
commands differ too much for a common schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dissectors.decode.command_fields import command_fields
from dissectors.decode.command_row import WHOLE, command_row_of
from dissectors.decode.pipeline import CommandSeen, Decode
from dissectors.rows.command_record import COMMAND_COLUMNS, CommandRow
from dissectors.times import moment_of

from ...ui.json_text import encoded_json
from .table import ArrowColumn, Table


def time_of_command(seen: CommandSeen) -> int | None:
    """Return the time of a command; a response has the time of its request."""
    return seen.request.ts if seen.request is not None else seen.pdu.ts


def _ns(row: object) -> object:
    assert isinstance(row, CommandRow)
    moment = moment_of(row.time)
    return None if moment is None else moment.ns


def _json_of(name: str) -> Callable[[object], object]:
    def get(row: object) -> object:
        value = getattr(row, name)
        return None if value is None else encoded_json(value).decode()

    return get


def _arrow() -> Iterable[ArrowColumn]:
    for column in COMMAND_COLUMNS:
        if column.type == "time":
            yield ArrowColumn(column.name, "time", _ns)
        elif column.type in ("object", "list"):
            yield ArrowColumn(column.name, "string", _json_of(column.name))
        else:
            name = column.name
            yield ArrowColumn(name, column.type, lambda row, name=name: getattr(row, name))  # type: ignore[misc]


COMMANDS: Final[Table[CommandSeen]] = Table(
    "commands",
    COMMAND_COLUMNS,
    Decode.commands,
    command_fields,
    time_of_command,
    body_limit=WHOLE,
    shown=command_row_of,
    arrow=_arrow,
)
