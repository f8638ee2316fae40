"""The verdict of a diagnosis in a few lines, as in the summary and in `diagnose`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from analytics.diagnosis.engine import Diagnosis
from analytics.diagnosis.problem import Problem, ProblemSeverity
from dissectors.quantities import counted

from ..ui.console import Style, one_line
from ..ui.screen.panels import Labelled

LABELS: Final = {
    ProblemSeverity.ERROR: ("ERROR", Style.RED),
    ProblemSeverity.WARNING: ("WARNING", Style.YELLOW),
    ProblemSeverity.INFO: ("INFO", Style.CYAN),
}
"""severity → word and colour"""
LABEL_CELLS: Final = 9
"""width of the label with its gap"""


_NOUNS: Final = ((ProblemSeverity.ERROR, "error"), (ProblemSeverity.WARNING, "warning"))


def verdict(diagnosis: Diagnosis) -> str:
    """Return the verdict as a sentence."""
    problems = diagnosis.problems
    if not problems:
        return "no problems found"
    numbers = Counter(problem.severity for problem in problems)
    parts = [counted(numbers[severity], noun) for severity, noun in _NOUNS if numbers[severity]]
    if numbers[ProblemSeverity.INFO]:
        parts.append(f"{numbers[ProblemSeverity.INFO]:,} info")
    incidents = len({problem.incident for problem in problems})
    together = f"{counted(incidents, 'incident')}: " if incidents < len(problems) else ""
    return together + ", ".join(parts)


def problem_line(problem: Problem) -> str:
    """Return a problem as one printable line."""
    return f"{LABELS[problem.severity][0]} {one_line(problem.title)} ({problem.rule})"


def verdict_facts(diagnosis: Diagnosis, most: int) -> list[Labelled]:
    """Return the verdict and the causes of the most severe incidents."""
    text = verdict(diagnosis)
    if diagnosis.problems:
        text += "; for causes and fixes: rmqtool diagnose"
    causes = [problem for problem in diagnosis.problems if problem.consequence_of is None]
    facts = [Labelled(text), *map(_cause, causes[:most])]
    if len(causes) > most:
        more = counted(len(causes) - most, "more problem")
        facts.append(Labelled(f"… and {more}: rmqtool diagnose"))
    return facts


def _cause(problem: Problem) -> Labelled:
    label, colour = LABELS[problem.severity]
    return Labelled(f"{one_line(problem.title)} ({problem.rule})", "", label, colour, LABEL_CELLS)


def style_of_verdict(problems: Sequence[Problem]) -> str:
    """Return the colour of the most severe problem, or green if there is none."""
    severities = {problem.severity for problem in problems}
    return next(
        (colour for severity, (_, colour) in LABELS.items() if severity in severities), Style.GREEN
    )
