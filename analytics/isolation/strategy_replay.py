"""Replay of the fault strategy over the captured attempts of one producer.

Pure logic over arrays, without Spark. Rules: `replay.fault` decides, fed with each attempt's start,
outcome, and the time when the client knew it. Windows are computed as if the strategy were on;
`verdict_of` judges separately whether it was. Attempts with unknown outcome change nothing. A
response that cannot change a window is not replayed, so the work grows with the failures.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

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
    counts: Counter[str] = field(default_factory=Counter)
    """attempts at isolated brokers by reason"""
    violations: Violations = Violations(_NONE, _NONE, _NONE)
    """these attempts; empty if the producer's attempts came in parts"""
    avoided: int = 0
    """attempts at brokers not isolated while another broker of the topic was"""
    chance: float = 1.0
    """probability of that for a client that uses all brokers of the topic in turn"""

    @property
    def broken(self) -> int:
        """Number of attempts that the strategy would have prevented."""
        return self.counts[BROKEN]


def replayed(producer: ProducerAttempts, settings: FaultSettings) -> Replay:
    """Return the windows of the strategy, and the attempts at isolated brokers."""
    replay = StrategyReplay(settings)
    every = np.ones(len(producer), dtype=bool)
    violations = replay.add(producer, every, every)
    result = replay.result()
    result.violations = violations
    return result


