"""The options of `report`: each is declared once, as a field with its type, help and default."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import typer

from analytics.reports import REPORT_MODULES
from dissectors.tcp.decompression import MOST_TIMES

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_WHAT, _SELECT, _OUTPUT, _SPARK, _CLIENTS = (
    "Reports",
    "Filters",
    "Output",
    "Engine",
    "Producer settings",
)
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


@dataclass(slots=True)
class ReportArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    words: Annotated[
        list[str],
        typer.Argument(
            metavar=f"[{'|'.join((*REPORT_MODULES, ALL))}] INPUT...",
            help="Captures, folders of captures, decoded logs, or Parquet or JSON lines "
            "files of rows.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    show_list: Annotated[
        bool,
        typer.Option("--list", help="List reports, tables, and columns.", rich_help_panel=_WHAT),
    ] = False
    tables: Annotated[
        list[str],
        typer.Option(
            "--table",
            metavar="NAME",
            help="Show only this table; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = field(default_factory=list)
    compare: Annotated[
        list[str],
        typer.Option(
            "--compare",
            metavar="OTHER",
            help="Compare with this baseline input; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = field(default_factory=list)
    window: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time window, such as 500ms, 10s, or 5m (default: about 60 windows).",
            rich_help_panel=_WHAT,
        ),
    ] = None
    slowest: Annotated[
        int,
        typer.Option(
            min=1,
            max=100_000,
            metavar="N",
            help="List the N slowest exchanges.",
            rich_help_panel=_WHAT,
        ),
    ] = 20
    where: options.Where = ""
    since: options.Since = None
    until: options.Until = None
    tz: options.TimeZone = "UTC"
    format: Annotated[
        ReportFormat | None,
        typer.Option(
            *named("--format"),
            help="Output format (default: from the -o extension, otherwise table; all "
            "formats in a folder).",
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    output: Annotated[
        str,
        typer.Option(
            *named("--output"),
            metavar="FILE|FOLDER|-",
            help="Output file (.html, .json), or a folder for the page and all tables.",
            rich_help_panel=_OUTPUT,
        ),
    ] = "-"
    force: options.Force = False
    colour: options.Color = When.auto
    pager: options.Pager = False
    quiet: options.Quiet = False
    decode_as: options.DecodeAs = None
    tls_keylog: options.TlsKeylog = None
    max_ratio: options.MaxRatio = MOST_TIMES
    engine: Annotated[
        EngineChoice,
        typer.Option(
            help="Run in this process without Java (local) or on Spark. auto uses Spark for "
            "Spark options, remote inputs, or over 5 million exchanges.",
            rich_help_panel=_SPARK,
        ),
    ] = EngineChoice.auto
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Spark master (spark://host:7077) or Spark Connect server "
            "(sc://host:15002). Spark's own default is local[*].",
            rich_help_panel=_SPARK,
        ),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Spark driver memory, such as 4g (default: 1/8 of RAM, 1 to 8 GiB).",
            rich_help_panel=_SPARK,
        ),
    ] = None
    conf: Annotated[
        list[str],
        typer.Option(
            "--conf",
            metavar="NAME=VALUE",
            help="Set a Spark property; repeatable.",
            rich_help_panel=_SPARK,
        ),
    ] = field(default_factory=list)
    verbose: Annotated[
        bool,
        typer.Option(
            *named("--verbose"), help="Show Spark and Java log output.", rich_help_panel=_SPARK
        ),
    ] = False
    send_timeout: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Producers' sendMsgTimeout (default: 3s).",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
    retry_times: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Producers' retryTimesWhenSendFailed (default: 2).",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
    generation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Generation of the fault strategy (default: from each client's version).",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
    latency_max: Annotated[
        str | None,
        typer.Option(
            metavar="MS,...",
            help="Values of latencyMax (default: the generation's).",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
    not_available: Annotated[
        str | None,
        typer.Option(
            metavar="MS,...",
            help="Values of notAvailableDuration (default: the generation's).",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
    fault_strategy: Annotated[
        Switch | None,
        typer.Option(
            help="Producers' sendLatencyFaultEnable (default: inferred from traffic).",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
