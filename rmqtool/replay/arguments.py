"""The options of `replay`: each is declared once, as a field with its type, help and default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final

import typer

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_TARGET, _TIME, _WHAT = "Target", "Time", "What is replayed"
_HOW, _SAFE, _RESULT = "How it is sent", "Safety", "Journal and result"


@dataclass(slots=True)
class ReplayArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTURE|LOG...",
            help="Captures in any form that decode reads, or the JSON lines of "
            "`rmqtool decode pcap --commands`; - for standard input.",
        ),
    ] = field(default_factory=list)
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Replay a pipe as packets arrive (default: read it to its end first).",
            rich_help_panel=_WHAT,
        ),
    ] = False
    namesrv: Annotated[
        str | None,
        typer.Option(
            *named("--namesrv"),
            metavar="HOST:PORT[;...]",
            help="NameServers of the target; with --mode raw the broker's address.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            metavar="sandbox",
            help="`sandbox` starts an embedded NameServer and brokers, and ends them.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    faults: Annotated[
        str | None,
        typer.Option(
            "--faults", metavar="FILE", help="Faults of the sandbox.", rich_help_panel=_TARGET
        ),
    ] = None
    acl: Annotated[
        str | None,
        typer.Option(
            "--acl",
            metavar="FILE|env",
            help="Credentials to sign with; a captured signature is never used.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    tls: Annotated[str | None, options.tls_from(_TARGET)] = None
    tls_name: Annotated[str | None, options.tls_name(_TARGET)] = None
    tls_any_name: Annotated[bool, options.tls_any_name(_TARGET)] = False
    tls_cert: Annotated[str | None, options.tls_cert(_TARGET)] = None
    tls_key: Annotated[str | None, options.tls_key(_TARGET)] = None
    speed: Annotated[
        str | None,
        typer.Option(metavar="2x", help="Times the captured pace.", rich_help_panel=_TIME),
    ] = None
    rate: Annotated[str | None, options.rate(_TIME)] = None
    top_speed: Annotated[
        bool,
        typer.Option(
            "--top-speed",
            help="Send as fast as possible, without the pauses of the capture.",
            rich_help_panel=_TIME,
        ),
    ] = False
    max_gap: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Cut longer gaps of the capture.", rich_help_panel=_TIME),
    ] = None
    loop: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Replay N times.", rich_help_panel=_TIME),
    ] = 1
    duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Stop after 90s, 5min, 1h.", rich_help_panel=_TIME),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(
            *named("--limit"), min=0, metavar="N", help="N messages at most.", rich_help_panel=_TIME
        ),
    ] = None
    where: options.Where = ""
    since: options.SinceUtc = None
    until: options.Until = None
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="10%",
            help="A share of the keys; all messages of a key, or none.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    sample_by: Annotated[
        str,
        typer.Option(
            metavar="key|topic|group|conversation",
            help="What a sample keeps together; key: sharding key, first key, or UNIQ_KEY.",
            rich_help_panel=_WHAT,
        ),
    ] = "key"
    include: Annotated[
        list[str],
        typer.Option(
            metavar="retry|dlq|system|trace|replies",
            help="Replay these too; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = field(default_factory=list)
    rewrite: Annotated[
        list[str],
        typer.Option(
            "--rewrite",
            metavar="RULES.toml|FILE.py:FUNCTION",
            help="Change messages by rules, or by a function of a Message; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = field(default_factory=list)
    decode_as: options.DecodeAs = None
    max_output: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Bytes that compressed bodies may become; more are left out. "
            "Default: 128MiB and 64 times what was captured.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    mode: Annotated[
        str,
        typer.Option(
            *named("--mode"),
            metavar="as-captured|sync|async|oneway|raw",
            help="raw sends whole requests to one broker.",
            rich_help_panel=_HOW,
        ),
    ] = "as-captured"
    codes: Annotated[
        str | None,
        typer.Option(
            "--codes",
            metavar="310,320,...",
            help="Request codes, or names, that the raw mode may send; default: the sends.",
            rich_help_panel=_HOW,
        ),
    ] = None
    in_flight: Annotated[
        int,
        typer.Option(
            min=1, max=65535, metavar="N", help="Most sends in flight.", rich_help_panel=_HOW
        ),
    ] = 256
    queues: Annotated[
        str,
        typer.Option(
            "--queues",
            metavar="keep|strict|new",
            help="The captured queue, or another where it fails; only that one; chosen anew.",
            rich_help_panel=_HOW,
        ),
    ] = "keep"
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="keep|queue|none",
            help="Wait for earlier sends: where the capture shows order; per queue; never.",
            rich_help_panel=_HOW,
        ),
    ] = "keep"
    ids: Annotated[
        str,
        typer.Option(
            "--ids",
            metavar="keep|new",
            help="UNIQ_KEY as captured, or a new one and the captured one as a property.",
            rich_help_panel=_HOW,
        ),
    ] = "keep"
    batches: Annotated[
        str,
        typer.Option(
            "--batches",
            metavar="keep|split",
            help="Replay batches whole, or split into messages.",
            rich_help_panel=_HOW,
        ),
    ] = "keep"
    requests: Annotated[
        str,
        typer.Option(
            "--requests",
            metavar="send|request",
            help="Messages that ask for a reply: as plain ones, or waiting for it.",
            rich_help_panel=_HOW,
        ),
    ] = "send"
    group: Annotated[
        str | None,
        typer.Option(
            *named("--group"), metavar="GROUP", help="Producer group of all.", rich_help_panel=_HOW
        ),
    ] = None
    mark: Annotated[
        bool,
        typer.Option(
            "--mark/--no-mark",
            help="Property RMQTOOL_REPLAY says which run a message is of.",
            rich_help_panel=_HOW,
        ),
    ] = True
    timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="Time of one send.", rich_help_panel=_HOW),
    ] = "3s"
    retries: Annotated[int, options.retries(_HOW)] = 2
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the plan, send nothing.", rich_help_panel=_SAFE),
    ] = False
    yes: Annotated[bool, options.yes(_SAFE)] = False
    allow: Annotated[list[str] | None, options.allow(_SAFE)] = None
    journal: Annotated[
        str | None,
        typer.Option(
            *named("--output", "--journal"),
            metavar="FOLDER",
            help="Where the journal goes; default: replay-TIME.",
            rich_help_panel=_RESULT,
        ),
    ] = None
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Go on with a journal where it was.", rich_help_panel=_RESULT
        ),
    ] = None
    fsync: Annotated[
        str,
        typer.Option(
            "--fsync",
            metavar="never|second|always",
            help="When the journal is forced to the disk.",
            rich_help_panel=_RESULT,
        ),
    ] = "second"
    fail_on: Annotated[
        list[str],
        typer.Option(
            "--fail-on",
            metavar="CONDITION",
            help="Exit with 4 if it holds: new-failures, 'failures>1%', 'p99>2x', "
            "'late-p99>50ms'; repeatable.",
            rich_help_panel=_RESULT,
        ),
    ] = field(default_factory=list)
    format: Annotated[
        str,
        typer.Option(
            *named("--format"),
            metavar="table|jsonl",
            help="How results are written.",
            rich_help_panel=_RESULT,
        ),
    ] = "table"
    colour: options.Color = When.auto
    quiet: options.Quiet = False


PLAN_FIELDS: Final = (
    *("loop", "limit", "duration", "where", "since", "until", "sample", "sample_by", "include"),
    *(
        "rewrite",
        "decode_as",
        "max_output",
        "mode",
        "codes",
        "ids",
        "batches",
        "requests",
        "group",
        "mark",
    ),
)
"""options that say which steps there are: a run that is resumed must have the same"""
PACE_FIELDS: Final = ("speed", "rate", "top_speed", "max_gap", "queues", "order")
"""options that a run that is resumed takes over where they are not given anew"""
