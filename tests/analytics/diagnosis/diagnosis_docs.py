"""The rules in docs/diagnosis.md, made from the code; run as a module, it writes them.

python -m tests.analytics.diagnosis.diagnosis_docs
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from analytics.diagnosis.registry import FAMILIES, rules_of
from analytics.diagnosis.rule import DiagnosisRule

from .show import expected
from .test_public_reports import EXPECTED

PAGE = Path(__file__).resolve().parents[3] / "docs" / "diagnosis.md"
MOST_SAMPLES = 4
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


def _rule_text(rule: DiagnosisRule) -> str:
    lines = [f"### {rule.id}", f"{rule.title}. Severity: {rule.severity}.", ""]
    for heading, text in (
        ("Users see", "; ".join(f"`{one}`" for one in rule.searched)),
        ("Proof", rule.proof),
        ("Why", rule.explanation),
        ("What to do", rule.advice),
        ("Lasts", rule.how_long),
        ("Cannot tell", rule.limits),
        ("Follows from", ", ".join(f"`{one}`" for one in sorted(rule.consequence_of))),
        ("See", ", ".join(rule.references)),
        ("Tested", _proof_of(rule)),
    ):
        if text:
            lines.append(f"* **{heading}**: {text}")
    return "\n".join(lines)


def _proof_of(rule: DiagnosisRule) -> str:
    """Which recordings show a rule."""
    names = [
        name
        for name, lines in expected().items()
        if not name.startswith("shared/") and any(f" {rule.id} [" in line for line in lines)
    ]
    names += [one for one, (name, _) in EXPECTED.items() if name == rule.id]
    if not names:
        return "made rows; no recording shows it"
    more = f" and {len(names) - MOST_SAMPLES} more" if len(names) > MOST_SAMPLES else ""
    return "recordings " + ", ".join(f"`{name}`" for name in names[:MOST_SAMPLES]) + more


def page_with_rules(page: str) -> str:
    """The page with the rules of today."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{rules_text()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_rules(PAGE.read_text()))
