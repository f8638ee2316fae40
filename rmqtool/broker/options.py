"""The options of `broker`, each declared once, and the settings of the sandbox that they make."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, TypeVar

from dissectors import ports
from dissectors.foreign import natural_of
from replay.sandbox import (
    Injection,
    SandboxError,
    SandboxOptions,
    TopicSpec,
    injection_of_text,
    injections_of_file,
)
from replay.sandbox.options import DELAY_LEVELS, check_options

from ..ui import common_options as common
from ..ui.common_options import ObjectFormat
from ..ui.console import When
from ..ui.declared import declared, option, text_option
from ..ui.option_names import command_error
from ..ui.option_values import duration_option, size_option, usage_error
from ..ui.status import CommandError, ExitStatus

_WHERE, _WHAT, _WRONG, _OUTPUT = "Addresses", "Cluster", "Fault injection", "Output"
_TOPIC = re.compile(r"([%|a-zA-Z0-9_-]{1,127})(?::(\d{1,4}))?")
_Text = TypeVar("_Text")
_Read = TypeVar("_Read")


def _topics_of(name: str, texts: Sequence[str]) -> list[TopicSpec]:
    """Return the topics of `Orders:4`, `Orders`, `A,B:2`; CommandError for anything else."""
    topics = []
    for part in (part.strip() for text in texts for part in text.split(",")):
        match = _TOPIC.fullmatch(part)
        if match is None or match[2] == "0":
            raise usage_error(name, f"{part!r} is not a valid topic; give NAME or NAME:QUEUES")
        topics.append(TopicSpec(match[1], natural_of(match[2] or "4") or 1))
    return topics


def _seconds_of(name: str, text: str | None) -> float | None:
    length = duration_option(name, text)
    return None if length is None else float(length) / 1e9


FAULT: Final[Any] = option(
    "Inject a fault; repeatable (see `rmqtool help sandbox faults`).",
    _WRONG,
    [],
    metavar="'KIND[=VALUE] [KEY=VALUE]..'",
)
FAULTS: Final[Any] = option(
    "Read faults from a TOML file with tables named fault.",
    _WRONG,
    [],
    metavar="FILE",
)
SEED: Final[Any] = option(
    "Random seed; the same seed and requests give the same faults.",
    _WRONG,
    typed=int | None,
    metavar="N",
)
DURATION: Final[Any] = text_option(
    "Stop after this time, such as 30s or 5m (default: until Ctrl-C).",
    _OUTPUT,
    metavar="TIME",
    read=_seconds_of,
    names="--duration",
)
"""of all commands that serve until they are stopped"""


def port_option(text: str, panel: str, default: int) -> Any:
    """Declare an option for a port to listen on."""
    return option(text, panel, default, min=0, max=65535, metavar="PORT")


@declared
class BrokerRequest:
    """What a user asks `broker` for; options of `SandboxOptions` have the names that it has."""

    brokers: int = option("Number of brokers.", _WHERE, 1, min=1, max=64, metavar="N")
    port: int = port_option(
        "Port of the first broker, others +10 each; 0 picks free ports.", _WHERE, ports.BROKER
    )
    namesrv_port: int = port_option(
        "Port of the NameServer; 0 picks a free port.", _WHERE, ports.NAMESRV
    )
    host: str = option(
        "Address to listen on.", _WHERE, "127.0.0.1", names="--listen", metavar="ADDRESS"
    )
    allow_remote: bool = option(
        "Accept connections from other machines. There is no authentication.", _WHERE, False
    )
    vip: bool = option("Also listen on each broker's VIP port (port - 2).", _WHERE, False)
    topics: list[TopicSpec] = text_option(
        "Create this topic at startup; repeatable or comma-separated.",
        _WHAT,
        [],
        names=("--topic", "--topics"),
        metavar="NAME[:QUEUES]",
        read=_topics_of,
    )
    auto_create: bool = option(
        "Create unknown topics on the first send.",
        _WHAT,
        True,
        names="--auto-create/--no-auto-create",
    )
    store: Path | None = option(
        "Store messages, topics, and offsets in a SQLite file (default: memory).",
        _WHAT,
        metavar="FILE",
    )
    store_limit: int = text_option(
        "Maximum memory for each broker's messages.",
        _WHAT,
        "1GiB",
        metavar="SIZE",
        value=1 << 30,
        read=size_option,
    )
    drop_oldest: bool = option(
        "When full, evict the oldest messages (default: refuse sends).", _WHAT, False
    )
    server_version: str = option(
        "Behave like this server release, such as 4.9.8.", _WHAT, "5.3.3", metavar="RELEASE"
    )
    serialize_type: str = option(
        "Header serialization of responses.",
        _WHAT,
        "JSON",
        names="--serialize",
        metavar="JSON|ROCKETMQ",
        read=lambda _name, text: text.upper(),
    )
    delay_levels: str = option(
        "Delays of levels 1, 2, … (messageDelayLevel).",
        _WHAT,
        DELAY_LEVELS,
        metavar="'1s 5s ..'",
        show_default=False,
    )
    fault: list[str] = FAULT
    faults: list[Path] = FAULTS
    seed: int | None = SEED
    format: ObjectFormat = option("Output format; json is one array.", _OUTPUT, ObjectFormat.table)
    log: bool = option("Log every request and connection.", _OUTPUT, False)
    seconds: float | None = DURATION
    colour: When = common.COLOR
    quiet: bool = common.QUIET


def sandbox_of(given: BrokerRequest) -> SandboxOptions:
    """Return the settings of the sandbox; raise CommandError if they are invalid."""
    if given.log and given.quiet:
        raise usage_error("--log and --quiet", "cannot be combined: --quiet hides events")
    double = [name for name, n in Counter(topic.name for topic in given.topics).items() if n > 1]
    if double:
        raise usage_error("--topic", f"{double[0]} is given twice")
    injections, seed = faults_of(given.fault, given.faults, given.seed)
    known = {field.name for field in fields(SandboxOptions)} & {
        field.name for field in fields(given)
    }
    same = {name: getattr(given, name) for name in known - {"seed"}}
    try:
        options = SandboxOptions(**same, injections=injections, seed=seed)
        check_options(options)
    except SandboxError as error:
        raise command_error(error) from None
    if options.allow_remote and ip_address(options.host).is_loopback:
        reason = f"needs --listen ADDRESS: other machines cannot reach {options.host}"
        raise usage_error("--allow-remote", reason)
    return options


def faults_of(
    texts: Sequence[str], files: Sequence[Path], seed: int | None
) -> tuple[list[Injection], int]:
    """Return the faults of --fault and --faults, and the seed; raise CommandError for no fault."""
    injections: list[Injection] = []
    chosen = seed
    for path in files:
        faults, own_seed = _faults("--faults", injections_of_file, path)
        injections += faults
        chosen = own_seed if seed is None and own_seed is not None else chosen
    injections += [_faults("--fault", injection_of_text, text) for text in texts]
    return injections, chosen or 0


def _faults(name: str, read: Callable[[_Text], _Read], text: _Text) -> _Read:
    try:
        return read(text)
    except SandboxError as error:
        raise CommandError(f"{name}: {error.reason}", error.hint, ExitStatus.USAGE) from None
