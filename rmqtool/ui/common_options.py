"""Options of the command line, by name: an option means the same in each command that has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from dissectors.tcp.decompression import MOST_TIMES
from dissectors.times import UTC_ZONE

from .console import When
from .declared import argument, option, text_option
from .option_values import (
    names_in,
    one_of,
    ports_of,
    refuse_named,
    size_option,
    time_option,
    until_option,
    usage_error,
    zone_option,
)
from .status import CommandError

if TYPE_CHECKING:
    from dissectors.broker_store.evidence import StoreEvidence
    from dissectors.remoting.bodies.custom import NamedDecoder

_VIEW, _SELECT, _OUTPUT, _READ = "View", "Filters", "Output", "Input"


class Order(StrEnum):
    """The order of rows."""

    time = "time"
    latency = "latency"
    completion = "completion"


class RowFormat(StrEnum):
    """The format of rows."""

    table = "table"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"

    @property
    def is_json(self) -> bool:
        """Whether rows are objects: one array of them, or one on each line."""
        return self in (RowFormat.json, RowFormat.jsonl)


class ObjectFormat(StrEnum):
    """The format of results that are text for people, or objects."""

    table = "table"
    json = "json"
    jsonl = "jsonl"

    @property
    def is_json(self) -> bool:
        """Whether results are objects: one array of them, or one on each line."""
        return self is not ObjectFormat.table


def choice(
    kind: type[StrEnum], text: str, panel: str, default: StrEnum | None = None, **more: Any
) -> Any:
    """Declare an option whose value is a member of an enum, by default the first one."""
    default = next(iter(kind)) if default is None else default
    return text_option(
        text,
        panel,
        default.value,
        metavar="|".join(kind),
        value=default,
        read=partial(one_of, kind),
        **more,
    )


def _ports(_option: str, texts: list[str] | None) -> frozenset[int]:
    return ports_of(texts or [])


def _stores_of(option: str, folders: Sequence[str] | None) -> StoreEvidence | None:
    """Return the evidence in these store folders, or None without stores."""
    if not folders:
        return None
    from dissectors.broker_store.evidence import evidence_in
    from dissectors.tcp.source import CaptureError

    try:
        return evidence_in(folders)
    except CaptureError as error:
        raise CommandError(f"{option}: {error.path}: {error.reason}", error.hint) from None


def _key_log(_option: str, path: str | None) -> str:
    from dissectors.decode.secrets import key_log_named

    return key_log_named(path)


def plugins_of(names: Sequence[str] | None) -> tuple[NamedDecoder, ...]:
    """Return the loaded plug-ins; raise PluginError."""
    if not names:
        return ()
    from ..plugins import decoders_of

    return tuple(decoders_of(names))


CAPTURES = argument(
    "FILE...",
    "Captures (also compressed), folders of captures, or - for stdin.",
    required=True,
    typed=list[str],
)
COMMANDS = option("Show one line per command (request or response).", _VIEW, False)
VERBOSE = option("Show every header field and the decoded body as a tree.", _VIEW, False)
SUMMARY = option(
    "Summarize operations, latency, responses, clients, and capture quality.", _VIEW, False
)
FOLLOW_CONVERSATION = option(
    "Show both directions of one conversation as text.",
    _VIEW,
    metavar="N",
    min=0,
)
MESSAGES = option("Export message bodies and an index to the -o folder.", _VIEW, False)
LIST_MESSAGES = option(
    "Show one line per message event: sent, delivered, acknowledged, returned, …", _VIEW, False
)
NO_MESSAGE_ROWS = option("Omit the messages table from a decoded log.", _OUTPUT, False)


def where(rows: str = "Show only rows that match", example: str = "latency > 50ms") -> Any:
    """Declare `--where`; its help starts with `rows`."""
    return option(f"{rows} EXPR, such as '{example}'.", _SELECT, "", metavar="EXPR")


WHERE = where()


def _since(default_zone: str, needs: tuple[str, ...]) -> Any:
    return text_option(
        "Start at this time: 2026-11-20T10:00:00, or 10:00 on the first day "
        f"(default zone: {default_zone}).",
        _SELECT,
        metavar="TIME",
        read=time_option,
        needs=needs,
    )


def _until(needs: tuple[str, ...]) -> Any:
    return text_option(
        "Stop before this time.", _SELECT, metavar="TIME", read=until_option, needs=needs
    )


SINCE, UNTIL = _since("--tz", ("zone",)), _until(("since", "zone"))
"""of commands with `TIME_ZONE` as their field `zone`"""
SINCE_UTC, UNTIL_UTC = _since("UTC", ()), _until(("since",))
"""of commands without"""


def column_names(option: str, text: str | None) -> tuple[str, ...]:
    """Return the names of columns; raise CommandError for a text without one."""
    names = names_in(text)
    if text is not None and not names:
        raise usage_error(option, "names no column; give time,latency or omit it")
    return names


def columns(example: str = "time,latency,topic") -> Any:
    """Declare `--columns`."""
    return text_option(
        f"Show these columns, in this order, such as {example}.",
        _OUTPUT,
        metavar="NAMES",
        value=(),
        read=column_names,
    )


COLUMNS = columns()
TIME_ZONE = text_option(
    "Time zone for displayed and entered times; files use UTC.",
    _OUTPUT,
    "UTC",
    names="--tz",
    metavar="local|UTC|NAME",
    value=UTC_ZONE,
    read=lambda _option, name: zone_option(name),
)
LIMIT = option("Stop after N rows.", _SELECT, min=0, metavar="N")
OUTPUT = option("Output file.", _OUTPUT, "-", metavar="FILE|-")
FORCE = option("Overwrite existing output.", _OUTPUT, False)
"""of all commands that write files"""
MAX_OUTPUT = text_option(
    "Maximum decompressed body bytes (default: 128MiB plus 64 times the captured bytes).",
    _OUTPUT,
    metavar="SIZE",
    read=size_option,
)
PLUGINS = option(
    "Decode bodies with a plug-in, which executes code; repeatable.",
    _READ,
    names="--plugin",
    metavar="FILE.py|NAME",
    value=(),
    typed=list[str] | None,
    read=lambda _option, names: plugins_of(names),
)
COLOR = option("Use colors.", _OUTPUT, When.auto, names="--color")
PAGER = option("Page output with $PAGER (default: less).", _OUTPUT, False)
QUIET = option("Suppress progress and notes.", _OUTPUT, False)
STORE = option(
    "Look up messages in this copy of a broker's store; repeatable.",
    _READ,
    value=None,
    typed=list[str] | None,
    metavar="DIR",
    read=_stores_of,
)
DECODE_AS = option(
    "Treat this TCP port as RocketMQ, skipping detection; repeatable.",
    _READ,
    metavar="PORT",
    value=frozenset(),
    typed=list[str] | None,
    read=_ports,
)
TLS_KEYLOG = text_option(
    "Decrypt TLS with this key log (default: $SSLKEYLOGFILE).",
    _READ,
    metavar="FILE",
    value="",
    read=_key_log,
)
MAX_RATIO = option(
    "Stop decompressing above this ratio (checked after 128 MiB).",
    _READ,
    MOST_TIMES,
    min=1,
    metavar="N",
)


def refuse_capture_options(named: Mapping[str, str], *more: str) -> None:
    """Raise CommandError for a named option of captures, where no input is one.

    `more`: further fields, of options that only captures need.
    """
    of_captures = ("decode_as", "tls_keylog", "max_ratio", *more)
    refuse_named(named, of_captures, "is for captures, and the input is already decoded; omit it")


FOLLOW = option("Wait for more packets in the last file until Ctrl-C.", _READ, False)
JOBS = option(
    "Decoder processes; output is identical (default: 1; up to 8 for large inputs).",
    _READ,
    min=1,
    max=64,
    metavar="N",
)


def capture_filter(panel: str) -> Any:
    """Return the option `--filter` of a command that captures."""
    return option(
        "Capture filter (pcap-filter syntax), such as 'tcp port 10911'.",
        panel,
        "",
        metavar="BPF",
    )
