"""The options of `report`, with their values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.reports import REPORT_MODULES
from dissectors.times import Moment, Zone

from ..ui import common_options as options
from ..ui.console import When
from ..ui.declared import argument, declared, derived, named_options, option, text_option
from ..ui.option_values import duration_option, refuse_named, time_option, usage_error
from ..ui.output import refuse_text_as_page

if TYPE_CHECKING:
    from analytics.report import LatencyObjective, ReportOptions

_WHAT, _OUTPUT, _SPARK, _CLIENTS = "Reports", "Output", "Engine", "Producer settings"
LOCAL = "local[*]"
"""Default Spark master."""
ALL = "all"
"""name that stands for all reports"""


class Switch(StrEnum):
    """On or off."""

    on = "on"
    off = "off"


class EngineChoice(StrEnum):
    """The engine of a report."""

    auto = "auto"
    spark = "spark"
    local = "local"


class ReportFormat(StrEnum):
    """The format of a report."""

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


_OF_REPORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "window_us": ("overview", "latency", "retries", "delivery"),
    "slowest": ("latency",),
    "slo": ("latency",),
    "send_timeout_ms": ("overview", "retries", "isolation"),
    "retry_times": ("overview", "retries", "isolation"),
    "generation": ("isolation",),
    "latency_max_ms": ("isolation",),
    "not_available_ms": ("isolation",),
    "fault_strategy": ("isolation",),
}
"""options → reports that have tables to which they apply"""


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
            "report", "no input given; name captures, a decoded log, or exported JSONL/Parquet rows"
        )
    chosen = REPORT_MODULES if not names or ALL in names else tuple(dict.fromkeys(names))
    return chosen, rest


def format_of(_option: str, wanted: ReportFormat | None, output: str) -> ReportFormat | None:
    """Return the requested format, or that of the output's suffix; None: all formats."""
    if wanted is not None:
        if wanted is not ReportFormat.html:
            refuse_text_as_page(output, "use --format html")
        return wanted
    if output == "-":
        return ReportFormat.table
    return _SUFFIXES.get(Path(output).suffix.lower())


def span_option(option: str, text: str | None) -> int | None:
    """Return the microseconds of an option: ``500ms``, ``10s``, ``5m``."""
    length = duration_option(option, text)
    if length is not None and length < 1_000:
        raise usage_error(option, f"not a valid duration: {text!r}; give at least 1us")
    return None if length is None else int(length) // 1_000


def split_option(
    option: str, text: str | None, zone: Zone, compare: Sequence[str]
) -> Moment | None:
    """Return the time that splits an input for a comparison."""
    if text is not None and compare:
        raise usage_error(option, "cannot be combined with --compare; omit one of them")
    return time_option(option, text, zone)


def objective_option(option: str, text: str | None) -> LatencyObjective | None:
    """Return the latency objective of an option: ``50ms``, or ``50ms,99.9%``."""
    from analytics.report import LatencyObjective

    if text is None:
        return None
    time, comma, share = text.partition(",")
    latency_us = span_option(option, time.strip())
    assert latency_us is not None
    if not comma:
        return LatencyObjective(latency_us)
    percent = re.fullmatch(r"\s*([0-9]{1,2}(?:\.[0-9]{1,6})?)\s*%\s*", share, re.ASCII)
    if percent is None or not Decimal(percent[1]):
        raise usage_error(option, f"not a share of requests: {share!r}; give 50ms,99.9%")
    return LatencyObjective(latency_us, Decimal(percent[1]) / 100)


