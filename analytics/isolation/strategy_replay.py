"""The fault strategy replayed over the attempts of one producer that a capture shows.

Pure logic over arrays, without Spark. Rules: `replay.fault` decides, fed with what packets show of
each attempt: when the client began, when it knew, and what of. Windows are computed as if the
strategy were on; whether it was is a question of its own, answered by what the client did
(`verdict_of`). Attempts of which the capture cannot say what became change nothing. An answer that
cannot change a window is not replayed, so that the work grows with the failures.
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
"""Near the ends of a window nobody can say from packets what the client knew already."""
ALL_ISOLATED = "no better broker"
EDGE = "at the edge"
UNSEEN = "after unseen attempts"
BROKEN = "strategy not followed"
REASONS = (ALL_ISOLATED, EDGE, UNSEEN, BROKEN)
"""Why an attempt went to an isolated broker: the strategy had nothing better to give; the window
began or ended too close to tell; since the window began the client made attempts of which only
connects that failed were seen, which changed what it knew; or the strategy is off, or queues are
chosen by hand."""
GIVEN_UP_TIMES = 10
GIVEN_UP_ATTEMPTS = 20
"""A broker counts as given up after so many times its isolation, and attempts elsewhere."""
CHANCE = 0.01
"""A client is taken to avoid brokers on purpose when it would do so by chance less often."""

_EVENTS = {
    attempts.STORED: AttemptEvent.ANSWERED,
    attempts.REFUSED: AttemptEvent.BROKER_ERROR,
    attempts.ONEWAY: AttemptEvent.HANDED_OVER,
    **dict.fromkeys(
        (
            attempts.LATE,
            attempts.RESET,
            attempts.CLOSED,
            attempts.GIVEN_UP,
            attempts.CONNECT_REFUSED,
            attempts.CONNECT_NO_ANSWER,
            attempts.NOT_SENT,
        ),
        AttemptEvent.TRANSPORT_ERROR,
    ),
}
"""Outcome of an attempt -> what the client tells the strategy."""
_CALM = (attempts.STORED, attempts.ONEWAY)

ON = "on"
OFF = "off"
NO_STRATEGY = "none"
OTHER_GENERATION = "other generation"
UNTOLD = "unknown"
VERDICTS = (ON, OFF, NO_STRATEGY, OTHER_GENERATION, UNTOLD)
"""Whether the client had the strategy on, judged by what it did."""


@dataclass(slots=True)
class Window:
    """A time in which a broker is avoided; µs since the epoch."""

    broker: str
    start: int
    end: int
    """when it is over, or was ended by an answer"""
    cause: str
    """what isolated the broker first"""
    attempt: int
    """index of that attempt"""
    events: int = 1
    """failures and slow answers that began or prolonged it"""
    ended_by: str = "time"
    """`time`, or `answer` where a fast answer ended it"""


@dataclass(frozen=True, slots=True)
class Trespasses:
    """Attempts at brokers that were isolated, by time; all columns have one length."""

    attempt: NDArray[np.int64]
    """index of the attempt"""
    window: NDArray[np.int64]
    """index of the window that it fell into"""
    why: NDArray[np.int64]
    """index into REASONS"""

    def __len__(self) -> int:
        return len(self.attempt)

    def because(self, reason: str) -> NDArray[np.int64]:
        """Return the attempts of this reason."""
        chosen: NDArray[np.int64] = self.attempt[self.why == REASONS.index(reason)]
        return chosen


_NONE = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class Replay:
    """What the strategy makes of a producer's attempts."""

    settings: FaultSettings
    windows: list[Window] = field(default_factory=list)
    trespasses: Trespasses = Trespasses(_NONE, _NONE, _NONE)
    avoided: int = 0
    """attempts that went to a broker that was not isolated while another of the topic was"""
    chance: float = 1.0
    """how probable that is of a client that takes all brokers of the topic in turn"""

    @property
    def broken(self) -> int:
        """Attempts that a strategy that is on would not have made."""
        return len(self.trespasses.because(BROKEN))


def replayed(producer: ProducerAttempts, settings: FaultSettings) -> Replay:
    """Return the windows that the strategy gives, and what was sent in spite of them."""
    result = Replay(settings)
    reports = _reports(producer, settings)
    _open_windows(producer, reports, result)
    if result.windows:
        result.trespasses = _judge(producer, reports, result)
        result.avoided, result.chance = _avoided(producer, result)
    return result


