"""The options of `broker`: each is declared once, as a field with its type, help and default."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dissectors import ports

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_WHERE, _WHAT, _WRONG, _OUTPUT = "Addresses", "Cluster", "Fault injection", "Output"


class BrokerFormat(StrEnum):
    """How events are written."""

    table = "table"
    json = "json"
    jsonl = "jsonl"


@dataclass(slots=True)
class BrokerArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    brokers: Annotated[
        int,
        typer.Option(
            "--brokers",
            min=1,
            max=64,
            metavar="N",
            help="Number of brokers.",
            rich_help_panel=_WHERE,
        ),
    ] = 1
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            help="Port of the first broker; others use +10, +20, …; 0 picks free ports.",
            rich_help_panel=_WHERE,
        ),
    ] = ports.BROKER
    namesrv_port: Annotated[
        int,
        typer.Option(
            "--namesrv-port",
            min=0,
            max=65535,
            help="Port of the NameServer; 0 picks a free port.",
            rich_help_panel=_WHERE,
        ),
    ] = ports.NAMESRV
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on.", rich_help_panel=_WHERE)
    ] = "127.0.0.1"
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote",
            help="Accept connections from other machines. There is no authentication.",
            rich_help_panel=_WHERE,
        ),
    ] = False
    vip: Annotated[
        bool,
        typer.Option(
            "--vip",
            help="Also listen on each broker's VIP port (port - 2).",
            rich_help_panel=_WHERE,
        ),
    ] = False
    topic: Annotated[
        list[str],
        typer.Option(
            *named("--topic", "--topics"),
            metavar="NAME[:QUEUES]",
            help="Create this topic at startup; repeatable or comma-separated.",
            rich_help_panel=_WHAT,
        ),
    ] = field(default_factory=list)
    auto_create: Annotated[
        bool,
        typer.Option(
            "--auto-create/--no-auto-create",
            help="Create unknown topics on the first send.",
            rich_help_panel=_WHAT,
        ),
    ] = True
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Store messages, topics, and offsets in a SQLite file (default: memory "
            "only). Acknowledged messages survive a crash.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    store_limit: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Maximum memory for each broker's messages.", rich_help_panel=_WHAT
        ),
    ] = "1GiB"
    drop_oldest: Annotated[
        bool,
        typer.Option(
            "--drop-oldest",
            help="When full, evict the oldest messages (default: reject with DISK_FULL).",
            rich_help_panel=_WHAT,
        ),
    ] = False
    server_version: Annotated[
        str,
        typer.Option(
            metavar="RELEASE",
            help="Behave like this server release, such as 4.9.8.",
            rich_help_panel=_WHAT,
        ),
    ] = "5.3.3"
    serialize: Annotated[
        str,
        typer.Option(
            metavar="JSON|ROCKETMQ",
            help="Header serialization of responses.",
            rich_help_panel=_WHAT,
        ),
    ] = "JSON"
    delay_levels: Annotated[
        str | None,
        typer.Option(
            metavar="'1s 5s ..'",
            help="Delays of levels 1, 2, … (messageDelayLevel).",
            rich_help_panel=_WHAT,
        ),
    ] = None
    fault: Annotated[
        list[str],
        typer.Option(
            "--fault",
            metavar="'KIND[=VALUE] [KEY=VALUE]..'",
            help="Inject a fault; repeatable. Kinds: latency, busy, error, disk-full, drop, "
            "freeze, down, and others: see `rmqtool help sandbox faults`.",
            rich_help_panel=_WRONG,
        ),
    ] = field(default_factory=list)
    faults: Annotated[
        list[Path],
        typer.Option(
            "--faults",
            metavar="FILE",
            help="Read faults from a TOML file: an array of tables `fault` with the same keys.",
            rich_help_panel=_WRONG,
        ),
    ] = field(default_factory=list)
    seed: Annotated[
        int | None,
        typer.Option(
            help="Random seed; the same seed and requests give the same faults.",
            rich_help_panel=_WRONG,
        ),
    ] = None
    format: Annotated[
        BrokerFormat,
        typer.Option(
            *named("--format"),
            help="Output format; json is one array.",
            rich_help_panel=_OUTPUT,
        ),
    ] = BrokerFormat.table
    log: Annotated[
        bool,
        typer.Option("--log", help="Log every request and connection.", rich_help_panel=_OUTPUT),
    ] = False
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Stop after this time, such as 30s or 5m (default: until Ctrl-C).",
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    colour: options.Color = When.auto
    quiet: options.Quiet = False
