"""Results of sends: a line per attempt, or a JSON object per message; then a summary of all.

Rules: memory does not grow with the messages: latencies are histograms, examples and ids are few.
A message is possibly stored twice when an attempt without a response preceded the one that
succeeded: the broker may have stored it and its response was lost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from dissectors.histogram import Histogram
from dissectors.printable import printable
from dissectors.quantities import counted
from dissectors.remoting.code_names import response_name
from dissectors.times import text_of_time
from replay.errors import ClientError
from replay.message import Attempt, AttemptOutcome, SendResult, TransactionState
from replay.sending.attempt import STATUSES

from ..ui.columns import LineColumn, LineTable, alarm, counter
from ..ui.console import Style, Terminal, one_line
from ..ui.figures import clock, count, duration, share, size
from ..ui.json_text import json_line
from ..ui.option_names import in_options
from ..ui.remark import cause_of
from ..ui.screen.panels import Labelled, fact_lines, indented_facts
from ..ui.screen.shapes import BarRow, bar_lines, table_lines
from .input_lines import Outgoing

SAMPLE = 1
"""rows that determine the column widths: they come slowly"""


class Ended(NamedTuple):
    """A completed message or batch."""

    outgoing: Sequence[Outgoing]
    """the message; several for a batch"""
    result: SendResult | None
    """send result; None: it failed"""
    error: ClientError | None
    """reason of the failure; a transaction may have it next to a result"""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts."""
        if self.result is not None:
            return self.result.attempts
        return self.error.attempts if self.error is not None else ()

    @property
    def unique_key(self) -> str | None:
        """The id of the (first) message."""
        return self.outgoing[0].message.unique_key

    @property
    def latency_us(self) -> int | None:
        """From the beginning of the first attempt to the end of the last one."""
        attempts = self.attempts
        end = attempts[-1].end if attempts else None
        return None if end is None else (end - attempts[0].begin) // 1000


class AttemptRow(NamedTuple):
    """One line."""

    ended: Ended
    attempt: Attempt | None
    """None: the message failed before it was tried"""


def rows_of(ended: Ended) -> list[AttemptRow]:
    """Return the lines of a message."""
    return [AttemptRow(ended, attempt) for attempt in ended.attempts] or [AttemptRow(ended, None)]


def outcome_of(attempt: Attempt) -> str:
    """Return the outcome of an attempt: a SendStatus, the name of a code, or another
    outcome.
    """
    if attempt.code is None:
        return attempt.outcome
    status = STATUSES.get(attempt.code)
    return response_name(attempt.code) if status is None else status.value


def is_good(attempt: Attempt) -> bool:
    """Return whether the broker has the message, or it was sent oneway."""
    return attempt.code in STATUSES or attempt.outcome == AttemptOutcome.ONEWAY


def _number(row: AttemptRow) -> str:
    first, last = row.ended.outgoing[0].number, row.ended.outgoing[-1].number
    return f"{first}" if first == last else f"{first}-{last}"


def _of_attempt(cell: Callable[[Attempt], str], absent: str) -> Callable[[AttemptRow], str]:
    """Return a cell of the attempt, `absent` if the message was not tried."""
    return lambda row: absent if row.attempt is None else cell(row.attempt)


def _outcome(row: AttemptRow) -> str:
    if row.attempt is None:
        return "not sent"
    result = row.ended.result
    if result is None or row.attempt is not result.attempts[-1]:
        return one_line(outcome_of(row.attempt))
    state = result.transaction_state
    return outcome_of(row.attempt) + ("" if state is None else f", {state.name.lower()}")


def _style(row: AttemptRow) -> str:
    good = row.attempt is not None and is_good(row.attempt)
    return Style.GREEN if good else Style.RED


def _queue(attempt: Attempt) -> str:
    return str(attempt.queue.queue_id if attempt.queue_id is None else attempt.queue_id)