def _reports(producer: ProducerAttempts, settings: FaultSettings) -> list[int]:
    """Return the attempts that are told to the strategy, by the time when the client knew.

    All that may isolate, and, of the others, the first at each broker, and the first at the same
    broker after each of these: it ends the isolation before 5.1.4, and says since then that the
    broker can be reached.
    """
    least = next(
        (
            latency
            for latency, duration in zip(settings.latency_max, settings.not_available, strict=True)
            if duration > 0
        ),
        None,
    )
    told = (producer.end >= 0) & producer.outcome.among(_EVENTS)
    isolating = told & ~producer.outcome.among(_CALM)
    if least is not None:
        slow = producer.end - producer.begin >= least * 1000
        isolating |= told & slow & producer.outcome.among((attempts.STORED,))
    chosen = np.flatnonzero(isolating)
    if len(chosen):
        chosen = np.union1d(chosen, _next_calm(producer, told & ~isolating, chosen))
    return [int(index) for index in chosen[np.argsort(producer.end[chosen], kind="stable")]]


def _next_calm(
    producer: ProducerAttempts, calm: NDArray[np.bool_], isolating: NDArray[np.intp]
) -> NDArray[np.intp]:
    broker = producer.broker.codes
    found: list[int] = []
    for code in range(len(producer.broker.names)):
        at_broker = np.flatnonzero(calm & (broker == code))
        at_broker = at_broker[np.argsort(producer.end[at_broker], kind="stable")]
        found.extend(at_broker[:1])
        times = producer.end[isolating[broker[isolating] == code]]
        places = np.searchsorted(producer.end[at_broker], times, side="left")
        found.extend(at_broker[places[places < len(at_broker)]])
    return np.array(sorted(set(found)), dtype=np.intp)


