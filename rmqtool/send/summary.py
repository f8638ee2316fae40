"""The summary of sends: count, latency, failures, possible duplicates.

Rules: memory does not grow with the messages: latencies are histograms, examples and ids are few.
A message is possibly stored twice when an attempt without a response preceded the one that
succeeded: the broker may have stored it and its response was lost.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple, TypeVar

from dissectors.histogram import Histogram
from dissectors.printable import printable
from dissectors.quantities import counted
from replay.message import Attempt, AttemptOutcome

from ..ui.columns import LineColumn, alarm, counter
from ..ui.console import Terminal, one_line
from ..ui.figures import count, duration, share, size
from ..ui.option_names import in_options
from ..ui.remark import cause_of
from ..ui.screen.bars import BarRow, bar_lines
from ..ui.screen.panels import Labelled, fact_lines, indented_facts
from ..ui.screen.tables import table_lines
from .result_lines import Ended, is_good, outcome_of

_Row = TypeVar("_Row")
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)
_MOST_NAMED: Final = 10
"""ids and hints that are shown"""
_MOST_ERRORS: Final = 200
"""kinds of failures that are kept apart; further ones are `others`"""
_STEPS: Final = (0, *(first * 10**power for power in range(19) for first in (1, 2, 5)), 10**19)
"""bounds of the histogram bars in µs; a latency has at most 64 bits"""
_UNKNOWN: Final = (AttemptOutcome.TIMEOUT, AttemptOutcome.LOST, AttemptOutcome.GARBAGE)
"""outcomes after which the broker may or may not have the message"""


class Bar(NamedTuple):
    """A line of a histogram."""

    least: int
    """lower bound in µs, included"""
    beyond: int
    """upper bound in µs, excluded"""
    number: int


class Bars:
    """Counts of latencies by steps of 1, 2 and 5: exact, unlike the buckets of a `Histogram`."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        """index of a step -> number of latencies"""

    def add(self, latency_us: int) -> None:
        """Count a latency in µs; a negative one counts as 0."""
        place = bisect_right(_STEPS, max(latency_us, 0)) - 1
        self._numbers[place] = self._numbers.get(place, 0) + 1

    def rows(self) -> list[Bar]:
        """Return the steps in order, without the empty ones at both ends."""
        if not self._numbers:
            return []
        return [
            Bar(_STEPS[at], _STEPS[at + 1], self._numbers.get(at, 0))
            for at in range(min(self._numbers), max(self._numbers) + 1)
        ]


class BrokerSends:
    """The attempts to send to one broker."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.attempts = 0
        self.failed = 0
        self.latency = Histogram()
        """latencies of answered attempts, µs"""


class Failure:
    """One kind of failed attempt."""

    def __init__(self, code: int | None, name: str, example: str) -> None:
        self.code = code
        """response code, or Java's code if no broker was reached; None: neither"""
        self.name = name
        self.count = 0
        self.example = example
        """remark of the first failure"""


class Named:
    """Message ids, of which the first are kept."""

    def __init__(self) -> None:
        self.count = 0
        self.keys: list[str] = []

    def add(self, key: str | None) -> None:
        """Count one."""
        self.count += 1
        if len(self.keys) < _MOST_NAMED:
            self.keys.append(key or "-")


class SendSummary:
    """Totals of a run."""

    def __init__(self) -> None:
        self.messages = 0
        """completed messages"""
        self.failed = 0
        """messages that failed"""
        self.retried = 0
        """messages that took more than one attempt"""
        self.statuses: dict[str, int] = {}
        """SendStatus, or `oneway` -> messages"""
        self.bytes = 0
        """body bytes of stored or sent messages"""
        self.latency = Histogram()
        """latencies of successful sends over all attempts, µs"""
        self.bars = Bars()
        """histogram of the same latencies"""
        self.brokers: dict[str, BrokerSends] = {}
        self.failures: dict[str, Failure] = {}
        self.twice = Named()
        """possible duplicates"""
        self.unknown = Named()
        """failed, but possibly stored"""
        self.hints: dict[str, None] = {}
        """hints for the failures, in order of appearance"""

    def add(self, ended: Ended) -> None:
        """Count a message or a batch."""
        number, attempts = len(ended.outgoing), ended.attempts
        self.messages += number
        result = ended.result
        for attempt in attempts:
            self._add_attempt(attempt)
        if len(attempts) > 1:
            self.retried += number
        # With a result, the last attempt succeeded, so that only earlier ones can be unknown.
        lost = any(a.outcome in _UNKNOWN for a in (attempts if result is None else attempts[:-1]))
        if ended.error is not None and ended.error.hint and len(self.hints) < _MOST_NAMED:
            self.hints[in_options(ended.error)[1]] = None
        if result is None:
            self.failed += number
            if not attempts and ended.error is not None:
                self._fail(ended.error.code, type(ended.error).__name__, ended.error.reason)
            if lost:
                self.unknown.add(ended.unique_key)
            return
        if lost:
            self.twice.add(ended.unique_key)
        oneway = bool(attempts) and attempts[-1].outcome == AttemptOutcome.ONEWAY
        status = "oneway" if oneway else result.status.value
        self.statuses[status] = self.statuses.get(status, 0) + number
        self.bytes += sum(len(outgoing.message.body) for outgoing in ended.outgoing)
        latency = ended.latency_us
        if latency is not None and not oneway:
            self.latency.add(latency)
            self.bars.add(latency)

    def add_bad_line(self, line: int, reason: str) -> None:
        """Count a line that is not a message."""
        self.messages += 1
        self.failed += 1
        self._fail(None, "bad line", f"line {line} {reason}")

    def _add_attempt(self, attempt: Attempt) -> None:
        name = attempt.queue.broker_name
        broker = self.brokers.get(name)
        if broker is None:
            broker = self.brokers[name] = BrokerSends(name)
        broker.attempts += 1
        latency = attempt.latency_us
        if latency is not None and attempt.code is not None:
            broker.latency.add(latency)
        if not is_good(attempt):
            broker.failed += 1
            note = attempt.remark or attempt.error or ""
            self._fail(attempt.code, outcome_of(attempt), note)

    def _fail(self, code: int | None, name: str, example: str) -> None:
        failure = self.failures.get(name)
        if failure is None:
            if len(self.failures) >= _MOST_ERRORS:  # a broker can invent codes
                name, code, example = "others", None, ""
            failure = self.failures.setdefault(name, Failure(code, name, example))
        failure.count += 1


