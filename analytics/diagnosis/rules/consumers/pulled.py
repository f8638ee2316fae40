"""Pull responses of one queue over time: fetch progress, and the end of the queue."""

from __future__ import annotations

from typing import Any, Final, Generic, NamedTuple, TypeVar

from dissectors.remoting.row_facts.ext_fields import offsets_in
from dissectors.remoting.row_facts.names import FIRST_KEY, OFFSETS, fact_in
from dissectors.rows.record import ExchangeRecord

from ...problem import Evidence

FIRST_STEP: Final = 1_000_000_000
"""initial time step, ns"""
MAX_POINTS: Final = 64
"""maximum points of a queue; beyond that time steps get longer"""
MAX_KEYS: Final = 256
"""maximum messages of a queue known by key: those at its highest offsets"""
_OFFSETS: Final = f"{OFFSETS}="
"""the first fact of a pull"""
_UNKNOWN: Final = " -"
"""end of the fact if the response has no end offset"""


class Point(NamedTuple):
    """The content of a pull response."""

    time: int
    following: int
    """next fetch offset"""
    end: int
    """end offset of the queue"""
    capture: str
    packet: int
    conversation: int
    broker_name: str
    """broker name in the pull; empty if absent"""

    @property
    def lag(self) -> int:
        """Messages in the queue that were not fetched."""
        return messages_behind(self.end, self.following)

    def evidence(self, queue: int, done: str = "fetched") -> Evidence:
        """Return the response as evidence, built on demand because few points need it."""
        text = f"queue {queue}: {done} up to {self.following} of {self.end}, {self.lag} behind"
        return Evidence(self.capture, self.packet or None, self.time, self.conversation, text)


_Response = tuple[int, str, str, int, int, str]
"""time, fact of the offsets, capture, packet, conversation, broker: parsed only in the end, as
there are as many as pulls"""


P = TypeVar("P", bound=tuple[Any, ...])


class LastPoints(Generic[P]):
    """Points that begin with their time in ns: the last one of each time step.

    Steps get longer over time, independently of the order of additions.
    """

    __slots__ = ("_points", "_step")

    def __init__(self) -> None:
        self._step = FIRST_STEP
        self._points: dict[int, P] = {}

    def add(self, point: P) -> None:
        """Add a point."""
        at = point[0] // self._step
        before = self._points.get(at)
        if before is None or point > before:
            self._points[at] = point
        if len(self._points) > MAX_POINTS:
            self._step *= 2
            points, self._points = self._points, {}
            for known in points.values():
                self.add(known)

    def ordered(self) -> list[P]:
        """Return the points, sorted by time."""
        return [self._points[at] for at in sorted(self._points)]


class Series:
    """Pulls of one queue: the last one of each time step."""

    __slots__ = ("_keys", "_points")

    def __init__(self) -> None:
        self._keys: dict[int, str] = {}
        self._points: LastPoints[_Response] = LastPoints()

    def add(self, row: ExchangeRecord) -> None:
        """Add a pull that `says_end`."""
        key = fact_in(row.facts, FIRST_KEY)
        if key is not None and row.queue_offset is not None:
            # Captures of different runs may have different messages at an offset.
            self._keys[row.queue_offset] = min(self._keys.get(row.queue_offset, key), key)
            if len(self._keys) > 2 * MAX_KEYS:
                self._keys = {message: self._keys[message] for message in self._named()}
        time, packet, name = row.response_time or 0, row.response_packet or 0, row.broker_name or ""
        self._points.add((time, row.facts[0], row.capture, packet, row.conversation, name))

    def _named(self) -> list[int]:
        return sorted(self._keys)[-MAX_KEYS:]

    def key_at(self, offset: int) -> str | None:
        """Return the UNIQ_KEY of the message at an offset, or None if no pull began with it."""
        return self._keys[offset] if offset in self._named() else None

    def ordered(self) -> list[Point]:
        """Return the points, sorted by time."""
        points = []
        for time, fact, capture, packet, conversation, name in self._points.ordered():
            _, following, _, end = offsets_in((fact,))
            if following is not None and end is not None:
                points.append(Point(time, following, end, capture, packet, conversation, name))
        return points


def messages_behind(end: int, offset: int) -> int:
    """Return the lag of an offset, fetched or committed, behind the end of its queue.

    An offset beyond the end has no lag: the end is older than the offset.
    """
    return max(0, end - offset)


def says_end(row: ExchangeRecord) -> bool:
    """Return whether a pull response contains the end of the queue."""
    fact = row.facts[0] if row.facts else ""
    return (
        row.response_time is not None and fact.startswith(_OFFSETS) and not fact.endswith(_UNKNOWN)
    )