def _tell(strategy: FaultStrategy, producer: ProducerAttempts, index: int) -> None:
    begin, end = int(producer.begin[index]), int(producer.end[index])
    event = _EVENTS[producer.outcome.text(index)]
    latency = max(end - begin, 0) // 1000
    strategy.report(producer.broker.text(index), event, latency, end // 1000)


def _open_windows(producer: ProducerAttempts, reports: Sequence[int], result: Replay) -> None:
    """Run the strategy over the reports and note where a broker's isolation begins and ends."""
    strategy = FaultStrategy(result.settings)
    current: dict[str, Window] = {}
    for index in reports:
        broker, now = producer.broker.text(index), int(producer.end[index])
        before = strategy.isolated_until(broker) * 1000
        _tell(strategy, producer, index)
        until = strategy.isolated_until(broker) * 1000
        if until != before:
            until += now % 1000  # the strategy counts in milliseconds
        window = current.get(broker)
        if until > now and (window is None or before <= now):
            window = Window(broker, now, until, _cause(producer, index), index)
            current[broker] = window
            result.windows.append(window)
        elif until > now and window is not None:
            window.events += 1
            window.end = until if until != before else window.end
        elif before > now and window is not None:
            window.end, window.ended_by = now, "answer"


def _cause(producer: ProducerAttempts, index: int) -> str:
    if producer.outcome[index] == attempts.STORED:
        return f"answer after {(producer.end[index] - producer.begin[index]) // 1000} ms"
    return producer.cause.text(index)


def _judge(producer: ProducerAttempts, reports: Sequence[int], result: Replay) -> Trespasses:
    """Ask the strategy, in the state that it had then, about the attempts at isolated brokers.

    Between two changes of its state, reports and ends of isolations, it gives the same answer to
    all attempts with the same route and last broker, so it is asked once.
    """
    index, window = _inside(producer, result.windows)
    begin = producer.begin[index]
    starts = np.array([one.start for one in result.windows], dtype=np.int64)[window]
    ends = np.array([one.end for one in result.windows], dtype=np.int64)
    by_time = np.array([one.ended_by == "time" for one in result.windows])[window]
    edge = (begin < starts + EDGE_US) | (by_time & (begin > ends[window] - EDGE_US))
    epoch = np.searchsorted(np.unique(np.append(producer.end[reports], ends)), begin, side="right")
    routes, route_of = producer.routes
    route = route_of[producer.topic.codes[index] + 1]
    count = len(producer.broker.names) + 1
    key = (epoch * len(routes) + route) * count + producer.last_broker.codes[index] + 1
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    permitted, wanting = _answers(producer, reports, result.settings, index[first])
    may = permitted[same, producer.broker.codes[index]]
    why = np.where(edge | may, REASONS.index(EDGE), REASONS.index(BROKEN))
    for first_unseen, last_unseen in producer.unseen:
        since = (starts <= last_unseen) & (begin >= first_unseen)
        why[since & (why == REASONS.index(BROKEN))] = REASONS.index(UNSEEN)
    why[may & wanting[same]] = REASONS.index(ALL_ISOLATED)
    return Trespasses(index, window, why)


def _answers(
    producer: ProducerAttempts,
    reports: Sequence[int],
    settings: FaultSettings,
    asked: NDArray[np.int64],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which brokers the strategy allows for each of some attempts, which come by time.

    One row per attempt, one column per broker; and for each attempt, whether no broker was
    available.
    """
    strategy = FaultStrategy(settings)
    routes, route_of = producer.routes
    permitted = np.zeros((len(asked), len(producer.broker.names)), dtype=bool)
    wanting = np.zeros(len(asked), dtype=bool)
    told = iter(reports)
    upcoming = next(told, None)
    for place, index in enumerate(asked.tolist()):
        begin = int(producer.begin[index])
        while upcoming is not None and producer.end[upcoming] <= begin:
            _tell(strategy, producer, upcoming)
            upcoming = next(told, None)
        brokers = routes[route_of[producer.topic.codes[index] + 1]]
        allowed, why = strategy.allowed(brokers, producer.last_broker[index], begin // 1000)
        permitted[place] = [name in allowed for name in producer.broker.names]
        wanting[place] = why is not ChoiceReason.AVAILABLE
    return permitted, wanting


def _inside(
    producer: ProducerAttempts, windows: Sequence[Window]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the attempts that began at a broker while it was isolated, by time; their windows."""
    attempt, number = [_NONE], [_NONE]
    for code, name in enumerate(producer.broker.names):
        own = [place for place, window in enumerate(windows) if window.broker == name]
        if own:
            at_broker = np.flatnonzero(producer.broker.codes == code)
            begins = producer.begin[at_broker]
            spans = [(windows[place].start, windows[place].end) for place in own]
            first, last = np.searchsorted(begins, np.array(spans)).T
            attempt.extend(at_broker[one:other] for one, other in zip(first, last, strict=True))
            number.extend(
                np.full(other - one, place)
                for place, one, other in zip(own, first, last, strict=True)
            )
    index, window = np.concatenate(attempt), np.concatenate(number)
    order = np.lexsort((index, producer.begin[index]))
    return index[order].astype(np.int64), window[order].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Absence:
    """For how long a broker that may be used again was not."""

    absent_us: int
    elsewhere: int
    """attempts at other brokers of its topics since then"""
    given_up: bool


def absence_of(producer: ProducerAttempts, window: Window, last: int) -> Absence | None:
    """Return for how long a broker was not used after its last window; None: it was.

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
    long = absent > GIVEN_UP_TIMES * (window.end - window.start)
    return Absence(absent, elsewhere, long and elsewhere >= GIVEN_UP_ATTEMPTS)


def _avoided(producer: ProducerAttempts, replay: Replay) -> tuple[int, float]:
    """Return how many attempts might have met an isolated broker and did not; the chance of that.

    Attempts near the ends of a window, and those after another attempt, which leave the last broker
    anyhow, do not count.
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
        for one, other in np.searchsorted(producer.begin, np.array(spans).reshape(-1, 2)):
            elsewhere[one:other] |= meets[one:other]
    elsewhere &= producer.last_broker.codes < 0
    elsewhere[replay.trespasses.attempt] = False
    chance = 1.0
    for code, count in zip(
        *np.unique(producer.topic.codes[elsewhere], return_counts=True), strict=True
    ):
        brokers = topics[producer.topic.names[code] if code >= 0 else ""]
        chance *= float((1 - 1 / max(len(brokers), 2)) ** int(count))
    return int(elsewhere.sum()), chance
