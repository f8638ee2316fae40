"""The command `diagnose`: options, help, and what they become."""

from __future__ import annotations

import typer

from ..ui import common_options as options
from ..ui.console import When
from ..ui.errors import guarded
from ..ui.status import CommandError, ExitStatus
from .arguments import (
    CaptureFilter,
    DiagnoseFormat,
    Duration,
    Explain,
    FailOn,
    FormatName,
    InterfaceName,
    Only,
    OutputName,
    ShowList,
    Verbose,
    Words,
)


def diagnose(
    inputs: Words = None,
    show_list: ShowList = False,
    explain: Explain = None,
    only: Only = None,
    since: options.Since = None,
    until: options.Until = None,
    tz: options.TimeZone = "UTC",
    decode_as: options.DecodeAs = None,
    jobs: options.Jobs = 1,
    interface: InterfaceName = None,
    filter_: CaptureFilter = "",
    duration: Duration = None,
    verbose: Verbose = False,
    format_: FormatName = None,
    output: OutputName = "-",
    fail_on: FailOn = None,
    color: options.Color = When.auto,
    quiet: options.Quiet = False,
) -> None:
    """Say what is wrong in captured traffic, why, and what to do about it; with packets as proof.

    Problems of one incident stand together, the cause first. What the capture cannot show is said.

    Examples:

    \b
      rmqtool diagnose incident.pcap
      rmqtool diagnose incident.pcap -V
      rmqtool diagnose captures/ -T jsonl | jq 'select(.severity == "error")'
      rmqtool diagnose log/ --fail-on error
      rmqtool diagnose --list
      rmqtool diagnose --explain send-queue-timeout
      sudo rmqtool diagnose -i eth0 -f 'tcp port 10911 or tcp port 9876'

    All rules, with proof and advice: rmqtool help diagnosis.
    """

    def run() -> ExitStatus:
        from ..decode.options import ports_of, time_option, zone_option
        from .request import DiagnoseRequest, chosen_rules, conditions_of, format_of
        from .rules_text import explained, listed
        from .run import run_diagnose

        if show_list:
            return listed(output, color)
        if explain is not None:
            return explained(explain, output, color)
        if bool(inputs) == (interface is not None):
            raise CommandError(
                "name an input, or an interface with -i",
                "rmqtool diagnose incident.pcap",
                ExitStatus.USAGE,
            )
        zone = zone_option(tz)
        return run_diagnose(
            DiagnoseRequest(
                inputs=inputs or [],
                rules=chosen_rules(only or []),
                since=time_option("--since", since, zone),
                until=time_option("--until", until, zone),
                decode_as=ports_of(decode_as or []),
                jobs=jobs,
                interface=interface,
                filter_text=filter_,
                duration=duration,
                verbose=verbose,
                json=format_of(format_, output) is DiagnoseFormat.jsonl,
                output=output,
                fail_on=conditions_of(fail_on or []),
                colour=color,
                quiet=quiet,
            )
        )

    raise typer.Exit(int(guarded(run)))
