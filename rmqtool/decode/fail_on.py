"""`decode --fail-on`: conditions on what was captured, counted over the rows that are shown.

`--check` judges the capture, these conditions judge the traffic.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dissectors.rows.outcome import FAILED

from ..ui.status import CommandError, ExitStatus

if TYPE_CHECKING:
    from dissectors.rows.record import ExchangeRecord

FIGURES = ("failed", "unanswered")
"""Figures: failed and unanswered requests."""
_OPERATORS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
}
_CONDITION = re.compile(
    r"\s*(?P<name>[a-z]+)\s*(?:(?P<op>>=?)\s*(?P<value>\d{1,12}(?:\.\d{1,6})?)\s*(?P<unit>%?))?\s*",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: a figure and its limit."""

    text: str
    """text of the option"""
    figure: str
    """one of FIGURES"""
    operator: str
    """`>` or `>=`"""
    bound: Fraction
    """a number, or a percentage"""
    is_share: bool
    """the bound is a percentage"""


class Counts:
    """Counts exchanges for the conditions."""

    def __init__(self) -> None:
        self.answered = 0
        """requests that were answered"""
        self.failed = 0
        """requests with a failure response"""
        self.unanswered = 0
        """requests that were not answered within the capture"""

    def add(self, records: Iterable[ExchangeRecord]) -> None:
        """Count exchanges."""
        from dissectors.rows.record import ANSWERED, UNANSWERED  # help does not need msgspec

        for record in records:
            if record.status == ANSWERED:
                self.answered += 1
                self.failed += record.outcome_class == FAILED
            elif record.status == UNANSWERED:
                self.unanswered += 1

    def part_and_whole(self, figure: str) -> tuple[int, int]:
        """Return a figure and the total for its percentage."""
        if figure == "failed":
            return self.failed, self.answered
        return self.unanswered, self.answered + self.unanswered

    def held(self, conditions: Sequence[Condition]) -> list[str]:
        """Return a line for each condition that holds."""
        lines = []
        for condition in conditions:
            part, whole = self.part_and_whole(condition.figure)
            value = Fraction(part)
            if condition.is_share:  # a fraction: 1 of 100 is exactly 1%, and not more
                value = Fraction(100 * part, whole) if whole else Fraction(0)
            if _OPERATORS[condition.operator](value, condition.bound):
                lines.append(f"--fail-on {condition.text}: {part:,} of {whole:,}")
        return lines


def condition_of(text: str) -> Condition:
    """Return the condition of a text: ``failed``, ``failed>1%``, ``unanswered>=5``."""
    match = _CONDITION.fullmatch(text.lower())
    if match is None or match["name"] not in FIGURES:
        raise CommandError(
            f"--fail-on: not a valid condition: {text!r}; give {' or '.join(FIGURES)}, alone or"
            " with a bound: 'failed>1%', 'unanswered>=5'",
            status=ExitStatus.USAGE,
        )
    if match["op"] is None:
        return Condition(text, match["name"], ">", Fraction(0), False)
    bound = Fraction(match["value"])
    return Condition(text, match["name"], match["op"], bound, bool(match["unit"]))
