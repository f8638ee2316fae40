"""Problems of a live capture as events: each starts, may change, and ends.

Rules: a problem ends when its rule says so: by a sign of recovery or, for repeated events, by
quiet. Problems for which quiet proves nothing, such as a dead server, do not end. A problem that
later rows explain differently is withdrawn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.problem import OVER, Problem, ProblemState, Subject, as_json
from analytics.diagnosis.registry import rule_of
from dissectors.decode.pending import Pending
from dissectors.times import text_of_time

from ..ui.figures import clock
from .verdict import problem_line

LOOK: Final = 1.0
"""seconds between checks for problems"""
MOST: Final = 2.0
"""seconds between checks when checks are slow"""
SHARE: Final = 20
"""checks may use a twentieth of the time, within MOST"""
FIRST_GROWTH: Final = 10_000_000_000
"""ns after which a problem that only grows is reported again; then after twice as long, and so on
"""
LAST_GROWTH: Final = 320_000_000_000
SAME: Final = 1_000_000_000
"""ns by which the end of an ended problem may still be corrected"""
WITHDRAWN: Final = "withdrawn"
"""state of a problem that later rows explain differently"""
NOT_SEEN: Final = "not seen again"
"""state of a problem without a sign in a whole window, although quiet does not end it"""


class ProblemChange(StrEnum):
    """Changes of a problem."""

    STARTED = "started"
    CHANGED = "changed"
    ENDED = "ended"
    FINAL = "final"
    """final state at the end of the capture"""


class ProblemEvent(NamedTuple):
    """A change of a problem."""

    kind: ProblemChange
    time: int
    """ns since the epoch, by the clock of the capture"""
    problem: Problem
    state: str | None
    """as of the problem, or WITHDRAWN"""

    def as_json(self) -> dict[str, object]:
        """Return the problem as one object, with the change in front."""
        head = {"event": str(self.kind), "time": text_of_time(self.time)}
        return {**head, **as_json(self.problem), "state": self.state}


@dataclass(slots=True)
class _Open:
    """A problem that started and has not ended."""

    problem: Problem
    reported: int
    """time of the last event"""
    growth: int = FIRST_GROWTH
    carried: int = 0
    """time until which it stays open without a sign, as its rows are dropped; 0: not dropped"""


_Key = tuple[str, Subject, str]


class Watch:
    """Checks for problems periodically and reports changes."""

    def __init__(
        self,
        engine: Engine,
        pending: Callable[[], Pending],
        clock: Callable[[], float] | None = None,
        most: float = MOST,
    ) -> None:
        """`pending` returns the unsettled rows.

        `clock`: seconds, which schedule the checks; None: those of this machine. `most`: longest
        interval between checks in seconds, when checks are slow.
        """
        self.engine = engine
        """the engine that receives rows"""
        self._pending = pending
        self._clock = clock or (lambda: time.monotonic())
        self._most = most
        self._next = 0.0
        self._open: dict[_Key, _Open] = {}
        self._ended: dict[_Key, int] = {}
        """ended problems -> their last sign"""

    def look(self) -> list[ProblemEvent]:
        """Check if it is due; return the changes."""
        if self._clock() < self._next:
            return []
        begin = time.thread_time()
        now, requests, connections = self._pending()
        if not now:
            return []
        self.engine.see_pending(now, requests, connections)
        events = self._events(self.engine.diagnosis().problems, now)
        took = time.thread_time() - begin  # CPU time: a busy machine must not delay checks
        self._next = self._clock() + min(max(LOOK, SHARE * took), self._most)
        return events

    def turn(
        self, engine: Engine, pending: Callable[[], Pending], window: int, shift: int = 0
    ) -> None:
        """Continue with another engine, which has seen only the latest rows, or none.

        Problems stay open until quiet ends them, or until `window` ns without a sign. `shift`: ns
        by which the clock of the capture jumped.
        """
        self.engine, self._pending, self._next = engine, pending, 0.0
        for state in self._open.values():
            state.carried = (state.carried or _carried_until(state.problem, window)) + shift
            state.reported += shift

    def open_problems(self) -> list[Problem]:
        """Return the open problems."""
        return [state.problem for state in self._open.values()]

    def last_look(self) -> list[ProblemEvent]:
        """Check a last time after the end of the capture, when all rows are settled."""
        self.finish()
        diagnosis = self.engine.diagnosis()
        return self._events(diagnosis.problems, diagnosis.context.last_time or 0)

    def finish(self) -> None:
        """Drop unsettled rows: at the end of the capture all rows are settled."""
        self.engine.see_pending(0, (), ())

    def _events(self, problems: Sequence[Problem], now: int) -> list[ProblemEvent]:
        latest = {
            (item.rule, item.subject, item.part): item
            for item in sorted(problems, key=lambda item: item.last_time)
        }  # earlier ones had ended when it began
        self._ended = {key: last for key, last in self._ended.items() if key in latest}
        events: list[ProblemEvent] = []
        # A problem whose subject became better known has another key, but is not a new one.
        fresh = [key for key in latest if key not in self._open]
        for key in [key for key in self._open if key not in latest]:
            ended = self._open.pop(key)
            same = next((item for item in fresh if _is_same(ended.problem, latest[item])), None)
            if same is not None:
                fresh.remove(same)
                self._open[same] = ended
            elif now < ended.carried:
                self._open[key] = ended
            elif ended.carried:
                state = str(ProblemState.OVER) if _quiet_ends(ended.problem) else NOT_SEEN
                events.append(ProblemEvent(ProblemChange.ENDED, now, ended.problem, state))
            else:
                events.append(ProblemEvent(ProblemChange.ENDED, now, ended.problem, WITHDRAWN))
        for problem in problems:
            key = problem.rule, problem.subject, problem.part
            if latest[key] is problem:
                self._compare(key, problem, now, events)
        return events

    def _compare(self, key: _Key, problem: Problem, now: int, events: list[ProblemEvent]) -> None:
        """Append the change of a problem since the last check."""
        known = self._open.get(key)
        is_over = problem.state is ProblemState.OVER
        if known is None:
            # The rules find a problem that has ended again in each check, as long as its rows stay.
            if is_over and problem.last_time - self._ended.get(key, 0) <= SAME:
                return
            events.append(ProblemEvent(ProblemChange.STARTED, now, problem, problem.state))
            self._open[key] = _Open(problem, now)
        elif not is_over and self._has_changed(known, problem, now):
            events.append(ProblemEvent(ProblemChange.CHANGED, now, problem, problem.state))
            self._open[key] = _Open(problem, now, min(2 * known.growth, LAST_GROWTH))
        elif known.carried:
            known.carried = 0
        if is_over:
            events.append(ProblemEvent(ProblemChange.ENDED, now, problem, problem.state))
            del self._open[key]
            self._ended[key] = problem.last_time

    @staticmethod
    def _has_changed(known: _Open, problem: Problem, now: int) -> bool:
        before = known.problem
        if (before.severity, before.confidence) != (problem.severity, problem.confidence):
            return True
        # Titles have counts, which nearly each row changes.
        grew = before.title != problem.title and before.count <= problem.count
        return grew and now - known.reported >= known.growth


def _is_same(before: Problem, problem: Problem) -> bool:
    """Return whether a problem equals an earlier one, with its subject better known.

    A broker gets its name from a route, and a topic or group is named while it is the only one.
    """
    if (before.rule, before.part) != (problem.rule, problem.part):
        return False
    if before.first_time > problem.last_time or problem.first_time > before.last_time:
        return False
    shared = {
        (evidence.packet, evidence.conversation, evidence.time) for evidence in before.evidence
    }
    return any(
        (evidence.packet, evidence.conversation, evidence.time) in shared
        for evidence in problem.evidence
    )


def _carried_until(problem: Problem, window: int) -> int:
    """Return until when a problem without rows stays open without a sign."""
    if not _quiet_ends(problem):
        return problem.last_time + window
    # As the engine judges it: a problem has ended after twice the mean time between its signs.
    several = problem.count - 1
    usual = 2 * (problem.last_time - problem.first_time) // several if several > 0 else 0
    return problem.last_time + max(OVER, min(usual, window))


def _quiet_ends(problem: Problem) -> bool:
    rule = rule_of(problem.rule)
    return rule is None or (rule.quiet_ends and rule.lasts is not None)


def event_lines(events: Sequence[ProblemEvent]) -> list[str]:
    """Return events as printable lines; a problem that was over when it was seen is one line."""
    lines: list[str] = []
    started = None
    for event in events:
        line = problem_line(event.problem)
        if (
            event.kind is ProblemChange.ENDED
            and event.problem is started
            and event.state != WITHDRAWN
        ):
            lines[-1] += ", ended"
        elif event.kind is ProblemChange.ENDED:
            lines.append(f"{clock(event.time)} {event.state}: {line}")
        else:
            lines.append(f"{clock(event.time)} {line}")
        started = event.problem if event.kind is ProblemChange.STARTED else None
    return lines
