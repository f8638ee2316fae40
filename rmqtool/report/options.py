"""What a user asked `report` for, checked: texts of the command line become values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.reports import REPORT_MODULES
from dissectors.decode.secrets import key_log_named
from dissectors.tcp.decompression import MOST_TIMES
from dissectors.times import UTC_ZONE, Moment, Zone

from ..ui.console import When
from ..ui.option_values import duration_option, ports_of, time_option, usage_error, zone_option
from ..ui.output import refuse_text_as_page
from .arguments import ALL, EngineChoice, ReportArguments, ReportFormat, Switch

if TYPE_CHECKING:
    from analytics.report import ReportOptions


LOCAL = "local[*]"
"""Spark master unless another is named."""
_SUFFIXES = {
    ".json": ReportFormat.json,
    ".csv": ReportFormat.csv,
    ".parquet": ReportFormat.parquet,
    ".html": ReportFormat.html,
    ".htm": ReportFormat.html,
    ".txt": ReportFormat.table,
}


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A `report` command, checked."""

    reports: tuple[str, ...]
    """names of reports, in order"""
    inputs: Sequence[str]
    """captures, decoded logs, files of their rows"""
    compare: Sequence[str] = ()
    """other inputs to compare with"""
    format: ReportFormat | None = None
    """how it is written; None: all forms, into a folder"""
    output: str = "-"
    """where to"""
    tables: tuple[str, ...] = ()
    """only these tables; empty: all"""
    force: bool = False
    """files and folders that exist may be replaced"""
    where: str = ""
    """filter expression; empty: all"""
    since: Moment | None = None
    """earliest time"""
    until: Moment | None = None
    """time that is too late"""
    zone: Zone = UTC_ZONE
    """whose clocks show times without an offset in `where`, and times on the terminal"""
    decode_as: frozenset[int] = frozenset()
    """ports whose conversations are RocketMQ"""
    tls_keylog: str = ""
    """key log that TLS is decrypted by; empty: none"""
    max_ratio: int = MOST_TIMES
    """bytes that each byte of a compressed capture may become"""
    engine: EngineChoice = EngineChoice.auto
    """what computes; with options of Spark never `auto`"""
    master: str = LOCAL
    """Spark master"""
    memory: str | None = None
    """heap of the driver"""
    settings: dict[str, str] = field(default_factory=dict)
    """Spark settings"""
    plain_start: bool = False
    """start Spark as it comes, without archive of classes: for measuring"""
    verbose: bool = False
    """show what Spark and Java say"""
    quiet: bool = False
    """no progress and no remarks"""
    colour: When = When.auto
    """when to use colours"""
    window_us: int | None = None
    """length of a window over time"""
    slowest: int = 20
    """how many of the slowest exchanges are listed"""
    send_timeout_ms: int | None = None
    """sendMsgTimeout of the producers"""
    retry_times: int | None = None
    """retryTimesWhenSendFailed of the producers"""
    generation: str | None = None
    """generation of the fault strategy"""
    latency_max_ms: tuple[int, ...] | None = None
    """latencyMax of the fault strategy"""
    not_available_ms: tuple[int, ...] | None = None
    """notAvailableDuration of the fault strategy"""
    fault_strategy: bool | None = None
    """whether the producers had sendLatencyFaultEnable; None: judged"""

    @property
    def is_connect(self) -> bool:
        """Whether Spark is a Spark Connect server."""
        return self.master.startswith("sc://")

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


def request_of(given: ReportArguments) -> ReportRequest:
    """Return what was asked for; raise CommandError where it makes no sense."""
    names, inputs = names_and_inputs(given.words)
    zone = zone_option(given.tz)
    timeout = span_option("--send-timeout", given.send_timeout)
    request = ReportRequest(
        reports=names,
        inputs=inputs,
        compare=given.compare,
        format=format_of(given.format, given.output),
        output=given.output,
        tables=tuple(given.tables),
        force=given.force,
        where=given.where,
        since=time_option("--since", given.since, zone),
        until=time_option("--until", given.until, zone),
        zone=zone,
        decode_as=ports_of(given.decode_as or []),
        tls_keylog=key_log_named(given.tls_keylog),
        max_ratio=given.max_ratio,
        engine=engine_of(given),
        master=given.master or LOCAL,
        memory=given.memory,
        settings=settings_option(given.conf),
        verbose=given.verbose,
        quiet=given.quiet,
        colour=given.colour,
        window_us=span_option("--window", given.window),
        slowest=given.slowest,
        send_timeout_ms=None if timeout is None else max(1, timeout // 1000),
        retry_times=given.retry_times,
        generation=given.generation,
        latency_max_ms=numbers_option("--latency-max", given.latency_max),
        not_available_ms=numbers_option("--not-available", given.not_available),
        fault_strategy=None if given.fault_strategy is None else given.fault_strategy is Switch.on,
    )
    if request.is_connect and request.memory is not None:
        raise usage_error("--memory", "applies only to a Spark driver started here; omit it")
    return request


def engine_of(given: ReportArguments) -> EngineChoice:
    """Return what computes: with options of Spark, Spark."""
    of_spark = {"--master": given.master, "--memory": given.memory, "--conf": given.conf}
    named = next((option for option, value in of_spark.items() if value), None)
    if named is None:
        return given.engine
    if given.engine is EngineChoice.local:
        raise usage_error(named, "needs Spark; omit it or --engine local")
    return EngineChoice.spark


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


def format_of(wanted: ReportFormat | None, output: str) -> ReportFormat | None:
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


def numbers_option(option: str, text: str | None) -> tuple[int, ...] | None:
    """Return the milliseconds that an option names: ``50,100,550``."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 12 for part in parts):
        raise usage_error(option, f"{text!r} are not milliseconds; give 50,100,550")
    return tuple(map(int, parts))


def settings_option(texts: Sequence[str]) -> dict[str, str]:
    """Return the Spark settings of ``--conf NAME=VALUE``."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise usage_error("--conf", f"{text!r} is not a Spark property; use spark.NAME=VALUE")
        settings[name] = value
    return settings
