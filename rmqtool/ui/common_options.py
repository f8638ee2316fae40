"""Options of the command line, by name: an option means the same in each command that has it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from .console import When
from .letters import named

_VIEW, _SELECT, _OUTPUT, _READ = "What is shown", "Which rows", "Output", "Reading"


class Order(StrEnum):
    """In which order rows are written, if not as they are complete."""

    time = "time"


class RowFormat(StrEnum):
    """How rows are written."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


Captures = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="pcap and pcapng files, also .gz .zst .lz4 .xz; a folder stands for the captures "
        "in it, - for standard input.",
    ),
]
Commands = Annotated[
    bool, typer.Option("--commands", help="One line per command.", rich_help_panel=_VIEW)
]
Verbose = Annotated[
    bool,
    typer.Option(
        *named("--verbose"),
        help="One tree per exchange: every header field, the body taken apart.",
        rich_help_panel=_VIEW,
    ),
]
SummaryOnly = Annotated[
    bool,
    typer.Option(
        "--summary",
        help="Operations with latencies, answers, clients, and how good the capture is.",
        rich_help_panel=_VIEW,
    ),
]
FollowConversation = Annotated[
    int | None,
    typer.Option(
        "--follow-conversation",
        metavar="N",
        min=0,
        help="What both ends of one conversation said, as text.",
        rich_help_panel=_VIEW,
    ),
]
Messages = Annotated[
    bool,
    typer.Option(
        "--messages",
        help="Message bodies into files of the folder that -o names, with an index.",
        rich_help_panel=_VIEW,
    ),
]
ListMessages = Annotated[
    bool,
    typer.Option(
        "--list-messages",
        help="One line per message where it was seen: sent, delivered, acknowledged, returned, …",
        rich_help_panel=_VIEW,
    ),
]
NoMessageRows = Annotated[
    bool,
    typer.Option(
        "--no-message-rows",
        help="A decoded log without its table of messages.",
        rich_help_panel=_OUTPUT,
    ),
]
Where = Annotated[
    str,
    typer.Option(
        *named("--where"),
        metavar="EXPR",
        help="Only rows for which this holds, e.g. 'latency > 50ms and topic ~ \"^Order\"'.",
        rich_help_panel=_SELECT,
    ),
]


def _since_in(zone: str) -> Any:
    return typer.Option(
        metavar="TIME",
        help="Only from this time on: 2026-11-20T10:00:00, or 10:00 or 10:00+08:00 on the first "
        f"packet's day; in {zone} where it has no offset.",
        rich_help_panel=_SELECT,
    )


Since = Annotated[str | None, _since_in("--tz")]
SinceUtc = Annotated[str | None, _since_in("UTC")]
"""of commands without --tz"""
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only before this time.", rich_help_panel=_SELECT),
]
TimeZone = Annotated[
    str,
    typer.Option(
        "--tz",
        metavar="local|UTC|NAME",
        help="Zone of times in tables and trees, and of times without an offset in options; "
        "JSON, CSV, Parquet and pages stay in UTC.",
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
        help="In the order of time; else a row comes when it is complete: an exchange with its "
        "answer. Rows wait in a temporary file.",
        rich_help_panel=_SELECT,
    ),
]
FormatName = Annotated[
    RowFormat | None,
    typer.Option(
        *named("--format"),
        help="How rows are written; else by the name of the output, else a table.",
        rich_help_panel=_OUTPUT,
    ),
]
OutputName = Annotated[
    str,
    typer.Option(
        *named("--output"),
        metavar="FILE|FOLDER|-",
        help="Where to write. With parquet a FOLDER becomes a decoded log for `rmqtool report`.",
        rich_help_panel=_OUTPUT,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace an existing decoded log.", rich_help_panel=_OUTPUT),
]
BodyLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Bytes of a body that are shown; default: 1KiB in a tree, all in jsonl of commands,"
        " none in rows of messages.",
        rich_help_panel=_OUTPUT,
    ),
]
MaxOutput = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Bytes that bodies may become in trees, jsonl of commands and --messages;"
        " default: 128MiB and 64 times what was captured.",
        rich_help_panel=_OUTPUT,
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py|NAME",
        help="Decode bodies of messages by this program, or by an installed plug-in; repeatable."
        " It is run: name only what you trust.",
        rich_help_panel=_READ,
    ),
]
Color = Annotated[When, typer.Option("--color", help="Colours.", rich_help_panel=_OUTPUT)]
Pager = Annotated[
    bool,
    typer.Option(
        "--pager",
        help="Page by page, with the program that PAGER names, else less.",
        rich_help_panel=_OUTPUT,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(*named("--quiet"), help="No progress and no remarks.", rich_help_panel=_OUTPUT),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Exit with 3 if the capture itself is damaged: findings of severity error. "
        "What went wrong in the traffic is for --fail-on.",
        rich_help_panel=_OUTPUT,
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="Exit with 4 if it holds for the rows that are chosen: failed, unanswered, "
        "'failed>1%', 'unanswered>=5'; repeatable.",
        rich_help_panel=_OUTPUT,
    ),
]
DecodeAs = Annotated[
    list[str] | None,
    typer.Option(
        *named("--decode-as"),
        metavar="PORT",
        help="Take this TCP port for RocketMQ, whatever its bytes look like; repeatable.",
        rich_help_panel=_READ,
    ),
]
TlsKeylog = Annotated[
    str | None,
    typer.Option(
        "--tls-keylog",
        metavar="FILE",
        help="Decrypt TLS by the secrets in this key log; else the one that SSLKEYLOGFILE names,"
        " where it is there.",
        rich_help_panel=_READ,
    ),
]
MaxRatio = Annotated[
    int,
    typer.Option(
        "--max-ratio",
        min=1,
        metavar="N",
        help="Decompressed bytes per byte of a compressed capture, beyond 128MiB.",
        rich_help_panel=_READ,
    ),
]
Follow = Annotated[
    bool,
    typer.Option(
        "--follow",
        help="The last file is still being written: wait for more, until Ctrl-C.",
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
        help="Processes that decode; the result is the same. Without it: one, or"
        " where that pays (rows for programs, 32 MiB and more) one per core, at most 8.",
        rich_help_panel=_READ,
    ),
]


