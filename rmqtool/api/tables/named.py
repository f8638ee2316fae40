"""The tables by name, each imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from ...errors import ArgumentError
from .table import Table

EXCHANGES, COMMANDS, MESSAGES = "exchanges", "commands", "messages"
CONNECTIONS, FINDINGS = "connections", "findings"
_PLACES: Final = {
    EXCHANGES: ("exchanges", "EXCHANGES"),
    COMMANDS: ("commands", "COMMANDS"),
    MESSAGES: ("messages", "MESSAGES"),
    CONNECTIONS: ("connections", "CONNECTIONS"),
    FINDINGS: ("findings", "FINDINGS"),
}
TABLES: Final = tuple(_PLACES)
"""names of all tables"""


def table_named(name: str) -> Table[Any]:
    """Return the table with a name; raise ArgumentError if there is none."""
    if name not in _PLACES:
        from dissectors.where.fields import suggestion

        raise ArgumentError(f"unknown table: {name!r}{suggestion(name, TABLES, 'tables')}")
    module, inner = _PLACES[name]
    table: Table[Any] = getattr(import_module(f".{module}", __package__), inner)
    return table
