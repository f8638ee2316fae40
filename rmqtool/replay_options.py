"""What a user asked `replay` for, checked: texts of the command line become values."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from dissectors.remoting.codes import request_code
from dissectors.times import DAY, Moment, start_of_day
from dissectors.where import WhereError, compile_where
from dissectors.where_fields import exchange_fields
from replay.captured import SENDS
from replay.choose import Choice, Kind, SampleBy
from replay.compare import Condition, ConditionError, condition_of
from replay.journal import Sync
from replay.pace import PaceError, PaceOptions, duration_of, rate_of, speed_of
from replay.plan import Batches, Ids, Mode, PlanOptions, Queues, Requests
from replay.rewrite import Rewrite, RewriteError, read_function, read_rules

from .console import When
from .decode_options import ports_of, time_option, usage_error
from .status import CommandError, ExitStatus

if TYPE_CHECKING:
    from replay.rewrite import Function, Rule

RAW: Final = "raw"
SANDBOX: Final = "sandbox"
_SHARE: Final = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%|(0?\.\d{1,9}|1(?:\.0)?)", re.ASCII)
_Value = TypeVar("_Value")
_Enum = TypeVar("_Enum", bound=StrEnum)


@dataclass(slots=True)
class Given:
    """The command line as it is; the fields are its options."""

    sources: Sequence[str] = ()
    namesrv: str | None = None
    target: str | None = None
    faults: str | None = None
    acl: str | None = None
    tls: str | None = None
    speed: str | None = None
    rate: str | None = None
    top_speed: bool = False
    max_gap: str | None = None
    loop: int = 1
    duration: str | None = None
    limit: int | None = None
    where: str = ""
    since: str | None = None
    until: str | None = None
    sample: str | None = None
    sample_by: str = "key"
    include: Sequence[str] = ()
    rewrite: Sequence[str] = ()
    decode_as: Sequence[str] = ()
    mode: str = "as-captured"
    codes: str | None = None
    in_flight: int = 256
    queues: str = "keep"
    ids: str = "keep"
    batches: str = "keep"
    requests: str = "send"
    group: str | None = None
    mark: bool = True
    timeout: str = "3s"
    retries: int = 2
    dry_run: bool = False
    yes: bool = False
    journal: str | None = None
    resume: str | None = None
    fsync: str = "second"
    fail_on: Sequence[str] = ()
    format: str = "table"
    colour: When = When.auto
    quiet: bool = False


PLAN_FIELDS: Final = (
    *("loop", "limit", "duration", "where", "since", "until", "sample", "sample_by", "include"),
    *("rewrite", "decode_as", "mode", "codes", "ids", "batches", "requests", "group", "mark"),
)
"""options that say which steps there are: a run that is resumed must have the same"""
PACE_FIELDS: Final = ("speed", "rate", "top_speed", "max_gap", "queues")
"""options that a run that is resumed takes over where they are not given anew"""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A `replay` command, checked."""

    given: Given
    """as it was given"""
    sources: tuple[str, ...]
    """captures or logs"""
    rewrite: Rewrite
    """rules and functions"""
    decode_as: frozenset[int]
    """ports whose conversations are RocketMQ"""
    raw_codes: frozenset[int] | None
    """codes of the raw mode; None: not raw"""
    timeout_ms: int
    """time of one send"""
    sync: Sync
    """when the journal is forced to the disk"""
    conditions: tuple[Condition, ...]
    """of --fail-on"""
    options: PlanOptions
    """what is replayed and how, but for times of day"""
    since: Moment | None
    until: Moment | None
    rewrite_digest: str = field(default="")
    """of the files with rules and functions"""

    def plan_options(self, first_time: int, mark: str | None) -> PlanOptions:
        """The options of the plan, once the time of the first command is known."""
        from dataclasses import replace

        midnight = start_of_day(first_time)
        choice = replace(
            self.options.choice,
            since=_at(self.since, midnight),
            until=_at(self.until, midnight),
        )
        return replace(self.options, choice=choice, mark=mark if self.given.mark else None)

    def stored_options(self) -> dict[str, object]:
        """What ``run.json`` keeps, so that the run can be resumed."""
        names = (*PLAN_FIELDS, *PACE_FIELDS)
        kept = {name: getattr(self.given, name) for name in names}
        stored = {n: list(v) if isinstance(v, (list, tuple)) else v for n, v in kept.items()}
        return stored | {"rewrite_digest": self.rewrite_digest}


