"""What a user asks `trace` for: its options and what they may be."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissectors.times import Moment, Zone

from ..ui import common_options as options
from ..ui.console import When
from ..ui.declared import argument, declared, option
from ..ui.output import refuse_text_as_page

if TYPE_CHECKING:
    from dissectors.remoting.bodies.custom import NamedDecoder


class TraceFormat(StrEnum):
    """How the lives of messages are written."""

    ladder = "ladder"
    json = "json"
    jsonl = "jsonl"
    html = "html"
    otlp = "otlp"


_SUFFIXES: Final = {
    ".jsonl": TraceFormat.jsonl,
    ".ndjson": TraceFormat.jsonl,
    ".json": TraceFormat.otlp,
    ".html": TraceFormat.html,
    ".htm": TraceFormat.html,
}


def _format(_option: str, wanted: TraceFormat | None, output: str) -> TraceFormat:
    if wanted not in (None, TraceFormat.html):
        refuse_text_as_page(output, "--format html makes one")
    return wanted or _SUFFIXES.get(Path(output).suffix.lower(), TraceFormat.ladder)


@declared
class TraceRequest:
    """A `trace` command: which message in which input, and how its life is written."""

    arguments: list[str] = argument(
        "INPUT... KEY",
        "Captures, folders of captures, decoded logs, or - for stdin; then a "
        "unique key, offset message ID, or message key. Omit KEY with --where.",
        required=True,
    )
    where: str = options.WHERE
    since: Moment | None = options.SINCE
    until: Moment | None = options.UNTIL
    zone: Zone = options.TIME_ZONE
    decode_as: frozenset[int] = options.DECODE_AS
    tls_keylog: str = options.TLS_KEYLOG
    max_ratio: int = options.MAX_RATIO
    plugins: tuple[NamedDecoder, ...] = options.PLUGINS
    jobs: int | None = options.JOBS
    format: TraceFormat = option(
        "Output format: ladder diagram, JSON array or lines, HTML page, or OpenTelemetry "
        "spans as OTLP JSON (default: from the -o extension, .json: otlp; otherwise ladder).",
        "Output",
        value=TraceFormat.ladder,
        typed=TraceFormat | None,
        read=_format,
        needs=("output",),
    )
    output: str = options.OUTPUT
    force: bool = options.FORCE
    colour: When = options.COLOR
    pager: bool = options.PAGER
    quiet: bool = options.QUIET
