"""The command line: what can be asked, with help; each command imports what it needs when it runs.

Rules: a command parses and calls; what it does is in a module of its own. Nothing heavy is imported
here, so that `rmqtool --help` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dissectors.temporary import remove_all

from . import __version__
from .broker import command as cli_broker
from .codes import options as codes_options
from .decode.options import DecodeRequest
from .diagnose import command as cli_diagnose
from .help import command as cli_help
from .hex import command as cli_hex
from .live import command as cli_live
from .replay import command as cli_replay
from .report import command as cli_report
from .send import command as cli_send
from .ui import common_options as options
from .ui.console import When
from .ui.errors import guarded
from .ui.interrupt import install_handlers, restore_handlers
from .ui.status import ExitStatus, Terminated
from .wireshark import command as cli_wireshark

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_HELP = """Decode, replay and report Apache RocketMQ traffic.

Examples:

\b
  rmqtool decode pcap incident.pcap
  rmqtool diagnose incident.pcap        what is wrong, why, what to do
  rmqtool decode pcap incident.pcap --summary
  rmqtool decode pcap --help
  rmqtool help                          documents: columns, filters, reports, faults
"""
_DECODE_HELP = """Turn captured bytes into exchanges, commands and messages.

Examples:

\b
  rmqtool decode pcap incident.pcap
  rmqtool decode live -i eth0 -f 'tcp port 10911'
"""
app = typer.Typer(
    name="rmqtool",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)
decode_app = typer.Typer(
    help=_DECODE_HELP,
    no_args_is_help=True,
    context_settings=_CONTEXT,
)
app.add_typer(decode_app, name="decode")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"rmqtool {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    pass


@decode_app.command("pcap")
def decode_pcap(
    captures: options.Captures,
    commands: options.Commands = False,
    verbose: options.Verbose = False,
    summary: options.SummaryOnly = False,
    follow_conversation: options.FollowConversation = None,
    messages: options.Messages = False,
    where: options.Where = "",
    since: options.Since = None,
    until: options.Until = None,
    tz: options.TimeZone = "UTC",
    limit: options.Limit = None,
    format_: options.FormatName = None,
    output: options.OutputName = "-",
    force: options.Force = False,
    body_limit: options.BodyLimit = None,
    color: options.Color = When.auto,
    quiet: options.Quiet = False,
    check: options.Check = False,
    fail_on: options.FailOn = None,
    decode_as: options.DecodeAs = None,
    follow: options.Follow = False,
    jobs: options.Jobs = 1,
) -> None:
    """Decode captures: one line per exchange, or as asked below.

    Examples:

    \b
      rmqtool decode pcap incident.pcap
      rmqtool decode pcap incident.pcap --summary
      rmqtool decode pcap *.pcap -Y 'response_code != 0 or status == unanswered'
      rmqtool decode pcap incident.pcap -V -Y 'latency > 1s and topic ~ Order'
      rmqtool decode pcap incident.pcap --commands -T jsonl | jq .
      rmqtool decode pcap captures/ -T parquet -o log/
      rmqtool decode pcap incident.pcap --summary --check --fail-on 'failed>1%'
      rmqtool decode pcap incident.pcap --follow-conversation 3
      rmqtool decode pcap incident.pcap --messages -o bodies/ -Y 'name ~ SEND'
      tcpdump -i eth0 -U -w - port 10911 | rmqtool decode pcap -

    Columns: rmqtool help decoded-log. The language of --where: rmqtool help decoded-log filters.
    """

    def run() -> ExitStatus:
        from .decode.options import (
            conditions_of,
            format_of,
            ports_of,
            size_option,
            time_option,
            view_of,
            zone_option,
        )
        from .decode.run import run_decode

        zone = zone_option(tz)
        view = view_of(commands, verbose, summary, follow_conversation, messages)
        return run_decode(
            DecodeRequest(
                sources=captures,
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
                follow=follow,
                jobs=jobs,
                check=check,
                fail_on=conditions_of(fail_on or [], view),
                quiet=quiet,
                colour=color,
                conversation=follow_conversation,
            )
        )

    raise typer.Exit(int(guarded(run)))


decode_app.command("live")(cli_live.decode_live)
decode_app.command("hex")(cli_hex.decode_hex)
decode_app.command("stream")(cli_hex.decode_stream)
app.command("replay")(cli_replay.replay)
app.command("report")(cli_report.report)
app.command("diagnose")(cli_diagnose.diagnose)


@app.command("codes", context_settings={**_CONTEXT, "ignore_unknown_options": True})
def codes(
    query: codes_options.Words = None,
    kind: codes_options.KindName = None,
    format_: codes_options.FormatName = codes_options.CodesFormat.table,
    color: options.Color = When.auto,
) -> None:
    """Look up what a number or a name on the wire means.

    Examples:

    \b
      rmqtool codes 310
      rmqtool codes 3442                  a code that a binary header has cut
      rmqtool codes response 17
      rmqtool codes PopMessageRequestHeader
      rmqtool codes UNIQ_KEY
      rmqtool codes --kind response --format json
    """

    def run() -> ExitStatus:
        from .codes.command import codes

        return codes(query or [], kind, format_, color)

    raise typer.Exit(int(guarded(run)))


app.command("wireshark")(cli_wireshark.wireshark)
app.command("send")(cli_send.send)
app.command("broker")(cli_broker.broker)
app.command("help")(cli_help.help_)


def main() -> None:
    """Run the command line and exit with its status (console entry point)."""
    install_handlers()
    try:
        app(prog_name="rmqtool")
    except KeyboardInterrupt as error:
        terminated = isinstance(error, Terminated)
        sys.exit(ExitStatus.TERMINATED if terminated else ExitStatus.INTERRUPTED)
    finally:
        remove_all()
        restore_handlers()


if __name__ == "__main__":
    main()
