"""What answers to pulls say of one queue over time: how far it is fetched, and where it ends."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

from dissectors.remoting.row_facts.ext_fields import offsets_in
from dissectors.remoting.row_facts.names import OFFSETS
from dissectors.rows.record import ExchangeRecord

from ...problem import Evidence

FIRST_STEP: Final = 1_000_000_000
"""ns of a step of time at first"""
MAX_POINTS: Final = 64
"""points of a queue; where there are more, time is taken in longer steps"""
MAX_PULLERS: Final = 64
TOGETHER: Final = 0.2
"""of the time: members that hand a queue over pull it together for a moment only"""
_OFFSETS: Final = f"{OFFSETS}="
"""the first fact of a pull"""
_UNKNOWN: Final = " -"
"""ends it where the answer names no end of the queue"""


class Point(NamedTuple):
    """What an answer to a pull says."""

    time: int
    following: int
    """offset that is fetched next"""
    end: int
    """offset at which the queue ends"""
    capture: str
    packet: int
    conversation: int
    broker_name: str
    """as the pull names it; empty where it does not"""

    @property
    def lag(self) -> int:
        """Messages that the queue has and that were not fetched."""
        return max(0, self.end - self.following)

    def evidence(self, queue: int, done: str = "fetched") -> Evidence:
        """Return the answer as evidence, which most points never become."""
        what = f"queue {queue}: {done} up to {self.following} of {self.end}, {self.lag} behind"
        return Evidence(self.capture, self.packet or None, self.time, self.conversation, what)


_Answer = tuple[int, str, str, int, int, str]
"""time, fact of the offsets, capture, packet, conversation, broker: taken apart in the end only, as
there are as many as pulls"""


class Series:
    """Points of one queue: the last one of each step of time.

    Steps get longer as time goes on, which does not depend on the order of what is added.
    """

    __slots__ = ("points", "pullers", "step")

    def __init__(self) -> None:
        self.step = FIRST_STEP
        self.points: dict[int, _Answer] = {}
        self.pullers: dict[str, tuple[int, int]] = {}
        """`address:port` of clients -> from when to when they were answered"""

    def add(self, row: ExchangeRecord) -> None:
        """Take a pull that `says_end`."""
        time, puller = row.response_time or 0, row.requester
        before = self.pullers.get(puller)
        if before is not None:
            if time > before[1]:
                self.pullers[puller] = (before[0], time)
            elif time < before[0]:
                self.pullers[puller] = (time, before[1])
        elif len(self.pullers) < MAX_PULLERS:
            self.pullers[puller] = (time, time)
        packet, name = row.response_packet or 0, row.broker_name or ""
        self._keep((time, row.facts[0], row.capture, packet, row.conversation, name))
        while len(self.points) > MAX_POINTS:
            self.step *= 2
            answers = list(self.points.values())
            self.points = {}
            for one in answers:
                self._keep(one)

    def _keep(self, answer: _Answer) -> None:
        at = answer[0] // self.step
        before = self.points.get(at)
        if before is None or answer > before:
            self.points[at] = answer

    def ordered(self) -> list[Point]:
        """Return the points by time."""
        found = []
        for at in sorted(self.points):
            time, fact, capture, packet, conversation, name = self.points[at]
            _, following, _, end = offsets_in((fact,))
            if following is not None and end is not None:
                found.append(Point(time, following, end, capture, packet, conversation, name))
        return found

    def is_shared(self) -> bool:
        """Return whether several clients pull the queue together, as in broadcasting."""
        spans = sorted(self.pullers.values())
        whole = max(last for _, last in spans) - spans[0][0]
        together = max(
            (min(one[1], other[1]) - other[0] for one, other in pairwise(spans)), default=0
        )
        return together > whole * TOGETHER


def says_end(row: ExchangeRecord) -> bool:
    """Return whether the answer to a pull says where the queue ends."""
    fact = row.facts[0] if row.facts else ""
    return (
        row.response_time is not None and fact.startswith(_OFFSETS) and not fact.endswith(_UNKNOWN)
    )
