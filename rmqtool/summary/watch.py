"""Problems while a capture goes on, as events: each starts, may change, and ends.

Rules: a problem ends where its rule says that it is over: by a sign that it is, or, of what happens
again and again, by quiet. What quiet proves nothing of, as a server that is still dead, does not
end. A problem that what was seen later explains otherwise is withdrawn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.problem import Problem, ProblemState, Subject, as_json
from dissectors.decode.pending import Pending
from dissectors.times import text_of_time

from ..ui.figures import clock
from .verdict import problem_line

LOOK: Final = 1.0
"""seconds between two looks at what is wrong"""
MOST: Final = 2.0
"""the same where looks take long"""
SHARE: Final = 20
"""a look may take a twentieth of the time, as far as that is not over MOST"""
FIRST_GROWTH: Final = 10_000_000_000
"""ns after which a problem that only grows is reported again; then after twice as long, and so on
"""
LAST_GROWTH: Final = 320_000_000_000
SAME: Final = 1_000_000_000
"""ns by which the end of what was over may come to be better known"""
WITHDRAWN: Final = "withdrawn"
"""state of a problem that what was seen later explains otherwise"""


class ProblemChange(StrEnum):
    """What happened to a problem."""

    STARTED = "started"
    CHANGED = "changed"
    ENDED = "ended"
    FINAL = "final"
    """the capture has ended: this is the last word on it"""


class ProblemEvent(NamedTuple):
    """Something that happened to a problem."""

    kind: ProblemChange
    time: int
    """ns since the epoch, by the clock of the capture"""
    problem: Problem
    state: str | None
    """as of the problem, or WITHDRAWN"""

    def as_json(self) -> dict[str, object]:
        """Return it as one object: that of the problem, with what happened in front."""
        head = {"event": str(self.kind), "time": text_of_time(self.time)}
        return {**head, **as_json(self.problem), "state": self.state}


@dataclass(slots=True)
class _Open:
    """A problem that started and has not ended."""

    problem: Problem
    told: int
    """time of the last event"""
    growth: int = FIRST_GROWTH


_Key = tuple[str, Subject, str]


class Watch:
    """Looks now and then at what is wrong, and says what happened since."""

    def __init__(self, engine: Engine, pending: Callable[[], Pending]) -> None:
        """`pending` gives what is not settled at the moment."""
        self.engine = engine
        """what is fed with rows"""
        self._pending = pending
        self._next = 0.0
        self._open: dict[_Key, _Open] = {}
        self._told: dict[_Key, int] = {}
        """problems that ended, of those that there are -> their last sign"""

    def look(self) -> list[ProblemEvent]:
        """Look again where it is time; return what happened."""
        if time.monotonic() < self._next:
            return []
        begin = time.thread_time()
        now, requests, connections = self._pending()
        if not now:
            return []
        self.engine.see_pending(now, requests, connections)
        events = self._events(self.engine.diagnosis().problems, now)
        took = time.thread_time() - begin  # by this: on a busy machine a look must not be rarer
        self._next = time.monotonic() + min(max(LOOK, SHARE * took), MOST)
        return events

    def finish(self) -> None:
        """Forget what was not settled: the capture has ended, and all of it is."""
        self.engine.see_pending(0, (), ())

    def _events(self, problems: Sequence[Problem], now: int) -> list[ProblemEvent]:
        latest = {
            (one.rule, one.subject, one.part): one
            for one in sorted(problems, key=lambda one: one.last_time)
        }  # those before were over when it began
        self._told = {key: last for key, last in self._told.items() if key in latest}
        events: list[ProblemEvent] = []
        fresh = [key for key in latest if key not in self._open]
        for key in [key for key in self._open if key not in latest]:
            gone = self._open.pop(key)
            same = next((one for one in fresh if _is_same(gone.problem, latest[one])), None)
            if same is not None:
                fresh.remove(same)
                self._open[same] = gone
            else:
                events.append(ProblemEvent(ProblemChange.ENDED, now, gone.problem, WITHDRAWN))
        for problem in problems:
            key = problem.rule, problem.subject, problem.part
            if latest[key] is problem:
                self._compare(key, problem, now, events)
        return events

    def _compare(self, key: _Key, problem: Problem, now: int, events: list[ProblemEvent]) -> None:
        """Append what happened to a problem since the last look."""
        known = self._open.get(key)
        is_over = problem.state is ProblemState.OVER
        if known is None:
            if is_over and problem.last_time - self._told.get(key, 0) <= SAME:
                return
            events.append(ProblemEvent(ProblemChange.STARTED, now, problem, problem.state))
            self._open[key] = _Open(problem, now)
        elif not is_over and self._has_changed(known, problem, now):
            events.append(ProblemEvent(ProblemChange.CHANGED, now, problem, problem.state))
            self._open[key] = _Open(problem, now, min(2 * known.growth, LAST_GROWTH))
        if is_over:
            events.append(ProblemEvent(ProblemChange.ENDED, now, problem, problem.state))
            del self._open[key]
            self._told[key] = problem.last_time

    @staticmethod
    def _has_changed(known: _Open, problem: Problem, now: int) -> bool:
        before = known.problem
        if (before.severity, before.confidence) != (problem.severity, problem.confidence):
            return True
        return before.title != problem.title and now - known.told >= known.growth


def _is_same(before: Problem, problem: Problem) -> bool:
    """Return whether a problem is another one with what it is about better known.

    A broker gets its name from a route, and a topic or group is named while it is the only one.
    """
    if (before.rule, before.part) != (problem.rule, problem.part):
        return False
    if before.first_time > problem.last_time or problem.first_time > before.last_time:
        return False
    shared = {(one.packet, one.conversation, one.time) for one in before.evidence}
    return any((one.packet, one.conversation, one.time) in shared for one in problem.evidence)


def event_lines(events: Sequence[ProblemEvent]) -> list[str]:
    """Return events as printable lines; a problem that was over when it was seen is one line."""
    lines: list[str] = []
    started = None
    for one in events:
        line = problem_line(one.problem)
        if one.kind is ProblemChange.ENDED and one.problem is started and one.state != WITHDRAWN:
            lines[-1] += ", ended"
        elif one.kind is ProblemChange.ENDED:
            lines.append(f"{clock(one.time)} {one.state}: {line}")
        else:
            lines.append(f"{clock(one.time)} {line}")
        started = one.problem if one.kind is ProblemChange.STARTED else None
    return lines
