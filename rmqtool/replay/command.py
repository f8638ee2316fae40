"""`rmqtool replay`: what can be asked of it, with help; the work is in `replay_run`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..ui import common_options as options
from ..ui.console import When
from ..ui.errors import guarded
from ..ui.letters import named
from ..ui.status import ExitStatus

_TARGET, _TIME, _WHAT = "Target", "Time", "What is replayed"
_HOW, _SAFE, _RESULT = "How it is sent", "Safety", "Journal and result"

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CAPTURE|LOG...",
        help="Captures in any form that decode reads, or the JSON lines of "
        "`rmqtool decode pcap --commands`; - for standard input.",
    ),
]
Namesrv = Annotated[
    str | None,
    typer.Option(
        *named("--namesrv"),
        metavar="HOST:PORT[;...]",
        help="NameServers of the target; with --mode raw the broker's address.",
        rich_help_panel=_TARGET,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="sandbox",
        help="`sandbox` starts an embedded NameServer and brokers, and ends them.",
        rich_help_panel=_TARGET,
    ),
]
InjectionFile = Annotated[
    str | None,
    typer.Option(
        "--faults", metavar="FILE", help="Faults of the sandbox.", rich_help_panel=_TARGET
    ),
]
Acl = Annotated[
    str | None,
    typer.Option(
        "--acl",
        metavar="FILE|env",
        help="Credentials to sign with; a captured signature is never used.",
        rich_help_panel=_TARGET,
    ),
]
Tls = Annotated[
    str | None,
    typer.Option(
        "--tls",
        metavar="CA.pem|system|insecure",
        help="Encrypt; the servers' certificates and names are checked against these.",
        rich_help_panel=_TARGET,
    ),
]
TlsName = Annotated[
    str | None,
    typer.Option(
        "--tls-name",
        metavar="NAME",
        help="Name that the servers' certificates must have, instead of their address.",
        rich_help_panel=_TARGET,
    ),
]
TlsAnyName = Annotated[
    bool,
    typer.Option(
        "--tls-any-name",
        help="Accept a trusted certificate whatever name it has.",
        rich_help_panel=_TARGET,
    ),
]
Speed = Annotated[
    str | None,
    typer.Option(metavar="2x", help="Times the captured pace.", rich_help_panel=_TIME),
]
Rate = Annotated[
    str | None,
    typer.Option(metavar="500/s", help="Messages a second.", rich_help_panel=_TIME),
]
TopSpeed = Annotated[
    bool, typer.Option("--top-speed", help="Wait for nothing.", rich_help_panel=_TIME)
]
MaxGap = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Cut longer gaps of the capture.", rich_help_panel=_TIME),
]
Loop = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Replay N times.", rich_help_panel=_TIME),
]
Duration = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Stop after 90s, 5min, 1h.", rich_help_panel=_TIME),
]
Limit = Annotated[
    int | None,
    typer.Option(
        *named("--limit"), min=0, metavar="N", help="N messages at most.", rich_help_panel=_TIME
    ),
]
Sample = Annotated[
    str | None,
    typer.Option(
        metavar="10%",
        help="A share of the keys; all messages of a key, or none.",
        rich_help_panel=_WHAT,
    ),
]
SampleBy = Annotated[
    str,
    typer.Option(
        metavar="key|topic|group|conversation",
        help="What a sample keeps together; key: sharding key, first key, or UNIQ_KEY.",
        rich_help_panel=_WHAT,
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        metavar="retry|dlq|system|trace|replies",
        help="Replay these too; repeatable.",
        rich_help_panel=_WHAT,
    ),
]
Rewrite = Annotated[
    list[str] | None,
    typer.Option(
        "--rewrite",
        metavar="RULES.toml|FILE.py:FUNCTION",
        help="Change messages by rules, or by a function of a Message; repeatable.",
        rich_help_panel=_WHAT,
    ),
]
ModeName = Annotated[
    str,
    typer.Option(
        *named("--mode"),
        metavar="as-captured|sync|async|oneway|raw",
        help="raw sends whole requests to one broker.",
        rich_help_panel=_HOW,
    ),
]
RawCodes = Annotated[
    str | None,
    typer.Option(
        "--codes",
        metavar="310,320,...",
        help="Request codes, or names, that the raw mode may send; default: the sends.",
        rich_help_panel=_HOW,
    ),
]
InFlight = Annotated[
    int,
    typer.Option(min=1, max=65535, metavar="N", help="Sends at once.", rich_help_panel=_HOW),
]
QueuesName = Annotated[
    str,
    typer.Option(
        "--queues",
        metavar="keep|strict|new",
        help="The captured queue, or another where it fails; only that one; chosen anew.",
        rich_help_panel=_HOW,
    ),
]
IdsName = Annotated[
    str,
    typer.Option(
        "--ids",
        metavar="keep|new",
        help="UNIQ_KEY as captured, or a new one and the captured one as a property.",
        rich_help_panel=_HOW,
    ),
]
BatchesName = Annotated[
    str,
    typer.Option(
        "--batches", metavar="keep|split", help="Batches whole, or apart.", rich_help_panel=_HOW
    ),
]
RequestsName = Annotated[
    str,
    typer.Option(
        "--requests",
        metavar="send|request",
        help="Messages that ask for a reply: as plain ones, or waiting for it.",
        rich_help_panel=_HOW,
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        *named("--group"), metavar="GROUP", help="Producer group of all.", rich_help_panel=_HOW
    ),
]
Mark = Annotated[
    bool,
    typer.Option(
        "--mark/--no-mark",
        help="Property RMQTOOL_REPLAY says which run a message is of.",
        rich_help_panel=_HOW,
    ),
]
Timeout = Annotated[
    str,
    typer.Option(metavar="TIME", help="Time of one send.", rich_help_panel=_HOW),
]
Retries = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Further attempts.", rich_help_panel=_HOW),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Show the plan, send nothing.", rich_help_panel=_SAFE),
]
Yes = Annotated[
    bool,
    typer.Option(
        *named("--yes"), help="Send to what is not loopback, unasked.", rich_help_panel=_SAFE
    ),
]
JournalName = Annotated[
    str | None,
    typer.Option(
        *named("--output", "--journal"),
        metavar="FOLDER",
        help="Where the journal goes; default: replay-TIME.",
        rich_help_panel=_RESULT,
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER", help="Go on with a journal where it was.", rich_help_panel=_RESULT
    ),
]
SyncName = Annotated[
    str,
    typer.Option(
        "--fsync",
        metavar="never|second|always",
        help="When the journal is forced to the disk.",
        rich_help_panel=_RESULT,
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="Exit with 4 if it holds: new-failures, 'failures>1%', 'p99>2x', "
        "'late-p99>50ms'; repeatable.",
        rich_help_panel=_RESULT,
    ),
]
FormatName = Annotated[
    str,
    typer.Option(
        *named("--format"), metavar="table|jsonl", help="The result.", rich_help_panel=_RESULT
    ),
]


def replay(
    sources: Sources = None,
    namesrv: Namesrv = None,
    target: Target = None,
    faults: InjectionFile = None,
    acl: Acl = None,
    tls: Tls = None,
    tls_name: TlsName = None,
    tls_any_name: TlsAnyName = False,
    speed: Speed = None,
    rate: Rate = None,
    top_speed: TopSpeed = False,
    max_gap: MaxGap = None,
    loop: Loop = 1,
    duration: Duration = None,
    limit: Limit = None,
    where: options.Where = "",
    since: options.Since = None,
    until: options.Until = None,
    sample: Sample = None,
    sample_by: SampleBy = "key",
    include: Include = None,
    rewrite: Rewrite = None,
    decode_as: options.DecodeAs = None,
    mode: ModeName = "as-captured",
    codes: RawCodes = None,
    in_flight: InFlight = 256,
    queues: QueuesName = "keep",
    ids: IdsName = "keep",
    batches: BatchesName = "keep",
    requests: RequestsName = "send",
    group: Group = None,
    mark: Mark = True,
    timeout: Timeout = "3s",
    retries: Retries = 2,
    dry_run: DryRun = False,
    yes: Yes = False,
    journal: JournalName = None,
    resume: Resume = None,
    fsync: SyncName = "second",
    fail_on: FailOn = None,
    format_: FormatName = "table",
    color: options.Color = When.auto,
    quiet: options.Quiet = False,
) -> None:
    """Send captured messages again, safely, and compare what comes of them.

    Examples:

    \b
      rmqtool replay incident.pcap --dry-run
      rmqtool replay incident.pcap --target sandbox
      rmqtool replay incident.pcap -n 127.0.0.1:9876 --speed 2x
      rmqtool replay incident.pcap -n 127.0.0.1:9876 -Y 'topic ~ "^Order"' --rate 500/s
      rmqtool replay incident.pcap -n test:9876 --rewrite rules.toml --yes -o run-1
      rmqtool replay --resume run-1 -n test:9876 --yes
      rmqtool replay incident.pcap --target sandbox --fail-on new-failures --fail-on 'p99>2x'

    How it works, the rules file, the journal: rmqtool help replay.
    """

    def run() -> ExitStatus:
        from .given import ReplayArguments
        from .options import request_of
        from .run import run_replay

        given = ReplayArguments(
            sources=sources or [],
            namesrv=namesrv,
            target=target,
            faults=faults,
            acl=acl,
            tls=tls,
            tls_name=tls_name,
            tls_any_name=tls_any_name,
            speed=speed,
            rate=rate,
            top_speed=top_speed,
            max_gap=max_gap,
            loop=loop,
            duration=duration,
            limit=limit,
            where=where,
            since=since,
            until=until,
            sample=sample,
            sample_by=sample_by,
            include=include or [],
            rewrite=rewrite or [],
            decode_as=decode_as or [],
            mode=mode,
            codes=codes,
            in_flight=in_flight,
            queues=queues,
            ids=ids,
            batches=batches,
            requests=requests,
            group=group,
            mark=mark,
            timeout=timeout,
            retries=retries,
            dry_run=dry_run,
            yes=yes,
            journal=journal,
            resume=resume,
            fsync=fsync,
            fail_on=fail_on or [],
            format=format_,
            colour=color,
            quiet=quiet,
        )
        return run_replay(request_of(given))

    raise typer.Exit(int(guarded(run)))
