"""The options of `replay`: each is declared once, as a field with its type, help and default."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

import typer

from dissectors.tcp.decompression import MOST_TIMES

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_TARGET, _TIME, _WHAT = "Target", "Pace", "Selection"
_LIVE = "Live capture"
_HOW, _SAFE, _RESULT = "Sending", "Safety", "Journal and results"


class ReplayFormat(StrEnum):
    """How plans and results are written."""

    table = "table"
    json = "json"
    jsonl = "jsonl"

    @property
    def is_json(self) -> bool:
        """Whether sends and results are objects."""
        return self is not ReplayFormat.table


@dataclass(slots=True)
class ReplayArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTURE|LOG...",
            help="Captures, JSON lines from `decode pcap --commands`, or - for stdin.",
        ),
    ] = field(default_factory=list)
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Replay stdin as packets arrive (default: read all of it first).",
            rich_help_panel=_WHAT,
        ),
    ] = False
    namesrv: Annotated[
        str | None,
        typer.Option(
            *named("--namesrv"),
            metavar="HOST:PORT[;...]",
            help="NameServers of the target cluster; with --mode raw, the broker address.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            metavar="sandbox",
            help="Replay to an embedded sandbox cluster, started for this run.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    faults: Annotated[
        str | None,
        typer.Option(
            "--faults",
            metavar="FILE",
            help="Inject a sandbox fault; repeatable.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    acl: Annotated[
        str | None,
        typer.Option(
            "--acl",
            metavar="FILE|env",
            help="Credentials to sign with; captured signatures are never reused.",
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
        typer.Option(metavar="2x", help="Speed relative to the capture.", rich_help_panel=_TIME),
    ] = None
    rate: Annotated[str | None, options.rate(_TIME)] = None
    top_speed: Annotated[
        bool,
        typer.Option(
            "--top-speed",
            help="Send as fast as possible, ignoring captured pauses.",
            rich_help_panel=_TIME,
        ),
    ] = False
    max_gap: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Shorten captured pauses to at most this time.",
            rich_help_panel=_TIME,
        ),
    ] = None
    loop: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Repeat the replay N times.", rich_help_panel=_TIME),
    ] = 1
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Stop after this time, such as 90s, 5min, or 1h.",
            rich_help_panel=_TIME,
        ),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(
            *named("--limit"),
            min=0,
            metavar="N",
            help="Stop after N messages.",
            rich_help_panel=_TIME,
        ),
    ] = None
    interface: Annotated[
        str | None,
        typer.Option(
            *named("--interface"),
            metavar="NAME",
            help="Shadow live traffic: replay what passes this network interface, until Ctrl-C.",
            rich_help_panel=_LIVE,
        ),
    ] = None
    filter: Annotated[str, options.capture_filter(_LIVE)] = ""
    keep: Annotated[
        str | None,
        typer.Option(
            *named("--write"),
            metavar="FILE",
            help="Keep the captured packets as pcapng, too.",
            rich_help_panel=_LIVE,
        ),
    ] = None
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite an existing file of -w.", rich_help_panel=_LIVE),
    ] = False
    where: options.Where = ""
    since: options.SinceUtc = None
    until: options.Until = None
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="10%",
            help="Replay this share of keys, with all messages of each key.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    sample_by: Annotated[
        str,
        typer.Option(
            metavar="key|topic|group|conversation",
            help="Group kept together by --sample; key: sharding key, first key, or UNIQ_KEY.",
            rich_help_panel=_WHAT,
        ),
    ] = "key"
    include: Annotated[
        list[str],
        typer.Option(
            metavar="retry|dlq|system|trace|replies",
            help="Also replay these messages; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = field(default_factory=list)
    rewrite: Annotated[
        list[str],
        typer.Option(
            "--rewrite",
            metavar="RULES.toml|FILE.py:FUNCTION",
            help="Rewrite messages with a rules file or a Python function; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = field(default_factory=list)
    decode_as: options.DecodeAs = None
    max_ratio: options.MaxRatio = MOST_TIMES
    max_output: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Maximum decompressed body bytes; messages beyond it are skipped "
            "(default: 128MiB plus 64 times the captured bytes).",
            rich_help_panel=_WHAT,
        ),
    ] = None
    mode: Annotated[
        str,
        typer.Option(
            *named("--mode"),
            metavar="as-captured|sync|async|oneway|raw",
            help="How to send; raw sends captured requests as they are to one broker.",
            rich_help_panel=_HOW,
        ),
    ] = "as-captured"
    codes: Annotated[
        str | None,
        typer.Option(
            "--codes",
            metavar="310,320,...",
            help="Request codes or names that raw mode may send (default: sends only).",
            rich_help_panel=_HOW,
        ),
    ] = None
    in_flight: Annotated[
        int,
        typer.Option(
            min=1, max=65535, metavar="N", help="Maximum sends in flight.", rich_help_panel=_HOW
        ),
    ] = 256
    jobs: Annotated[
        int,
        typer.Option(
            *named("--jobs"),
            min=1,
            max=64,
            metavar="N",
            help="Processes that send; what waits for each other is sent by one (default: 1).",
            show_default=False,
            rich_help_panel=_HOW,
        ),
    ] = 1
    queues: Annotated[
        str,
        typer.Option(
            "--queues",
            metavar="keep|strict|new",
            help="Queue selection: captured queue with fallback, captured queue only, or "
            "a new choice.",
            rich_help_panel=_HOW,
        ),
    ] = "keep"
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="keep|queue|none",
            help="Wait for earlier sends: where the capture shows order, per queue, or never.",
            rich_help_panel=_HOW,
        ),
    ] = "keep"
    ids: Annotated[
        str,
        typer.Option(
            "--ids",
            metavar="keep|new",
            help="Keep the captured UNIQ_KEY, or create one and store the captured one as "
            "a property.",
            rich_help_panel=_HOW,
        ),
    ] = "keep"
    batches: Annotated[
        str,
        typer.Option(
            "--batches",
            metavar="keep|split",
            help="Replay batches whole, or split them into messages.",
            rich_help_panel=_HOW,
        ),
    ] = "keep"
    requests: Annotated[
        str,
        typer.Option(
            "--requests",
            metavar="send|request",
            help="Replay request-reply messages as plain sends, or wait for the reply.",
            rich_help_panel=_HOW,
        ),
    ] = "send"
    group: Annotated[
        str | None,
        typer.Option(
            *named("--group"),
            metavar="GROUP",
            help="Producer group for all messages (default: as captured).",
            rich_help_panel=_HOW,
        ),
    ] = None
    mark: Annotated[
        bool,
        typer.Option(
            "--mark/--no-mark",
            help="Mark messages with the run in property RMQTOOL_REPLAY.",
            rich_help_panel=_HOW,
        ),
    ] = True
    timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="Timeout of one send.", rich_help_panel=_HOW),
    ] = "3s"
    retries: Annotated[int, options.retries(_HOW)] = 2
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the plan without sending.", rich_help_panel=_SAFE),
    ] = False
    yes: Annotated[bool, options.yes(_SAFE)] = False
    allow: Annotated[list[str] | None, options.allow(_SAFE)] = None
    journal: Annotated[
        str | None,
        typer.Option(
            *named("--output", "--journal"),
            metavar="FOLDER",
            help="Journal folder (default: replay-TIME).",
            rich_help_panel=_RESULT,
        ),
    ] = None
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Resume an interrupted run from its journal.",
            rich_help_panel=_RESULT,
        ),
    ] = None
    fsync: Annotated[
        str,
        typer.Option(
            "--fsync",
            metavar="never|second|always",
            help="When to sync the journal to disk.",
            rich_help_panel=_RESULT,
        ),
    ] = "second"
    fail_on: Annotated[
        list[str],
        typer.Option(
            "--fail-on",
            metavar="CONDITION",
            help="Exit 4 on new-failures, 'failures>1%', 'p99>2x', or 'late-p99>50ms'; repeatable.",
            rich_help_panel=_RESULT,
        ),
    ] = field(default_factory=list)
    format: Annotated[
        ReplayFormat,
        typer.Option(
            *named("--format"),
            help="Output format; json writes the plan of a dry run as one array.",
            rich_help_panel=_RESULT,
        ),
    ] = ReplayFormat.table
    colour: options.Color = When.auto
    quiet: options.Quiet = False


PLAN_FIELDS: Final = (
    *("loop", "limit", "duration", "where", "since", "until", "sample", "sample_by", "include"),
    *(
        "rewrite",
        "decode_as",
        "max_output",
        "max_ratio",
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
