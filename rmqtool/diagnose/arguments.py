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

_WHAT, _LIVE, _OUTPUT = "Rules", "Live capture", "Output"


class DiagnoseFormat(StrEnum):
    """How problems are written."""

    table = "table"
    json = "json"
    jsonl = "jsonl"

    @property
    def is_json(self) -> bool:
        """Whether problems are objects: one array of them, or one on each line."""
        return self is not DiagnoseFormat.table


@dataclass(slots=True)
class DiagnoseArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Captures, folders of captures, decoded logs, row files, replay "
            "journals, or - for stdin.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    show_list: Annotated[
        bool, typer.Option("--list", help="List all rules and exit.", rich_help_panel=_WHAT)
    ] = False
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="RULE",
            help="Explain a rule: proof, explanation, advice, limits.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    rules: Annotated[
        list[str],
        typer.Option(
            "--rule",
            metavar="RULE",
            help="Check only this rule; repeatable.",
            rich_help_panel=_WHAT,
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
            help="Diagnose live traffic on this interface until Ctrl-C.",
            rich_help_panel=_LIVE,
        ),
    ] = None
    filter: Annotated[
        str,
        typer.Option(
            *named("--filter"),
            metavar="BPF",
            help="Capture filter (pcap-filter syntax), such as 'tcp port 10911'.",
            rich_help_panel=_LIVE,
        ),
    ] = ""
    keep: Annotated[
        str | None,
        typer.Option(
            *named("--write"),
            metavar="FILE",
            help="Also save the packets as pcapng.",
            rich_help_panel=_LIVE,
        ),
    ] = None
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Stop after this time, such as 30s, 10m, or 2h (default: until Ctrl-C).",
            rich_help_panel=_LIVE,
        ),
    ] = None
    verbose: Annotated[
        bool,
        typer.Option(
            *named("--verbose"),
            help="Show evidence, explanation, advice, and references for each problem.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False
    format: Annotated[
        DiagnoseFormat | None,
        typer.Option(
            *named("--format"),
            help="Output format; json is one array (default: from the -o extension, otherwise "
            "table). With -i, JSON rows are events of problems.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    output: Annotated[
        str,
        typer.Option(
            *named("--output"), metavar="FILE|-", help="Output file.", rich_help_panel=_OUTPUT
        ),
    ] = "-"
    force: options.Force = False
    fail_on: Annotated[
        list[str],
        typer.Option(
            "--fail-on",
            metavar="error|warning|info|RULE",
            help="Exit 4 on a problem of this severity or higher, or of this rule; repeatable.",
            rich_help_panel=_OUTPUT,
        ),
    ] = field(default_factory=list)
    colour: options.Color = When.auto
    pager: options.Pager = False
    quiet: options.Quiet = False
