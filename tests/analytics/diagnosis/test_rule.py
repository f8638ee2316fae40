"""Texts of rules: short sentences; advice starts with the action, which the short view shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from analytics.diagnosis.registry import rules
from analytics.diagnosis.rule import DiagnosisRule
from rmqtool.diagnose.text import first_sentence
from tests.cases import in_one

RULES = Path(__file__).resolve().parents[3] / "analytics" / "diagnosis" / "rules"
ACTIONS = re.compile(
    r"(?:Block|Bring|Call|Capture|Check|Choose|Compare|Configure|Create|Cut|Enable|Find|Fix|Free|Give"
    r"|Keep|Let|Look|Make|Open|Pop|Publish|Pull|Raise|Restart|Restore|Send|Set|Start|Stop"
    r"|Synchronize|Take|Turn|Update|Use|Wait)\b"
)
"""verbs that an advice may start with"""
MOST_WORDS = 35
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
EXCEPTION = re.compile(r"\b(?:needs? nothing|no action|nothing to do|normal)\b", re.IGNORECASE)
"""words of what needs no action"""
NO_ACTION = frozenset(("No action needed: ", "Nothing needs to be started: "))
"""beginnings of an advice for a state that is known to need none"""


def faults_of(advice: str) -> list[str]:
    """Return what is wrong with the order of an advice."""
    if advice.startswith(tuple(NO_ACTION)):
        return []
    first = first_sentence(advice)
    found = []
    if not ACTIONS.match(first):
        found.append(f"does not start with an action: {first}")
    if EXCEPTION.search(first):
        found.append(f"the short view shows an exception: {first}")
    if first.startswith("("):
        found.append(f"starts with an exception: {first}")
    return found


def advice_by_state() -> Iterator[tuple[str, str]]:
    """Yield the advice that sources choose by state, with its place.

    That is what is assigned to `advice`, and what is called `…_ADVICE`.
    """
    for path in sorted(RULES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(node, ast.Assign):
                target = node.targets[0]
            is_field = isinstance(target, ast.Attribute) and target.attr == "advice"
            is_constant = isinstance(target, ast.Name) and target.id.endswith("_ADVICE")
            if not (is_field or is_constant):
                continue
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            value = node.value
            if isinstance(value, ast.JoinedStr):
                value = value.values[0]
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield f"{path.name}:{node.lineno}", value.value


@in_one(rules(), lambda rule: rule.id)
def test_the_advice_of_a_rule_starts_with_the_action(rule: DiagnosisRule) -> None:
    assert faults_of(rule.advice) == []
    assert not rule.grpc_advice or faults_of(rule.grpc_advice) == []


@in_one(rules(), lambda rule: rule.id)
def test_texts_of_a_rule_are_short_sentences(rule: DiagnosisRule) -> None:
    texts = (rule.title, rule.proof, rule.explanation, rule.advice, rule.limits, rule.grpc)
    for text in (*texts, rule.grpc_explanation, rule.grpc_advice):
        assert [one for one in SENTENCE_END.split(text) if len(one.split()) > MOST_WORDS] == []


def test_advice_that_is_chosen_by_state_starts_with_the_action() -> None:
    found = dict(advice_by_state())
    assert len(found) > 10
    assert [f"{place} {fault}" for place, text in found.items() for fault in faults_of(text)] == []


def test_a_sentence_ends_where_one_that_starts_with_a_setting_follows() -> None:
    assert first_sentence("Free space. fileReservedTime is 72 h.") == "Free space."
    assert (
        first_sentence("Look at vm.dirty_* of 5.x. (None is set.)") == "Look at vm.dirty_* of 5.x."
    )
