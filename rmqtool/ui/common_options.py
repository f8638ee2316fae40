"""Options of the command line, by name: an option means the same in each command that has it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from .console import When
from .letters import named

_VIEW, _SELECT, _OUTPUT, _READ = "View", "Filters", "Output", "Input"


class Order(StrEnum):
    """In which order rows are written, if not as they are complete."""

    time = "time"
    latency = "latency"


class RowFormat(StrEnum):
    """How rows are written."""

    table = "table"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"

    @property
    def is_json(self) -> bool:
        """Whether rows are objects: one array of them, or one on each line."""
        return self in (RowFormat.json, RowFormat.jsonl)


Captures = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Captures: pcap or pcapng files (also .gz, .zst, .lz4, .xz), folders, or - for stdin.",
    ),
]
Commands = Annotated[
    bool, typer.Option("--commands", help="Show one line per command.", rich_help_panel=_VIEW)
]
Verbose = Annotated[
    bool,
    typer.Option(
        *named("--verbose"),
        help="Show every header field and the decoded body as a tree.",
        rich_help_panel=_VIEW,
    ),
]
SummaryOnly = Annotated[
    bool,
    typer.Option(
        "--summary",
        help="Summarize operations, latency, responses, clients, and capture quality.",
        rich_help_panel=_VIEW,
    ),
]
FollowConversation = Annotated[
    int | None,
    typer.Option(
        "--follow-conversation",
        metavar="N",
        min=0,
        help="Show both directions of one conversation as text.",
        rich_help_panel=_VIEW,
    ),
]
Messages = Annotated[
    bool,
    typer.Option(
        "--messages",
        help="Export message bodies and an index to the -o folder.",
        rich_help_panel=_VIEW,
    ),
]
ListMessages = Annotated[
    bool,
    typer.Option(
        "--list-messages",
        help="Show one line per message event: sent, delivered, acknowledged, returned, …",
        rich_help_panel=_VIEW,
    ),
]
NoMessageRows = Annotated[
    bool,
    typer.Option(
        "--no-message-rows",
        help="Omit the messages table from a decoded log.",
        rich_help_panel=_OUTPUT,
    ),
]
Where = Annotated[
    str,
    typer.Option(
        *named("--where"),
        metavar="EXPR",
        help="Show only rows that match EXPR, such as 'latency > 50ms and topic ~ \"^Order\"'.",
        rich_help_panel=_SELECT,
    ),
]


def _since_in(zone: str) -> Any:
    return typer.Option(
        metavar="TIME",
        help="Start at this time: 2026-11-20T10:00:00, or 10:00 on the first packet's "
        f"day (default zone: {zone}).",
        rich_help_panel=_SELECT,
    )


Since = Annotated[str | None, _since_in("--tz")]
SinceUtc = Annotated[str | None, _since_in("UTC")]
"""of commands without --tz"""
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Stop before this time.", rich_help_panel=_SELECT),
]
TimeZone = Annotated[
    str,
    typer.Option(
        "--tz",
        metavar="local|UTC|NAME",
        help="Time zone for displayed and entered times. JSON, CSV, Parquet, and HTML "
        "always use UTC.",
        rich_help_panel=_OUTPUT,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        *named("--limit"), min=0, metavar="N", help="Stop after N rows.", rich_help_panel=_SELECT
    ),
]
Sort = Annotated[
    Order | None,
    typer.Option(
        "--sort",
        help="Sort by request time, or slowest first (default: completion order).",
        rich_help_panel=_SELECT,
    ),
]
FormatName = Annotated[
    RowFormat | None,
    typer.Option(
        *named("--format"),
        help="Output format; json is one array, jsonl one object per line "
        "(default: from the -o extension, otherwise table).",
        rich_help_panel=_OUTPUT,
    ),
]
OutputName = Annotated[
    str,
    typer.Option(
        *named("--output"),
        metavar="FILE|FOLDER|-",
        help="Output file. With -T parquet, a FOLDER becomes a decoded log.",
        rich_help_panel=_OUTPUT,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Overwrite existing output.", rich_help_panel=_OUTPUT),
]
"""of all commands that write files"""
BodyLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Maximum body bytes to show (default: 1KiB in trees, all in JSON of commands, "
        "none in message rows).",
        rich_help_panel=_OUTPUT,
    ),
]
MaxOutput = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Maximum decompressed body bytes (default: 128MiB plus 64 times the captured bytes).",
        rich_help_panel=_OUTPUT,
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py|NAME",
        help="Decode message bodies with a Python file or installed plug-in; repeatable. "
        "Plug-ins execute code; load only those you trust.",
        rich_help_panel=_READ,
    ),
]
Color = Annotated[When, typer.Option("--color", help="Use colors.", rich_help_panel=_OUTPUT)]
Pager = Annotated[
    bool,
    typer.Option(
        "--pager",
        help="Page output with $PAGER (default: less).",
        rich_help_panel=_OUTPUT,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(*named("--quiet"), help="Suppress progress and notes.", rich_help_panel=_OUTPUT),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Exit 3 if the capture is damaged. For traffic problems, use --fail-on.",
        rich_help_panel=_OUTPUT,
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="Exit 4 if selected rows match: failed, unanswered, 'failed>1%', "
        "'unanswered>=5'; repeatable.",
        rich_help_panel=_OUTPUT,
    ),
]
DecodeAs = Annotated[
    list[str] | None,
    typer.Option(
        *named("--decode-as"),
        metavar="PORT",
        help="Treat this TCP port as RocketMQ, skipping detection; repeatable.",
        rich_help_panel=_READ,
    ),
]
TlsKeylog = Annotated[
    str | None,
    typer.Option(
        "--tls-keylog",
        metavar="FILE",
        help="Decrypt TLS with this key log (default: $SSLKEYLOGFILE).",
        rich_help_panel=_READ,
    ),
]
MaxRatio = Annotated[
    int,
    typer.Option(
        "--max-ratio",
        min=1,
        metavar="N",
        help="Maximum decompression ratio of a capture beyond its first 128MiB.",
        rich_help_panel=_READ,
    ),
]
Follow = Annotated[
    bool,
    typer.Option(
        "--follow",
        help="Wait for more packets in the last file until Ctrl-C.",
        rich_help_panel=_READ,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        *named("--jobs"),
        min=1,
        max=64,
        metavar="N",
        help="Decoder processes (default: 1; one per core, up to 8, for large inputs). "
        "Output is identical.",
        rich_help_panel=_READ,
    ),
]


def capture_filter(panel: str) -> Any:
    """Return the option `--filter` of a command that captures."""
    return typer.Option(
        *named("--filter"),
        metavar="BPF",
        help="Capture filter (pcap-filter syntax), such as 'tcp port 10911'.",
        rich_help_panel=panel,
    )


def rate(panel: str) -> Any:
    """Return the option `--rate` of a command that sends."""
    return typer.Option(
        "--rate",
        metavar="500/s|100..5000/5m",
        help="Messages per second; 100..5000/5m ramps up over 5 minutes.",
        rich_help_panel=panel,
    )


def retries(panel: str) -> Any:
    """Return the option `--retries` of a command that sends."""
    return typer.Option(
        "--retries",
        min=0,
        metavar="N",
        help="Maximum retries after the first attempt.",
        rich_help_panel=panel,
    )


def allow(panel: str) -> Any:
    """Return the option `--allow` of a command that sends."""
    return typer.Option(
        "--allow",
        metavar="NETWORK|HOST",
        help="Send to brokers in this network or at this host without asking; repeatable.",
        rich_help_panel=panel,
    )


def yes(panel: str) -> Any:
    """Return the option `--yes` of a command that sends."""
    return typer.Option(
        *named("--yes"),
        help="Don't ask before sending to non-loopback addresses.",
        rich_help_panel=panel,
    )


def tls_from(panel: str) -> Any:
    """Return the option `--tls` of a command, in one of its panels of help."""
    return typer.Option(
        "--tls",
        metavar="CA.pem|system|insecure",
        help="Use TLS and verify server certificates with this CA.",
        rich_help_panel=panel,
    )


def tls_name(panel: str) -> Any:
    """Return the option `--tls-name` of a command."""
    return typer.Option(
        "--tls-name",
        metavar="NAME",
        help="Expect this name in server certificates (default: the address).",
        rich_help_panel=panel,
    )


def tls_any_name(panel: str) -> Any:
    """Return the option `--tls-any-name` of a command."""
    return typer.Option(
        "--tls-any-name",
        help="Accept any name in a trusted server certificate.",
        rich_help_panel=panel,
    )


def tls_cert(panel: str) -> Any:
    """Return the option `--tls-cert` of a command."""
    return typer.Option(
        "--tls-cert",
        metavar="CERT.pem",
        help="Client certificate; may contain its key.",
        rich_help_panel=panel,
    )


def tls_key(panel: str) -> Any:
    """Return the option `--tls-key` of a command."""
    return typer.Option(
        "--tls-key",
        metavar="KEY.pem",
        help="Private key of --tls-cert (password: $ROCKETMQ_TLS_KEY_PASSWORD).",
        rich_help_panel=panel,
    )
