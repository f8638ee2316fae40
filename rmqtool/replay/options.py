"""What a user asked `replay` for, checked: texts of the command line become values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final, TypeVar

from dissectors.foreign import natural_of
from dissectors.remoting.code_names import request_code
from dissectors.remoting.code_sets import SENDS
from dissectors.times import Moment
from dissectors.where.fields import exchange_fields
from dissectors.where.filter import WhereError, compile_where
from replay.captured.inputs import Input, is_read_once
from replay.plan.choose import OptionalKind, SampleBy, Selection
from replay.plan.pace import PaceError, PaceOptions, duration_of, rate_of, speed_of
from replay.plan.planner import (
    BatchPolicy,
    Ids,
    Mode,
    PlanOptions,
    QueuePolicy,
    RequestPolicy,
    SendOrder,
)
from replay.plan.rewrite import Rewrite, RewriteError
from replay.plan.rewrite_files import RewriteFiles, read_rewrite_files, rewrite_of
from replay.run.compare import ComparisonCondition, ConditionError, condition_of
from replay.run.journal_rows import JournalError, Sync
from replay.validators import why_not_group

from ..live.options import refuse_stdout
from ..send.options import timeout_ms_of
from ..ui.option_values import ports_of, size_option, time_option, usage_error
from ..ui.output import refuse_existing
from ..ui.status import CommandError, ExitStatus
from .arguments import PACE_FIELDS, PLAN_FIELDS, ReplayArguments
from .resume import take_over

RAW: Final = "raw"
SANDBOX: Final = "sandbox"
_SHARE: Final = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%|(0?\.\d{1,9}|1(?:\.0)?)", re.ASCII)
_Value = TypeVar("_Value")
_Argument = TypeVar("_Argument")
_Enum = TypeVar("_Enum", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A `replay` command, checked."""

    given: ReplayArguments
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
    conditions: tuple[ComparisonCondition, ...]
    """of --fail-on"""
    options: PlanOptions
    """what is replayed and how, but for times of day"""
    since: Moment | None
    until: Moment | None
    rewrite_files: RewriteFiles
    """the files with rules and functions, as they were read"""
    max_output: int | None = None
    """bytes that bodies may become; None: what the budget gives"""
    inputs: tuple[Input, ...] = ()
    """what is read: the sources, or copies of those that can be read but once"""

    @property
    def is_live(self) -> bool:
        """Whether packets are replayed as they arrive: nothing is known of what follows."""
        return self.given.live or self.given.interface is not None

    def plan_options(self, first_time: int, mark: str | None) -> PlanOptions:
        """Return the options of the plan, once the time of the first command is known."""
        from dataclasses import replace

        choice = replace(
            self.options.choice,
            since=None if self.since is None else self.since.on_day_of(first_time),
            until=None if self.until is None else self.until.on_day_of(first_time),
        )
        return replace(self.options, choice=choice, mark=mark if self.given.mark else None)

    def stored_options(self) -> dict[str, object]:
        """Return what ``run.json`` keeps, so that the run can be resumed; of code only the
        digest.
        """
        names = (*PLAN_FIELDS, *PACE_FIELDS)
        kept = {name: getattr(self.given, name) for name in names}
        stored = {n: list(v) if isinstance(v, (list, tuple)) else v for n, v in kept.items()}
        files = self.rewrite_files
        return stored | {
            "rewrite": list(files.rules),
            "rewrite_functions": len(files.functions),
            "rewrite_digest": files.digest,
        }


def request_of(given: ReplayArguments) -> ReplayRequest:
    """Return what was asked for; raise CommandError where it makes no sense."""
    stored = None
    if given.resume is not None:
        try:
            stored = take_over(given)
        except JournalError as error:
            raise CommandError(f"--resume: {error}") from None
    if given.interface is not None:
        _check_interface(given)
    elif not given.sources:
        raise usage_error("CAPTURE", "name a capture or a log to replay; --help shows examples")
    raw = given.mode == RAW
    raw_codes = _codes_of(given.codes) if raw else None
    if given.codes is not None and not raw:
        raise usage_error("--codes", "is for --mode raw; the other modes replay messages")
    if given.live:
        _check_live(given)
    for option, value in (("--filter", given.filter), ("--write", given.keep)):
        if value and given.interface is None:
            raise usage_error(option, "is for packets of an interface: -i NAME")
    files = _rewrite(read_rewrite_files, given.rewrite)
    if given.jobs > 1:
        _check_jobs(given, files)
    if stored is not None:
        stored.check(files)
    return ReplayRequest(
        given,
        tuple(given.sources) if given.interface is None else (given.interface,),
        _rewrite(rewrite_of, files),
        ports_of(given.decode_as or []),
        raw_codes,
        timeout_ms_of(given.timeout),
        _one_of("--fsync", Sync, given.fsync),
        tuple(_value("--fail-on", condition_of, text) for text in given.fail_on),
        _plan_options(given, raw),
        time_option("--since", given.since),
        time_option("--until", given.until),
        files,
        size_option("--max-output", given.max_output),
    )


