"""The rules in docs/diagnosis.md, made from the code; run as a module, it writes them.

python -m tests.analytics.diagnosis.diagnosis_docs
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from analytics.diagnosis.registry import FAMILIES, rules, rules_of
from analytics.diagnosis.rule import COVERED, DiagnosisRule
from rmqtool.diagnose.rules_text import rule_parts

from .show import expected
from .test_public_reports import EXPECTED

PAGE = Path(__file__).resolve().parents[3] / "docs" / "diagnosis.md"
MOST_SAMPLES = 4
GRPC_BEGIN, GRPC_END = "<!-- grpc: begin -->", "<!-- grpc: end -->"
INDEX_BEGIN, INDEX_END = "<!-- index: begin -->", "<!-- index: end -->"
_ERROR = re.compile(
    r"Exception|Error\b|\b[A-Z]{2,}(?:_[A-Z]+)+\b|\[[A-Z_]+\]|CODE|:|\bNo |failed|refused"
)
"""what a program writes: names of exceptions and codes, lines of logs"""
BEGIN, END = "<!-- rules: begin -->", "<!-- rules: end -->"


def rules_text() -> str:
    """All rules, by family."""
    parts = []
    for family in FAMILIES:
        module = import_module(f"analytics.diagnosis.rules.{family}")
        sentence = (module.__doc__ or "").partition("\n")[0]
        parts.append(f"## Rules: {family}\n{sentence}")
        parts += [_rule_text(rule) for rule in rules_of(family)]
    return "\n\n".join(parts)


def index_text() -> str:
    """What users see, sorted, with the rules that speak of it."""
    found: dict[str, set[str]] = {}
    for rule in rules():
        for seen in rule.searched:
            found.setdefault(seen, set()).add(rule.id)
    lines = ["## Index", "Error messages and symptoms, with the rules that explain them."]
    for heading, is_error in (
        ("Exceptions, response codes, and log lines", True),
        ("Symptoms and settings", False),
    ):
        lines += ["", f"### {heading}", "| text | rules |", "|---|---|"]
        for seen in sorted(found, key=lambda one: (one.lower(), one)):
            if bool(_ERROR.search(seen)) is is_error:
                links = ", ".join(f"[{name}](#{name})" for name in sorted(found[seen]))
                lines.append(f"| `{seen.replace('|', chr(92) + '|')}` | {links} |")
    return "\n".join(lines)


def grpc_text() -> str:
    """Which rules speak of clients that use gRPC, and why the others do not."""
    by_reason: dict[str, list[str]] = {}
    for rule in rules():
        by_reason.setdefault(rule.grpc, []).append(f"[{rule.id}](#{rule.id})")
    lines = ["## gRPC", "| gRPC | rules |", "|---|---|"]
    for reason in sorted(by_reason, key=lambda one: (one != COVERED, -len(by_reason[one]), one)):
        lines.append(f"| {reason} | {', '.join(by_reason[reason])} |")
    return "\n".join(lines)


def _rule_text(rule: DiagnosisRule) -> str:
    lines = [f"### {rule.id}", f"{rule.title}. Severity: {rule.severity}.", ""]
    parts = [*rule_parts(rule, lambda one: f"`{one}`"), ("Recordings", _recordings_of(rule))]
    lines += [f"* **{heading}**: {text}" for heading, text in parts]
    return "\n".join(lines)


def _recordings_of(rule: DiagnosisRule) -> str:
    """Which recordings show a rule."""
    names = [
        name
        for name, lines in expected().items()
        if not name.startswith("shared/") and any(f" {rule.id} [" in line for line in lines)
    ]
    names += [one for one, (name, _) in EXPECTED.items() if name == rule.id]
    if not names:
        return "none; tested with generated rows"
    more = f" and {len(names) - MOST_SAMPLES} more" if len(names) > MOST_SAMPLES else ""
    return ", ".join(f"`{name}`" for name in names[:MOST_SAMPLES]) + more


def page_with_rules(page: str) -> str:
    """The page with the rules of today."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    page = f"{before}{BEGIN}\n{rules_text()}\n{END}{after}"
    before, _, rest = page.partition(INDEX_BEGIN)
    _, _, after = rest.partition(INDEX_END)
    page = f"{before}{INDEX_BEGIN}\n{index_text()}\n{INDEX_END}{after}"
    before, _, rest = page.partition(GRPC_BEGIN)
    _, _, after = rest.partition(GRPC_END)
    return f"{before}{GRPC_BEGIN}\n{grpc_text()}\n{GRPC_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_rules(PAGE.read_text()))