# -- text -------------------------------------------------------------------------------------


def _percentile(percent: float) -> LineColumn[BrokerSends]:
    def cell(row: BrokerSends) -> str:
        return duration(row.latency.percentile(percent))

    return LineColumn(f"P{percent:g}", cell, 3, 7, 11, True)


BROKER_COLUMNS: tuple[LineColumn[BrokerSends], ...] = (
    LineColumn("BROKER", lambda row: one_line(row.name), 1, 12, 40),
    counter("ATTEMPTS", lambda row: row.attempts, 1),
    alarm("FAILED", lambda row: row.failed, 1),
    *(_percentile(percent) for percent in PERCENTILES),
    LineColumn("MAX", lambda row: duration(row.latency.maximum), 3, 7, 11, True),
)
FAILURE_COLUMNS: tuple[LineColumn[Failure], ...] = (
    LineColumn("CODE", lambda row: "-" if row.code is None else str(row.code), 1, 4, 5, True),
    LineColumn("OUTCOME", lambda row: one_line(row.name), 1, 7, 32),
    LineColumn("COUNT", lambda row: count(row.count), 1, 5, 12, True),
    LineColumn("FIRST", lambda row: cause_of(row.example), 2, 20, 200, wraps=True),
)


def summary_lines(summary: SendSummary, seconds: float, terminal: Terminal) -> list[str]:
    """Return the summary as text; `seconds`: duration of the run."""
    lines = fact_lines([Labelled(_first_line(summary, seconds), hang=2)], terminal)
    if summary.latency.count > 1:
        lines += _latency_lines(summary, terminal)
    if summary.brokers:
        brokers = sorted(summary.brokers.values(), key=lambda broker: broker.name)
        lines += ["", *table_lines(brokers, BROKER_COLUMNS, terminal).lines]
    if summary.failures:
        failures = sorted(summary.failures.values(), key=lambda failure: -failure.count)
        lines += ["", *table_lines(failures, FAILURE_COLUMNS, terminal).lines]
        hints = [f"  {line}" for hint in summary.hints for line in printable(hint).split("\n")]
        lines += fact_lines(indented_facts(hints), terminal)
    notes = fact_lines([Labelled(note, hang=2) for note in _notes(summary)], terminal)
    return [*lines, "", *notes] if notes else lines


def _first_line(summary: SendSummary, seconds: float) -> str:
    rate = summary.messages / seconds if seconds > 0 else 0.0
    parts = [f"{count(number)} {name}" for name, number in summary.statuses.items()]
    if summary.failed:
        parts.append(f"{count(summary.failed)} failed")
    retried = f"; {count(summary.retried)} took more than one attempt" if summary.retried else ""
    took = duration(int(seconds * 1_000_000))
    return (
        f"{counted(summary.messages, 'message')} in {took}, {count(round(rate))}/s, "
        f"{size(summary.bytes)}: {', '.join(parts) or 'none'}{retried}"
    )


def _latency_lines(summary: SendSummary, terminal: Terminal) -> list[str]:
    latency = summary.latency
    figures = [f"p{p:g} {duration(latency.percentile(p))}" for p in PERCENTILES]
    line = f"latency: {', '.join(figures)}, max {duration(latency.largest)}"
    rows = [
        BarRow(
            f"{duration(bar.least):>7} – {duration(bar.beyond):<7}",
            bar.number,
            (count(bar.number), share(bar.number, latency.count)),
        )
        for bar in summary.bars.rows()
    ]
    return ["", *fact_lines([Labelled(line, hang=2)], terminal), *bar_lines(rows, terminal)]


def _notes(summary: SendSummary) -> list[str]:
    lines = []
    for named, what in (
        (summary.twice, "possibly stored twice (an earlier attempt got no response)"),
        (summary.unknown, "failed without a response, possibly stored"),
    ):
        if named.count:
            keys = ", ".join(map(one_line, named.keys))
            more = ", …" if named.count > len(named.keys) else ""
            lines.append(f"{counted(named.count, 'message')} {what}: {keys}{more}")
    return lines
