"""Options of `rmqtool codes`; what they choose from is here, so that help needs no tables."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ..ui.letters import named


class EntryKind(StrEnum):
    """What an entry is; also the order in which entries are shown."""

    request = "request"
    response = "response"
    header = "header"
    body = "body"
    property = "property"
    language = "language"
    version = "version"


class CodesFormat(StrEnum):
    """How entries are written."""

    table = "table"
    json = "json"


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="QUERY",
        help="Number (also hex) or part of a name, optionally after its kind: response 17 "
        "(default: list everything).",
        show_default=False,
    ),
]
KindName = Annotated[
    EntryKind | None, typer.Option("--kind", help="Show only entries of this kind.")
]
FormatName = Annotated[CodesFormat, typer.Option(*named("--format"), help="Output format.")]
