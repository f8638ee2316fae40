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

_WHERE, _WHAT, _WRONG, _OUTPUT = "Where", "What", "What goes wrong", "Output"


class BrokerFormat(StrEnum):
    """How events are written."""

    table = "table"
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
            help="First broker; the others at +10, +20, ..; 0: any free ports.",
            rich_help_panel=_WHERE,
        ),
    ] = ports.BROKER
    namesrv_port: Annotated[
        int,
        typer.Option(
            "--namesrv-port", min=0, max=65535, help="NameServer; 0: any.", rich_help_panel=_WHERE
        ),
    ] = ports.NAMESRV
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on.", rich_help_panel=_WHERE)
    ] = "127.0.0.1"
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote",
            help="Let all other machines connect; there is no authentication.",
            rich_help_panel=_WHERE,
        ),
    ] = False
    vip: Annotated[
        bool,
        typer.Option(
            "--vip", help="Brokers listen on their port - 2 as well.", rich_help_panel=_WHERE
        ),
    ] = False
    topic: Annotated[
        list[str],
        typer.Option(
            *named("--topic", "--topics"),
            metavar="NAME[:QUEUES]",
            help="A topic that is there from the start; repeatable, or with commas.",
            rich_help_panel=_WHAT,
        ),
    ] = field(default_factory=list)
    auto_create: Annotated[
        bool,
        typer.Option(
            "--auto-create/--no-auto-create",
            help="Create an unknown topic on the first send to it.",
            rich_help_panel=_WHAT,
        ),
    ] = True
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep messages, topics and offsets in a sqlite3 file; what was answered survives "
            "a crash. Without it they are in memory only.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    store_limit: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Messages held by each broker, in memory.", rich_help_panel=_WHAT
        ),
    ] = "1GiB"
    drop_oldest: Annotated[
        bool,
        typer.Option(
            "--drop-oldest",
            help="A full broker forgets its oldest messages; else its disk is full.",
            rich_help_panel=_WHAT,
        ),
    ] = False
    server_version: Annotated[
        str,
        typer.Option(
            metavar="RELEASE",
            help="Answer as this release does: 4.9.8, 5.3.3.",
            rich_help_panel=_WHAT,
        ),
    ] = "5.3.3"
    serialize: Annotated[
        str,
        typer.Option(
            metavar="JSON|ROCKETMQ",
            help="How headers of answers are written.",
            rich_help_panel=_WHAT,
        ),
    ] = "JSON"
    delay_levels: Annotated[
        str | None,
        typer.Option(
            metavar="'1s 5s ..'", help="Delays of the levels 1, 2, ..", rich_help_panel=_WHAT
        ),
    ] = None
    fault: Annotated[
        list[str],
        typer.Option(
            "--fault",
            metavar="'KIND[=VALUE] [KEY=VALUE]..'",
            help="Kinds: latency, busy, error, disk-full, read-only, drop, half, silent, garbage, "
            "huge, slow-read, freeze, down, leave-route. Keys: broker, topic, requests, from, "
            "until, every, for, p, times, remark, stored. Repeatable; `rmqtool help sandbox "
            "faults`.",
            rich_help_panel=_WRONG,
        ),
    ] = field(default_factory=list)
    faults: Annotated[
        list[Path],
        typer.Option(
            "--faults",
            metavar="FILE",
            help="A TOML file: a table `fault` for each, with the same words.",
            rich_help_panel=_WRONG,
        ),
    ] = field(default_factory=list)
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the random numbers: the same seed and requests give the same faults.",
            rich_help_panel=_WRONG,
        ),
    ] = None
    format: Annotated[
        BrokerFormat,
        typer.Option(*named("--format"), help="How events are written.", rich_help_panel=_OUTPUT),
    ] = BrokerFormat.table
    log: Annotated[
        bool,
        typer.Option("--log", help="Every request and connection.", rich_help_panel=_OUTPUT),
    ] = False
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="End after 30s, 5m; else at Ctrl-C.", rich_help_panel=_OUTPUT
        ),
    ] = None
    colour: options.Color = When.auto
    quiet: options.Quiet = False
