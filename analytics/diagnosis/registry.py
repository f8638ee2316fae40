"""The rules, by family. To add one: its file in a family, and its name in `MODULES` there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Final

from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord

from .rule import DiagnosisRule, Exchanges

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
MAX_PLANS: Final = 10_000
"""maximum cached combinations of codes and status"""


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
    """Return the rules, and the rules whose state reports their cases."""
    finders = {rule.found_by for rule in chosen} - {rule.id for rule in chosen}
    return [*chosen, *(rule for rule in rules() if rule.id in finders)]


def rule_of(name: str) -> DiagnosisRule | None:
    """Return the rule with an id, or None."""
    return next((rule for rule in rules() if rule.id == name), None)


class Takers:
    """Look up the rules that take an exchange, once per combination of codes and status."""

    def __init__(self, rules: Sequence[DiagnosisRule]) -> None:
        self._rules = rules
        self._plans: dict[
            tuple[int | None, int | None, str, bool], list[tuple[Exchanges, DiagnosisRule]]
        ] = {}

    def of(self, row: ExchangeRecord) -> list[tuple[Exchanges, DiagnosisRule]]:
        """Return the matching parts and their rules for an exchange."""
        at = (row.request_code, row.response_code, row.status, is_call(row.request_name))
        plan = self._plans.get(at)
        if plan is None:
            plan = [
                (exchanges, rule)
                for rule in self._rules
                for exchanges in rule.exchanges
                if (exchanges.requests is None or row.request_code in exchanges.requests)
                and exchanges.takes_response(row)
                and (exchanges.statuses is None or row.status in exchanges.statuses)
            ]
            # Codes come from the capture: a damaged or hostile one may have any number of them.
            if len(self._plans) < MAX_PLANS:
                self._plans[at] = plan
        return plan