class _Report(NamedTuple):
    """An attempt as the strategy learns of it."""

    end: int
    broker: str
    event: AttemptEvent
    latency_ms: int

    def tell(self, strategy: FaultStrategy) -> None:
        """Report the attempt."""
        strategy.report(self.broker, self.event, self.latency_ms, self.end // 1000)


class StrategyReplay:
    """Replays the strategy over the attempts of a producer, which may come in parts."""

    def __init__(self, settings: FaultSettings) -> None:
        self._result = Replay(settings)
        self._strategy = FaultStrategy(settings)
        """told of all reports so far"""
        self._current: dict[str, Window] = {}
        """latest window of each broker"""
        self._active: list[int] = []
        """numbers of the windows that later attempts may be in"""
        self._isolated: dict[str, bool] = {}
        """broker -> whether its latest report may isolate"""
        self._asked = FaultStrategy(settings)
        """told of the reports before the latest judged attempt"""
        self._untold: deque[_Report] = deque()
        """reports that it has not been told yet"""
        self._avoided: Counter[str] = Counter()
        """attempts that avoided an isolated broker, by topic"""
        self._chances: dict[str, float] = {}
        """topic -> probability of avoiding it by chance"""

    @property
    def windows(self) -> list[Window]:
        """The windows so far, by start."""
        return self._result.windows

    def add(
        self, producer: ProducerAttempts, due: NDArray[np.bool_], judged: NDArray[np.bool_]
    ) -> Violations:
        """Add a part of the attempts, and return those of it at isolated brokers.

        `due` are those whose end is before all attempts of later parts, `judged` those begun
        more than EDGE_US before them, whose windows nothing later can change. In all parts
        together, each attempt is due once and judged once.
        """
        reports = self._reports(producer, due, is_last=bool(due.all() and judged.all()))
        self._open_windows(producer, reports)
        self._untold.extend(_report_of(producer, index) for index in reports)
        violations = Violations(_NONE, _NONE, _NONE)
        if not judged.any():
            return violations
        last = int(producer.begin[judged].max())
        if self._active:
            violations = self._judge(producer, judged)
            counts = np.bincount(violations.why, minlength=len(REASONS)).tolist()
            self._result.counts.update(dict(zip(REASONS, counts, strict=True)))
            self._count_avoided(producer, judged, violations)
            self._active = [number for number in self._active if self.windows[number].end > last]
        self._tell_until(last)
        return violations

    def result(self) -> Replay:
        """Return the result for all attempts added."""
        result = self._result
        result.avoided = self._avoided.total()
        for topic, count in self._avoided.items():
            result.chance *= self._chances[topic] ** count
        return result

    def _reports(
        self, producer: ProducerAttempts, due: NDArray[np.bool_], *, is_last: bool
    ) -> list[int]:
        """Return the attempts to report to the strategy, by the time when the client knew."""
        known = due & (producer.end >= 0) & producer.outcome.among(_EVENTS)
        isolating = known & ~producer.outcome.among(_CALM)
        least = _least_slow(self._result.settings)
        if least is not None:
            slow = producer.end - producer.begin >= least * 1000
            isolating |= known & slow & producer.outcome.among((attempts.STORED,))
        # The usual case: these are all attempts, and none opens a window.
        if is_last and not self._isolated and not isolating.any():
            return []
        chosen = [_NONE]
        for code, name in enumerate(producer.broker.names):
            rows = np.flatnonzero(known & (producer.broker.codes == code))
            if not len(rows):
                continue
            # True: the first report of a broker counts, whatever it is.
            before = self._isolated.get(name, True)
            if isolating[rows].any():
                rows = rows[np.argsort(producer.end[rows], kind="stable")]
                may_isolate = isolating[rows]
                # All that may isolate, and the first after each of them: before 5.1.4 it ends the
                # isolation, since then it marks the broker as reachable. Further ones change
                # nothing.
                chosen.append(rows[may_isolate | np.append(before, may_isolate[:-1])])
                self._isolated[name] = bool(may_isolate[-1])
            elif before:
                chosen.append(rows[[producer.end[rows].argmin()]])
                self._isolated[name] = False
        every = np.sort(np.concatenate(chosen))
        return [int(index) for index in every[np.argsort(producer.end[every], kind="stable")]]

    def _open_windows(self, producer: ProducerAttempts, reports: Sequence[int]) -> None:
        """Run the strategy over the reports and record when each isolation begins and ends."""
        for index in reports:
            report = _report_of(producer, index)
            broker, now = report.broker, report.end
            before = self._strategy.isolated_until(broker) * 1000
            report.tell(self._strategy)
            until = self._strategy.isolated_until(broker) * 1000
            if until != before:
                until += now % 1000  # the strategy uses milliseconds
            window = self._current.get(broker)
            if until > now and (window is None or before <= now):
                window = Window(broker, now, until, _cause(producer, index), index)
                self._current[broker] = window
                self._active.append(len(self.windows))
                self.windows.append(window)
            elif until > now and window is not None:
                window.events += 1
                window.end = until if until != before else window.end
            elif before > now and window is not None:
                window.end, window.ended_by = now, "response"

    def _judge(self, producer: ProducerAttempts, judged: NDArray[np.bool_]) -> Violations:
        """Query the strategy, in its state at that time, about the attempts at isolated brokers."""
        windows = [self.windows[number] for number in self._active]
        index, place = _inside(producer, windows, judged)
        begin = producer.begin[index]
        starts = np.array([window.start for window in windows], dtype=np.int64)[place]
        ends = np.array([window.end for window in windows], dtype=np.int64)
        by_time = np.array([window.ended_by == "time" for window in windows], dtype=bool)[place]
        edge = (begin < starts + EDGE_US) | (by_time & (begin > ends[place] - EDGE_US))
        reported = np.array([report.end for report in self._untold], dtype=np.int64)
        epoch = np.searchsorted(np.unique(np.append(reported, ends)), begin, side="right")
        routes, route_of = producer.routes
        route = route_of[producer.topic.codes[index] + 1]
        count = len(producer.last_broker.names) + 1
        # Between two state changes (reports and ends of isolation) the strategy gives one result
        # for all attempts with the same route and last broker, so it is queried once for them.
        key = (epoch * len(routes) + route) * count + producer.last_broker.codes[index] + 1
        _, first, same = np.unique(key, return_index=True, return_inverse=True)
        permitted, wanting = self._responses(producer, index[first])
        may = permitted[same, producer.broker.codes[index]]
        why = np.where(edge | may, REASONS.index(EDGE), REASONS.index(BROKEN))
        for first_unseen, last_unseen in producer.unseen:
            since = (starts <= last_unseen) & (begin >= first_unseen)
            why[since & (why == REASONS.index(BROKEN))] = REASONS.index(UNSEEN)
        why[may & wanting[same]] = REASONS.index(ALL_ISOLATED)
        return Violations(index, np.array(self._active, dtype=np.int64)[place], why)

    def _responses(
        self, producer: ProducerAttempts, asked: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the brokers that the strategy allows for attempts, which are sorted by time.

        One row per attempt, one column per broker; and for each attempt, whether no broker was
        available.
        """
        routes, route_of = producer.routes
        permitted = np.zeros((len(asked), len(producer.broker.names)), dtype=bool)
        wanting = np.zeros(len(asked), dtype=bool)
        for place, index in enumerate(asked.tolist()):
            begin = int(producer.begin[index])
            self._tell_until(begin)
            brokers = routes[route_of[producer.topic.codes[index] + 1]]
            # The brokers that it sent to are all that is known of the topic's route.
            allowed, why = self._asked.allowed(brokers, producer.last_broker[index], begin // 1000)
            permitted[place] = [name in allowed for name in producer.broker.names]
            wanting[place] = why is not ChoiceReason.AVAILABLE
        return permitted, wanting

    def _tell_until(self, time: int) -> None:
        while self._untold and self._untold[0].end <= time:
            self._untold.popleft().tell(self._asked)

    def _count_avoided(
        self, producer: ProducerAttempts, judged: NDArray[np.bool_], violations: Violations
    ) -> None:
        """Count the attempts that could have hit an isolated broker but did not."""
        topics = producer.brokers_of_topics
        windows = [self.windows[number] for number in self._active]
        elsewhere = np.zeros(len(producer), dtype=bool)
        for name in {window.broker for window in windows}:
            spans = [
                (window.start + EDGE_US, window.end - EDGE_US)
                for window in windows
                if window.broker == name and window.end - window.start > 2 * EDGE_US
            ]
            shared = {topic for topic, brokers in topics.items() if name in brokers}
            meets = producer.topic.among(shared) & ~producer.broker.among((name,))
            if "" in shared:
                meets |= (producer.topic.codes < 0) & ~producer.broker.among((name,))
            for start, stop in np.searchsorted(producer.begin, np.array(spans).reshape(-1, 2)):
                elsewhere[start:stop] |= meets[start:stop]
        # A retry avoids the last broker anyway, so it tells nothing.
        elsewhere &= judged & (producer.last_broker.codes < 0)
        elsewhere[violations.attempt] = False
        for code, count in zip(
            *np.unique(producer.topic.codes[elsewhere], return_counts=True), strict=True
        ):
            topic = producer.topic.names[code] if code >= 0 else ""
            self._avoided[topic] += int(count)
            # As if one broker were isolated: with more, the true chance to avoid them all is
            # smaller, so verdict `on` never comes too early.
            self._chances[topic] = 1 - 1 / max(len(topics[topic]), 2)


def _least_slow(settings: FaultSettings) -> int | None:
    """Return the least latency that isolates a broker, in ms, or None if none does."""
    durations = zip(settings.latency_max, settings.not_available, strict=True)
    return next((latency for latency, duration in durations if duration > 0), None)


def _report_of(producer: ProducerAttempts, index: int) -> _Report:
    begin, end = int(producer.begin[index]), int(producer.end[index])
    event = _EVENTS[producer.outcome.text(index)]
    # packets do not show how long handing over took, and it is too short to isolate
    took = 0 if event is AttemptEvent.HANDED_OVER else max(end - begin, 0)
    return _Report(end, producer.broker.text(index), event, took // 1000)


def _cause(producer: ProducerAttempts, index: int) -> str:
    if producer.outcome[index] == attempts.STORED:
        return f"response after {(producer.end[index] - producer.begin[index]) // 1000} ms"
    return producer.cause.text(index)


def _inside(
    producer: ProducerAttempts, windows: Sequence[Window], judged: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the attempts started at a broker while it was isolated, by time, and their windows."""
    attempt, number = [_NONE], [_NONE]
    for code, name in enumerate(producer.broker.names):
        own = [place for place, window in enumerate(windows) if window.broker == name]
        if own:
            at_broker = np.flatnonzero(judged & (producer.broker.codes == code))
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


def absence_of(window: Window, used: int, last: int, elsewhere: int) -> Absence | None:
    """Return how long a broker was unused after its last window, or None if it was used.

    `used` is the begin of the last attempt at it, `last` when the producer was last seen, in µs;
    `elsewhere` as from `elsewhere_since`.
    """
    if used >= window.end or window.end > last:
        return None
    absent = last - window.end
    long = absent > ABANDONED_TIMES * (window.end - window.start)
    return Absence(absent, elsewhere, long and elsewhere >= ABANDONED_ATTEMPTS)


def elsewhere_since(producer: ProducerAttempts, window: Window) -> NDArray[np.bool_]:
    """Return the attempts at other brokers of the same topics after a window."""
    topics = {
        name for name, brokers in producer.brokers_of_topics.items() if window.broker in brokers
    }
    here = producer.broker.among((window.broker,))
    since: NDArray[np.bool_] = (producer.begin > window.end) & ~here & producer.topic.among(topics)
    return since


_MANY = 0.2
"""Share of the attempts expected without a strategy that is implausible with one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a producer's strategy, with its reason."""

    state: str
    """one of isolation.VERDICTS"""
    reason: str
    """for people"""


def verdict_of(
    replay: Replay,
    others: Iterable[tuple[str, Replay]],
    language: str | None,
    said: bool | None = None,
    unreachable: str | None = None,
) -> Verdict:
    """Return the verdict on a producer.

    `replay` uses the producer's own generation, `others` all generations, used only if its own does
    not fit. `said` is the configured sendLatencyFaultEnable, if the user gave it; `unreachable` are
    brokers to which its connects failed.
    """
    if said is not None:
        return Verdict(ON if said else OFF, "as given")
    if language != "JAVA":
        return Verdict(NO_STRATEGY, f"the strategy is the Java client's; this client is {language}")
    if not replay.windows and unreachable:
        return Verdict(
            UNDETERMINED, f"connection attempts to {unreachable} failed, but no send matches them"
        )
    if not replay.windows:
        return Verdict(
            UNDETERMINED, "no captured attempt failed or was slow enough to isolate its broker"
        )
    met = replay.avoided + replay.broken
    if not met:
        return Verdict(UNDETERMINED, "no send could have reached an isolated broker")
    if not replay.broken:
        if replay.chance < CHANCE:
            unseen = replay.counts[UNSEEN]
            but = f", but for {unseen} after unseen ones" if unseen else ""
            return Verdict(
                ON,
                f"{replay.avoided} attempts while a broker was isolated, none to that broker{but}",
            )
        return Verdict(UNDETERMINED, f"only {replay.avoided} attempts while a broker was isolated")
    summary = f"{replay.broken} of {met} attempts went to an isolated broker"
    fitting = next((name for name, other in others if _fits(other)), None)
    if fitting is not None:
        return Verdict(OTHER_GENERATION, f"{summary}, none by the tables of generation {fitting}")
    # With two brokers, a client without strategy sends half of these to the isolated one.
    if replay.broken >= _MANY * met / 2:
        return Verdict(OFF, f"{summary} (unless the program selects its queues)")
    return Verdict(UNDETERMINED, f"{summary}: too few without the strategy, too many with it")


def _fits(replay: Replay) -> bool:
    return bool(replay.windows) and not replay.broken and replay.chance < CHANCE
