"""Compare captured and replayed outcomes: counts and examples of differences.

Rules: pure, with bounded memory: latencies are histograms, only the first examples are kept. A
message failed if it was rejected, or is unanswered and not oneway. Conditions over these figures
(`--fail-on`) make a replay a regression test.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

from dissectors.histogram import Histogram
from dissectors.quantities import DURATION_UNITS
from dissectors.remoting.code_names import response_name

from ..captured.captured_send import CapturedResponse, CapturedSend
from .journal_rows import OutcomeEntry, Result

MAX_EXAMPLES: Final = 20
"""messages that are named for each kind of difference"""
MAX_BROKERS: Final = 1000
"""brokers that are counted separately"""
_EXAMPLES: Final = ("new_failures", "fixed", "maybe_twice")
PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)
_CONDITION: Final = re.compile(
    r"\s*(?P<name>[a-z][a-z0-9_-]*)\s*(?:(?P<op>>=|<=|>|<|==|=|!=)\s*"
    r"(?P<value>\d{1,12}(?:\.\d{1,6})?)\s*(?P<unit>[a-zµμ]*|%))?\s*"
)


class Side(NamedTuple):
    """One of the two outcomes of a message."""

    result: Result
    code: int | None

    @property
    def is_failed(self) -> bool:
        """Whether storage was not confirmed although a response was expected."""
        return self.result in (Result.failed, Result.unknown)

    def __str__(self) -> str:
        if self.code is not None:
            return response_name(self.code, None, None)
        return {
            Result.sent: "oneway",
            Result.unknown: "no response",
            Result.not_captured: "not captured",
            Result.failed: "not sent",
        }.get(self.result, str(self.result))


@dataclass(slots=True)
class BrokerFigures:
    """Figures of one broker, captured or replayed."""

    captured: Histogram = field(default_factory=Histogram)
    """latencies of the capture, µs"""
    replayed: Histogram = field(default_factory=Histogram)
    """latencies of the replay, µs"""
    replayed_messages: int = 0
    captured_failures: int = 0
    replayed_failures: int = 0


class Example(NamedTuple):
    """One message with a different outcome."""

    capture: str
    packet: int
    topic: str
    unique_key: str
    captured: str
    replayed: str


class Comparison:
    """All outcomes so far."""

    def __init__(self) -> None:
        self.steps = 0
        """sends that have an outcome"""
        self.messages = 0
        """messages in them"""
        self.failures = 0
        """sends that failed now"""
        self.captured_failures = 0
        """sends that failed in the capture"""
        self.captured_unknown = 0
        """sends without a captured outcome"""
        self.new_failures = 0
        """failed now but not in the capture, as far as captured"""
        self.fixed = 0
        """failed in the capture and not now"""
        self.maybe_twice = 0
        """sends of which an earlier attempt may be stored too"""
        self.attempts = 0
        """attempts of this run"""
        self.captured_attempts = 0
        """attempts in the capture"""
        self.moved = 0
        """sends that went to another queue than the captured one"""
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """(captured outcome, replayed outcome) → sends"""
        self.captured_latency = Histogram()
        """µs, of answered sends"""
        self.replayed_latency = Histogram()
        """µs, of answered sends"""
        self.lateness = Histogram()
        """µs between when a send was due and when it was made"""
        self.brokers: dict[tuple[str, str], BrokerFigures] = {}
        """(captured broker, replayed broker) → figures"""
        self.examples: dict[str, list[Example]] = {name: [] for name in _EXAMPLES}
        """the first messages of each kind"""

    def add(self, row: OutcomeEntry) -> None:
        """Add one more outcome."""
        then, now = Side(row.captured_result, row.captured_code), Side(row.result, row.code)
        self.steps += 1
        self.messages += row.messages
        self.attempts += row.attempts
        self.captured_attempts += row.captured_attempts
        self.outcomes[str(then), str(now)] += 1
        self.lateness.add(row.late_us)
        self.moved += any(text.startswith("queue ") for text in row.differences)
        self.failures += now.is_failed
        self.captured_failures += then.is_failed
        is_known = then.result is not Result.not_captured
        self.captured_unknown += not is_known
        is_new_failure = now.is_failed and is_known and not then.is_failed
        is_fixed = then.is_failed and not now.is_failed
        self.new_failures += is_new_failure
        self.fixed += is_fixed
        self.maybe_twice += row.maybe_twice
        # in the order of _EXAMPLES
        kinds = (is_new_failure, is_fixed, row.maybe_twice)
        for is_one, examples in zip(kinds, self.examples.values(), strict=True):
            if is_one and len(examples) < MAX_EXAMPLES:
                examples.append(_example_of(row, then, now))
        self._add_latencies(row, then, now)

    def _add_latencies(self, row: OutcomeEntry, then: Side, now: Side) -> None:
        key = row.captured_broker, row.broker or row.address or "-"
        # a capture may name any number of brokers
        if key not in self.brokers and len(self.brokers) >= MAX_BROKERS:
            key = "others", "others"
        broker = self.brokers.setdefault(key, BrokerFigures())
        broker.replayed_messages += row.messages
        broker.captured_failures += then.is_failed
        broker.replayed_failures += now.is_failed
        if row.captured_latency_us is not None:
            self.captured_latency.add(row.captured_latency_us)
            broker.captured.add(row.captured_latency_us)
        # a oneway send has no response: its time is only that of writing
        if row.latency_us is not None and row.result is not Result.sent:
            self.replayed_latency.add(row.latency_us)
            broker.replayed.add(row.latency_us)


def _example_of(row: OutcomeEntry, then: Side, now: Side) -> Example:
    reason = f": {row.reason}" if row.reason else ""
    key = ",".join(row.unique_keys)
    return Example(row.capture, row.packet, row.topic, key, str(then), f"{now}{reason}")


def captured_side(captured: CapturedSend) -> Side:
    """Return the captured outcome of a message."""
    response = captured.response
    return Side(_result_of(response), response.code)


def _result_of(response: CapturedResponse) -> Result:
    if response.is_stored:
        return Result.stored
    if response.code is not None:
        return Result.failed
    if response.is_unknown:
        return Result.not_captured
    return Result.unknown if response.is_failed else Result.sent


class ConditionError(ValueError):
    """A text is not a valid condition of --fail-on; the error describes valid ones."""


@dataclass(frozen=True, slots=True)
class ComparisonCondition:
    """A condition over a comparison."""

    text: str
    """as the user wrote it"""
    name: str
    """figure"""
    operator: str
    """> >= < <= == !="""
    value: Fraction
    """in the unit of the figure: µs, messages"""
    relative: str = ""
    """``x``: times the captured figure; ``%``: of all sends"""

    def holds(self, comparison: Comparison) -> bool:
        """Return whether the run counts as failed."""
        seen = figure_of(self.name, comparison)
        if seen is None:
            return False
        limit = self.value
        if self.relative == "x":
            captured = _captured_figure_of(self.name, comparison)
            if captured is None:
                return False
            limit *= captured
        elif self.relative == "%":
            limit = limit * comparison.steps / 100
        return _OPERATORS[self.operator](seen, limit)


_OPERATORS: Final[dict[str, Callable[[int, Fraction], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
}
_COUNTS: Final = (
    *("failures", "new-failures", "fixed", "maybe-twice", "attempts", "moved", "messages"),
)
"""counts of a `Comparison`, by the names of its attributes with hyphens"""
_CAPTURED: Final = ("failures", "attempts")
"""counts that are also known of the capture"""
_MOMENTS: Final = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "max": 100.0}
FIGURES: Final = (*_COUNTS, *_MOMENTS, *(f"late-{name}" for name in _MOMENTS))
"""figures that a condition may ask for"""


def figure_of(name: str, comparison: Comparison) -> int | None:
    """Return a figure of the replay: a count, or µs; None if there is no data."""
    if name in _COUNTS:
        return int(getattr(comparison, name.replace("-", "_")))
    if name.startswith("late-"):
        return _moment_of(comparison.lateness, name.removeprefix("late-"))
    return _moment_of(comparison.replayed_latency, name)


def _captured_figure_of(name: str, comparison: Comparison) -> int | None:
    if name in _CAPTURED:
        return int(getattr(comparison, f"captured_{name}"))
    return _moment_of(comparison.captured_latency, name)


def _moment_of(histogram: Histogram, name: str) -> int | None:
    if not histogram.count:
        return None
    percent = _MOMENTS[name]
    return histogram.largest if percent == 100.0 else histogram.percentile(percent)


def condition_of(text: str) -> ComparisonCondition:
    """Parse a condition such as ``new-failures`` or ``p99>2x``; ConditionError if invalid."""
    match = _CONDITION.fullmatch(text.lower())
    name = match["name"].replace("_", "-") if match else ""
    if match is None or name not in FIGURES:
        raise ConditionError(
            f"{text!r} is not a valid condition; give new-failures, 'failures>1%', 'p99>2x' or "
            f"'late-p99>50ms'; the figures are {', '.join(FIGURES)}"
        )
    if match["op"] is None:
        if name not in _COUNTS:
            raise ConditionError(f"{text!r}: compare it with a duration, as in {name}>50ms")
        return ComparisonCondition(text, name, ">", Fraction(0))
    unit = match["unit"]
    _refuse_misfit(text, name, unit)
    factor = Fraction(DURATION_UNITS.get(unit, 1_000), 1_000)  # figures are in microseconds
    relative = unit if unit in ("x", "%") else ""
    return ComparisonCondition(text, name, match["op"], Fraction(match["value"]) * factor, relative)


def _refuse_misfit(text: str, name: str, unit: str) -> None:
    if name in _COUNTS:
        if unit not in ("", "%", "x") or (unit == "x" and name not in _CAPTURED):
            raise ConditionError(f"{text!r}: {name} is a number, or a percentage of all sends")
    elif unit not in (*DURATION_UNITS, "x") or (unit == "x" and name.startswith("late-")):
        more = "" if name.startswith("late-") else ", or as 2x of the captured one"
        raise ConditionError(f"{text!r}: {name} is a duration: us, ms or s{more}")
