"""Problems that are one, and those that are one incident: the cause first, then consequences.

Rules: which rule's problems may follow from which is data of the rules (`consequence_of`). A
problem is put under another one where both happened at about one time and neither speaks of a
broker, topic or group that the other one contradicts. A problem has one cause: of those that fit
the nearest in time, of several of its time the one that went on at most of its evidence, then the
gravest and earliest. Incidents are ordered by their gravest problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Final

from .problem import MOST_SPANS, Problem, Subject, Tally, filter_of, period
from .registry import rule_of
from .rule import DiagnosisRule
from .spells import HOUR, spells

MAX_CASES: Final = 200
"""problems of one rule; those over it are counted in the last"""


def merged(problems: Iterable[Problem], limits: list[str]) -> list[Problem]:
    """Return problems of which those of one rule, subject, part and spell are one.

    It does not matter in which order they come. At most MAX_CASES of a rule are kept.
    """
    by_rule: dict[str, dict[tuple[Subject, str], list[Problem]]] = {}
    for one in problems:
        by_rule.setdefault(one.rule, {}).setdefault((one.subject, one.part), []).append(one)
    result: list[Problem] = []
    for rule, by_subject in by_rule.items():
        described = rule_of(rule)
        lasts = described.lasts if described is not None else HOUR
        found = [
            _joined(spell)
            for several in by_subject.values()
            for spell in spells(several, _span, lasts)
        ]
        found.sort(key=_by_frequency)
        if len(found) > MAX_CASES:
            limits.append(f"{rule}: {len(found) - MAX_CASES} further problems")
        result += found[:MAX_CASES]
    return result


def _span(problem: Problem) -> tuple[int, int]:
    return problem.first_time, problem.last_time


def _joined(problems: list[Problem]) -> Problem:
    """Return problems of one subject as one, in the words of the most frequent one."""
    if len(problems) == 1:
        return problems[0]
    ordered = sorted(problems, key=_by_frequency)
    tally = Tally()
    for one in ordered:
        part = Tally()
        part.count, part.first, part.last = one.count, one.first_time, one.last_time
        part.evidence = one.evidence
        tally.merge(part)
    best = ordered[0]
    if any(one.state is None for one in ordered):
        best.state = None
    best.severity = max(one.severity for one in ordered)
    best.leads_within = max(one.leads_within for one in ordered)
    others = dict.fromkeys(f"also: {one.title}" for one in ordered if one.title != best.title)
    details = dict.fromkeys(text for one in ordered for text in one.details)
    best.details = [*others, *details]
    best.count, best.first_time, best.last_time = tally.count, tally.first, tally.last
    best.evidence, best.filter = tally.evidence, filter_of(tally.evidence)
    times = sorted(time for one in ordered for time in spans_of(one))
    best.spans = times if len(times) <= MOST_SPANS else []
    return best


def _by_frequency(problem: Problem) -> tuple[int, int, str, str]:
    return -problem.count, problem.first_time, problem.title, str(problem.subject)


def grouped(problems: list[Problem], rules: Mapping[str, DiagnosisRule]) -> list[Problem]:
    """Return the problems by incident, numbered from 1."""
    by_weight = sorted(problems, key=_weight)
    parent: dict[int, Problem] = {}
    of_causes: dict[frozenset[str], list[Problem]] = {}
    for problem in by_weight:
        rule = rules[problem.rule]
        causes = rule.consequence_of
        if causes not in of_causes:
            of_causes[causes] = [one for one in by_weight if one.rule in causes]
        fitting = [
            (apart, -_covered(one, problem), place, one)
            for place, one in enumerate(of_causes[causes])
            if one is not problem
            and _agree(one.subject, problem.subject)
            and (apart := _apart(one, problem)) <= min(rule.follows_within, one.leads_within)
        ]
        for _, _, _, other in sorted(fitting, key=itemgetter(0, 1, 2)):
            if not _leads_to(other, problem, parent):
                parent[id(problem)] = other
                _say_times(problem, other)
                break
    members: dict[int, list[Problem]] = {}
    for problem in by_weight:
        root = problem
        while id(root) in parent:
            root = parent[id(root)]
        problem.consequence_of = parent[id(problem)].rule if id(problem) in parent else None
        members.setdefault(id(root), []).append(problem)
    ordered = sorted(members.values(), key=_weight_of_incident)
    result = []
    for number, incident in enumerate(ordered, 1):
        incident.sort(key=lambda one: (one.consequence_of is not None, _weight(one)))
        for problem in incident:
            problem.incident = number
            result.append(problem)
    return result


def _weight(problem: Problem) -> tuple[int, int, str, str, str]:
    """Return the key by which problems are sorted; no two of one rule have one subject."""
    grade = -_GRADE[problem.severity]
    return grade, problem.first_time, problem.rule, problem.title, str(problem.subject)


_GRADE: Final = {"info": 0, "warning": 1, "error": 2}


def _weight_of_incident(incident: list[Problem]) -> tuple[int, int, int]:
    first = min(problem.first_time for problem in incident)
    gravest = max(_GRADE[problem.severity] for problem in incident)
    return -gravest, first, -len(incident)


def _leads_to(cause: Problem, problem: Problem, parent: Mapping[int, Problem]) -> bool:
    """Return whether `cause` itself follows from `problem`."""
    one: Problem | None = cause
    while one is not None:
        if one is problem:
            return True
        one = parent.get(id(one))
    return False


def spans_of(problem: Problem) -> list[tuple[int, int]]:
    """Return the times in which a problem went on, ns since the epoch."""
    return problem.spans or [(problem.first_time, problem.last_time)]


def _apart(one: Problem, other: Problem) -> int:
    """Return the ns between the times of two problems; 0 where they overlap."""
    return min(
        max(first - last_there, first_there - last, 0)
        for first, last in spans_of(one)
        for first_there, last_there in spans_of(other)
    )


def _covered(cause: Problem, problem: Problem) -> int:
    """Return how much evidence of a problem is of a time in which another one went on."""
    times = spans_of(cause)
    return sum(any(first <= one.time <= last for first, last in times) for one in problem.evidence)


def _say_times(problem: Problem, cause: Problem) -> None:
    """Say at which times of its cause a problem was seen, where that is not at all of them."""
    times = spans_of(cause)
    if problem.count > len(problem.evidence):
        return  # what is not shown may be of other times
    met = [
        period(first, last)
        for first, last in times
        if any(first <= one.time <= last for one in problem.evidence)
    ]
    if met and len(met) < len(times):
        problem.details.append(f"of the times of {cause.rule} at these only: {', '.join(met)} UTC")


def _agree(one: Subject, other: Subject) -> bool:
    """Return whether two subjects may be of one incident: no part of both differs."""
    same = ["broker", "topic", "group", "client"]
    if (one.broker is None) == (other.broker is None):  # else one is of a proxy or NameServer
        same.append("server")
    return all(
        getattr(one, name) is None
        or getattr(other, name) is None
        or getattr(one, name) == getattr(other, name)
        for name in same
    )
