"""What a user asks `report` for: its options and what they may be."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.reports import REPORT_MODULES
from dissectors.times import Moment, Zone

from ..ui import common_options as options
from ..ui.console import When
from ..ui.declared import argument, declared, derived, option
from ..ui.option_values import duration_option, usage_error
from ..ui.output import refuse_text_as_page

if TYPE_CHECKING:
    from analytics.report import ReportOptions

_WHAT, _OUTPUT, _SPARK, _CLIENTS = "Reports", "Output", "Engine", "Producer settings"
LOCAL = "local[*]"
"""Spark master unless another is named."""
ALL = "all"
"""names all reports"""


class Switch(StrEnum):
    """On or off."""

    on = "on"
    off = "off"


class EngineChoice(StrEnum):
    """What computes a report."""

    auto = "auto"
    spark = "spark"
    local = "local"


class ReportFormat(StrEnum):
    """How a report is written."""

    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"
    html = "html"


_SUFFIXES = {
    ".json": ReportFormat.json,
    ".csv": ReportFormat.csv,
    ".parquet": ReportFormat.parquet,
    ".html": ReportFormat.html,
    ".htm": ReportFormat.html,
    ".txt": ReportFormat.table,
}


def _reports(words: Sequence[str], show_list: bool) -> tuple[str, ...]:
    return () if show_list else names_and_inputs(words)[0]


def _inputs(words: Sequence[str], show_list: bool) -> Sequence[str]:
    return () if show_list else names_and_inputs(words)[1]


def names_and_inputs(words: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return (reports, inputs): leading words that are names of reports, and the rest.

    No name is all reports; a file that is called like a report is ``./latency``.
    """
    names: list[str] = []
    rest = list(words)
    while rest and rest[0] in (*REPORT_MODULES, ALL):
        names.append(rest.pop(0))
    if not rest:
        raise usage_error(
            "report", "no input given; name captures, a decoded log, or a file of its rows"
        )
    chosen = REPORT_MODULES if not names or ALL in names else tuple(dict.fromkeys(names))
    return chosen, rest


def format_of(_option: str, wanted: ReportFormat | None, output: str) -> ReportFormat | None:
    """Return the format that was named, else the one of the output's name; None: all forms."""
    if wanted is not None:
        if wanted is not ReportFormat.html:
            refuse_text_as_page(output, "--format html makes one")
        return wanted
    if output == "-":
        return ReportFormat.table
    return _SUFFIXES.get(Path(output).suffix.lower())


def span_option(option: str, text: str | None) -> int | None:
    """Return the microseconds that an option names: ``500ms``, ``10s``, ``5m``."""
    length = duration_option(option, text)
    if length is not None and length < 1_000:
        raise usage_error(option, f"not a valid duration: {text!r}; give at least 1us")
    return None if length is None else int(length) // 1_000


