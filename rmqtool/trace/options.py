"""The options of `trace`, with their values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissectors.times import Moment, Zone

from ..ui import common_options as options
from ..ui.console import When
from ..ui.declared import argument, declared, named_options, option
from ..ui.output import refuse_text_as_page

if TYPE_CHECKING:
    from dissectors.broker_store.evidence import StoreEvidence
    from dissectors.remoting.bodies.custom import NamedDecoder


class TraceFormat(StrEnum):
    """The format of message traces."""

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
        refuse_text_as_page(output, "use --format html")
    return wanted or _SUFFIXES.get(Path(output).suffix.lower(), TraceFormat.ladder)


@declared
class TraceRequest:
    """A `trace` command: message, inputs, and output."""

    arguments: list[str] = argument(
        "INPUT... [KEY]",
        "Captures, decoded logs, or -; then a key (not with --where).",
        required=True,
    )
    where: str = options.where("Trace messages whose rows match", "event == returned")
    store: StoreEvidence | None = options.STORE
    since: Moment | None = options.SINCE
    until: Moment | None = options.UNTIL
    zone: Zone = options.TIME_ZONE
    decode_as: frozenset[int] = options.DECODE_AS
    tls_keylog: str = options.TLS_KEYLOG
    max_ratio: int = options.MAX_RATIO
    plugins: tuple[NamedDecoder, ...] = options.PLUGINS
    jobs: int | None = options.JOBS
    format: TraceFormat = option(
        "Output format; otlp: OpenTelemetry spans "
        "(default: from the -o extension (.json means otlp), otherwise ladder).",
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
    named_options: Mapping[str, str] = named_options()
