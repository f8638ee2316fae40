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


def test_every_rule_is_seen_in_a_sample() -> None:
    seen = {line.split()[1] for lines in expected().values() for line in lines}
    assert seen == {rule.id for rule in rules()}
