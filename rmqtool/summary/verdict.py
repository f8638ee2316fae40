"""The verdict of the diagnosis in few lines: what the summary and `diagnose` begin with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from analytics.diagnosis.engine import Diagnosis
from analytics.diagnosis.problem import Problem, ProblemSeverity

from ..ui.console import Style, one_line
from ..ui.figures import counted
from ..ui.screen.panels import Labelled

LABELS: Final = {
    ProblemSeverity.ERROR: ("ERROR", Style.RED),
    ProblemSeverity.WARNING: ("WARNING", Style.YELLOW),
    ProblemSeverity.INFO: ("INFO", Style.CYAN),
}
"""severity → word and colour"""
LABEL_CELLS: Final = 9
"""cells of the word, and what is between it and a text"""


_NOUNS: Final = ((ProblemSeverity.ERROR, "error"), (ProblemSeverity.WARNING, "warning"))


def verdict(diagnosis: Diagnosis) -> str:
    """Return what was found, in a sentence."""
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
    """Return the verdict and the causes of the gravest incidents."""
    said = verdict(diagnosis)
    if diagnosis.problems:
        said += "; rmqtool diagnose says why and what to do"
    causes = [one for one in diagnosis.problems if one.consequence_of is None]
    facts = [Labelled(said), *map(_cause, causes[:most])]
    if len(causes) > most:
        more = counted(len(causes) - most, "more problem")
        facts.append(Labelled(f"… and {more}: rmqtool diagnose"))
    return facts


def _cause(problem: Problem) -> Labelled:
    label, colour = LABELS[problem.severity]
    return Labelled(f"{one_line(problem.title)} ({problem.rule})", "", label, colour, LABEL_CELLS)


def style_of_verdict(problems: Sequence[Problem]) -> str:
    """Return the colour of the gravest problem; green where there is none."""
    found = {problem.severity for problem in problems}
    return next((colour for one, (_, colour) in LABELS.items() if one in found), Style.GREEN)
