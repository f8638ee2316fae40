"""The rules as text: `--list` and `--explain RULE`."""

from __future__ import annotations

import sys

from analytics.diagnosis.registry import FAMILIES, rules_of
from analytics.diagnosis.rule import DiagnosisRule

from ..ui.console import UNLIMITED, Style, Terminal, When, styled, terminal_of, wrapped
from ..ui.output import Output
from ..ui.status import ExitStatus
from .request import known_rule

_MOST_LINES = 60


def listed(output: str, colour: When) -> ExitStatus:
    """Write all rules, a line each, by family."""
    terminal = terminal_of(sys.stdout, colour)
    lines: list[str] = []
    width = max(len(rule.id) for family in FAMILIES for rule in rules_of(family))
    for family in FAMILIES:
        if lines:
            lines.append("")
        lines.append(styled(family, Style.BOLD) if terminal.colour else family)
        for rule in rules_of(family):
            start = f"  {rule.id.ljust(width)}  {str(rule.severity).ljust(7)}  "
            room = terminal.width - len(start)
            parts = [rule.title] if room >= UNLIMITED // 2 else wrapped(rule.title, room, 9)
            lines.append(start + parts[0])
            lines += [" " * len(start) + part for part in parts[1:]]
    return _write(output, lines)


def explained(name: str, output: str, colour: When) -> ExitStatus:
    """Write what one rule says."""
    rule = known_rule("--explain", name)
    return _write(output, rule_lines(rule, terminal_of(sys.stdout, colour)))


def rule_lines(rule: DiagnosisRule, terminal: Terminal) -> list[str]:
    """Return all that is known of a rule, as lines."""
    title = f"{rule.id} ({rule.severity}): {rule.title}"
    lines = _wrapped(title, terminal, 0)
    if terminal.colour:
        lines = [styled(line, Style.BOLD) for line in lines]
    parts = (
        ("People search for", "; ".join(rule.searched)),
        ("Proof", rule.proof),
        ("Why", rule.explanation),
        ("What to do", rule.advice),
        ("Lasts", rule.how_long),
        ("Cannot tell", rule.limits),
        ("Follows from", ", ".join(sorted(rule.consequence_of))),
        ("Needs", ", ".join(sorted(rule.needs))),
        ("See", ", ".join(rule.references)),
    )
    for heading, text in parts:
        if text:
            lines.append("")
            lines.append(styled(heading, Style.CYAN) if terminal.colour else heading)
            lines += _wrapped(text, terminal, 2)
    return lines


def _wrapped(text: str, terminal: Terminal, indent: int) -> list[str]:
    width = terminal.width - indent
    lines = [text] if terminal.width >= UNLIMITED else wrapped(text, width, _MOST_LINES)
    return [" " * indent + line for line in lines]


def _write(target: str, lines: list[str]) -> ExitStatus:
    output = Output(target)
    output.write(("\n".join(lines) + "\n").encode("utf-8", "replace"))
    output.finish()
    return ExitStatus.OK
