"""What a user asked `broker` for, checked: texts of the command line become sandbox options."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dissectors.foreign import natural_of

from ..ui.console import When
from ..ui.option_names import command_error
from ..ui.option_values import duration_option, size_option, usage_error
from ..ui.status import CommandError, ExitStatus
from .arguments import BrokerArguments, BrokerFormat

if TYPE_CHECKING:
    from replay.sandbox import Injection, SandboxOptions, TopicSpec

_Text = TypeVar("_Text")
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class BrokerCommand:
    """A `broker` command, checked."""

    options: SandboxOptions
    """the settings of the sandbox"""
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


def command_of(given: BrokerArguments) -> BrokerCommand:
    """Return what was asked for; raise CommandError where it makes no sense."""
    return checked(lambda: _command_of(given))


def _command_of(given: BrokerArguments) -> BrokerCommand:
    from replay.sandbox import SandboxOptions
    from replay.sandbox.options import DELAY_LEVELS

    found, own_seed = injections_of(given.fault, given.faults)
    wanted = SandboxOptions(
        brokers=given.brokers,
        host=given.listen,
        port=given.port,
        namesrv_port=given.namesrv_port,
        allow_remote=given.allow_remote,
        vip=given.vip,
        topics=topics_of(given.topic),
        auto_create=given.auto_create,
        server_version=given.server_version,
        serialize_type=given.serialize.upper(),
        store=given.store,
        injections=found,
        seed=given.seed if given.seed is not None else own_seed or 0,
        store_limit=size_option("--store-limit", given.store_limit) or 0,
        drop_oldest=given.drop_oldest,
        delay_levels=DELAY_LEVELS if given.delay_levels is None else given.delay_levels,
    )
    seconds = seconds_of(given.duration)
    return BrokerCommand(wanted, given.format, given.log, given.quiet, seconds, given.colour)


def checked(command: Callable[[], BrokerCommand]) -> BrokerCommand:
    """Return the command; what is wrong with its options is a usage error."""
    from replay.sandbox import SandboxError
    from replay.sandbox.options import check_options

    try:
        made = command()
        check_options(made.options)
    except SandboxError as error:
        raise command_error(error, ExitStatus.USAGE) from None
    return made


_TOPIC = re.compile(r"([%|a-zA-Z0-9_-]{1,127})(?::(\d{1,4}))?")


def topics_of(texts: Sequence[str]) -> list[TopicSpec]:
    """Return the topics of `Orders:4`, `Orders`, `A,B:2`; CommandError for anything else."""
    from replay.sandbox import TopicSpec

    topics = []
    for part in (part.strip() for text in texts for part in text.split(",")):
        match = _TOPIC.fullmatch(part)
        if match is None or match[2] == "0":
            raise usage_error("--topic", f"{part!r} is not a valid topic; give NAME or NAME:QUEUES")
        topics.append(TopicSpec(match[1], natural_of(match[2] or "4") or 1))
    return topics


def injections_of(
    texts: Sequence[str], files: Sequence[Path]
) -> tuple[list[Injection], int | None]:
    """Return the faults of files and options, and the seed of the files; CommandError for
    nonsense.
    """
    from replay.sandbox import injection_of_text, injections_of_file

    injections: list[Injection] = []
    seed: int | None = None
    for path in files:
        found, own_seed = _faults("--faults", injections_of_file, path)
        injections += found
        seed = own_seed if own_seed is not None else seed
    return injections + [_faults("--fault", injection_of_text, text) for text in texts], seed


def _faults(option: str, read: Callable[[_Text], _Read], text: _Text) -> _Read:
    from replay.sandbox import SandboxError

    try:
        return read(text)
    except SandboxError as error:
        raise CommandError(f"{option}: {error.reason}", error.hint, ExitStatus.USAGE) from None


def seconds_of(text: str | None) -> float | None:
    """Return the seconds of `--duration`; None where it is not given."""
    length = duration_option("--duration", text)
    return None if length is None else float(length) / 1e9
