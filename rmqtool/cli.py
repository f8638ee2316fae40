"""The command line: what can be asked, with help; each command imports what it needs when it runs.

Rules: a command parses and calls; what it does is in a module of its own. Nothing heavy is imported
here, so that `rmqtool --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, ClassVar

import typer

from dissectors.temporary import remove_all

from .commands import CommandGroup, CommandPlace
from .ui.errors import draw_errors_with, open_standard_files, said_of_system, silence_stdout
from .ui.interrupt import install_handlers, restore_handlers
from .ui.status import ExitStatus, Terminated
from .version import VERSION

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


class _Decode(CommandGroup):
    """The commands of `rmqtool decode`."""

    places: ClassVar = {
        "pcap": CommandPlace(
            "decode.command",
            "decode_pcap",
            "Decode captures: one line per exchange, or as asked below.",
        ),
        "live": CommandPlace(
            "live.command",
            "decode_live",
            "Decode what passes a network interface, as it happens: one line per exchange, or as"
            " asked.",
        ),
        "hex": CommandPlace(
            "hex.command",
            "decode_hex",
            "Decode a frame that is written down somewhere: a tree, as of `decode pcap --verbose`.",
        ),
        "stream": CommandPlace(
            "hex.command",
            "decode_stream",
            "Decode a byte stream: one line per command, with its offset.",
        ),
    }


class _Root(CommandGroup):
    """The commands of `rmqtool`, beside `decode`."""

    places: ClassVar = {
        "browse": CommandPlace(
            "browse.command",
            "browse",
            "Look around in captures, decoded logs or an interface, with keys and mouse.",
        ),
        "replay": CommandPlace(
            "replay.command",
            "replay",
            "Send captured messages again, safely, and compare what comes of them.",
        ),
        "report": CommandPlace(
            "report.command",
            "report",
            "Report latency, retries and broker isolation, from captures or decoded logs.",
        ),
        "diagnose": CommandPlace(
            "diagnose.command",
            "diagnose",
            "Say what is wrong in captured traffic, why, and what to do about it; with packets as"
            " proof.",
        ),
        "trace": CommandPlace(
            "trace.command",
            "trace",
            "Follow one message: who sent it, where it was stored, who got it when, and how it"
            " ended.",
        ),
        "codes": CommandPlace(
            "codes.entry",
            "codes",
            "Look up what a number or a name on the wire means.",
            {**_CONTEXT, "ignore_unknown_options": True},
        ),
        "wireshark": CommandPlace(
            "wireshark.command",
            "wireshark",
            "Write a RocketMQ dissector for Wireshark and tshark 4.x, in Lua.",
        ),
        "send": CommandPlace(
            "send.command",
            "send",
            "Send messages, and show every attempt: which broker, why that one, how long, what came"
            " of it.",
        ),
        "broker": CommandPlace(
            "broker.command",
            "broker",
            "Run a NameServer and brokers in this process: a safe target, with faults if wanted.",
        ),
        "help": CommandPlace(
            "help.command",
            "help_",
            "Show a document: columns, filters, reports, sandbox faults, replay rules and more.",
        ),
    }


app = typer.Typer(
    name="rmqtool",
    cls=_Root,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)
decode_app = typer.Typer(
    cls=_Decode,
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


def _framed(lines: Sequence[str]) -> list[str]:
    try:
        from .ui.screen.panels import error_lines

        return error_lines(lines, sys.stderr)
    except Exception:  # what is wrong is to be said, however broken an installation is
        return []


def _run_commands() -> None:
    """Run what was asked for, and write what is left of it."""
    try:
        app(prog_name="rmqtool")
    except SystemExit:
        sys.stdout.flush()
        raise


def main() -> None:
    """Run the command line and exit with its status (console entry point)."""
    open_standard_files()
    install_handlers()
    draw_errors_with(_framed)
    try:
        _run_commands()
    except BrokenPipeError:
        silence_stdout()
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
