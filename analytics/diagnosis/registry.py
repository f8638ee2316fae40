"""The rules, by name of module. To add one: its file in a family, and its name here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Final

from .rule import DiagnosisRule

RULE_MODULES: Final = (
    "overload.send_queue_timeout",
    "overload.page_cache_busy",
    "attempts.duplicate_by_retry",
)
"""modules under `rules/`, by family"""


@cache
def rules() -> Sequence[DiagnosisRule]:
    """Return all rules, in the order of the registry."""
    package = __package__
    return tuple(import_module(f"{package}.rules.{name}").RULE for name in RULE_MODULES)


def rule_of(name: str) -> DiagnosisRule | None:
    """Return the rule with that id; None where there is none."""
    return next((rule for rule in rules() if rule.id == name), None)