def _send_timeout(option: str, text: str | None) -> int | None:
    span = span_option(option, text)
    return None if span is None else max(1, span // 1000)


def numbers_option(option: str, text: str | None) -> tuple[int, ...] | None:
    """Return the milliseconds that an option names: ``50,100,550``."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 12 for part in parts):
        raise usage_error(option, f"{text!r} are not milliseconds; give 50,100,550")
    return tuple(map(int, parts))


def _settings(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Return the Spark settings of ``--conf NAME=VALUE``."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise usage_error(option, f"{text!r} is not a Spark property; use spark.NAME=VALUE")
        settings[name] = value
    return settings


def _memory(option: str, size: str | None, master: str) -> str | None:
    if size is not None and _is_connect(master):
        raise usage_error(option, "applies only to a Spark driver started here; omit it")
    return size


def _is_connect(master: str) -> bool:
    return master.startswith("sc://")


def _engine(
    _option: str,
    wanted: EngineChoice,
    master: str | None,
    memory: str | None,
    conf: dict[str, str],
) -> EngineChoice:
    """Return what computes: with options of Spark, Spark."""
    of_spark = {"--master": master, "--memory": memory, "--conf": conf}
    named = next((option for option, value in of_spark.items() if value), None)
    if named is None:
        return wanted
    if wanted is EngineChoice.local:
        raise usage_error(named, "needs Spark; omit it or --engine local")
    return EngineChoice.spark


@declared
class ReportRequest:
    """A `report` command: which reports of what, how they are written, and what computes them."""

    words: list[str] = argument(
        f"[{'|'.join((*REPORT_MODULES, ALL))}] INPUT...",
        "Captures, folders of captures, decoded logs, or Parquet or JSON lines files of rows.",
    )
    reports: tuple[str, ...] = derived(_reports, "words", "show_list", value=())
    """names of reports, in order"""
    inputs: Sequence[str] = derived(_inputs, "words", "show_list", value=())
    show_list: bool = option("List reports, tables, and columns.", _WHAT, False, names="--list")
    tables: list[str] = option(
        "Show only this table; repeatable.", _WHAT, [], names="--table", metavar="NAME"
    )
    compare: list[str] = option(
        "Compare with this baseline input; repeatable.", _WHAT, [], metavar="OTHER"
    )
    window_us: int | None = option(
        "Time window, such as 500ms, 10s, or 5m (default: about 60 windows).",
        _WHAT,
        names="--window",
        metavar="TIME",
        typed=str | None,
        read=span_option,
    )
    slowest: int = option(
        "List the N slowest exchanges.", _WHAT, 20, min=1, max=100_000, metavar="N"
    )
    where: str = options.WHERE
    since: Moment | None = options.SINCE
    until: Moment | None = options.UNTIL
    zone: Zone = options.TIME_ZONE
    """whose clocks show times without an offset in `where`, too"""
    format: ReportFormat | None = option(
        "Output format (default: from the -o extension, otherwise table; all formats in a folder).",
        _OUTPUT,
        read=format_of,
        needs=("output",),
    )
    """None: all forms, into a folder"""
    output: str = option(
        "Output file (.html, .json), or a folder for the page and all tables.",
        _OUTPUT,
        "-",
        metavar="FILE|FOLDER|-",
    )
    force: bool = options.FORCE
    colour: When = options.COLOR
    pager: bool = options.PAGER
    quiet: bool = options.QUIET
    decode_as: frozenset[int] = options.DECODE_AS
    tls_keylog: str = options.TLS_KEYLOG
    max_ratio: int = options.MAX_RATIO
    engine: EngineChoice = option(
        "Run in this process without Java (local) or on Spark. auto uses Spark for "
        "Spark options, remote inputs, or over 5 million exchanges.",
        _SPARK,
        EngineChoice.auto,
        read=_engine,
        needs=("master_url", "memory", "settings"),
    )
    master_url: str | None = option(
        "Spark master (spark://host:7077) or Spark Connect server "
        "(sc://host:15002). Spark's own default is local[*].",
        _SPARK,
        names="--master",
        metavar="URL",
    )
    master: str = derived(lambda url: url or LOCAL, "master_url", value=LOCAL)
    memory: str | None = option(
        "Spark driver memory, such as 4g (default: 1/8 of RAM, 1 to 8 GiB).",
        _SPARK,
        metavar="SIZE",
        read=_memory,
        needs=("master",),
    )
    settings: dict[str, str] = option(
        "Set a Spark property; repeatable.",
        _SPARK,
        [],
        names="--conf",
        metavar="NAME=VALUE",
        value={},
        typed=list[str],
        read=_settings,
    )
    verbose: bool = option("Show Spark and Java log output.", _SPARK, False)
    send_timeout_ms: int | None = option(
        "Producers' sendMsgTimeout (default: 3s).",
        _CLIENTS,
        names="--send-timeout",
        metavar="TIME",
        typed=str | None,
        read=_send_timeout,
    )
    retry_times: int | None = option(
        "Producers' retryTimesWhenSendFailed (default: 2).", _CLIENTS, min=0, metavar="N"
    )
    generation: str | None = option(
        "Generation of the fault strategy (default: from each client's version).",
        _CLIENTS,
        metavar="NAME",
    )
    latency_max_ms: tuple[int, ...] | None = option(
        "Values of latencyMax (default: the generation's).",
        _CLIENTS,
        names="--latency-max",
        metavar="MS,...",
        typed=str | None,
        read=numbers_option,
    )
    not_available_ms: tuple[int, ...] | None = option(
        "Values of notAvailableDuration (default: the generation's).",
        _CLIENTS,
        names="--not-available",
        metavar="MS,...",
        typed=str | None,
        read=numbers_option,
    )
    fault_strategy: bool | None = option(
        "Producers' sendLatencyFaultEnable (default: inferred from traffic).",
        _CLIENTS,
        typed=Switch | None,
        read=lambda _option, switch: None if switch is None else switch is Switch.on,
    )

    @property
    def is_connect(self) -> bool:
        """Whether Spark is a Spark Connect server."""
        return _is_connect(self.master)

    def options(self) -> ReportOptions:
        """Return what the reports take."""
        from analytics.report import ReportOptions

        return ReportOptions(
            window_us=self.window_us,
            slowest=self.slowest,
            send_timeout_ms=self.send_timeout_ms,
            retry_times=self.retry_times,
            generation=self.generation,
            latency_max_ms=self.latency_max_ms,
            not_available_ms=self.not_available_ms,
            fault_strategy=self.fault_strategy,
        )
