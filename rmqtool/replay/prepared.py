"""A checked `replay` command: contradicting options, and the journal of a run to resume.

Rules: a journal is untrusted. It names captures and rule files, which are data, but never code. Its
options have the types of the command line, and its captures are regular files with the recorded
size and digest.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from dissectors.foreign import Unreadable, converted
from dissectors.printable import printable
from dissectors.tcp.source import CaptureError, expand_sources
from replay.captured.inputs import Input, is_read_once
from replay.plan.planner import BatchPolicy, Ids, QueuePolicy, RequestPolicy
from replay.plan.rewrite import (
    RULES,
    Rewrite,
    RewriteError,
    RewriteFiles,
    read_rewrite_files,
    rewrite_of,
)
from replay.run.journal import read_run, sources_of
from replay.run.journal_rows import INTERFACE, JournalError, Run

from ..live.options import refuse_stdout
from ..ui.declared import options_of, read_request
from ..ui.option_values import usage_error
from ..ui.output import refuse_existing
from ..ui.status import CommandError, ExitStatus
from .options import PACE_FIELDS, PLAN_FIELDS, RAW, SANDBOX, ReplayRequest

_Argument = TypeVar("_Argument")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class PreparedReplay:
    """A `replay` command with its rules and functions loaded."""

    request: ReplayRequest
    rewrite_files: RewriteFiles
    """files with rules and functions"""
    rewrite: Rewrite
    """rules and functions of these files"""
    sources: Sequence[str]
    """captures, logs, or the interface"""
    inputs: Sequence[Input] = ()
    """sources, with copies of those that can be read only once"""

    def stored_options(self) -> dict[str, object]:
        """Return the content of ``run.json`` for resuming the run, with only a digest of
        code.
        """
        files = self.rewrite_files
        return {name: self.request.given[name] for name in (*PLAN_FIELDS, *PACE_FIELDS)} | {
            "rewrite": list(files.rules),
            "rewrite_functions": len(files.functions),
            "rewrite_digest": files.digest,
        }


def prepared(request: ReplayRequest) -> PreparedReplay:
    """Read the files of rules and functions; raise CommandError for an invalid request."""
    folder, stored = request.resume, None
    if folder is not None:
        try:
            request, stored = _resumed(folder, request)
        except JournalError as error:
            raise CommandError(f"--resume: {error}") from None
    _refuse_contradictions(request)
    files = _rewriting(read_rewrite_files, request.rewrite)
    if request.jobs > 1 and files.functions:
        raise usage_error("--jobs", "cannot be combined with Python functions of --rewrite")
    if folder is not None and stored is not None:
        stored.check(folder, files)
    sources = request.sources if request.interface is None else [request.interface]
    return PreparedReplay(request, files, _rewriting(rewrite_of, files), sources)


def _rewriting(call: Callable[[_Argument], _Value], argument: _Argument) -> _Value:
    try:
        return call(argument)
    except RewriteError as error:
        raise CommandError(f"--rewrite: {error}", status=ExitStatus.USAGE) from None


def _refuse_contradictions(request: ReplayRequest) -> None:
    if request.interface is None and not request.sources:
        raise usage_error("CAPTURE", "name a capture or a log to replay; --help shows examples")
    if request.interface is not None and request.sources:
        raise usage_error("--interface", "replaces the captures; omit one of them")
    if request.interface is not None and request.loop > 1:
        raise usage_error("--interface and --loop", "live traffic cannot be read again")
    if request.live and request.interface is None:
        _check_pipe(request)
    for name, value in (("--filter", request.filter), ("--write", request.keep)):
        if value and request.interface is None:
            raise usage_error(name, "needs -i NAME: it works only on live packets")
    refuse_stdout(request.keep)
    refuse_existing(request.keep, request.force)
    if request.codes is not None and request.mode != RAW:
        raise usage_error("--codes", "is for --mode raw; the other modes replay messages")
    if request.mode == RAW:
        _refuse_for_messages(request)
    if request.jobs > 1 and request.is_live:
        raise usage_error(
            "--jobs", "cannot be combined with live input: each process reads all of it"
        )
    paces = (
        ("--speed", request.speed), ("--rate", request.rate), ("--top-speed", request.top_speed)
    )  # fmt: skip
    named = [name for name, value in paces if value]
    if len(named) > 1:
        raise usage_error(" and ".join(named), "cannot be combined")
    _check_target(request)
    _refuse_without_effect(request)


def _check_target(request: ReplayRequest) -> None:
    if request.target is None:
        if request.faults is not None:
            raise usage_error("--faults", "needs --target sandbox")
        return
    if request.target != SANDBOX:
        raise usage_error("--target", f"unknown target {request.target!r}; use sandbox")
    if request.namesrv is not None:
        raise usage_error("--target and --namesrv", "cannot be combined")
    for name in ("tls", "tls_name", "tls_any_name", "tls_cert", "tls_key"):
        if getattr(request, name):
            raise usage_error(option_of(name), "the sandbox has no TLS; omit it")


def _refuse_without_effect(request: ReplayRequest) -> None:
    """Refuse what is given on the command line, and changes nothing with the other options.

    A journal may have such options of an earlier version: they are ignored, as then.
    """
    named = request.named_options
    if "sample_by" in named and request.sample is None:
        raise usage_error("--sample-by", "needs --sample SHARE")
    if "max_gap" in named and (request.rate is not None or request.top_speed):
        other = "--top-speed" if request.top_speed else "--rate"
        raise usage_error(f"--max-gap and {other}", "cannot be combined: there are no pauses")
    # At top speed all is due at once. Live input ends after that time at any pace.
    timed = request.top_speed and request.duration is not None and not request.is_live
    if timed and named.keys() & {"top_speed", "duration"}:
        raise usage_error(
            "--duration and --top-speed", "cannot be combined; use --limit, or set a pace by --rate"
        )
    if request.in_flight < request.jobs:
        raise usage_error("--in-flight", f"must be {request.jobs} or more: one for each of --jobs")


_OF_MESSAGES: Final[Mapping[str, object]] = {
    "sample": None,
    "rewrite": [],
    "queues": QueuePolicy.keep,
    "ids": Ids.keep,
    "batches": BatchPolicy.keep,
    "requests": RequestPolicy.send,
    "group": None,
    "mark": False,
    "retries": 0,
}
"""options that do not change complete requests, with what applies to these anyway"""


def _refuse_for_messages(request: ReplayRequest) -> None:
    declared = options_of(ReplayRequest)
    for name, same in _OF_MESSAGES.items():
        default = declared[name].default
        value = request.given.get(name, default)
        # Nobody asks for a default without typing it. What a journal has was ignored before, too.
        wanted = name in request.named_options or (request.resume is None and value != default)
        if wanted and value and value != same:
            raise usage_error(
                option_of(name), "is for messages; --mode raw replays complete requests"
            )


def option_of(field: str) -> str:
    """Return the option of a field that is named after it."""
    return "--" + field.replace("_", "-")


def _check_pipe(request: ReplayRequest) -> None:
    if len(request.sources) != 1 or not is_read_once(request.sources[0]):
        raise usage_error("--live", "reads one pipe as packets arrive; use - or the name of a pipe")
    if request.loop > 1:
        raise usage_error("--live and --loop", "a pipe can be read only once; omit one of them")


class _Stored(msgspec.Struct, kw_only=True):
    """The record of rules and functions in a journal."""

    rewrite: list[str] = []
    rewrite_functions: int = 0
    """number of Python functions that changed messages"""
    rewrite_digest: str = ""
    """of all files"""

    def check(self, folder: str, files: RewriteFiles) -> None:
        """Refuse, before any code runs, rules that differ from those of the run in `folder`."""
        functions = self.rewrite_functions
        if len(files.functions) != functions:
            noun = "function" if functions == 1 else "functions"
            if not functions:
                raise usage_error("--rewrite", "the run uses no Python function; omit it")
            raise usage_error(
                "--rewrite",
                f"the run uses {functions} Python {noun}; name all of them again "
                "(--rewrite FILE.py:FUNCTION), because a journal does not store code",
            )
        if files.digest != self.rewrite_digest:
            raise JournalError(f"{folder}: the rules have changed since the run began")


def _resumed(folder: str, request: ReplayRequest) -> tuple[ReplayRequest, _Stored]:
    """Fill missing options from the journal; refuse different ones.

    Raises JournalError for a journal that cannot be resumed, CommandError for the command line.
    """
    run = read_run(Path(folder))
    stored = _typed(folder, run.options, _Stored)
    code = [name for name in stored.rewrite if not name.endswith(RULES)]
    if code:
        raise JournalError(
            f"{folder}: it names the Python file {printable(code[0])!r}, which never runs from a "
            "journal; name code on the command line (--rewrite FILE.py:FUNCTION)"
        )
    sources = _same_sources(folder, request, run)
    if request.journal is not None:
        raise usage_error(
            "--resume and --journal", "cannot be combined: a run continues in its own journal"
        )
    options = dict(request.given)
    functions = [name for name in request.rewrite if not name.endswith(RULES)]
    options["rewrite"] = [name for name in request.rewrite if name.endswith(RULES)]
    _take_options(folder, options, run.options, request.named_options)
    options["rewrite"] = [*options["rewrite"], *functions]
    return read_request(ReplayRequest, options | {"sources": sources}), stored


def _same_sources(folder: str, request: ReplayRequest, run: Run) -> list[str]:
    names = [source.name for source in run.sources]
    # A folder that is named again stands for the same captures.
    if request.sources and names not in (request.sources, _expanded(request.sources)):
        listed = ", ".join(map(printable, names))
        raise usage_error("--resume", f"the run replays only {listed}")
    if "-" in names:
        raise JournalError(f"{folder}: standard input cannot be read again")
    if names and names[0].startswith(INTERFACE):
        raise JournalError(f"{folder}: live traffic cannot be read again")
    for name in names:
        if not Path(name).is_file():
            raise JournalError(f"{folder}: {printable(name)}: no such file")
    if sources_of(names) != run.sources:
        raise JournalError(f"{folder}: the captures have changed since the run began")
    return names


def _expanded(sources: Sequence[str]) -> list[str]:
    try:
        return expand_sources(sources)
    except CaptureError:
        return []


def _take_options(
    folder: str, options: dict[str, Any], kept: Mapping[str, object], named: Container[str]
) -> None:
    declared = options_of(ReplayRequest)
    paced = options["speed"] or options["rate"] or options["top_speed"]  # one stands for all three
    for name in (*PLAN_FIELDS, *PACE_FIELDS):
        declaration, wanted = declared[name], options[name]
        old = _typed(folder, kept[name], declaration.typed) if name in kept else declaration.default
        # typer checks the minimum of what is typed; this value is from a file.
        least = declaration.settings.get("min")
        if least is not None and old is not None and old < least:
            raise JournalError(f"{folder}: its options are damaged: {name} is too small")
        if paced and name in ("speed", "rate", "top_speed"):
            continue
        # of rewrites only the rules are in a journal: with functions alone, none are given here
        is_given = name in named and name != "rewrite"
        if not is_given and (not wanted or wanted == declaration.default):
            options[name] = old if name in kept else wanted
        elif name in PLAN_FIELDS and wanted != old:
            reason = f"the run used {old!r}; for another value, start a new run"
            raise usage_error(option_of(name), reason)


def _typed(folder: str, value: object, kind: Any) -> Any:
    """Return a journal entry as a type; raise JournalError if it has another type."""
    try:
        return converted(value, kind)
    except Unreadable as error:
        raise JournalError(f"{folder}: its options are damaged: {printable(str(error))}") from None
