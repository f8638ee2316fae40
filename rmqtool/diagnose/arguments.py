"""Options of `diagnose`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ..ui.letters import named

_WHAT, _LIVE, _OUTPUT = "What is looked at", "A live interface", "Output"


class DiagnoseFormat(StrEnum):
    """How problems are written."""

    table = "table"
    jsonl = "jsonl"


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT...",
        help="Captures, folders of them, - for standard input; decoded logs, files of their rows,"
        " journals of `replay`.",
        show_default=False,
    ),
]
ShowList = Annotated[bool, typer.Option("--list", help="Show all rules.", rich_help_panel=_WHAT)]
Explain = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="RULE",
        help="What a rule says: proof, explanation, advice, limits.",
        rich_help_panel=_WHAT,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--rule", metavar="RULE", help="Only this rule; repeatable.", rich_help_panel=_WHAT
    ),
]
InterfaceName = Annotated[
    str | None,
    typer.Option(
        *named("--interface"),
        metavar="NAME",
        help="Watch a network interface instead of an input, until Ctrl-C.",
        rich_help_panel=_LIVE,
    ),
]
CaptureFilter = Annotated[
    str,
    typer.Option(
        *named("--filter"),
        metavar="BPF",
        help="Capture only these packets: 'tcp port 10911 or tcp port 9876'.",
        rich_help_panel=_LIVE,
    ),
]
Duration = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Stop after 30s, 10m, 2h.", rich_help_panel=_LIVE),
]
FormatName = Annotated[
    DiagnoseFormat | None,
    typer.Option(
        *named("--format"),
        help="A table for people, JSON lines for scripts; else by the name of the output.",
        rich_help_panel=_OUTPUT,
    ),
]
OutputName = Annotated[
    str,
    typer.Option(*named("--output"), metavar="FILE|-", help="Where to.", rich_help_panel=_OUTPUT),
]
Verbose = Annotated[
    bool,
    typer.Option(
        *named("--verbose"),
        help="With each problem its evidence, explanation, advice and references.",
        rich_help_panel=_OUTPUT,
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="error|warning|info|RULE",
        help="Exit with 4 if there is a problem of this severity or graver, or of this rule;"
        " repeatable.",
        rich_help_panel=_OUTPUT,
    ),
]
