"""What a journal says of the run that is to go on, checked before anything else is read.

Rules: a journal may come from somebody else. It names captures and files with rules, which are
data; it never names code. Its options have the types of the command line, its captures are regular
files with the size and digest that it gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import msgspec

from dissectors.foreign import Unreadable, converted
from dissectors.printable import printable
from dissectors.tcp.source import CaptureError, expand_sources
from replay.plan.rewrite_files import RULES, RewriteFiles
from replay.run.journal import read_run, sources_of
from replay.run.journal_rows import INTERFACE, JournalError, Run

from ..ui.option_values import usage_error
from .arguments import PACE_FIELDS, PLAN_FIELDS, ReplayArguments

_Kind = TypeVar("_Kind")


@dataclass(slots=True)
class StoredRewrite:
    """What a journal keeps of the rules and functions of its run."""

    folder: str
    """the journal"""
    functions: int
    """number of Python functions that changed messages"""
    digest: str
    """of all files"""

    def check(self, files: RewriteFiles) -> None:
        """Refuse, before any code runs, what is not what the run began with."""
        if len(files.functions) != self.functions:
            noun = "function" if self.functions == 1 else "functions"
            wanted = f"{self.functions} Python {noun}" if self.functions else "no Python function"
            raise usage_error(
                "--rewrite",
                f"the run changes messages by {wanted}; name them all anew "
                "(--rewrite FILE.py:FUNCTION), because a journal never names code",
            )
        if files.digest != self.digest:
            raise JournalError(f"{self.folder}: the rules are not those that the run began with")


class _Stored(msgspec.Struct, kw_only=True):
    """The options of a journal that no option of the command line stands for."""

    rewrite: list[str] = []
    rewrite_functions: int = 0
    rewrite_digest: str = ""


def take_over(given: ReplayArguments) -> StoredRewrite:
    """Take from the journal what the command line does not say; refuse what would differ.

    Raises JournalError for a journal that cannot be resumed, CommandError for the command line.
    """
    assert given.resume is not None
    run = read_run(Path(given.resume))
    stored = _typed(given.resume, run.options, _Stored)
    code = [name for name in stored.rewrite if not name.endswith(RULES)]
    if code:
        raise JournalError(
            f"{given.resume}: it names the Python file {printable(code[0])!r}, which is not run; "
            "only the command line names code (--rewrite FILE.py:FUNCTION)"
        )
    _take_sources(given, run)
    if given.journal is not None:
        raise usage_error("--resume and --journal", "a run goes on in its own journal")
    rules = [name for name in given.rewrite if name.endswith(RULES)]
    functions = [name for name in given.rewrite if not name.endswith(RULES)]
    given.rewrite = rules
    _take_options(given, run.options)
    given.rewrite = [*given.rewrite, *functions]
    return StoredRewrite(given.resume, stored.rewrite_functions, stored.rewrite_digest)


def _take_sources(given: ReplayArguments, run: Run) -> None:
    names = [source.name for source in run.sources]
    if given.sources and names not in (list(given.sources), _expanded(given.sources)):
        said = ", ".join(map(printable, names))
        raise usage_error("--resume", f"the run replays {said}, nothing else")
    if "-" in names:
        raise JournalError(f"{given.resume}: standard input cannot be read again")
    if names and names[0].startswith(INTERFACE):
        raise JournalError(f"{given.resume}: live traffic cannot be read again")
    for name in names:
        if not Path(name).is_file():
            raise JournalError(f"{given.resume}: {printable(name)}: no such file")
    if sources_of(names) != run.sources:
        raise JournalError(f"{given.resume}: the captures are not those that the run began with")
    given.sources = names


def _expanded(sources: Sequence[str]) -> list[str]:
    try:
        return expand_sources(sources)
    except CaptureError:
        return []


def _take_options(given: ReplayArguments, options: dict[str, object]) -> None:
    kept: dict[str, object] = {}
    kept |= {name: options[name] for name in (*PLAN_FIELDS, *PACE_FIELDS) if name in options}
    folder = given.resume or ""
    stored = _typed(folder, kept, ReplayArguments)
    limit = 0 if stored.limit is None else stored.limit
    if stored.loop < 1 or stored.max_ratio < 1 or limit < 0:
        raise JournalError(
            f"{folder}: its options are damaged: loop, max_ratio, or limit is too small"
        )
    defaults = {one.name: one.default for one in fields(ReplayArguments)}
    paced = given.speed or given.rate or given.top_speed  # one of them stands for all three
    for name in (*PLAN_FIELDS, *PACE_FIELDS):
        if paced and name in ("speed", "rate", "top_speed"):
            continue
        old, wanted = getattr(stored, name), getattr(given, name)
        if not wanted or wanted == defaults[name]:
            setattr(given, name, old if name in kept else wanted)
        elif name in PLAN_FIELDS and _list_of(wanted) != _list_of(old):
            option = "--" + name.replace("_", "-")
            raise usage_error(option, f"the run has {old!r}; another plan is another run")


def _typed(folder: str, options: dict[str, object], kind: type[_Kind]) -> _Kind:
    """Return the options as values of their types; JournalError where one is of another."""
    try:
        return converted(options, kind)
    except Unreadable as error:
        raise JournalError(f"{folder}: its options are damaged: {printable(str(error))}") from None


def _list_of(value: object) -> object:
    """Return a list for a tuple, so that both compare."""
    return list(value) if isinstance(value, tuple) else value