def _check_interface(given: ReplayArguments) -> None:
    if given.sources:
        raise usage_error("--interface", "it takes the place of a capture; omit one of them")
    if given.loop > 1:
        raise usage_error("--interface and --loop", "live traffic cannot be read again")
    refuse_stdout(given.keep)
    refuse_existing(given.keep, given.force)


def _check_jobs(given: ReplayArguments, files: RewriteFiles) -> None:
    if given.live or given.interface is not None:
        raise usage_error("--jobs", "each process reads the whole input, so it cannot be live")
    if files.functions:
        raise usage_error("--jobs", "a Python function may change messages in each process its way")


def _check_live(given: ReplayArguments) -> None:
    if given.interface is not None:
        return
    if len(given.sources) != 1 or not is_read_once(given.sources[0]):
        raise usage_error(
            "--live", "it reads one pipe as packets come; use - or the name of a pipe"
        )
    if given.loop > 1:
        raise usage_error("--live and --loop", "a pipe can be read only once; omit one of them")


def _plan_options(given: ReplayArguments, raw: bool) -> PlanOptions:
    pace = _pace_of(given)
    choice = Selection(
        where=_where_of(given.where),
        include=frozenset(_one_of("--include", OptionalKind, name) for name in given.include),
        sample=_share_of(given.sample),
        sample_by=_one_of("--sample-by", SampleBy, given.sample_by),
    )
    return PlanOptions(
        choice,
        pace,
        Mode.sync if raw else _one_of("--mode", Mode, given.mode, RAW),
        _one_of("--ids", Ids, given.ids),
        _one_of("--queues", QueuePolicy, given.queues),
        _one_of("--order", SendOrder, given.order),
        _one_of("--batches", BatchPolicy, given.batches),
        _one_of("--requests", RequestPolicy, given.requests),
        _group_of(given.group),
        None,
        given.limit,
        None if given.duration is None else _value("--duration", duration_of, given.duration),
        raw=raw,
    )


def _pace_of(given: ReplayArguments) -> PaceOptions:
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
        raise usage_error(" and ".join(named), "cannot be combined")
    return PaceOptions(
        Fraction(1) if given.speed is None else _value("--speed", speed_of, given.speed),
        None if given.rate is None else _value("--rate", rate_of, given.rate),
        given.top_speed,
        None if given.max_gap is None else _value("--max-gap", duration_of, given.max_gap),
    )


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
        raise usage_error(option, f"must be one of {known}, not {text!r}") from None


def _group_of(text: str | None) -> str | None:
    problem = None if text is None else why_not_group(text)
    if problem is not None:
        raise CommandError(f"--group: {problem.reason}", problem.hint, ExitStatus.USAGE)
    return text


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
        raise usage_error("--sample", f"{text!r} is not a valid share; give 10% or 0.1")
    return share


def _codes_of(text: str | None) -> frozenset[int]:
    """Return the request codes of --codes, numbers or names."""
    if text is None:
        return SENDS
    found = set()
    for part in text.split(","):
        word = part.strip()
        number = natural_of(word)
        if number is None:
            number = request_code(word.upper())
        if number is None:
            raise usage_error(
                "--codes", f"{word!r} is not a request code; `rmqtool codes` lists them"
            )
        found.add(number)
    return frozenset(found)


def _rewrite(call: Callable[[_Argument], _Value], argument: _Argument) -> _Value:
    try:
        return call(argument)
    except RewriteError as error:
        raise CommandError(f"--rewrite: {error}", status=ExitStatus.USAGE) from None
