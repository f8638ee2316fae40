"""The options of `diagnose`: each is declared once, as a field with its type, help and default."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import typer

from dissectors.tcp.decompression import MOST_TIMES

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_WHAT, _LIVE, _OUTPUT = "What is looked at", "A live interface", "Output"


class DiagnoseFormat(StrEnum):
    """How problems are written."""

    table = "table"
    jsonl = "jsonl"


@dataclass(slots=True)
class DiagnoseArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Captures, folders of them, - for standard input; decoded logs, files of their"
            " rows, journals of `replay`.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    show_list: Annotated[
        bool, typer.Option("--list", help="Show all rules.", rich_help_panel=_WHAT)
    ] = False
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="RULE",
            help="What a rule says: proof, explanation, advice, limits.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    rules: Annotated[
        list[str],
        typer.Option(
            "--rule", metavar="RULE", help="Only this rule; repeatable.", rich_help_panel=_WHAT
        ),
    ] = field(default_factory=list)
    since: options.Since = None
    until: options.Until = None
    tz: options.TimeZone = "UTC"
    decode_as: options.DecodeAs = None
    tls_keylog: options.TlsKeylog = None
    max_ratio: options.MaxRatio = MOST_TIMES
    jobs: options.Jobs = None
    interface: Annotated[
        str | None,
        typer.Option(
            *named("--interface"),
            metavar="NAME",
            help="Watch a network interface instead of an input, until Ctrl-C.",
            rich_help_panel=_LIVE,
        ),
    ] = None
    filter: Annotated[
        str,
        typer.Option(
            *named("--filter"),
            metavar="BPF",
            help="Capture only these packets: 'tcp port 10911 or tcp port 9876'.",
            rich_help_panel=_LIVE,
        ),
    ] = ""
    keep: Annotated[
        str | None,
        typer.Option(
            *named("--write"),
            metavar="FILE",
            help="Keep the packets as pcapng, too.",
            rich_help_panel=_LIVE,
        ),
    ] = None
    duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Stop after 30s, 10m, 2h.", rich_help_panel=_LIVE),
    ] = None
    verbose: Annotated[
        bool,
        typer.Option(
            *named("--verbose"),
            help="With each problem its evidence, explanation, advice and references.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False
    format: Annotated[
        DiagnoseFormat | None,
        typer.Option(
            *named("--format"),
            help="A table for people, JSON lines for scripts; else by the name of the output. With"
            " -i the lines come while it runs: one for each problem that starts, changes or ends.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    output: Annotated[
        str,
        typer.Option(
            *named("--output"), metavar="FILE|-", help="Where to write.", rich_help_panel=_OUTPUT
        ),
    ] = "-"
    fail_on: Annotated[
        list[str],
        typer.Option(
            "--fail-on",
            metavar="error|warning|info|RULE",
            help="Exit with 4 if there is a problem of this severity or higher, or of this rule;"
            " repeatable.",
            rich_help_panel=_OUTPUT,
        ),
    ] = field(default_factory=list)
    colour: options.Color = When.auto
    pager: options.Pager = False
    quiet: options.Quiet = False
