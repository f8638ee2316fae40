"""Merge problems of one subject and group problems into incidents, the cause first.

`consequence_of` of a rule names its possible causes. A problem becomes a consequence of another one
if both happened at about the same time and their brokers, topics, and groups do not conflict. Each
problem has one cause. Incidents are ordered by their most severe problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final

from dissectors.quantities import counted

from .problem import (
    MOST_SPANS,
    Impact,
    Problem,
    ProblemState,
    Subject,
    Tally,
    filter_of,
    impact_text,
    period,
)
from .registry import rule_of
from .rule import DiagnosisRule
from .spells import HOUR, spells

MAX_CASES: Final = 200
"""maximum problems of one rule; a limit of the diagnosis counts the rest"""


def merged(problems: Iterable[Problem], limits: list[str]) -> list[Problem]:
    """Merge problems with the same rule, subject, part, and spell.

    The result does not depend on their order. At most MAX_CASES of a rule are kept.
    """
    by_rule: dict[str, dict[tuple[Subject, str], list[Problem]]] = {}
    for problem in problems:
        by_rule.setdefault(problem.rule, {}).setdefault((problem.subject, problem.part), []).append(
            problem
        )
    result: list[Problem] = []
    for rule, by_subject in by_rule.items():
        described = rule_of(rule)
        lasts = described.lasts if described is not None else HOUR
        merged_problems = [
            _joined(spell)
            for several in by_subject.values()
            for spell in spells(several, _span, lasts)
        ]
        # Beyond the limit, the rare ones are left out.
        merged_problems.sort(key=_by_frequency)
        if len(merged_problems) > MAX_CASES:
            hidden = len(merged_problems) - MAX_CASES
            limits.append(f"{rule}: {counted(hidden, 'more problem')}")
        result += merged_problems[:MAX_CASES]
    return result


def _span(problem: Problem) -> tuple[int, int]:
    return problem.first_time, problem.last_time


def _joined(problems: list[Problem]) -> Problem:
    """Merge problems of one subject, with the text of the most frequent one."""
    if len(problems) == 1:
        return problems[0]
    ordered = sorted(problems, key=_by_frequency)
    tally = Tally()
    for item in ordered:
        part = Tally()
        part.count, part.first, part.last = item.count, item.first_time, item.last_time
        part.evidence = item.evidence
        tally.merge(part)
    best = ordered[0]
    # One case of unknown state leaves open whether the whole problem is over.
    states = {problem.state for problem in ordered}
    if len(states) > 1:
        best.state = None if None in states else ProblemState.GOING_ON
    best.severity = max(problem.severity for problem in ordered)
    best.leads_within = max(problem.leads_within for problem in ordered)
    others = dict.fromkeys(
        f"also: {problem.title}" for problem in ordered if problem.title != best.title
    )
    details = dict.fromkeys(text for problem in ordered for text in problem.details)
    best.details = [*others, *details]
    impact = Counter[Impact]()
    for item in ordered:
        impact.update(item.impact)
    best.impact = dict(impact)
    best.count, best.first_time, best.last_time = tally.count, tally.first, tally.last
    best.evidence, best.filter = tally.evidence, filter_of(tally.evidence)
    times = sorted(time for problem in ordered for time in spans_of(problem))
    best.spans = times if len(times) <= MOST_SPANS else []
    return best


def _by_frequency(problem: Problem) -> tuple[int, int, str, str]:
    return -problem.count, problem.first_time, problem.title, str(problem.subject)


def grouped(problems: list[Problem], rules: Mapping[str, DiagnosisRule]) -> list[Problem]:
    """Return the problems grouped by incident, numbered from 1."""
    by_weight = sorted(problems, key=_weight)
    parent: dict[int, Problem] = {}
    causes_of: dict[str, list[Problem]] = {}
    of_all = [problem for problem in by_weight if rules[problem.rule].leads_to_all]
    for problem in by_weight:
        rule = rules[problem.rule]
        if rule.id not in causes_of:
            causes_of[rule.id] = [one for one in by_weight if one.rule in rule.consequence_of]
        # A cause that the rule names comes before one that can lead to anything.
        # What lasts until someone changes it, as a setting does, comes of no passing fault.
        for known in (causes_of[rule.id], of_all if rule.lasts is not None else []):
            cause = _cause_of(problem, known, rule, parent)
            if cause is not None:
                parent[id(problem)] = cause
                _add_cause_periods(problem, cause)
                break
    members: dict[int, list[Problem]] = {}
    for problem in by_weight:
        root = problem
        # This ends: `_cause_of` never closes a circle.
        while id(root) in parent:
            root = parent[id(root)]
        problem.consequence_of = parent[id(problem)].rule if id(problem) in parent else None
        members.setdefault(id(root), []).append(problem)
    ordered = sorted(members.values(), key=_weight_of_incident)
    result = []
    for number, incident in enumerate(ordered, 1):
        incident.sort(key=lambda item: (item.consequence_of is not None, _weight(item)))
        for problem in incident:
            problem.incident = number
            result.append(problem)
    return result


def _cause_of(
    problem: Problem,
    known: Sequence[Problem],
    rule: DiagnosisRule,
    parent: Mapping[int, Problem],
) -> Problem | None:
    """Return the best candidate for the cause of a problem, or None."""
    # The nearest in time; of those at that time the one that covers most of the evidence, then the
    # most severe and earliest: `known` has this order.
    fitting = [
        (apart, -_covered(entry, problem), place, entry)
        for place, entry in enumerate(known)
        if entry is not problem
        and _agree(entry.subject, problem.subject)
        and (apart := _apart(entry, problem)) <= min(rule.follows_within, entry.leads_within)
    ]
    ordered = (other for _, _, _, other in sorted(fitting, key=itemgetter(0, 1, 2)))
    return next((other for other in ordered if not _leads_to(other, problem, parent)), None)


def impact_of(problems: Sequence[Problem]) -> str:
    """Return the impact of an incident's problems on messages as one line.

    ``5 send attempts failed; 12 messages of group orders were not consumed``. Empty if unknown.
    """
    counts: Counter[Impact] = Counter()
    groups: dict[Impact, set[str | None]] = {}
    for problem in problems:
        for impact, count in problem.impact.items():
            counts[impact] += count
            groups.setdefault(impact, set()).add(problem.subject.group)
    return "; ".join(
        impact_text(impact, counts[impact], groups[impact])
        for impact in Impact
        if counts[impact] > 0
    )


def _weight(problem: Problem) -> tuple[int, int, str, str, str]:
    """Return the sort key of a problem; subjects are unique within a rule."""
    return (
        -problem.severity.grade,
        problem.first_time,
        problem.rule,
        problem.title,
        str(problem.subject),
    )


def _weight_of_incident(incident: list[Problem]) -> tuple[int, int, int]:
    first = min(problem.first_time for problem in incident)
    worst = max(problem.severity for problem in incident).grade
    return -worst, first, -len(incident)


def _leads_to(cause: Problem, problem: Problem, parent: Mapping[int, Problem]) -> bool:
    """Return whether `cause` is itself a consequence of `problem`."""
    one: Problem | None = cause
    while one is not None:
        if one is problem:
            return True
        one = parent.get(id(one))
    return False


def spans_of(problem: Problem) -> list[tuple[int, int]]:
    """Return the periods of a problem, ns since the epoch."""
    return problem.spans or [(problem.first_time, problem.last_time)]


def _apart(one: Problem, other: Problem) -> int:
    """Return the gap between two problems in ns; 0 if they overlap."""
    return min(
        max(first - last_there, first_there - last, 0)
        for first, last in spans_of(one)
        for first_there, last_there in spans_of(other)
    )


def _covered(cause: Problem, problem: Problem) -> int:
    """Return how much of a problem's evidence is within the periods of another one."""
    times = spans_of(cause)
    return sum(
        any(first <= item.time <= last for first, last in times) for item in problem.evidence
    )


def _add_cause_periods(problem: Problem, cause: Problem) -> None:
    """Add the periods of its cause in which a problem was observed, unless it was in all."""
    times = spans_of(cause)
    if problem.count > len(problem.evidence):
        return  # the omitted evidence may be from other periods
    met = [
        period(first, last)
        for first, last in times
        if any(first <= item.time <= last for item in problem.evidence)
    ]
    if met and len(met) < len(times):
        problem.details.append(f"caused only by {cause.rule} at these times: {', '.join(met)} UTC")


def _agree(one: Subject, other: Subject) -> bool:
    """Return whether two subjects can belong to one incident: no common part differs."""
    same = ["broker", "topic", "group", "client"]
    if (one.broker is None) == (other.broker is None):  # otherwise one is a proxy or NameServer
        same.append("server")
    return all(
        getattr(one, name) is None
        or getattr(other, name) is None
        or getattr(one, name) == getattr(other, name)
        for name in same
    )