def request_of(given: Given) -> ReplayRequest:
    """Return what was asked for; raise CommandError where it makes no sense."""
    if given.resume is not None:
        _take_over(given)
    if not given.sources:
        raise usage_error("CAPTURE", "name a capture or a log to replay; --help shows examples")
    raw = given.mode == RAW
    raw_codes = _codes_of(given.codes) if raw else None
    if given.codes is not None and not raw:
        raise usage_error("--codes", "is for --mode raw; the other modes replay messages")
    if given.format not in ("table", "jsonl"):
        raise usage_error("--format", f"{given.format!r} is neither table nor jsonl")
    rules, functions, digest = _rewrites_of(given.rewrite)
    return ReplayRequest(
        given,
        tuple(given.sources),
        Rewrite(rules, functions),
        ports_of(given.decode_as),
        raw_codes,
        max(1, _value("--timeout", duration_of, given.timeout) // 1_000_000),
        _one_of("--fsync", Sync, given.fsync),
        tuple(_value("--fail-on", condition_of, text) for text in given.fail_on),
        _plan_options(given, raw),
        time_option("--since", given.since),
        time_option("--until", given.until),
        digest,
    )


def _plan_options(given: Given, raw: bool) -> PlanOptions:
    pace = _pace_of(given)
    choice = Choice(
        where=_where_of(given.where),
        include=frozenset(_one_of("--include", Kind, name) for name in given.include),
        sample=_share_of(given.sample),
        sample_by=_one_of("--sample-by", SampleBy, given.sample_by),
    )
    return PlanOptions(
        choice,
        pace,
        Mode.sync if raw else _one_of("--mode", Mode, given.mode, RAW),
        _one_of("--ids", Ids, given.ids),
        _one_of("--queues", Queues, given.queues),
        _one_of("--batches", Batches, given.batches),
        _one_of("--requests", Requests, given.requests),
        given.group,
        None,
        given.limit,
        None if given.duration is None else _value("--duration", duration_of, given.duration),
        raw=raw,
    )


def _pace_of(given: Given) -> PaceOptions:
    named = [
        name
        for name, value in (
            ("--speed", given.speed),
            ("--rate", given.rate),
            ("--top-speed", given.top_speed),
        )
        if value
    ]
    if len(named) > 1:
        raise usage_error(" and ".join(named), "only one of them at a time")
    return PaceOptions(
        Fraction(1) if given.speed is None else _value("--speed", speed_of, given.speed),
        None if given.rate is None else _value("--rate", rate_of, given.rate),
        given.top_speed,
        None if given.max_gap is None else _value("--max-gap", duration_of, given.max_gap),
    )


def _take_over(given: Given) -> None:
    """Take from the journal what the command line does not say; refuse what would differ."""
    from replay.journal import read_run

    assert given.resume is not None
    run = read_run(Path(given.resume))
    defaults = {one.name: one.default for one in fields(Given)}
    names = [source.name for source in run.sources]
    if given.sources and list(given.sources) != names:
        raise usage_error("--resume", f"the run replays {', '.join(names)}, nothing else")
    given.sources = names
    if given.journal is not None:
        raise usage_error("--resume and --journal", "a run goes on in its own journal")
    paced = given.speed or given.rate or given.top_speed  # one of them stands for all three
    for name in (*PLAN_FIELDS, *PACE_FIELDS):
        if paced and name in ("speed", "rate", "top_speed"):
            continue
        stored, wanted = run.options.get(name), getattr(given, name)
        if not wanted or wanted == defaults[name]:
            setattr(given, name, stored if name in run.options else wanted)
        elif name in PLAN_FIELDS and list_of(wanted) != list_of(stored):
            option = "--" + name.replace("_", "-")
            raise usage_error(option, f"the run has {stored!r}; another plan is another run")


def list_of(value: object) -> object:
    """A list for a tuple, so that both compare."""
    return list(value) if isinstance(value, tuple) else value


def _value(option: str, read: Callable[[str], _Value], text: str) -> _Value:
    try:
        return read(text)
    except (PaceError, ConditionError) as problem:
        raise usage_error(option, str(problem)) from None


def _one_of(option: str, kind: type[_Enum], text: str, *more: str) -> _Enum:
    try:
        return kind(text)
    except ValueError:
        known = ", ".join([*(member.value for member in kind), *more])
        raise usage_error(option, f"{text!r} is none of {known}") from None


def _where_of(text: str) -> Callable[[object], bool] | None:
    if not text.strip():
        return None
    try:
        return compile_where(text, exchange_fields())
    except WhereError as error:
        raise CommandError(f"--where: {error.reason}", error.pointed(), ExitStatus.USAGE) from None


def _share_of(text: str | None) -> Fraction | None:
    if text is None:
        return None
    match = _SHARE.fullmatch(text.strip())
    share = Fraction(0) if match is None else Fraction(match[1] or match[2])
    share = share / 100 if match is not None and match[1] else share
    if not 0 < share <= 1:
        raise usage_error("--sample", f"{text!r} is no share; give 10% or 0.1")
    return share


def _codes_of(text: str | None) -> frozenset[int]:
    """The request codes of --codes, numbers or names."""
    if text is None:
        return SENDS
    found = set()
    for part in text.split(","):
        word = part.strip()
        number = int(word) if word.isascii() and word.isdecimal() else request_code(word.upper())
        if number is None:
            raise usage_error("--codes", f"{word!r} is no request code; `rmqtool codes` lists them")
        found.add(number)
    return frozenset(found)


def _rewrites_of(names: Sequence[str]) -> tuple[list[Rule], list[Function], str]:
    """Rules, functions, and a digest of the files."""
    rules: list[Rule] = []
    functions: list[Function] = []
    digest = hashlib.blake2b(digest_size=16)
    for name in names:
        path = name if name.endswith(".toml") else name.rpartition(":")[0]
        try:
            if name.endswith(".toml"):
                rules += read_rules(name)
            else:
                functions.append(read_function(name))
            digest.update(Path(path).read_bytes())
        except RewriteError as error:
            raise CommandError(f"--rewrite: {error}", status=ExitStatus.USAGE) from None
    return rules, functions, digest.hexdigest() if names else ""


def _at(moment: Moment | None, midnight: int) -> int | None:
    """A time; one of day is of the day of the first command."""
    if moment is None or moment.has_date:
        return None if moment is None else moment.ns
    return midnight + moment.ns % DAY
