"""The command line with its help; each command imports its modules when it runs.

Rules: a command parses and calls; its work is in a separate module. Nothing heavy is imported here,
because `rmqtool --help` must be fast.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from dissectors.temporary import remove_all

from .commands import READ, CommandGroup, CommandPlace
from .ui.errors import open_standard_files, report_system_error, silence_stdout
from .ui.interrupt import install_handlers, restore_handlers
from .ui.status import ExitStatus, Terminated
from .version import VERSION

_ANALYZE, _TEST, _REFERENCE = "Analyze", "Test", "Reference"
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_HELP = """Decode, diagnose, replay, and report Apache RocketMQ traffic.

Examples:
  rmqtool decode pcap incident.pcap
  rmqtool diagnose incident.pcap           what went wrong, why, how to fix it
  rmqtool decode pcap incident.pcap --summary
  rmqtool trace incident.pcap order-4711   one message, from send to ack
  rmqtool browse incident.pcap             explore everything interactively

Documentation: rmqtool help.
"""
_DECODE_HELP = """Decode captures, live traffic, or pasted bytes.

Examples:
  rmqtool decode incident.pcap                      same as decode pcap
  rmqtool decode incident.pcap --summary
  rmqtool decode live -i eth0 -f 'tcp port 10911'
  rmqtool decode 0000006e000000647b22636f6465...    same as decode hex
  rmqtool decode -r incident.pcap                   -r as in tshark

Options: rmqtool decode pcap --help.
"""


class _Decode(CommandGroup):
    """The commands of `rmqtool decode`."""

    places: ClassVar = {
        "pcap": CommandPlace(
            "decode.command",
            "decode_pcap",
            "Decode captures: one line per exchange by default.",
            common=(
                *("verbose", "summary", "commands", "list_messages", "where", "since", "until"),
                *("limit", "sort", "columns", "format", "output", "force"),
            ),
            reads=True,
        ),
        "live": CommandPlace(
            "live.command",
            "decode_live",
            "Decode live traffic on a network interface, one line per exchange.",
            common=(
                *("interface", "list_interfaces", "filter", "keep", "duration", "summary"),
                *("verbose", "where", "limit", "format", "output", "force"),
            ),
        ),
        "store": CommandPlace(
            "decode.store",
            "decode_store",
            "List the messages in a copy of a broker's store.",
            common=(
                *("where", "since", "until", "limit", "sort", "zone", "columns"),
                *("format", "output", "force", "body_limit"),
            ),
        ),
        "hex": CommandPlace(
            "hex.command",
            "decode_hex",
            "Decode one frame from pasted hex, base64, or a hex dump.",
        ),
        "stream": CommandPlace(
            "hex.command",
            "decode_stream",
            "Decode a raw byte stream: one line per command, with its offset.",
        ),
    }

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments; without a command, detect it from the input."""
        if args and args[0] in self.commands:
            return super().parse_args(ctx, args)
        from .hex.pasted import command_for

        named = command_for(args, self.commands)
        return super().parse_args(ctx, [named, *args] if named else args)


