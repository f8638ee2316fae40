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
        help="A number (also 0x136, or what 16 bits leave of a code), a name or a part of one: "
        "of a code, a header, a field, a body, a property, a language, a version. "
        "It may begin with its kind: response 17. Without it everything is listed.",
        show_default=False,
    ),
]
KindName = Annotated[EntryKind | None, typer.Option("--kind", help="Only entries of this kind.")]
FormatName = Annotated[
    CodesFormat, typer.Option(*named("--format"), help="How entries are written.")
]
