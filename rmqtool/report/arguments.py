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
    "What is reported",
    "Which rows",
    "Output",
    "Engine",
    "What the producers were set to",
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
            help="Captures, folders of them, decoded logs, Parquet or JSON lines files of "
            "their rows.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    show_list: Annotated[
        bool,
        typer.Option("--list", help="Show reports, tables and columns.", rich_help_panel=_WHAT),
    ] = False
    tables: Annotated[
        list[str],
        typer.Option(
            "--table", metavar="NAME", help="Only this table; repeatable.", rich_help_panel=_WHAT
        ),
    ] = field(default_factory=list)
    compare: Annotated[
        list[str],
        typer.Option(
            "--compare",
            metavar="OTHER",
            help="Baseline input: its numbers stand beside those of the inputs; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = field(default_factory=list)
    window: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Length of the windows over time: 500ms, 10s, 5m; default: about sixty windows.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    slowest: Annotated[
        int,
        typer.Option(
            min=1,
            max=100_000,
            metavar="N",
            help="How many of the slowest exchanges are listed.",
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
            help="How it is written; else by the name of the output; into a folder: all of them.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    output: Annotated[
        str,
        typer.Option(
            *named("--output"),
            metavar="FILE|FOLDER|-",
            help="Where to write: FILE.html, FILE.json, or a folder with the page and all tables.",
            rich_help_panel=_OUTPUT,
        ),
    ] = "-"
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an existing report folder.", rich_help_panel=_OUTPUT),
    ] = False
    colour: options.Color = When.auto
    pager: options.Pager = False
    quiet: options.Quiet = False
    decode_as: options.DecodeAs = None
    tls_keylog: options.TlsKeylog = None
    max_ratio: options.MaxRatio = MOST_TIMES
    engine: Annotated[
        EngineChoice,
        typer.Option(
            help="What computes: this process, without Java (local), or Spark; auto: Spark with "
            "options of Spark, for remote inputs, and for more than 5 million exchanges.",
            rich_help_panel=_SPARK,
        ),
    ] = EngineChoice.auto
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Spark master, e.g. spark://host:7077, or a Spark Connect server, "
            "sc://host:15002; Spark's default: local[*].",
            rich_help_panel=_SPARK,
        ),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Heap of Spark's driver, e.g. 4g; default: an eighth of the machine, 1 to 8 GiB.",
            rich_help_panel=_SPARK,
        ),
    ] = None
    conf: Annotated[
        list[str],
        typer.Option(
            "--conf",
            metavar="NAME=VALUE",
            help="A Spark setting; repeatable; none is needed.",
            rich_help_panel=_SPARK,
        ),
    ] = field(default_factory=list)
    verbose: Annotated[
        bool,
        typer.Option(
            *named("--verbose"), help="Show what Spark and Java say.", rich_help_panel=_SPARK
        ),
    ] = False
    send_timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="sendMsgTimeout; default: 3s.", rich_help_panel=_CLIENTS),
    ] = None
    retry_times: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="retryTimesWhenSendFailed; default: 2.",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
    generation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Generation of the fault strategy; default: by each client's version.",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
    latency_max: Annotated[
        str | None,
        typer.Option(
            metavar="MS,...",
            help="latencyMax of the fault strategy; default: the generation's.",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
    not_available: Annotated[
        str | None,
        typer.Option(
            metavar="MS,...",
            help="notAvailableDuration of the fault strategy; default: the generation's.",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
    fault_strategy: Annotated[
        Switch | None,
        typer.Option(
            help="sendLatencyFaultEnable; default: judged by what the clients did.",
            rich_help_panel=_CLIENTS,
        ),
    ] = None
