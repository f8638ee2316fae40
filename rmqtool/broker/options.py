"""What a user asked `broker` for, checked: texts of the command line become sandbox options."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from .console import When
from .decode_options import usage_error
from .status import CommandError, ExitStatus

if TYPE_CHECKING:
    from replay.sandbox import Fault, SandboxOptions, TopicSpec


class BrokerFormat(StrEnum):
    """How events are written."""

    table = "table"
    jsonl = "jsonl"


@dataclass(frozen=True, slots=True)
class BrokerCommand:
    """A `broker` command, checked."""

    options: SandboxOptions
    """what the sandbox shall be"""
    format: BrokerFormat
    """how events are written"""
    log: bool
    """every event is written, not only the interesting ones"""
    quiet: bool
    """no events at all"""
    seconds: float | None
    """how long it runs; None: until Ctrl-C"""
    colour: When
    """when to use colours"""


def checked(command: Callable[[], BrokerCommand]) -> BrokerCommand:
    """The command; what is wrong with its options is a usage error."""
    from replay.sandbox import SandboxError
    from replay.sandbox.options import check_options

    try:
        made = command()
        check_options(made.options)
    except SandboxError as error:
        raise CommandError(error.reason, error.hint, ExitStatus.USAGE) from None
    return made


_TOPIC = re.compile(r"([%|a-zA-Z0-9_-]{1,127})(?::(\d{1,4}))?")


def topics_of(texts: Sequence[str]) -> list[TopicSpec]:
    """The topics of `Orders:4`, `Orders`, `A,B:2`; CommandError for anything else."""
    from replay.sandbox import TopicSpec

    topics = []
    for part in (part.strip() for text in texts for part in text.split(",")):
        match = _TOPIC.fullmatch(part)
        if match is None or match[2] == "0":
            raise usage_error("--topic", f"{part!r} is no topic; give NAME or NAME:QUEUES")
        topics.append(TopicSpec(match[1], int(match[2] or 4)))
    return topics


def faults_of(texts: Sequence[str], files: Sequence[Path]) -> tuple[list[Fault], int | None]:
    """The faults of files and options, and the seed of the files; SandboxError for nonsense."""
    from replay.sandbox import fault_of_text, faults_of_file

    faults: list[Fault] = []
    seed: int | None = None
    for path in files:
        found, own_seed = faults_of_file(path)
        faults += found
        seed = own_seed if own_seed is not None else seed
    return faults + [fault_of_text(text) for text in texts], seed


def seconds_of(text: str | None) -> float | None:
    """The seconds of `30s`, `5m`; None for none. SandboxError for anything else."""
    if text is None:
        return None
    from replay.sandbox.options import duration_ms

    return duration_ms(text) / 1000
