"""The rules as text: `--list` and `--explain RULE`."""

from __future__ import annotations

import sys

from analytics.diagnosis.registry import FAMILIES, rules_of
from analytics.diagnosis.rule import DiagnosisRule

from ..ui.console import UNLIMITED, Style, Terminal, terminal_of
from ..ui.option_values import usage_error
from ..ui.output import Output
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.status import ExitStatus
from .request import DiagnoseRequest, known_rule


def listed(request: DiagnoseRequest) -> ExitStatus:
    """Write all rules, one line per rule, by family."""
    terminal = _terminal_of(request, "--list")
    lines: list[str] = []
    width = max(len(rule.id) for family in FAMILIES for rule in rules_of(family))
    for family in FAMILIES:
        lines += [""] if lines else []
        facts = [Labelled(family, Style.BOLD)]
        for rule in rules_of(family):
            label = f"  {rule.id.ljust(width)}  {str(rule.severity).ljust(7)}  "
            facts.append(Labelled(rule.title, label=label, indent=len(label)))
        lines += fact_lines(facts, terminal)
    return _write(request, lines)


def explained(request: DiagnoseRequest, name: str) -> ExitStatus:
    """Write what one rule says."""
    rule = known_rule("--explain", name)
    return _write(request, rule_lines(rule, _terminal_of(request, "--explain")))


def rule_lines(rule: DiagnosisRule, terminal: Terminal) -> list[str]:
    """Return all that is known of a rule, as lines."""
    title = f"{rule.id} ({rule.severity}): {rule.title}"
    lines = fact_lines([Labelled(title, Style.BOLD, hang=2)], terminal)
    parts = (
        ("People search for", "; ".join(rule.searched)),
        ("Proof", rule.proof),
        ("Why", rule.explanation),
        ("What to do", rule.advice),
        ("Lasts", rule.how_long),
        ("Cannot tell", rule.limits),
        ("gRPC", rule.grpc),
        ("Follows from", ", ".join(sorted(rule.consequence_of))),
        ("Needs", ", ".join(sorted(rule.needs))),
        ("See", ", ".join(rule.references)),
    )
    for heading, text in parts:
        if text:
            facts = [Labelled(heading, Style.CYAN), Labelled(text, indent=2)]
            lines += ["", *fact_lines(facts, terminal)]
    return lines


def _terminal_of(request: DiagnoseRequest, option: str) -> Terminal:
    """Return what the lines are for: a file has neither a width nor colours.

    Raise CommandError where they should be anything but text.
    """
    if request.format.is_json:
        raise usage_error(option, "is text, not JSON: omit --format, and name the output .txt")
    if request.output == "-":
        return terminal_of(sys.stdout, request.colour)
    return Terminal(False, UNLIMITED, False)


def _write(request: DiagnoseRequest, lines: list[str]) -> ExitStatus:
    output = Output(request.output, force=request.force)
    output.write(("\n".join(lines) + "\n").encode("utf-8", "replace"))
    output.finish()
    return ExitStatus.OK
