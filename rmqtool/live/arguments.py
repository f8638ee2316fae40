"""The options of `decode live`: each is declared once, with type, help and default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_CAPTURE = "What is captured"


@dataclass(slots=True)
class LiveArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    interface: Annotated[
        str | None,
        typer.Option(
            *named("--interface"),
            metavar="NAME",
            help="Network interface.",
            rich_help_panel=_CAPTURE,
        ),
    ] = None
    list_interfaces: Annotated[
        bool,
        typer.Option(
            *named("--list-interfaces"),
            help="Show the interfaces and exit.",
            rich_help_panel=_CAPTURE,
        ),
    ] = False
    filter: Annotated[str, options.capture_filter(_CAPTURE)] = ""
    keep: Annotated[
        str | None,
        typer.Option(
            *named("--write"),
            metavar="FILE",
            help="Keep the packets as pcapng, too.",
            rich_help_panel=_CAPTURE,
        ),
    ] = None
    write_secrets: Annotated[
        bool,
        typer.Option(
            "--write-secrets",
            help="Put the secrets of --tls-keylog into the file of -w, too: whoever has it can read"
            " what is encrypted in it.",
            rich_help_panel=_CAPTURE,
        ),
    ] = False
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Stop after 30s, 10m, 2h; else Ctrl-C.", rich_help_panel=_CAPTURE
        ),
    ] = None
    no_promiscuous: Annotated[
        bool,
        typer.Option(
            *named("--no-promiscuous"),
            help="Only packets that this machine sends and gets.",
            rich_help_panel=_CAPTURE,
        ),
    ] = False
    buffer: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Packets that may wait while nobody reads them; more are dropped.",
            rich_help_panel=_CAPTURE,
        ),
    ] = "64MiB"
    unanswered_after: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Show a request as unanswered once it has waited so long (long polls: 30s); if its"
            " response still comes, that is shown, too. A file has the response alone.",
            rich_help_panel=_CAPTURE,
        ),
    ] = "5s"
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Run as this user once the interface is open; default: the user who called sudo.",
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
