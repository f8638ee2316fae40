"""Every capture has its exact list of problems, read by hand: a false alarm is a defect, too."""

from __future__ import annotations

import pytest

from analytics.diagnosis.registry import rules

from .show import SHARED, captures, diagnosis_of, expected, line_of

_FOUND = captures()


@pytest.mark.parametrize("name", sorted(expected()))
def test_what_is_said_of_a_capture(name: str) -> None:
    if name not in _FOUND and name.startswith("shared/"):
        pytest.skip(f"no {SHARED}")
    found = diagnosis_of([str(_FOUND[name])])
    lines = [line_of(one) for one in found.problems]
    assert lines == expected()[name], (
        "read what changed, then: python -m tests.analytics.diagnosis.show --write"
    )


def test_every_sample_has_a_list() -> None:
    assert sorted(name for name in _FOUND if name not in expected()) == []


def test_every_problem_is_of_a_rule_and_has_its_words() -> None:
    known = {rule.id for rule in rules()}
    for lines in expected().values():
        assert {line.split()[1] for line in lines} <= known