def _send_timeout(option: str, text: str | None) -> int | None:
    span = span_option(option, text)
    return None if span is None else max(1, span // 1000)  # µs to ms, at least one


def numbers_option(option: str, text: str | None) -> tuple[int, ...] | None:
    """Return the milliseconds of an option: ``50,100,550``."""
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
            raise usage_error(option, f"{name!r} is not a Spark property; use spark.NAME=VALUE")
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
    """Return the engine; options of Spark select Spark."""
    of_spark = {"--master": master, "--memory": memory, "--conf": conf}
    named = next((option for option, value in of_spark.items() if value), None)
    if named is None:
        return wanted
    if wanted is EngineChoice.local:
        raise usage_error(named, "needs Spark; omit it or --engine local")
    return EngineChoice.spark


def _cells(
    option: str,
    folder: str | None,
    tables: list[str],
    compare: list[str],
    split: Moment | None,
    force: bool,
    follow: bool,
) -> str | None:
    """Return the folder for cells; raise CommandError or FolderRefused if it cannot be written."""
    if folder is None:
        if follow:
            raise usage_error("--follow", f"needs {option} FOLDER for its state")
        return None
    others = {"--table": tables, "--compare": compare, "--split": split}
    for other, given in others.items():
        if given:
            raise usage_error(f"{option} and {other}", "do not combine")
    if follow:  # it is added to
        return folder
    from analytics.cells import KIND
    from dissectors.owned_folder import check_folder

    check_folder(Path(folder), KIND, force)
    return folder


def _follow(
    option: str,
    wanted: bool,
    inputs: Sequence[str],
    reports: Sequence[str],
    words: Sequence[str],
) -> bool:
    """Return whether a folder is followed; raise CommandError if that is impossible."""
    if not wanted:
        return False
    if len(inputs) != 1 or "://" in inputs[0]:
        raise usage_error(option, "takes one local folder")
    if words[0] != ALL and words[0] in reports:
        from analytics.reports import report_of

        for name in reports:
            if not report_of(name).cells:
                raise usage_error(option, f"keeps counts, and {name} needs rows")
    return True


@declared
class ReportRequest:
    """A `report` command: reports, inputs, output, and engine."""

    words: list[str] = argument(
        "[REPORT...] INPUT...",
        "Report names (see --list), then captures, logs, or exported JSONL/Parquet rows "
        "(default: all reports).",
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
    split: Moment | None = text_option(
        "Compare the traffic before and after this time.",
        _WHAT,
        metavar="TIME",
        read=split_option,
        needs=("zone", "compare"),
    )
    window_us: int | None = text_option(
        "Time window, such as 500ms, 10s, or 5m (default: about 60 windows).",
        _WHAT,
        metavar="TIME",
        read=span_option,
        names="--window",
    )
    slowest: int = option(
        "List the N slowest exchanges.", _WHAT, 20, min=1, max=100_000, metavar="N"
    )
    slo: LatencyObjective | None = text_option(
        "Latency objective: 50ms, or 50ms,99.9% of requests (default: 99%).",
        _WHAT,
        metavar="TIME[,SHARE]",
        read=objective_option,
    )
    cells: str | None = option(
        "Also write counts that later reports can merge.",
        _OUTPUT,
        metavar="FOLDER",
        read=_cells,
        needs=("tables", "compare", "split", "force", "follow"),
    )
    follow: bool = option(
        "Add new files in INPUT to --cells until Ctrl-C.",
        _WHAT,
        False,
        read=_follow,
        needs=("inputs", "reports", "words"),
    )
    where: str = options.where("Include only rows that match")
    since: Moment | None = options.SINCE
    until: Moment | None = options.UNTIL
    zone: Zone = options.TIME_ZONE
    """zone of times without an offset, also in `where`"""
    format: ReportFormat | None = option(
        "Output format (default: from the -o extension, otherwise table; all formats in a folder).",
        _OUTPUT,
        read=format_of,
        needs=("output",),
    )
    """None: all forms, into a folder"""
    output: str = option(
        "Output file, or a folder for the page and all tables.",
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
        "Where to compute; auto uses Spark for Spark options and large inputs.",
        _SPARK,
        EngineChoice.auto,
        read=_engine,
        needs=("master_url", "memory", "settings"),
    )
    master_url: str | None = option(
        "Spark master or Spark Connect server, such as spark://host:7077 or sc://host:15002 "
        "(default: local[*]).",
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
    settings: dict[str, str] = text_option(
        "Set a Spark property; repeatable.",
        _SPARK,
        [],
        names="--conf",
        metavar="NAME=VALUE",
        value={},
        read=_settings,
    )
    verbose: bool = option("Show Spark and Java log output.", _SPARK, False)
    send_timeout_ms: int | None = text_option(
        "Producers' sendMsgTimeout (default: 3s).",
        _CLIENTS,
        metavar="TIME",
        read=_send_timeout,
        names="--send-timeout",
    )
    retry_times: int | None = option(
        "Producers' retryTimesWhenSendFailed (default: 2).", _CLIENTS, min=0, metavar="N"
    )
    generation: str | None = option(
        "Fault strategy generation: 4.7, 4.8, or 5.1 (default: from each client's version).",
        _CLIENTS,
        metavar="NAME",
    )
    latency_max_ms: tuple[int, ...] | None = text_option(
        "Values of latencyMax (default: the generation's).",
        _CLIENTS,
        metavar="MS,...",
        read=numbers_option,
        names="--latency-max",
    )
    not_available_ms: tuple[int, ...] | None = text_option(
        "Values of notAvailableDuration (default: the generation's).",
        _CLIENTS,
        metavar="MS,...",
        read=numbers_option,
        names="--not-available",
    )
    fault_strategy: bool | None = option(
        "Producers' sendLatencyFaultEnable (default: inferred from traffic).",
        _CLIENTS,
        typed=Switch | None,
        read=lambda _option, switch: None if switch is None else switch is Switch.on,
    )

    named_options: Mapping[str, str] = named_options()

    def refuse_unused(self) -> None:
        """Raise CommandError for an option that has no effect on the requested reports."""
        if self.follow and self.slo is not None:
            raise usage_error("--follow and --slo", "cannot be combined: cells do not have it")
        if self.engine is EngineChoice.local:
            refuse_named(self.named_options, ("verbose",), "needs Spark; omit it or --engine local")
        for field, names in _OF_REPORTS.items():
            if not set(names) & set(self.reports):
                reports = " or ".join(names)
                refuse_named(self.named_options, (field,), f"is for the report {reports}; omit it")

    @property
    def is_connect(self) -> bool:
        """Whether Spark is a Spark Connect server."""
        return _is_connect(self.master)

    def options(self) -> ReportOptions:
        """Return the parameters of the reports."""
        from analytics.report import ReportOptions

        return ReportOptions(
            window_us=self.window_us,
            slowest=self.slowest,
            slo=self.slo,
            send_timeout_ms=self.send_timeout_ms,
            retry_times=self.retry_times,
            generation=self.generation,
            latency_max_ms=self.latency_max_ms,
            not_available_ms=self.not_available_ms,
            fault_strategy=self.fault_strategy,
        )
