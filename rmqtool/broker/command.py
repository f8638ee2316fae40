"""`rmqtool broker`: what can be asked of it, with help; the work is in `broker_run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..ui import common_options as options
from ..ui.console import When
from ..ui.errors import guarded
from ..ui.letters import named
from ..ui.status import ExitStatus
from .options import BrokerFormat

_WHERE, _WHAT, _WRONG, _OUTPUT = "Where", "What", "What goes wrong", "Output"

Brokers = Annotated[
    int, typer.Option("--brokers", min=1, max=64, metavar="N", rich_help_panel=_WHERE)
]
Port = Annotated[
    int,
    typer.Option(
        "--port",
        min=0,
        max=65535,
        help="First broker; the others at +10, +20, ..; 0: any free ports.",
        rich_help_panel=_WHERE,
    ),
]
NamesrvPort = Annotated[
    int,
    typer.Option(
        "--namesrv-port", min=0, max=65535, help="NameServer; 0: any.", rich_help_panel=_WHERE
    ),
]
Listen = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Address to listen on.", rich_help_panel=_WHERE)
]
AllowRemote = Annotated[
    bool,
    typer.Option(
        "--allow-remote",
        help="Other machines may connect, all of them: nobody is asked who he is.",
        rich_help_panel=_WHERE,
    ),
]
Vip = Annotated[
    bool,
    typer.Option("--vip", help="Brokers listen on their port - 2 as well.", rich_help_panel=_WHERE),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        *named("--topic", "--topics"),
        metavar="NAME[:QUEUES]",
        help="A topic that is there from the start; repeatable, or with commas.",
        rich_help_panel=_WHAT,
    ),
]
AutoCreate = Annotated[
    bool,
    typer.Option(
        "--auto-create/--no-auto-create",
        help="A send to an unknown topic makes it.",
        rich_help_panel=_WHAT,
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Keep messages, topics and offsets in a sqlite3 file; what was answered survives a "
        "crash. Without it they are in memory only.",
        rich_help_panel=_WHAT,
    ),
]
StoreLimit = Annotated[
    str,
    typer.Option(
        metavar="SIZE", help="Messages held by each broker, in memory.", rich_help_panel=_WHAT
    ),
]
DropOldest = Annotated[
    bool,
    typer.Option(
        "--drop-oldest",
        help="A full broker forgets its oldest messages; else its disk is full.",
        rich_help_panel=_WHAT,
    ),
]
ServerVersion = Annotated[
    str,
    typer.Option(
        metavar="RELEASE", help="Answer as this release does: 4.9.8, 5.3.3.", rich_help_panel=_WHAT
    ),
]
Serialize = Annotated[
    str,
    typer.Option(
        metavar="JSON|ROCKETMQ", help="How headers of answers are written.", rich_help_panel=_WHAT
    ),
]
DelayLevels = Annotated[
    str | None,
    typer.Option(metavar="'1s 5s ..'", help="Delays of the levels 1, 2, ..", rich_help_panel=_WHAT),
]
InjectionTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="'KIND[=VALUE] [KEY=VALUE]..'",
        help="Kinds: latency, busy, error, disk-full, read-only, drop, half, silent, garbage, "
        "huge, slow-read, freeze, down, leave-route. Keys: broker, topic, requests, from, until, "
        "every, for, p, times, remark, stored. Repeatable; `rmqtool help sandbox faults`.",
        rich_help_panel=_WRONG,
    ),
]
InjectionFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--faults",
        metavar="FILE",
        help="A TOML file: a table `fault` for each, with the same words.",
        rich_help_panel=_WRONG,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Of all chance: the same seed and requests, the same faults.", rich_help_panel=_WRONG
    ),
]
FormatName = Annotated[
    BrokerFormat,
    typer.Option(*named("--format"), help="How events are written.", rich_help_panel=_OUTPUT),
]
Log = Annotated[
    bool,
    typer.Option("--log", help="Every request and connection.", rich_help_panel=_OUTPUT),
]
Duration = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="End after 30s, 5m; else at Ctrl-C.", rich_help_panel=_OUTPUT
    ),
]


def broker(
    brokers: Brokers = 1,
    port: Port = 10911,
    namesrv_port: NamesrvPort = 9876,
    listen: Listen = "127.0.0.1",
    allow_remote: AllowRemote = False,
    vip: Vip = False,
    topic: Topics = None,
    auto_create: AutoCreate = True,
    store: Store = None,
    store_limit: StoreLimit = "1GiB",
    drop_oldest: DropOldest = False,
    server_version: ServerVersion = "5.3.3",
    serialize: Serialize = "JSON",
    delay_levels: DelayLevels = None,
    fault: InjectionTexts = None,
    faults: InjectionFiles = None,
    seed: Seed = None,
    format_: FormatName = BrokerFormat.table,
    log: Log = False,
    duration: Duration = None,
    color: options.Color = When.auto,
    quiet: options.Quiet = False,
) -> None:
    """Run a NameServer and brokers in this process: a safe target, with faults if wanted.

    Examples:

    \b
      rmqtool broker
      rmqtool broker --brokers 2 -t Orders:4 --store sandbox.db
      rmqtool broker --fault 'busy p=0.3 broker=broker-a from=10s until=20s'
      rmqtool broker --brokers 2 --fault 'latency=lognormal:5ms,300ms broker=broker-b'
      rmqtool broker --faults faults.toml --seed 7 --format jsonl
      rmqtool broker --port 0 --namesrv-port 0 --duration 60s

    Then, in another terminal:

    \b
      rmqtool send -n 127.0.0.1:9876 -t Orders --body hello
    """

    def run() -> ExitStatus:
        from replay.sandbox import SandboxOptions
        from replay.sandbox.options import DELAY_LEVELS

        from ..decode.options import size_option
        from .options import BrokerCommand, checked, injections_of, seconds_of, topics_of
        from .run import run_broker

        def command() -> BrokerCommand:
            found, own_seed = injections_of(fault or [], faults or [])
            wanted = SandboxOptions(
                brokers=brokers,
                host=listen,
                port=port,
                namesrv_port=namesrv_port,
                allow_remote=allow_remote,
                vip=vip,
                topics=topics_of(topic or []),
                auto_create=auto_create,
                server_version=server_version,
                serialize_type=serialize.upper(),
                store=store,
                injections=found,
                seed=seed if seed is not None else own_seed or 0,
                store_limit=size_option("--store-limit", store_limit) or 0,
                drop_oldest=drop_oldest,
                delay_levels=delay_levels or DELAY_LEVELS,
            )
            seconds = seconds_of(duration)
            return BrokerCommand(wanted, format_, log, quiet, seconds, color)

        return run_broker(checked(command))

    raise typer.Exit(int(guarded(run)))
