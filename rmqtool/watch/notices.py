"""Events of a watch: problems as they start, change, and end, and its own state.

Rules: an event is an object with `event`, `time`, and `text`; events of problems also have the
problem's fields. Text from the network is printable in lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from analytics.diagnosis.problem import ProblemSeverity
from dissectors.times import text_of_time

from ..summary.watch import ProblemChange, ProblemEvent, event_lines
from ..ui.figures import clock
from .local_ends import LocalEnd


class NoticeKind(StrEnum):
    """Kinds of events of the watch itself."""

    WATCHING = "watching"
    STATUS = "status"
    STOPPED = "stopped"
    INTERFACE_DOWN = "interface_down"
    INTERFACE_UP = "interface_up"
    PACKETS_DROPPED = "packets_dropped"
    CLOCK_JUMPED = "clock_jumped"
    RING_FAILED = "ring_failed"
    RING_RESUMED = "ring_resumed"
    INCIDENT_KEPT = "incident_kept"
    INCIDENT_FAILED = "incident_failed"


_SEVERITIES: Final = {
    NoticeKind.INTERFACE_DOWN: ProblemSeverity.ERROR,
    NoticeKind.PACKETS_DROPPED: ProblemSeverity.WARNING,
    NoticeKind.CLOCK_JUMPED: ProblemSeverity.WARNING,
    NoticeKind.RING_FAILED: ProblemSeverity.ERROR,
    NoticeKind.INCIDENT_FAILED: ProblemSeverity.WARNING,
}
"""all others are info"""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event as text lines and as JSON."""

    severity: ProblemSeverity
    lines: Sequence[str]
    """printable lines; empty: not shown to people"""
    value: Mapping[str, object] = field(default_factory=dict)
    """as JSON"""


def notice(kind: NoticeKind, time: int, text: str, **facts: object) -> WatchEvent:
    """Return an event of the watch itself; `time` in ns since the epoch."""
    severity = _SEVERITIES.get(kind, ProblemSeverity.INFO)
    value = {"event": str(kind), "time": text_of_time(time), "severity": str(severity)}
    return WatchEvent(severity, [f"{clock(time)} {text}"], {**value, "text": text, **facts})


def problem_events(
    events: Sequence[ProblemEvent], ends: Mapping[int, Sequence[LocalEnd]]
) -> list[WatchEvent]:
    """Return events of problems; `ends`: local ends of some connections, by index of the event."""
    result: list[WatchEvent] = []
    started: ProblemEvent | None = None
    for number, event in enumerate(events):
        value = event.as_json()
        value["text"] = event.problem.title
        lines = event_lines([event])
        if event.kind is ProblemChange.ENDED and started is not None:
            both = event_lines([started, event])
            if started.problem is event.problem and len(both) == 1:  # ended when first seen
                merged = [*both, *result[-1].lines[1:]]
                result[-1] = WatchEvent(event.problem.severity, merged, result[-1].value)
                lines = []
        if number in ends:
            value["ends"] = msgspec.to_builtins(ends[number])
            lines = [*lines, *(f"  {end.text}" for end in ends[number])]
        result.append(WatchEvent(event.problem.severity, lines, value))
        started = event if event.kind is ProblemChange.STARTED else None
    return result
