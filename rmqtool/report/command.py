"""The command `report`: options, help, and what they become."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ..ui import common_options as options
from ..ui.console import When
from ..ui.errors import guarded
from ..ui.letters import named
from ..ui.status import ExitStatus
from .options import ReportFormat

_WHAT, _SELECT, _OUTPUT, _SPARK, _CLIENTS = (
    "What is reported",
    "Which rows",
    "Output",
    "Spark",
    "What the producers were set to",
)


class Switch(StrEnum):
    """On or off."""

    on = "on"
    off = "off"


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[latency|retries|isolation|overview|quality|all] INPUT...",
        help="Captures, folders of them, decoded logs, Parquet or JSON lines files of their rows.",
        show_default=False,
    ),
]
ShowList = Annotated[
    bool,
    typer.Option("--list", help="Show reports, tables and columns.", rich_help_panel=_WHAT),
]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="NAME", help="Only this table; repeatable.", rich_help_panel=_WHAT
    ),
]
Compare = Annotated[
    list[str] | None,
    typer.Option(
        "--compare",
        metavar="OTHER",
        help="An input of before: numbers stand beside those; repeatable.",
        rich_help_panel=_WHAT,
    ),
]
Window = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Length of the windows over time: 500ms, 10s, 5m; default: about sixty windows.",
        rich_help_panel=_WHAT,
    ),
]
Slowest = Annotated[
    int,
    typer.Option(
        min=1,
        max=100_000,
        metavar="N",
        help="How many of the slowest exchanges are listed.",
        rich_help_panel=_WHAT,
    ),
]
FormatName = Annotated[
    ReportFormat | None,
    typer.Option(
        *named("--format"),
        help="How it is written; else by the name of the output; into a folder: all of them.",
        rich_help_panel=_OUTPUT,
    ),
]
OutputName = Annotated[
    str,
    typer.Option(
        *named("--output"),
        metavar="FILE|FOLDER|-",
        help="Where to: FILE.html, FILE.json, or a folder with the page and all tables.",
        rich_help_panel=_OUTPUT,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace an existing report folder.", rich_help_panel=_OUTPUT),
]
Verbose = Annotated[
    bool,
    typer.Option(*named("--verbose"), help="Show what Spark and Java say.", rich_help_panel=_SPARK),
]
Master = Annotated[
    str,
    typer.Option(
        metavar="URL", help="Spark master, e.g. spark://host:7077.", rich_help_panel=_SPARK
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Heap of Spark's driver, e.g. 4g; default: an eighth of the machine, 1 to 8 GiB.",
        rich_help_panel=_SPARK,
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        help="A Spark setting; repeatable; none is needed.",
        rich_help_panel=_SPARK,
    ),
]
SendTimeout = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="sendMsgTimeout; default: 3s.", rich_help_panel=_CLIENTS),
]
RetryTimes = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="retryTimesWhenSendFailed; default: 2.",
        rich_help_panel=_CLIENTS,
    ),
]
Generation = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Generation of the fault strategy; default: by each client's version.",
        rich_help_panel=_CLIENTS,
    ),
]
LatencyMax = Annotated[
    str | None,
    typer.Option(
        metavar="MS,...",
        help="latencyMax of the fault strategy; default: the generation's.",
        rich_help_panel=_CLIENTS,
    ),
]
NotAvailable = Annotated[
    str | None,
    typer.Option(
        metavar="MS,...",
        help="notAvailableDuration of the fault strategy; default: the generation's.",
        rich_help_panel=_CLIENTS,
    ),
]
FaultStrategy = Annotated[
    Switch | None,
    typer.Option(
        help="sendLatencyFaultEnable; default: judged by what the clients did.",
        rich_help_panel=_CLIENTS,
    ),
]


def report(
    words: Words = None,
    show_list: ShowList = False,
    tables: Tables = None,
    compare: Compare = None,
    window: Window = None,
    slowest: Slowest = 20,
    where: options.Where = "",
    since: options.Since = None,
    until: options.Until = None,
    tz: options.TimeZone = "UTC",
    format_: FormatName = None,
    output: OutputName = "-",
    force: Force = False,
    color: options.Color = When.auto,
    quiet: options.Quiet = False,
    decode_as: options.DecodeAs = None,
    master: Master = "local[*]",
    memory: Memory = None,
    conf: Conf = None,
    verbose: Verbose = False,
    send_timeout: SendTimeout = None,
    retry_times: RetryTimes = None,
    generation: Generation = None,
    latency_max: LatencyMax = None,
    not_available: NotAvailable = None,
    fault_strategy: FaultStrategy = None,
) -> None:
    """Report latency, retries and broker isolation, from captures or decoded logs, by Spark.

    Examples:

    \b
      rmqtool report captures/
      rmqtool report latency incident.pcap --window 1s
      rmqtool report retries isolation log/ -o report.html
      rmqtool report log/ -o report/               page, JSON, CSV and Parquet
      rmqtool report latency today/ --compare yesterday/
      rmqtool report latency log/ --table latency_brokers -T csv
      rmqtool report log/ --master spark://host:7077

    Tables and columns: rmqtool help reports.
    """

    def run() -> ExitStatus:
        from ..decode.options import ports_of, time_option, zone_option
        from .options import (
            ReportRequest,
            format_of,
            names_and_inputs,
            numbers_option,
            settings_option,
            span_option,
        )

        if show_list:
            from .listing import show_reports

            return show_reports(color)
        names, inputs = names_and_inputs(words or [])
        zone = zone_option(tz)
        timeout = span_option("--send-timeout", send_timeout)
        request = ReportRequest(
            reports=names,
            inputs=inputs,
            compare=compare or [],
            format=format_of(format_, output),
            output=output,
            tables=tuple(tables or ()),
            force=force,
            where=where,
            since=time_option("--since", since, zone),
            until=time_option("--until", until, zone),
            zone=zone,
            decode_as=ports_of(decode_as or []),
            master=master,
            memory=memory,
            settings=settings_option(conf or []),
            verbose=verbose,
            quiet=quiet,
            colour=color,
            window_us=span_option("--window", window),
            slowest=slowest,
            send_timeout_ms=None if timeout is None else max(1, timeout // 1000),
            retry_times=retry_times,
            generation=generation,
            latency_max_ms=numbers_option("--latency-max", latency_max),
            not_available_ms=numbers_option("--not-available", not_available),
            fault_strategy=None if fault_strategy is None else fault_strategy is Switch.on,
        )
        from .run import run_report

        return run_report(request)

    raise typer.Exit(int(guarded(run)))
