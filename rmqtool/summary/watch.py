"""Problems as they appear and when they are over: for live captures, on standard error."""

from __future__ import annotations

import sys
import time
from typing import Final

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.problem import OVER, Problem, Subject

from ..ui.figures import clock
from .verdict import problem_line

LOOK: Final = 1.0
"""seconds between two looks at what is wrong"""
SHARE: Final = 20
"""a look may take a twentieth of the time"""


class Watch:
    """Says on standard error what is new and what is over."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        """what is fed with rows"""
        self._next = 0.0
        self._open: dict[tuple[str, Subject], Problem] = {}

    def look(self) -> None:
        """Look again where it is time."""
        now = time.monotonic()
        if now < self._next:
            return
        found = self.engine.diagnosis()
        took = time.monotonic() - now
        self._next = now + max(LOOK, SHARE * took)
        last = max(found.context.last_time or 0, time.time_ns())
        latest = {
            (problem.rule, problem.subject): problem
            for problem in sorted(found.problems, key=lambda one: one.last_time)
        }  # those before were over when it began
        for problem in found.problems:
            key = (problem.rule, problem.subject)
            if latest[key] is not problem:
                continue
            if last - problem.last_time > OVER:
                if self._open.pop(key, None) is not None:
                    print(f"{clock(last)} over: {problem_line(problem)}", file=sys.stderr)
            else:
                if key not in self._open:
                    print(f"{clock(problem.first_time)} {problem_line(problem)}", file=sys.stderr)
                self._open[key] = problem
