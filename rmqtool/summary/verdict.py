"""The verdict of the diagnosis in few lines: what the summary and `diagnose` begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analytics.diagnosis.engine import Diagnosis
from analytics.diagnosis.problem import Problem, ProblemSeverity

from ..ui.console import Style, one_line
from ..ui.figures import counted

LABELS: Final = {
    ProblemSeverity.ERROR: ("ERROR", Style.RED),
    ProblemSeverity.WARNING: ("WARNING", Style.YELLOW),
    ProblemSeverity.INFO: ("INFO", Style.CYAN),
}
"""severity → word and colour"""


def verdict(diagnosis: Diagnosis) -> str:
    """Return what was found, in a sentence."""
    problems = diagnosis.problems
    if not problems:
        return "nothing wrong was found"
    numbers = dict.fromkeys(LABELS, 0)
    for problem in problems:
        numbers[problem.severity] += 1
    parts = [
        counted(number, noun)
        for number, noun in zip(numbers.values(), ("error", "warning", "remark"), strict=True)
        if number
    ]
    incidents = len({problem.incident for problem in problems})
    together = f" in {counted(incidents, 'incident')}" if incidents < len(problems) else ""
    return ", ".join(parts) + together


def problem_line(problem: Problem) -> str:
    """Return a problem as one printable line."""
    return f"{LABELS[problem.severity][0]} {one_line(problem.title)} ({problem.rule})"


def verdict_lines(problems: Sequence[Problem], most: int) -> list[str]:
    """Return the causes of the gravest incidents, one line each."""
    causes = [one for one in problems if one.consequence_of is None]
    lines = [problem_line(one) for one in causes[:most]]
    if len(causes) > most:
        lines.append(f"… and {counted(len(causes) - most, 'more problem')}: rmqtool diagnose")
    return lines
