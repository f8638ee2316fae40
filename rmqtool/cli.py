"""The command line: what can be asked, with help; each command imports what it needs when it runs.

Rules: a command parses and calls; what it does is in a module of its own. Nothing heavy is imported
here, so that `rmqtool --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from dissectors.temporary import remove_all

from .broker import command as cli_broker
from .browse import command as cli_browse
from .codes import options as codes_options
from .decode import command as cli_decode
from .diagnose import command as cli_diagnose
from .help import command as cli_help
from .hex import command as cli_hex
from .live import command as cli_live
from .replay import command as cli_replay
from .report import command as cli_report
from .send import command as cli_send
from .trace import command as cli_trace
from .ui import common_options as options
from .ui.console import When
from .ui.errors import draw_errors_with, guarded, said_of_system
from .ui.interrupt import install_handlers, restore_handlers
from .ui.status import ExitStatus, Terminated
from .version import VERSION
from .wireshark import command as cli_wireshark

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_HELP = """Decode, replay and report Apache RocketMQ traffic.

Examples:

\b
  rmqtool decode pcap incident.pcap
  rmqtool diagnose incident.pcap        what is wrong, why, what to do
  rmqtool trace incident.pcap order-4711   one message: sent, stored, delivered, acknowledged
  rmqtool decode pcap incident.pcap --summary
  rmqtool browse incident.pcap          all of it, with keys and mouse
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
        print(f"rmqtool {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    pass


decode_app.command("pcap")(cli_decode.decode_pcap)
decode_app.command("live")(cli_live.decode_live)
decode_app.command("hex")(cli_hex.decode_hex)
decode_app.command("stream")(cli_hex.decode_stream)
app.command("browse")(cli_browse.browse)
app.command("replay")(cli_replay.replay)
app.command("report")(cli_report.report)
app.command("diagnose")(cli_diagnose.diagnose)
app.command("trace")(cli_trace.trace)


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


def _framed(lines: Sequence[str]) -> list[str]:
    try:
        from .ui.screen.panels import error_lines

        return error_lines(lines, sys.stderr)
    except Exception:  # what is wrong is to be said, however broken an installation is
        return []


def main() -> None:
    """Run the command line and exit with its status (console entry point)."""
    install_handlers()
    draw_errors_with(_framed)
    try:
        app(prog_name="rmqtool")
    except OSError as error:  # of what no command prints: help, the version
        sys.exit(said_of_system(error))
    except KeyboardInterrupt as error:
        terminated = isinstance(error, Terminated)
        sys.exit(ExitStatus.TERMINATED if terminated else ExitStatus.INTERRUPTED)
    finally:
        remove_all()
        restore_handlers()


if __name__ == "__main__":
    main()
