"""The rules as data: each says all that it must, in words that can be shown."""

from __future__ import annotations

import re

from analytics.diagnosis.context import Context, Need
from analytics.diagnosis.keys import joined_key
from analytics.diagnosis.registry import FAMILIES, rule_of, rules, rules_of, with_finders
from analytics.diagnosis.rule import COVERED, DiagnosisRule
from tests.cases import in_one

every_rule = in_one(rules(), lambda rule: rule.id)


def test_ids_are_unique_and_found() -> None:
    ids = [rule.id for rule in rules()]
    assert len(set(ids)) == len(ids) > 40
    assert all(rule_of(rule.id) is rule for rule in rules())
    assert rule_of("no-such-rule") is None
    assert [rule for family in FAMILIES for rule in rules_of(family)] == list(rules())


@every_rule
def test_a_rule_describes_itself(rule: DiagnosisRule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id)
    assert rule.searched
    for text in (rule.title, rule.proof, rule.explanation, rule.advice):
        assert text == text.strip() != ""
        assert "  " not in text
    for text in (rule.proof, rule.explanation, rule.advice, rule.limits or "."):
        assert text.endswith((".", ")", "?")), text
    assert not rule.title.endswith(".")
    for reference in rule.references:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", reference), reference
    assert len(set(rule.references)) == len(rule.references)
    assert all(isinstance(need, Need) for need in rule.needs)
    assert rule.id not in rule.consequence_of


@every_rule
def test_a_rule_says_whether_it_covers_grpc(rule: DiagnosisRule) -> None:
    if rule.grpc != COVERED:
        assert rule.grpc.endswith(".")
        return
    finder = rule if rule.found_by is None else rule_of(rule.found_by)
    assert finder is not None
    # A call has no request code, so that a rule about given requests of remoting takes none.
    takes_calls = any(one.requests is None for one in finder.exchanges)
    assert takes_calls or finder.connections is not None or finder.messages is not None


@every_rule
def test_a_state_without_rows_says_nothing(rule: DiagnosisRule) -> None:
    assert list(rule.fold(joined_key("a", "b")).cases(Context())) == []


@every_rule
def test_what_is_found_by_another_rule_can_be_asked_for(rule: DiagnosisRule) -> None:
    together = with_finders([rule])
    if rule.found_by is None:
        assert together == [rule]
    else:
        assert [one.id for one in together] == [rule.id, rule.found_by]


@every_rule
def test_what_a_rule_follows_from_is_a_rule(rule: DiagnosisRule) -> None:
    assert rule.consequence_of <= {one.id for one in rules()} - {rule.id}
