"""What a user asked `diagnose` for, checked: texts of the command line become values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from analytics.diagnosis.problem import Problem, ProblemSeverity
from analytics.diagnosis.registry import rule_of, rules
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.decode.secrets import key_log_named
from dissectors.times import Moment
from dissectors.where.fields import suggestion

from ..ui.console import When
from ..ui.option_values import ports_of, time_option, usage_error, zone_option
from ..ui.output import refuse_text_as_page
from ..ui.status import CommandError, ExitStatus
from .arguments import DiagnoseArguments, DiagnoseFormat

LIST = "; rmqtool diagnose --list shows them"
_SUFFIXES: Final = {
    ".json": DiagnoseFormat.json,
    ".jsonl": DiagnoseFormat.jsonl,
    ".ndjson": DiagnoseFormat.jsonl,
}
SEVERITIES = tuple(str(severity) for severity in ProblemSeverity)


@dataclass(frozen=True, slots=True)
class DiagnoseRequest:
    """A `diagnose` command, checked."""

    inputs: Sequence[str]
    """captures, decoded logs, files of their rows, journals; empty: an interface"""
    rules: Sequence[DiagnosisRule]
    since: Moment | None
    until: Moment | None
    decode_as: frozenset[int]
    tls_keylog: str
    max_ratio: int
    jobs: int | None
    interface: str | None
    filter_text: str
    keep: str | None
    """file that the packets of the interface are kept in"""
    duration: str | None
    verbose: bool
    format: DiagnoseFormat
    output: str
    force: bool
    """files that exist may be replaced"""
    fail_on: Sequence[str]
    """severities and ids of rules"""
    colour: When
    quiet: bool


def request_of(given: DiagnoseArguments) -> DiagnoseRequest:
    """Return the command line as a request; raise CommandError where it asks for nothing."""
    if bool(given.inputs) == (given.interface is not None):
        raise CommandError(
            "no input given; name a file, or an interface with -i",
            "rmqtool diagnose incident.pcap",
            ExitStatus.USAGE,
        )
    if given.keep is not None and given.interface is None:
        raise usage_error("-w", "saves packets of a live capture; add -i NAME")
    zone = zone_option(given.tz)
    return DiagnoseRequest(
        inputs=given.inputs,
        rules=chosen_rules(given.rules),
        since=time_option("--since", given.since, zone),
        until=time_option("--until", given.until, zone),
        decode_as=ports_of(given.decode_as or []),
        tls_keylog=key_log_named(given.tls_keylog),
        max_ratio=given.max_ratio,
        jobs=given.jobs,
        interface=given.interface,
        filter_text=given.filter,
        keep=given.keep,
        duration=given.duration,
        verbose=given.verbose,
        format=format_of(given.format, given.output),
        output=given.output,
        force=given.force,
        fail_on=conditions_of(given.fail_on),
        colour=given.colour,
        quiet=given.quiet,
    )


def chosen_rules(names: Sequence[str]) -> Sequence[DiagnosisRule]:
    """Return the rules of these names, all without names; raise CommandError for an unknown one."""
    once = dict.fromkeys(names)
    return [known_rule("--rule", name) for name in once] if names else rules()


def known_rule(option: str, name: str) -> DiagnosisRule:
    """Return the rule of that name; raise CommandError where there is none."""
    rule = rule_of(name)
    if rule is None:
        known = [one.id for one in rules()]
        raise usage_error(
            option, f"unknown rule: {name!r}{suggestion(name, known, 'rules') or LIST}"
        )
    return rule


def conditions_of(texts: Sequence[str]) -> Sequence[str]:
    """Return the conditions of --fail-on; raise CommandError for an unknown one."""
    for text in texts:
        if text not in SEVERITIES:
            known_rule("--fail-on", text)
    return texts


def format_of(format_: DiagnoseFormat | None, output: str) -> DiagnoseFormat:
    """Return the format: the one asked for, else by the name of the output."""
    refuse_text_as_page(output, "`rmqtool report diagnosis -o X.html` makes a page")
    if format_ is not None:
        return format_
    return _SUFFIXES.get(Path(output).suffix.lower(), DiagnoseFormat.table)


def held(conditions: Sequence[str], problems: Sequence[Problem]) -> list[str]:
    """Return a line for each condition of --fail-on that holds."""
    lines = []
    for text in conditions:
        if text in SEVERITIES:
            found = [one for one in problems if one.severity >= ProblemSeverity(text)]
        else:
            found = [one for one in problems if one.rule == text]
        if found:
            lines.append(f"--fail-on {text}: {found[0].title}")
    return lines
