"""The rules as text: `--list` and `--explain RULE`."""

from __future__ import annotations

from collections.abc import Callable

from analytics.diagnosis.registry import FAMILIES, rules_of
from analytics.diagnosis.rule import COVERED, DiagnosisRule

from ..ui.console import Style, Terminal, terminal_of_output
from ..ui.option_values import usage_error
from ..ui.output import write_text
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
    """Write the description of one rule."""
    rule = known_rule("--explain", name)
    return _write(request, rule_lines(rule, _terminal_of(request, "--explain")))


def rule_lines(rule: DiagnosisRule, terminal: Terminal) -> list[str]:
    """Return the description of a rule, as lines."""
    title = f"{rule.id} ({rule.severity}): {rule.title}"
    lines = fact_lines([Labelled(title, Style.BOLD, hang=2)], terminal)
    for heading, text in rule_parts(rule):
        facts = [Labelled(heading, Style.CYAN), Labelled(text, indent=2)]
        lines += ["", *fact_lines(facts, terminal)]
    return lines


def rule_parts(rule: DiagnosisRule, code: Callable[[str], str] = str) -> list[tuple[str, str]]:
    """Return headings and texts of a rule; `code` marks ids and log lines."""
    parts = (
        ("Symptoms", "; ".join(map(code, rule.searched))),
        ("Evidence", rule.proof),
        ("Explanation", rule.explanation),
        ("What to do", rule.advice),
        ("Explanation for gRPC clients", rule.grpc_explanation),
        ("What to do for gRPC clients", rule.grpc_advice),
        ("Duration", rule.how_long),
        ("Limits", rule.limits),
        ("gRPC", "Covered." if rule.grpc == COVERED else rule.grpc),
        ("Caused by", ", ".join(map(code, sorted(rule.consequence_of)))),
        ("Needs", ", ".join(sorted(rule.needs))),
        ("References", ", ".join(rule.references)),
    )
    return [(heading, text) for heading, text in parts if text]


def _terminal_of(request: DiagnoseRequest, option: str) -> Terminal:
    """Return the terminal of the output: a file has no width.

    Raise CommandError where they should be anything but text.
    """
    if request.format.is_json:
        raise usage_error(option, "is text, not JSON: omit --format, and name the output .txt")
    return terminal_of_output(request.output, request.colour)


def _write(request: DiagnoseRequest, lines: list[str]) -> ExitStatus:
    write_text(request.output, lines, request.force)
    return ExitStatus.OK
