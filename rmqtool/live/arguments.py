"""The options of `decode live`: each is declared once, with type, help and default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_CAPTURE = "Capture"


@dataclass(slots=True)
class LiveArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    interface: Annotated[
        str | None,
        typer.Option(
            *named("--interface"),
            metavar="NAME",
            help="Capture from this network interface.",
            rich_help_panel=_CAPTURE,
        ),
    ] = None
    list_interfaces: Annotated[
        bool,
        typer.Option(
            *named("--list-interfaces"),
            help="List interfaces and exit.",
            rich_help_panel=_CAPTURE,
        ),
    ] = False
    filter: Annotated[str, options.capture_filter(_CAPTURE)] = ""
    keep: Annotated[
        str | None,
        typer.Option(
            *named("--write"),
            metavar="FILE",
            help="Also save the packets as pcapng.",
            rich_help_panel=_CAPTURE,
        ),
    ] = None
    write_secrets: Annotated[
        bool,
        typer.Option(
            "--write-secrets",
            help="Also save the --tls-keylog secrets to the -w file. Anyone with that "
            "file can then decrypt it.",
            rich_help_panel=_CAPTURE,
        ),
    ] = False
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Stop after this time, such as 30s, 10m, or 2h (default: until Ctrl-C).",
            rich_help_panel=_CAPTURE,
        ),
    ] = None
    no_promiscuous: Annotated[
        bool,
        typer.Option(
            *named("--no-promiscuous"),
            help="Capture only packets sent or received by this machine.",
            rich_help_panel=_CAPTURE,
        ),
    ] = False
    buffer: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Capture buffer size; packets beyond it are dropped.",
            rich_help_panel=_CAPTURE,
        ),
    ] = "64MiB"
    unanswered_after: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Show a request as unanswered after this time (long polls: 30s). A late "
            "response is shown as well; an output file contains only the response.",
            rich_help_panel=_CAPTURE,
        ),
    ] = "5s"
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Switch to this user after opening the interface (default: the user who "
            "ran sudo).",
            rich_help_panel=_CAPTURE,
        ),
    ] = None
    commands: options.Commands = False
    verbose: options.Verbose = False
    summary: options.SummaryOnly = False
    where: options.Where = ""
    since: options.Since = None
    until: options.Until = None
    tz: options.TimeZone = "UTC"
    limit: options.Limit = None
    format: options.FormatName = None
    output: options.OutputName = "-"
    force: options.Force = False
    body_limit: options.BodyLimit = None
    max_output: options.MaxOutput = None
    colour: options.Color = When.auto
    quiet: options.Quiet = False
    check: options.Check = False
    fail_on: options.FailOn = None
    decode_as: options.DecodeAs = None
    plugin: options.Plugins = None
    tls_keylog: options.TlsKeylog = None
