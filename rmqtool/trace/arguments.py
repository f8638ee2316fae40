"""The options of `trace`: each is declared once, as a field with its type, help and default."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from dissectors.tcp.decompression import MOST_TIMES

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_OUTPUT = "Output"


class TraceFormat(StrEnum):
    """How the lives of messages are written."""

    ladder = "ladder"
    json = "json"
    jsonl = "jsonl"
    html = "html"
    otlp = "otlp"


@dataclass(slots=True)
class TraceArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT... KEY",
            help="Captures, folders of captures, decoded logs, or - for stdin; then a "
            "unique key, offset message ID, or message key. Omit KEY with --where.",
            show_default=False,
        ),
    ]
    where: options.Where = ""
    since: options.Since = None
    until: options.Until = None
    tz: options.TimeZone = "UTC"
    decode_as: options.DecodeAs = None
    tls_keylog: options.TlsKeylog = None
    max_ratio: options.MaxRatio = MOST_TIMES
    plugin: options.Plugins = None
    jobs: options.Jobs = None
    format: Annotated[
        TraceFormat | None,
        typer.Option(
            *named("--format"),
            help="Output format: ladder diagram, JSON array or lines, HTML page, or OpenTelemetry "
            "spans as OTLP JSON (default: from the -o extension, .json: otlp; otherwise ladder).",
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
    colour: options.Color = When.auto
    pager: options.Pager = False
    quiet: options.Quiet = False
