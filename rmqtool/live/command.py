"""`rmqtool decode live`: what can be asked of a live capture."""

from __future__ import annotations

from typing import Annotated

import typer

from ..ui import common_options as options
from ..ui.common_options import RowFormat
from ..ui.console import When
from ..ui.errors import guarded
from ..ui.letters import named
from ..ui.status import CommandError, ExitStatus

_CAPTURE = "What is captured"
InterfaceName = Annotated[
    str | None,
    typer.Option(
        *named("--interface"), metavar="NAME", help="Network interface.", rich_help_panel=_CAPTURE
    ),
]
ListInterfaces = Annotated[
    bool,
    typer.Option(
        *named("--list-interfaces"), help="Show the interfaces and exit.", rich_help_panel=_CAPTURE
    ),
]
CaptureFilter = Annotated[
    str,
    typer.Option(
        *named("--filter"),
        metavar="BPF",
        help="Capture only these packets, in tcpdump's words: 'tcp port 10911 or port 9876'.",
        rich_help_panel=_CAPTURE,
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        *named("--write"),
        metavar="FILE",
        help="Keep the packets as pcapng, too.",
        rich_help_panel=_CAPTURE,
    ),
]
Duration = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Stop after 30s, 10m, 2h; else Ctrl-C.", rich_help_panel=_CAPTURE
    ),
]
NoPromiscuous = Annotated[
    bool,
    typer.Option(
        *named("--no-promiscuous"),
        help="Only packets that this machine sends and gets.",
        rich_help_panel=_CAPTURE,
    ),
]
Buffer = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Packets that may wait while nobody reads them; more are dropped.",
        rich_help_panel=_CAPTURE,
    ),
]
Where = Annotated[
    str,
    typer.Option(
        *named("--where"),
        metavar="EXPR",
        help="Only rows for which this holds, e.g. 'latency > 50ms and topic ~ \"^Order\"'.",
        rich_help_panel="Which rows",
    ),
]
FormatName = Annotated[
    RowFormat | None,
    typer.Option(
        *named("--format"),
        help="How rows are written; else by the name of the output, else a table.",
        rich_help_panel="Output",
    ),
]
NO_INTERFACE = "which interface? give -i NAME"


def decode_live(
    interface: InterfaceName = None,
    list_interfaces: ListInterfaces = False,
    filter_: CaptureFilter = "",
    keep: Keep = None,
    duration: Duration = None,
    no_promiscuous: NoPromiscuous = False,
    buffer: Buffer = "64MiB",
    commands: options.Commands = False,
    verbose: options.Verbose = False,
    summary: options.SummaryOnly = False,
    where: Where = "",
    since: options.Since = None,
    until: options.Until = None,
    tz: options.TimeZone = "UTC",
    limit: options.Limit = None,
    format_: FormatName = None,
    output: options.OutputName = "-",
    force: options.Force = False,
    body_limit: options.BodyLimit = None,
    color: options.Color = When.auto,
    quiet: options.Quiet = False,
    check: options.Check = False,
    fail_on: options.FailOn = None,
    decode_as: options.DecodeAs = None,
) -> None:
    """Decode what passes a network interface, as it happens: one line per exchange, or as asked.

    Ctrl-C ends the capture: requests that still wait are shown, a summary, a log completed. The
    letters are those of tshark: -f and -w as for tcpdump, -Y a filter of rows, -T their format.

    Examples:

    \b
      rmqtool decode live -D
      sudo rmqtool decode live -i eth0 -f 'tcp port 10911 or tcp port 9876'
      sudo rmqtool decode live -i lo --where 'latency > 50ms or status == unanswered'
      sudo rmqtool decode live -i eth0 --duration 10m --summary -w incident.pcapng
      ssh host sudo tcpdump -U -w - port 10911 | rmqtool decode pcap -

    Rights, buffers, remote machines: rmqtool help live.
    """

    def run() -> ExitStatus:
        from ..decode.options import (
            DecodeRequest,
            conditions_of,
            format_of,
            ports_of,
            size_option,
            time_option,
            view_of,
            zone_option,
        )
        from .run import LiveRequest, refuse_stdout, run_live, seconds_of, show_interfaces

        if list_interfaces:
            return show_interfaces()
        if not interface:
            raise CommandError(NO_INTERFACE, "rmqtool decode live -D shows them", ExitStatus.USAGE)
        refuse_stdout(keep)
        zone = zone_option(tz)
        view = view_of(commands, verbose, summary)
        request = DecodeRequest(
            sources=[interface],
            view=view,
            format=format_of(format_, output, view),
            output=output,
            force=force,
            where=where,
            since=time_option("--since", since, zone),
            until=time_option("--until", until, zone),
            zone=zone,
            limit=limit,
            body_limit=size_option("--body-limit", body_limit),
            decode_as=ports_of(decode_as or []),
            follow=True,
            check=check,
            fail_on=conditions_of(fail_on or [], view),
            quiet=quiet,
            colour=color,
        )
        live = LiveRequest(
            interface,
            filter_,
            keep,
            seconds_of("--duration", duration),
            not no_promiscuous,
            size_option("--buffer", buffer) or 0,
        )
        return run_live(request, live)

    raise typer.Exit(int(guarded(run)))
