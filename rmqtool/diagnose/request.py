"""The options of `diagnose`, with their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.diagnosis.problem import Problem, ProblemSeverity
from analytics.diagnosis.registry import rule_of, rules
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.times import Moment, Zone
from dissectors.where.fields import suggestion

from ..live import options as live
from ..ui import common_options as options
from ..ui.common_options import ObjectFormat
from ..ui.console import When
from ..ui.declared import argument, declared, named_options, option, text_option
from ..ui.option_values import refuse_named, usage_error
from ..ui.output import refuse_text_as_page
from ..ui.status import CommandError, ExitStatus

if TYPE_CHECKING:
    from dissectors.broker_store.evidence import StoreEvidence

_WHAT, _LIVE, _OUTPUT = "Rules", "Live capture", "Output"
LIST = "; rmqtool diagnose --list shows them"
SEVERITIES = tuple(str(severity) for severity in ProblemSeverity)


_SUFFIXES: Final = {
    ".json": ObjectFormat.json,
    ".jsonl": ObjectFormat.jsonl,
    ".ndjson": ObjectFormat.jsonl,
}


def chosen_rules(_option: str, names: Sequence[str]) -> Sequence[DiagnosisRule]:
    """Return the named rules, or all without names; raise CommandError for an unknown one."""
    once = dict.fromkeys(names)
    return [known_rule("--rule", name) for name in once] if names else rules()


def known_rule(option: str, name: str) -> DiagnosisRule:
    """Return the rule with a name; raise CommandError if there is none."""
    rule = rule_of(name)
    if rule is None:
        known = [item.id for item in rules()]
        raise usage_error(
            option, f"unknown rule: {name!r}{suggestion(name, known, 'rules') or LIST}"
        )
    return rule


def _conditions(option: str, texts: Sequence[str]) -> Sequence[str]:
    """Return the conditions of --fail-on; raise CommandError for an unknown one."""
    for text in texts:
        if text not in SEVERITIES:
            known_rule(option, text)
    return texts


def _format(_option: str, format_: ObjectFormat | None, output: str) -> ObjectFormat:
    """Return the requested format, or that of the output's suffix."""
    refuse_text_as_page(output, "use `rmqtool report diagnosis -o X.html`")
    if format_ is not None:
        return format_
    return _SUFFIXES.get(Path(output).suffix.lower(), ObjectFormat.table)


@declared
class DiagnoseRequest:
    """A `diagnose` command: inputs, rules, and output."""

    inputs: list[str] = argument(
        "INPUT...",
        "Captures, folders, decoded logs, exported JSONL/Parquet rows, replay journals, "
        "or - (stdin).",
    )
    show_list: bool = option("List all rules and exit.", _WHAT, False, names="--list")
    explain: str | None = option(
        "Explain a rule: evidence, explanation, advice, limits.", _WHAT, metavar="RULE"
    )
    rules: Sequence[DiagnosisRule] = text_option(
        "Check only this rule; repeatable.",
        _WHAT,
        [],
        names="--rule",
        metavar="RULE",
        read=chosen_rules,
    )
    store: StoreEvidence | None = options.STORE
    since: Moment | None = options.SINCE
    until: Moment | None = options.UNTIL
    zone: Zone = options.TIME_ZONE
    decode_as: frozenset[int] = options.DECODE_AS
    tls_keylog: str = options.TLS_KEYLOG
    max_ratio: int = options.MAX_RATIO
    interface: str | None = option(
        "Diagnose live traffic on this interface until Ctrl-C.", _LIVE, metavar="NAME"
    )
    filter: str = options.capture_filter(_LIVE)
    keep: str | None = live.keep(_LIVE)
    duration: float | None = live.duration(_LIVE)
    verbose: bool = option(
        "Show evidence, explanation, advice, and references for each problem.", _OUTPUT, False
    )
    format: ObjectFormat = option(
        "Output format; with -i, JSON rows are problem events "
        "(default: from the -o extension, otherwise table).",
        _OUTPUT,
        value=ObjectFormat.table,
        typed=ObjectFormat | None,
        read=_format,
        needs=("output",),
    )
    output: str = options.OUTPUT
    force: bool = options.FORCE
    fail_on: Sequence[str] = text_option(
        "Exit 4 on this severity or higher, or this rule; repeatable.",
        _OUTPUT,
        [],
        metavar="error|warning|info|RULE",
        read=_conditions,
    )
    colour: When = options.COLOR
    pager: bool = options.PAGER
    quiet: bool = options.QUIET
    named_options: Mapping[str, str] = named_options()

    def check(self) -> None:
        """Raise CommandError for no input, or for contradicting inputs and options."""
        if self.inputs and self.interface is not None:
            raise CommandError(
                "an interface and files cannot be combined", "omit one of them", ExitStatus.USAGE
            )
        if not self.inputs and self.interface is None:
            raise CommandError(
                "no input given; name a file, or an interface with -i",
                "rmqtool diagnose incident.pcap",
                ExitStatus.USAGE,
            )
        checked = {rule.id for rule in self.rules or rules()}
        for name in self.fail_on:
            if name not in SEVERITIES and name not in checked:
                raise usage_error("--fail-on", f"{name} is not checked; add --rule {name}")
        if self.keep is not None and self.interface is None:
            raise usage_error("-w", "saves packets of a live capture; add -i NAME")
        if self.interface is None:
            live_only = ("filter", "duration")
            refuse_named(self.named_options, live_only, "is for live captures; add -i NAME")
            return
        if self.store is not None:
            raise usage_error("--store", "is for captures and decoded logs, not for -i")
        refuse_named(self.named_options, ("max_ratio",), "is for files, not for -i")


def held(conditions: Sequence[str], problems: Sequence[Problem]) -> list[str]:
    """Return a line for each condition of --fail-on that holds."""
    lines = []
    for text in conditions:
        if text in SEVERITIES:
            matches = [problem for problem in problems if problem.severity >= ProblemSeverity(text)]
        else:
            matches = [problem for problem in problems if problem.rule == text]
        if matches:
            lines.append(f"--fail-on {text}: {matches[0].title}")
    return lines