def capture_filter(panel: str) -> Any:
    """Return the option `--filter` of a command that captures."""
    return typer.Option(
        *named("--filter"),
        metavar="BPF",
        help="Capture only these packets, in tcpdump's words: 'tcp port 10911 or port 9876'.",
        rich_help_panel=panel,
    )


def rate(panel: str) -> Any:
    """Return the option `--rate` of a command that sends."""
    return typer.Option(
        "--rate",
        metavar="500/s|100..5000/5m",
        help="Messages per second; 100..5000/5m rises from 100/s to 5000/s in 5 minutes.",
        rich_help_panel=panel,
    )


def retries(panel: str) -> Any:
    """Return the option `--retries` of a command that sends."""
    return typer.Option(
        "--retries",
        min=0,
        metavar="N",
        help="Retries after the first attempt.",
        rich_help_panel=panel,
    )


def allow(panel: str) -> Any:
    """Return the option `--allow` of a command that sends."""
    return typer.Option(
        "--allow",
        metavar="NETWORK|HOST",
        help="Send to brokers there without asking: 10.0.0.0/8, an address, a name; repeatable.",
        rich_help_panel=panel,
    )


def yes(panel: str) -> Any:
    """Return the option `--yes` of a command that sends."""
    return typer.Option(
        *named("--yes"),
        help="Send to addresses that are neither loopback nor named, without asking.",
        rich_help_panel=panel,
    )


def tls_from(panel: str) -> Any:
    """Return the option `--tls` of a command, in one of its panels of help."""
    return typer.Option(
        "--tls",
        metavar="CA.pem|system|insecure",
        help="Encrypt; the servers' certificates and names are checked against these.",
        rich_help_panel=panel,
    )


def tls_name(panel: str) -> Any:
    """Return the option `--tls-name` of a command."""
    return typer.Option(
        "--tls-name",
        metavar="NAME",
        help="Name that the servers' certificates must have, instead of their address.",
        rich_help_panel=panel,
    )


def tls_any_name(panel: str) -> Any:
    """Return the option `--tls-any-name` of a command."""
    return typer.Option(
        "--tls-any-name",
        help="Accept a trusted certificate whatever name it has.",
        rich_help_panel=panel,
    )


def tls_cert(panel: str) -> Any:
    """Return the option `--tls-cert` of a command."""
    return typer.Option(
        "--tls-cert",
        metavar="CERT.pem",
        help="Own certificate, for servers that ask for one; its key is in it or in --tls-key.",
        rich_help_panel=panel,
    )


def tls_key(panel: str) -> Any:
    """Return the option `--tls-key` of a command."""
    return typer.Option(
        "--tls-key",
        metavar="KEY.pem",
        help="Key of --tls-cert; its password is taken from ROCKETMQ_TLS_KEY_PASSWORD.",
        rich_help_panel=panel,
    )
