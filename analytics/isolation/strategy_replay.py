"""Replay of the fault strategy over the captured attempts of one producer.

Pure logic over arrays, without Spark. Rules: `replay.fault` decides, fed with each attempt's start,
outcome, and the time when the client knew it. Windows are computed as if the strategy were on;
`verdict_of` judges separately whether it was. Attempts with unknown outcome change nothing. A
response that cannot change a window is not replayed, so the work grows with the failures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from replay.fault import AttemptEvent, ChoiceReason, FaultSettings, FaultStrategy

from ..sends import attempts
from .producer_attempts import ProducerAttempts

if TYPE_CHECKING:
    from numpy.typing import NDArray

EDGE_US = 20_000
"""Tolerance at both ends of a window, where packets do not show what the client knew."""
ALL_ISOLATED = "no better broker"
EDGE = "at the edge"
UNSEEN = "after unseen attempts"
BROKEN = "strategy not followed"
NOT_IN_FORCE = "no strategy"
"""Instead of `BROKEN` in tables, for a client whose strategy is off or that has none."""
REASONS = (ALL_ISOLATED, EDGE, UNSEEN, BROKEN)
"""Why an attempt went to an isolated broker: the strategy had no better one; the window began or
ended too close to decide; since the window began, the client made attempts visible only as failed
connects, which changed its state; or the strategy is off, or queues are selected manually.
"""
ABANDONED_TIMES = 10
ABANDONED_ATTEMPTS = 20
"""A broker is abandoned after this multiple of its isolation, with this many attempts elsewhere."""
CHANCE = 0.01
"""A client avoids brokers deliberately if chance alone is less probable than this."""

_EVENTS = {
    attempts.STORED: AttemptEvent.ANSWERED,
    attempts.REFUSED: AttemptEvent.BROKER_ERROR,
    attempts.ONEWAY: AttemptEvent.HANDED_OVER,
    **dict.fromkeys(
        (
            attempts.LATE,
            attempts.RESET,
            attempts.CLOSED,
            attempts.TIMED_OUT,
            attempts.CONNECT_REFUSED,
            attempts.CONNECT_UNANSWERED,
            attempts.NOT_SENT,
        ),
        AttemptEvent.TRANSPORT_ERROR,
    ),
}
"""Outcome of an attempt -> event for the strategy."""
_CALM = (attempts.STORED, attempts.ONEWAY)

ON = "on"
OFF = "off"
NO_STRATEGY = "none"
OTHER_GENERATION = "other generation"
UNDETERMINED = "unknown"
VERDICTS = (ON, OFF, NO_STRATEGY, OTHER_GENERATION, UNDETERMINED)
"""Whether the client had the strategy on, inferred from its behavior."""


@dataclass(slots=True)
class Window:
    """A period in which a broker is avoided; µs since the epoch."""

    broker: str
    start: int
    end: int
    """end of the isolation, by time or by a response"""
    cause: str
    """first cause of the isolation"""
    attempt: int
    """index of that attempt"""
    events: int = 1
    """failures and slow responses that began or extended it"""
    ended_by: str = "time"
    """`time`, or `response` if a fast response ended it"""


@dataclass(frozen=True, slots=True)
class Violations:
    """Attempts at isolated brokers, by time; all columns have the same length."""

    attempt: NDArray[np.int64]
    """index of the attempt"""
    window: NDArray[np.int64]
    """index of its window"""
    why: NDArray[np.int64]
    """index into REASONS"""

    def __len__(self) -> int:
        return len(self.attempt)

    def because(self, reason: str) -> NDArray[np.int64]:
        """Return the attempts with this reason."""
        chosen: NDArray[np.int64] = self.attempt[self.why == REASONS.index(reason)]
        return chosen


_NONE = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class Replay:
    """Result of the strategy's replay over a producer's attempts."""

    settings: FaultSettings
    windows: list[Window] = field(default_factory=list)
    violations: Violations = Violations(_NONE, _NONE, _NONE)
    avoided: int = 0
    """attempts at brokers not isolated while another broker of the topic was"""
    chance: float = 1.0
    """probability of that for a client that uses all brokers of the topic in turn"""

    @property
    def broken(self) -> int:
        """Number of attempts that the strategy would have prevented."""
        return len(self.violations.because(BROKEN))


def replayed(producer: ProducerAttempts, settings: FaultSettings) -> Replay:
    """Return the windows of the strategy, and the attempts at isolated brokers."""
    result = Replay(settings)
    reports = _reports(producer, settings)
    _open_windows(producer, reports, result)
    if result.windows:
        result.violations = _judge(producer, reports, result)
        result.avoided, result.chance = _avoided(producer, result)
    return result


def _reports(producer: ProducerAttempts, settings: FaultSettings) -> list[int]:
    """Return the attempts reported to the strategy, by the time when the client knew.

    Includes all that may isolate; of the others, the first at each broker, and the first at the
    same broker after each isolating one: it ends the isolation before 5.1.4, and marks the broker
    as reachable since then.
    """
    least = next(
        (
            latency
            for latency, duration in zip(settings.latency_max, settings.not_available, strict=True)
            if duration > 0
        ),
        None,
    )
    known = (producer.end >= 0) & producer.outcome.among(_EVENTS)
    isolating = known & ~producer.outcome.among(_CALM)
    if least is not None:
        slow = producer.end - producer.begin >= least * 1000
        isolating |= known & slow & producer.outcome.among((attempts.STORED,))
    chosen = np.flatnonzero(isolating)
    if len(chosen):
        chosen = np.union1d(chosen, _next_calm(producer, known & ~isolating, chosen))
    return [int(index) for index in chosen[np.argsort(producer.end[chosen], kind="stable")]]


def _next_calm(
    producer: ProducerAttempts, calm: NDArray[np.bool_], isolating: NDArray[np.intp]
) -> NDArray[np.intp]:
    broker = producer.broker.codes
    positions: list[int] = []
    for code in range(len(producer.broker.names)):
        at_broker = np.flatnonzero(calm & (broker == code))
        at_broker = at_broker[np.argsort(producer.end[at_broker], kind="stable")]
        positions.extend(at_broker[:1])
        times = producer.end[isolating[broker[isolating] == code]]
        places = np.searchsorted(producer.end[at_broker], times, side="left")
        positions.extend(at_broker[places[places < len(at_broker)]])
    return np.array(sorted(set(positions)), dtype=np.intp)


def _tell(strategy: FaultStrategy, producer: ProducerAttempts, index: int) -> None:
    begin, end = int(producer.begin[index]), int(producer.end[index])
    event = _EVENTS[producer.outcome.text(index)]
    latency = max(end - begin, 0) // 1000
    strategy.report(producer.broker.text(index), event, latency, end // 1000)


def _open_windows(producer: ProducerAttempts, reports: Sequence[int], result: Replay) -> None:
    """Run the strategy over the reports and record when each isolation begins and ends."""
    strategy = FaultStrategy(result.settings)
    current: dict[str, Window] = {}
    for index in reports:
        broker, now = producer.broker.text(index), int(producer.end[index])
        before = strategy.isolated_until(broker) * 1000
        _tell(strategy, producer, index)
        until = strategy.isolated_until(broker) * 1000
        if until != before:
            until += now % 1000  # the strategy uses milliseconds
        window = current.get(broker)
        if until > now and (window is None or before <= now):
            window = Window(broker, now, until, _cause(producer, index), index)
            current[broker] = window
            result.windows.append(window)
        elif until > now and window is not None:
            window.events += 1
            window.end = until if until != before else window.end
        elif before > now and window is not None:
            window.end, window.ended_by = now, "response"


def _cause(producer: ProducerAttempts, index: int) -> str:
    if producer.outcome[index] == attempts.STORED:
        return f"response after {(producer.end[index] - producer.begin[index]) // 1000} ms"
    return producer.cause.text(index)


def _judge(producer: ProducerAttempts, reports: Sequence[int], result: Replay) -> Violations:
    """Query the strategy, in its state at that time, about the attempts at isolated brokers.

    Between two state changes (reports and ends of isolation) it gives the same result for all
    attempts with the same route and last broker, so it is queried once.
    """
    index, window = _inside(producer, result.windows)
    begin = producer.begin[index]
    starts = np.array([each.start for each in result.windows], dtype=np.int64)[window]
    ends = np.array([each.end for each in result.windows], dtype=np.int64)
    by_time = np.array([each.ended_by == "time" for each in result.windows])[window]
    edge = (begin < starts + EDGE_US) | (by_time & (begin > ends[window] - EDGE_US))
    epoch = np.searchsorted(np.unique(np.append(producer.end[reports], ends)), begin, side="right")
    routes, route_of = producer.routes
    route = route_of[producer.topic.codes[index] + 1]
    count = len(producer.broker.names) + 1
    key = (epoch * len(routes) + route) * count + producer.last_broker.codes[index] + 1
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    permitted, wanting = _responses(producer, reports, result.settings, index[first])
    may = permitted[same, producer.broker.codes[index]]
    why = np.where(edge | may, REASONS.index(EDGE), REASONS.index(BROKEN))
    for first_unseen, last_unseen in producer.unseen:
        since = (starts <= last_unseen) & (begin >= first_unseen)
        why[since & (why == REASONS.index(BROKEN))] = REASONS.index(UNSEEN)
    why[may & wanting[same]] = REASONS.index(ALL_ISOLATED)
    return Violations(index, window, why)


def _responses(
    producer: ProducerAttempts,
    reports: Sequence[int],
    settings: FaultSettings,
    asked: NDArray[np.int64],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the brokers that the strategy allows for each attempt; attempts are sorted by time.

    One row per attempt, one column per broker; and for each attempt, whether no broker was
    available.
    """
    strategy = FaultStrategy(settings)
    routes, route_of = producer.routes
    permitted = np.zeros((len(asked), len(producer.broker.names)), dtype=bool)
    wanting = np.zeros(len(asked), dtype=bool)
    upcoming_reports = iter(reports)
    upcoming = next(upcoming_reports, None)
    for place, index in enumerate(asked.tolist()):
        begin = int(producer.begin[index])
        while upcoming is not None and producer.end[upcoming] <= begin:
            _tell(strategy, producer, upcoming)
            upcoming = next(upcoming_reports, None)
        brokers = routes[route_of[producer.topic.codes[index] + 1]]
        allowed, why = strategy.allowed(brokers, producer.last_broker[index], begin // 1000)
        permitted[place] = [name in allowed for name in producer.broker.names]
        wanting[place] = why is not ChoiceReason.AVAILABLE
    return permitted, wanting


def _inside(
    producer: ProducerAttempts, windows: Sequence[Window]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the attempts started at a broker while it was isolated, by time, and their windows."""
    attempt, number = [_NONE], [_NONE]
    for code, name in enumerate(producer.broker.names):
        own = [place for place, window in enumerate(windows) if window.broker == name]
        if own:
            at_broker = np.flatnonzero(producer.broker.codes == code)
            begins = producer.begin[at_broker]
            spans = [(windows[place].start, windows[place].end) for place in own]
            first, last = np.searchsorted(begins, np.array(spans)).T
            attempt.extend(at_broker[start:stop] for start, stop in zip(first, last, strict=True))
            number.extend(
                np.full(stop - start, place)
                for place, start, stop in zip(own, first, last, strict=True)
            )
    index, window = np.concatenate(attempt), np.concatenate(number)
    order = np.lexsort((index, producer.begin[index]))
    return index[order].astype(np.int64), window[order].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Absence:
    """How long a broker stayed unused after its isolation ended."""

    absent_us: int
    elsewhere: int
    """attempts at other brokers of its topics since then"""
    abandoned: bool


def absence_of(producer: ProducerAttempts, window: Window, last: int) -> Absence | None:
    """Return how long a broker was unused after its last window, or None if it was used.

    `last` is when the producer was last seen, in µs.
    """
    begin = producer.begin
    here = producer.broker.among((window.broker,))
    if int(begin[here].max()) >= window.end or window.end > last:
        return None
    topics = {
        name for name, brokers in producer.brokers_of_topics.items() if window.broker in brokers
    }
    since = (begin > window.end) & ~here & producer.topic.among(topics)
    absent, elsewhere = last - window.end, int(since.sum())
    long = absent > ABANDONED_TIMES * (window.end - window.start)
    return Absence(absent, elsewhere, long and elsewhere >= ABANDONED_ATTEMPTS)


def _avoided(producer: ProducerAttempts, replay: Replay) -> tuple[int, float]:
    """Return how many attempts could have hit an isolated broker but did not, and the probability.

    Attempts near the ends of a window do not count, nor do those after another attempt, which avoid
    the last broker anyway.
    """
    topics = producer.brokers_of_topics
    elsewhere = np.zeros(len(producer), dtype=bool)
    for name in {window.broker for window in replay.windows}:
        spans = [
            (window.start + EDGE_US, window.end - EDGE_US)
            for window in replay.windows
            if window.broker == name and window.end - window.start > 2 * EDGE_US
        ]
        shared = {topic for topic, brokers in topics.items() if name in brokers}
        meets = producer.topic.among(shared) & ~producer.broker.among((name,))
        if "" in shared:
            meets |= (producer.topic.codes < 0) & ~producer.broker.among((name,))
        for start, stop in np.searchsorted(producer.begin, np.array(spans).reshape(-1, 2)):
            elsewhere[start:stop] |= meets[start:stop]
    elsewhere &= producer.last_broker.codes < 0
    elsewhere[replay.violations.attempt] = False
    chance = 1.0
    for code, count in zip(
        *np.unique(producer.topic.codes[elsewhere], return_counts=True), strict=True
    ):
        brokers = topics[producer.topic.names[code] if code >= 0 else ""]
        chance *= float((1 - 1 / max(len(brokers), 2)) ** int(count))
    return int(elsewhere.sum()), chance
