"""Rules that say what a test wants them to say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from analytics.diagnosis.context import Context
from analytics.diagnosis.keys import by_server
from analytics.diagnosis.problem import (
    Case,
    Confidence,
    Evidence,
    Problem,
    ProblemSeverity,
    Subject,
    Tally,
    shown,
)
from analytics.diagnosis.rule import COVERED, DiagnosisRule, Exchanges, Fold
from dissectors.rows.record import ExchangeRecord


class ByTopic(Fold):
    """One case for each topic of its key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tallies: dict[str, Tally] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.tallies.setdefault(row.topic or "", Tally()).add(shown(row))

    def cases(self, context: Context) -> Iterable[Case]:
        for topic, tally in self.tallies.items():
            case = tally.case(f"{tally.count} of {self.key}", Subject(topic=topic))
            case.details = [self.key]
            yield case


def rule(name: str = "made", fold: Callable[[str], Fold] = ByTopic, **values: Any) -> DiagnosisRule:
    """A rule about all exchanges, by server."""
    made: dict[str, Any] = {
        "severity": ProblemSeverity.ERROR,
        "title": "Something is made",
        "searched": ("made",),
        "proof": "It was made.",
        "explanation": "It is made.",
        "advice": "Nothing.",
        "grpc": COVERED,
        "exchanges": (Exchanges(key=by_server),),
    }
    return DiagnosisRule(id=name, fold=fold, **{**made, **values})


def problem(name: str = "made", at: int = 0, last: int | None = None, **values: Any) -> Problem:
    """A problem at so many seconds."""
    first = at * 1_000_000_000
    made: dict[str, Any] = {
        "rule": name,
        "severity": ProblemSeverity.ERROR,
        "confidence": Confidence.CERTAIN,
        "reason": None,
        "title": f"{name} at {at}",
        "subject": Subject(),
        "count": 1,
        "first_time": first,
        "last_time": first if last is None else last * 1_000_000_000,
        "evidence": [Evidence("a.pcap", at + 1, first, 0, "seen")],
        "filter": "",
        "details": [],
        "explanation": "",
        "advice": "",
        "references": [],
    }
    return Problem(**{**made, **values})
