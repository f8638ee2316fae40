"""The tables by name, each imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from ...errors import ArgumentError
from .table import Table

EXCHANGES, COMMANDS, MESSAGES = "exchanges", "commands", "messages"
CONNECTIONS, FINDINGS = "connections", "findings"
TABLES: Final = (EXCHANGES, COMMANDS, MESSAGES, CONNECTIONS, FINDINGS)
"""names of all tables, which are those of their modules"""


def table_named(name: str) -> Table[Any]:
    """Return the table with a name; raise ArgumentError if there is none."""
    if name not in TABLES:
        from dissectors.where.fields import suggestion

        raise ArgumentError(f"unknown table: {name!r}{suggestion(name, TABLES, 'tables')}")
    table: Table[Any] = getattr(import_module(f".{name}", __package__), name.upper())
    return table
