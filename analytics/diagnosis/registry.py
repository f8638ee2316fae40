"""The rules, by family. To add one: its file in a family, and its name in `MODULES` there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Final

from .rule import DiagnosisRule

FAMILIES: Final = (
    "overload",
    "refused",
    "attempts",
    "network",
    "routes",
    "consumers",
    "transactions",
    "usage",
)
"""folders under `rules/`, in the order of the document"""


@cache
def rules() -> Sequence[DiagnosisRule]:
    """Return all rules, in the order of the registry."""
    return tuple(rule for family in FAMILIES for rule in rules_of(family))


@cache
def rules_of(family: str) -> Sequence[DiagnosisRule]:
    """Return the rules of a family."""
    package = f"{__package__}.rules.{family}"
    modules: Sequence[str] = import_module(package).MODULES
    return tuple(import_module(f"{package}.{name}").RULE for name in modules)


def with_finders(chosen: Sequence[DiagnosisRule]) -> Sequence[DiagnosisRule]:
    """Return the rules, and those whose state has their cases."""
    finders = {rule.found_by for rule in chosen} - {rule.id for rule in chosen}
    return [*chosen, *(rule for rule in rules() if rule.id in finders)]


def rule_of(name: str) -> DiagnosisRule | None:
    """Return the rule with that id; None where there is none."""
    return next((rule for rule in rules() if rule.id == name), None)
