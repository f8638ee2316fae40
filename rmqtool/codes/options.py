"""Options of `rmqtool codes`, with their choices, so that help needs no tables."""

from __future__ import annotations

from enum import StrEnum

from ..ui import common_options as options
from ..ui.console import When
from ..ui.declared import argument, declared, option


class EntryKind(StrEnum):
    """Kinds of entries, in display order."""

    request = "request"
    response = "response"
    header = "header"
    body = "body"
    property = "property"
    language = "language"
    version = "version"


class CodesFormat(StrEnum):
    """The format of entries."""

    table = "table"
    json = "json"


@declared
class CodesRequest:
    """A `codes` command."""

    query: list[str] = argument(
        "QUERY",
        "Number or part of a name, optionally after its kind (default: all).",
    )
    """a number (decimal, hexadecimal, or what 16 bits leave of it), a name or a part of one; it
    may begin with a kind, as in ``response 17``"""
    kind: EntryKind | None = option("Show only entries of this kind.")
    format: CodesFormat = option("Output format.", None, CodesFormat.table)
    colour: When = options.COLOR
