"""Messages received by a group without offsets, by gRPC or POP, and its acknowledgements.

Rules: a delivery ends with an acknowledgement or a new invisible time. Counts are kept per time
step; steps get longer over time, independently of the order of additions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dissectors.remoting.row_facts.names import STORED_MS
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.outcome import RECEIVE_CALLS, is_pop
from dissectors.rows.record import ExchangeRecord

from ...problem import MS, Evidence, end_of, shown

FIRST_STEP: Final = 1_000_000_000
"""initial time step, ns"""
MAX_STEPS: Final = 128


class Stage(NamedTuple):
    """The progress of a group at the end of a time step."""

    time: int
    received: int
    """messages since the beginning"""
    done: int
    """acknowledged or returned messages"""
    age: int | None
    """age of the oldest received message of the step in ns; None: it received none"""
    evidence: Evidence


class _Step:
    """Events in a time step."""

    __slots__ = ("age", "done", "last", "received")

    def __init__(self) -> None:
        self.received = self.done = 0
        self.age: int | None = None
        self.last: Evidence | None = None

    def join(self, other: _Step) -> None:
        """Merge another step."""
        self.received += other.received
        self.done += other.done
        if other.age is not None:
            self.age = other.age if self.age is None else max(self.age, other.age)
        if other.last is not None:
            self.note(other.last)

    def note(self, evidence: Evidence) -> None:
        """Keep the latest exchange."""
        self.last = evidence if self.last is None else max(self.last, evidence)


class Received:
    """Deliveries to one group, of one topic."""

    def __init__(self) -> None:
        self._step = FIRST_STEP
        self._steps: dict[int, _Step] = {}

    def add(self, row: ExchangeRecord) -> None:
        """Add a response with messages, or one to an acknowledgement."""
        time = end_of(row)
        one = _Step()
        if row.request_name in RECEIVE_CALLS or is_pop(row.request_name):
            one.received = row.message_count or 0
            stored = number_in(row.facts, STORED_MS)
            # By two clocks: the rule looks at its growth, not at its value.
            one.age = None if stored is None else time - stored * MS
        else:
            one.done = row.message_count or 1
        one.note(shown(row))
        self._join(time // self._step, one)
        while len(self._steps) > MAX_STEPS:
            self._step *= 2
            steps, self._steps = self._steps, {}
            for at, step in steps.items():
                self._join(at // 2, step)

    def _join(self, at: int, step: _Step) -> None:
        if at in self._steps:
            self._steps[at].join(step)
        else:
            self._steps[at] = step

    def ordered(self) -> list[Stage]:
        """Return the points, sorted by time."""
        stages = []
        received = done = 0
        for at in sorted(self._steps):
            step = self._steps[at]
            assert step.last is not None, "each step has an exchange"
            received += step.received
            done += step.done
            stages.append(Stage(step.last.time, received, done, step.age, step.last))
        return stages
