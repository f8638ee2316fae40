"""The options of `replay`, each declared once, and the resulting plan options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

from dissectors.foreign import natural_of
from dissectors.remoting.code_names import request_code
from dissectors.remoting.code_sets import SENDS
from dissectors.times import Moment
from dissectors.where.fields import exchange_fields
from replay.plan.choose import OptionalKind, SampleBy, Selection
from replay.plan.pace import PaceOptions, Rate, duration_of, speed_of
from replay.plan.planner import (
    BatchPolicy,
    Ids,
    Mode,
    PlanOptions,
    QueuePolicy,
    RequestPolicy,
    SendOrder,
)
from replay.run.compare import ComparisonCondition, condition_of
from replay.run.journal_rows import Sync
from replay.validators import why_not_group

from ..send import targets
from ..ui import common_options as common
from ..ui.common_options import ObjectFormat
from ..ui.console import When
from ..ui.declared import argument, as_given, declared, named_options, option, text_option
from ..ui.option_values import one_of, size_option, usage_error, where_option
from ..ui.status import CommandError, ExitStatus

_TARGET, _PACE, _SELECTION, _LIVE = "Target", "Pace", "Selection", "Live capture"
_SENDING, _SAFETY, _RESULTS = "Sending", "Safety", "Journal and results"
RAW: Final = "raw"
SANDBOX: Final = "sandbox"
_SHARE: Final = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%|(0?\.\d{1,9}|1(?:\.0)?)", re.ASCII)


def _share_of(name: str, text: str | None) -> Fraction | None:
    if text is None:
        return None
    match = _SHARE.fullmatch(text.strip())
    share = Fraction(0) if match is None else Fraction(match[1] or match[2])
    share = share / 100 if match is not None and match[1] else share
    if not 0 < share <= 1:
        raise usage_error(name, f"{text!r} is not a valid share; give 10% or 0.1")
    return share


def _codes_of(name: str, text: str | None) -> frozenset[int] | None:
    """Return the request codes of numbers or names."""
    if text is None:
        return None
    codes = set()
    for part in text.split(","):
        word = part.strip()
        number = natural_of(word)
        if number is None:
            number = request_code(word.upper())
        if number is None:
            raise usage_error(name, f"{word!r} is not a request code; `rmqtool codes` lists them")
        codes.add(number)
    return frozenset(codes)


def _group_of(name: str, text: str | None) -> str | None:
    problem = None if text is None else why_not_group(text)
    if problem is not None:
        raise CommandError(f"{name}: {problem.reason}", problem.hint, ExitStatus.USAGE)
    return text


@declared
class ReplayRequest:
    """The options of `replay`."""

    sources: list[str] = argument(
        "CAPTURE|LOG...", "Captures, JSON lines from `decode pcap --commands`, or - for stdin."
    )
    live: bool = option(
        "Replay stdin as packets arrive (default: read all of it first).", _SELECTION, False
    )
    namesrv: str | None = option(
        "NameServers of the target cluster; with --mode raw, the broker address.",
        _TARGET,
        metavar="HOST:PORT[;...]",
    )
    target: str | None = option(
        "Replay to an embedded sandbox cluster, started for this run.", _TARGET, metavar=SANDBOX
    )
    faults: str | None = option("Inject sandbox faults from a TOML file.", _TARGET, metavar="FILE")
    acl: str | None = option(
        "Sign with these credentials; captured signatures are never reused.",
        _TARGET,
        metavar="FILE|env",
    )
    tls: str | None = targets.TLS
    tls_name: str | None = targets.TLS_NAME
    tls_any_name: bool = targets.TLS_ANY_NAME
    tls_cert: str | None = targets.TLS_CERT
    tls_key: str | None = targets.TLS_KEY
    speed: Fraction | None = text_option(
        "Speed relative to the capture.", _PACE, metavar="2x", read=targets.read_by(speed_of)
    )
    rate: Rate | None = targets.rate(_PACE)
    top_speed: bool = option("Send as fast as possible, ignoring captured pauses.", _PACE, False)
    max_gap: int | None = text_option(
        "Shorten captured pauses to at most this time.",
        _PACE,
        metavar="TIME",
        read=targets.read_by(duration_of),
    )
    """ns"""
    loop: int = option("Repeat the replay N times.", _PACE, 1, min=1, metavar="N")
    duration: int | None = text_option(
        "Stop after this time, such as 90s, 5min, or 1h.",
        _PACE,
        metavar="TIME",
        read=targets.read_by(duration_of),
    )
    """ns"""
    limit: int | None = option("Stop after N messages.", _PACE, min=0, metavar="N")
    interface: str | None = option(
        "Replay live traffic on this network interface until Ctrl-C.",
        _LIVE,
        metavar="NAME",
    )
    filter: str = common.capture_filter(_LIVE)
    keep: str | None = option(
        "Also save the captured packets as pcapng.", _LIVE, names="--write", metavar="FILE"
    )
    force: bool = option("Overwrite an existing -w file.", _LIVE, False)
    where: Callable[[object], bool] | None = replace(
        common.where("Replay only messages that match", "topic == Orders"),
        value=None,
        typed=str,
        read=lambda name, text: where_option(name, text, exchange_fields),
    )
    since: Moment | None = common.SINCE_UTC
    until: Moment | None = common.UNTIL_UTC
    sample: Fraction | None = text_option(
        "Replay this share of keys, with all messages of each key.",
        _SELECTION,
        metavar="10%",
        read=_share_of,
    )
    sample_by: SampleBy = common.choice(
        SampleBy,
        "What --sample keeps together; key: sharding key, first key, or UNIQ_KEY.",
        _SELECTION,
    )
    include: frozenset[OptionalKind] = text_option(
        "Also replay these messages; repeatable.",
        _SELECTION,
        [],
        metavar="|".join(OptionalKind),
        value=frozenset(),
        read=lambda name, texts: frozenset(one_of(OptionalKind, name, text) for text in texts),
    )
    rewrite: list[str] = option(
        "Rewrite messages with a rules file or a Python function; repeatable.",
        _SELECTION,
        [],
        metavar="RULES.toml|FILE.py:FUNCTION",
    )
    decode_as: frozenset[int] = common.DECODE_AS
    max_ratio: int = common.MAX_RATIO
    max_output: int | None = text_option(
        "Maximum decompressed body bytes; messages beyond it are skipped "
        "(default: 128MiB plus 64 times the captured bytes).",
        _SELECTION,
        metavar="SIZE",
        read=size_option,
    )
    mode: str = option(
        "Send mode; raw resends captured requests unchanged to one broker.",
        _SENDING,
        Mode.as_captured.value,
        metavar="|".join((*Mode, RAW)),
        read=partial(one_of, (*Mode, RAW)),
    )
    codes: frozenset[int] | None = text_option(
        "Request codes or names that raw mode may send (default: sends only).",
        _SENDING,
        metavar="310,320,...",
        read=_codes_of,
    )
    in_flight: int = option(
        "Maximum sends in flight.", _SENDING, 256, min=1, max=65535, metavar="N"
    )
    jobs: int = option(
        "Sender processes; messages that depend on each other share one (default: 1).",
        _SENDING,
        1,
        min=1,
        max=64,
        metavar="N",
        show_default=False,
    )
    queues: QueuePolicy = common.choice(
        QueuePolicy,
        "Queue selection: captured with fallback, captured only, or a new choice.",
        _SENDING,
    )
    order: SendOrder = common.choice(
        SendOrder,
        "Wait for earlier sends: as captured, per queue, or never.",
        _SENDING,
    )
    ids: Ids = common.choice(
        Ids,
        "Keep captured UNIQ_KEYs, or create new ones and record the old.",
        _SENDING,
    )
    batches: BatchPolicy = common.choice(
        BatchPolicy, "Replay batches whole, or split them into messages.", _SENDING
    )
    requests: RequestPolicy = common.choice(
        RequestPolicy,
        "Replay request-reply messages as plain sends, or wait for the reply.",
        _SENDING,
    )
    group: str | None = option(
        "Producer group for all messages (default: as captured).",
        _SENDING,
        metavar="GROUP",
        read=_group_of,
    )
    mark: bool = option(
        "Mark messages with the run ID in property RMQTOOL_REPLAY.",
        _SENDING,
        True,
        names="--mark/--no-mark",
    )
    timeout_ms: int = targets.timeout("Timeout of one send.")
    retries: int = targets.RETRIES
    dry_run: bool = option("Show the plan without sending.", _SAFETY, False)
    yes: bool = targets.yes(_SAFETY)
    allow: list[str] | None = targets.allow(_SAFETY)
    journal: str | None = option(
        "Journal folder (default: replay-TIME).",
        _RESULTS,
        names=("--output", "--journal"),
        metavar="FOLDER",
    )
    resume: str | None = option(
        "Resume an interrupted run from its journal.", _RESULTS, metavar="FOLDER"
    )
    sync: Sync = common.choice(
        Sync, "When to sync the journal to disk.", _RESULTS, Sync.second, names="--fsync"
    )
    fail_on: list[ComparisonCondition] = text_option(
        "Exit 4 on new-failures, 'failures>1%', 'p99>2x', or 'late-p99>50ms' (behind schedule);"
        " repeatable.",
        _RESULTS,
        [],
        metavar="CONDITION",
        read=lambda name, texts: [targets.value_of(name, condition_of, text) for text in texts],
    )
    format: ObjectFormat = option(
        "Output format; json writes a dry-run plan as one array.",
        _RESULTS,
        ObjectFormat.table,
    )
    colour: When = common.COLOR
    quiet: bool = common.QUIET
    given: Mapping[str, Any] = as_given()
    """raw options of the command line"""
    named_options: Mapping[str, str] = named_options()

    @property
    def is_live(self) -> bool:
        """Whether packets are replayed as they arrive."""
        return self.live or self.interface is not None

    @property
    def raw_codes(self) -> frozenset[int] | None:
        """Codes of the raw mode; None: not raw."""
        return (self.codes or SENDS) if self.mode == RAW else None

    @property
    def pace(self) -> PaceOptions:
        """When sends are due."""
        speed = Fraction(1) if self.speed is None else self.speed
        return PaceOptions(speed, self.rate, self.top_speed, self.max_gap)

    def plan_options(self, first_time: int, mark: str | None) -> PlanOptions:
        """Return the options of the plan, given the time of the first command."""
        raw = self.mode == RAW
        choice = Selection(
            where=self.where,
            since=None if self.since is None else self.since.on_day_of(first_time),
            until=None if self.until is None else self.until.on_day_of(first_time),
            include=self.include,
            sample=self.sample,
            sample_by=self.sample_by,
        )
        return PlanOptions(
            choice,
            self.pace,
            Mode.sync if raw else Mode(self.mode),
            self.ids,
            self.queues,
            self.order,
            self.batches,
            self.requests,
            self.group,
            mark if self.mark else None,
            self.limit,
            self.duration,
            raw=raw,
        )


PLAN_FIELDS: Final = (
    *("loop", "limit", "duration", "where", "since", "until", "sample", "sample_by", "include"),
    *("rewrite", "decode_as", "max_output", "max_ratio", "mode", "codes", "ids", "batches"),
    *("requests", "group", "mark"),
)
"""options that determine the steps: they must be equal when a run is resumed"""
PACE_FIELDS: Final = ("speed", "rate", "top_speed", "max_gap", "queues", "order")
"""options that a resumed run takes from the journal unless given again"""