def _offset(attempt: Attempt) -> str:
    return "-" if attempt.queue_offset is None else str(attempt.queue_offset)


def _note(row: AttemptRow) -> str:
    attempt = row.attempt
    if attempt is None:
        return one_line(row.ended.error.reason) if row.ended.error is not None else ""
    if is_good(attempt):
        return ""
    return cause_of(attempt.remark or attempt.error)


COLUMNS: tuple[LineColumn[AttemptRow], ...] = (
    LineColumn("MESSAGE", _number, 2, 7, 12, True),
    LineColumn("TRY", _of_attempt(lambda a: str(a.number), ""), 2, 3, 3, True),
    LineColumn("TIME", _of_attempt(lambda a: clock(a.begin), ""), 8, 12, 12),
    LineColumn("LATENCY", _of_attempt(lambda a: duration(a.latency_us), "-"), 1, 7, 11, True),
    LineColumn("OUTCOME", _outcome, 1, 12, 24, style=_style),
    LineColumn("BROKER", _of_attempt(lambda a: one_line(a.queue.broker_name), "-"), 2, 8, 24),
    LineColumn("QUEUE", _of_attempt(_queue, "-"), 3, 5, 5, True),
    LineColumn("OFFSET", _of_attempt(_offset, "-"), 6, 6, 12, True),
    LineColumn("WHY", _of_attempt(lambda a: one_line(a.why), ""), 4, 16, 44),
    LineColumn("NOTE", _note, 4, 12, 80, wraps=True),
    LineColumn("ADDRESS", _of_attempt(lambda a: one_line(a.address), ""), 9, 15, 24, keep_end=True),
    LineColumn("UNIQ_KEY", lambda row: one_line(row.ended.unique_key), 9, 32, 56),
)


def attempt_lines(terminal: Terminal) -> LineTable[AttemptRow]:
    """Return the table of attempts."""
    return LineTable(COLUMNS, terminal, SAMPLE)


def json_of(ended: Ended) -> bytes:
    """Return one message, or one batch, as a JSON object on a line."""
    result, error, first = ended.result, ended.error, ended.outgoing[0]
    members: dict[str, object] = {
        "message": first.number,
        "messages": len(ended.outgoing),
        "status": "failed" if result is None else result.status.value,
        "topic": first.message.topic,
        "unique_key": first.message.unique_key if result is None else result.unique_key,
        "latency_us": ended.latency_us,
    }
    if result is not None:
        members |= _members_of(result)
    if error is not None:
        members["error"] = {
            "kind": type(error).__name__,
            "code": error.code,
            "reason": error.reason,
            "hint": in_options(error)[1],
        }
    members["attempts"] = [_attempt_members(attempt) for attempt in ended.attempts]
    return json_line(members)


def _members_of(result: SendResult) -> dict[str, object]:
    members: dict[str, object] = {
        "broker": result.queue.broker_name,
        "queue_id": result.queue.queue_id,
        "queue_offset": result.queue_offset,
        "offset_msg_id": result.offset_msg_id,
        "transaction_id": result.transaction_id,
        "recall_handle": result.recall_handle,
    }
    state = result.transaction_state
    if state is not None:
        members["transaction_state"] = TransactionState(state).name.lower()
    return {name: value for name, value in members.items() if value is not None}


def _attempt_members(attempt: Attempt) -> dict[str, object]:
    return {
        "number": attempt.number,
        "broker": attempt.queue.broker_name,
        "queue_id": attempt.queue.queue_id,
        "address": attempt.address,
        "begin": text_of_time(attempt.begin),
        "latency_us": attempt.latency_us,
        "outcome": attempt.outcome,
        "code": attempt.code,
        "code_name": None if attempt.code is None else response_name(attempt.code),
        "remark": attempt.remark,
        "error": attempt.error,
        "why": attempt.why,
    }


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
        # A clock that was set back makes latencies negative.
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
        self.failed = 0
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