class _Root(CommandGroup):
    """The commands of `rmqtool`, next to `decode`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments; `-r FILE` gets the suggestion of `FILE`."""
        return super().parse_args(ctx, args[1:] if args[:1] == [READ] else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the requested command; suggest one for a file."""
        # A dot: a capture that does not exist is not the name of a command either.
        if args[0] not in self.commands and (Path(args[0]).exists() or "." in args[0]):
            ctx.fail(
                f"{args[0]!r} is not a command. To decode a capture: rmqtool decode"
                f" {shlex.quote(args[0])}"
            )
        return super().resolve_command(ctx, args)

    places: ClassVar = {
        "diagnose": CommandPlace(
            "diagnose.command",
            "diagnose",
            "Find problems: what went wrong, why, and how to fix it.",
            common=(
                *("show_list", "explain", "rules", "since", "until", "interface", "filter"),
                *("verbose", "format", "output", "force", "fail_on"),
            ),
            panel=_ANALYZE,
            reads=True,
        ),
        "watch": CommandPlace(
            "watch.command",
            "watch",
            "Monitor live traffic continuously: problems, metrics, and incident captures.",
            common=(
                *("source", "interfaces", "filter", "severity", "format", "webhook", "syslog"),
                *("ring_folder", "ring", "incidents", "before", "after"),
                *("metrics", "otlp"),
            ),
            panel=_ANALYZE,
            reads=True,
        ),
        "trace": CommandPlace(
            "trace.command",
            "trace",
            "Trace one message: sent, stored, delivered, and acknowledged or lost.",
            common=(
                *("where", "store", "since", "until", "zone", "decode_as", "tls_keylog"),
                *("format", "output", "force"),
            ),
            panel=_ANALYZE,
            reads=True,
        ),
        "browse": CommandPlace(
            "browse.command",
            "browse",
            "Explore captures, decoded logs, or live traffic in a terminal UI.",
            panel=_ANALYZE,
            reads=True,
        ),
        "report": CommandPlace(
            "report.command",
            "report",
            "Build reports on latency, retries, isolation, consumers, and more.",
            common=(
                *("show_list", "tables", "compare", "split", "slo", "window_us"),
                *("where", "since", "until", "format", "output", "force", "engine"),
            ),
            panel=_ANALYZE,
            reads=True,
            inputs_last=True,
        ),
        "anonymize": CommandPlace(
            "anonymize.command",
            "anonymize",
            "Replace names, addresses, and bodies, so that a capture can be shared.",
            reads=True,
            panel=_ANALYZE,
        ),
        "mcp": CommandPlace(
            "mcp.command",
            "mcp",
            "Serve captures and decoded logs to AI agents (Model Context Protocol).",
            panel=_ANALYZE,
        ),
        "send": CommandPlace(
            "send.command",
            "send",
            "Send messages and show each attempt: broker, reason, latency, result.",
            common=(
                *("namesrv", "topic", "body", "file", "tags", "keys", "count", "rate", "mode"),
                *("timeout_ms", "verbose", "format", "yes"),
            ),
            panel=_TEST,
        ),
        "replay": CommandPlace(
            "replay.command",
            "replay",
            "Replay captured messages to a safe target and compare the results.",
            common=(
                *("namesrv", "target", "interface", "where", "speed", "rate", "rewrite", "dry_run"),
                *("yes", "journal", "resume", "fail_on", "format"),
            ),
            panel=_TEST,
        ),
        "consume": CommandPlace(
            "consume.command",
            "consume",
            "Read a topic without joining a group or committing offsets.",
            common=(
                *("namesrv", "topic", "start", "limit", "follow", "tags", "key", "where"),
                *("format", "yes"),
            ),
            panel=_TEST,
        ),
        "topic": CommandPlace(
            "consume.command",
            "topic",
            "Show the route, offsets, and consumer lag of a topic.",
            common=("namesrv", "topic", "groups", "acl", "tls", "timeout_ms", "format", "yes"),
            panel=_TEST,
        ),
        "broker": CommandPlace(
            "broker.command",
            "broker",
            "Run a local sandbox cluster with optional fault injection.",
            common=(
                *("brokers", "port", "namesrv_port", "topics", "store", "fault", "faults"),
                *("server_version", "log", "seconds", "format"),
            ),
            panel=_TEST,
        ),
        "proxy": CommandPlace(
            "proxy.command",
            "proxy",
            "Sit between clients and a real cluster: record traffic, inject faults.",
            common=(
                *("namesrv", "listen", "yes", "allow", "write", "fault", "faults"),
                *("seconds", "format"),
            ),
            panel=_TEST,
        ),
        "codes": CommandPlace(
            "codes.command",
            "codes",
            "Look up codes, headers, bodies, properties, and versions.",
            panel=_REFERENCE,
            settings={**_CONTEXT, "ignore_unknown_options": True},
        ),
        "wireshark": CommandPlace(
            "wireshark.command",
            "wireshark",
            "Write a RocketMQ dissector in Lua for Wireshark and tshark 4.x.",
            panel=_REFERENCE,
        ),
        "help": CommandPlace(
            "help.command",
            "help_",
            "Show documentation: columns, filters, reports, sandbox faults, replay rules.",
            panel=_REFERENCE,
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
app.add_typer(decode_app, name="decode", rich_help_panel=_ANALYZE)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"rmqtool {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_show_version
        ),
    ] = False,
) -> None:
    pass


def _run_commands() -> None:
    """Run the command and flush its output."""
    try:
        app(prog_name="rmqtool")
    except SystemExit:
        # Here an error can still be reported; at exit, Python would print its own text.
        sys.stdout.flush()
        raise


def main() -> None:
    """Run the command line and exit with its status (console entry point)."""
    open_standard_files()
    install_handlers()
    try:
        _run_commands()
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:  # of output without a command: help, the version
        sys.exit(report_system_error(error))
    except KeyboardInterrupt as error:
        terminated = isinstance(error, Terminated)
        sys.exit(ExitStatus.TERMINATED if terminated else ExitStatus.INTERRUPTED)
    finally:
        remove_all()
        restore_handlers()


if __name__ == "__main__":
    main()
