"""The result of a replay: captured and replayed side by side, as tables or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeVar

from dissectors.histogram import Histogram
from dissectors.quantities import counted
from replay.plan.planned_run import PlannedRun
from replay.run.compare import PERCENTILES, BrokerFigures, Comparison, Example
from replay.run.replayer import Figures

from ..ui.columns import LineColumn
from ..ui.console import Style, Terminal, one_line
from ..ui.figures import count, duration, share
from ..ui.json_text import json_line
from ..ui.screen.panels import Labelled, fact_lines, indented_facts
from ..ui.screen.shapes import table_lines
from .plan_lines import reason_lines

_Row = TypeVar("_Row")
_KINDS = {
    "new_failures": "failed only in the replay",
    "fixed": "failed only in the capture",
    "maybe_twice": "may be stored twice",
}


class OutcomeRow(NamedTuple):
    """The sends with one pair of captured and replayed outcomes."""

    captured: str
    replayed: str
    sends: int
    of: int


class LatencyRow(NamedTuple):
    """A percentile of both latencies, µs."""

    name: str
    captured: int | None
    replayed: int | None
    late: int | None


class BrokerRow(NamedTuple):
    """A captured broker and the one that took its messages."""

    captured: str
    replayed: str
    figures: BrokerFigures


class ExampleRow(NamedTuple):
    """A message with a different outcome."""

    kind: str
    example: Example


def result_lines(
    comparison: Comparison, planned: PlannedRun, figures: Figures, terminal: Terminal, pace: str
) -> list[str]:
    """Return the comparison as text; `pace`: the requested pace."""
    steps = comparison.steps
    lines = fact_lines(
        [Labelled(f"{_first_line(comparison, figures)}; pace: {pace}", hang=2)], terminal
    )
    outcomes = [
        OutcomeRow(then, now, number, steps)
        for (then, now), number in comparison.outcomes.most_common()
    ]
    lines += _table(outcomes, _OUTCOMES, terminal)
    lines += _table(_latencies(comparison), _LATENCIES, terminal)
    brokers = [BrokerRow(*key, sends) for key, sends in sorted(comparison.brokers.items())]
    lines += _table(brokers, _BROKERS, terminal)
    examples = [
        ExampleRow(_KINDS[kind], example)
        for kind, kind_examples in comparison.examples.items()
        for example in kind_examples
    ]
    lines += _table(examples, _EXAMPLES, terminal)
    reasons = fact_lines(indented_facts(reason_lines(planned.skipped)), terminal)
    return [*lines, "", *reasons] if reasons else lines


def _first_line(comparison: Comparison, figures: Figures) -> str:
    captured = f"{count(comparison.captured_failures)} captured"
    if comparison.captured_unknown:
        captured += f", {count(comparison.captured_unknown)} without captured responses"
    parts = [
        f"{counted(comparison.messages, 'message')} in {counted(comparison.steps, 'send')}",
        f"{count(comparison.failures)} failed ({captured})",
        f"{count(comparison.new_failures)} failed only in the replay",
        f"{count(comparison.fixed)} only in the capture",
    ]
    if comparison.maybe_twice:
        parts.append(f"{count(comparison.maybe_twice)} may be stored twice")
    if figures.done_before:
        parts.append(f"{count(figures.done_before)} done by the earlier run")
    return "; ".join(parts)


def _latencies(comparison: Comparison) -> list[LatencyRow]:
    histograms = comparison.captured_latency, comparison.replayed_latency, comparison.lateness
    rows = [
        LatencyRow(f"p{percent:g}", *(_percentile(histogram, percent) for histogram in histograms))
        for percent in PERCENTILES
    ]
    largest = [histogram.maximum for histogram in histograms]
    return [*rows, LatencyRow("max", *largest)] if comparison.steps else []


def _percentile(histogram: Histogram, percent: float) -> int | None:
    return histogram.percentile(percent) if histogram.count else None


def _table(rows: list[_Row], columns: list[LineColumn[_Row]], terminal: Terminal) -> list[str]:
    lines = table_lines(rows, columns, terminal).lines
    return ["", *lines] if lines else []


def _differs(row: OutcomeRow) -> str:
    return "" if row.captured == row.replayed else Style.YELLOW


_OUTCOMES: list[LineColumn[OutcomeRow]] = [
    LineColumn("CAPTURED", lambda row: one_line(row.captured), 1, 12, 40),
    LineColumn("REPLAYED", lambda row: one_line(row.replayed), 1, 12, 40, style=_differs),
    LineColumn("SENDS", lambda row: count(row.sends), 1, 7, 12, True),
    LineColumn("SHARE", lambda row: share(row.sends, row.of), 2, 6, 8, True),
]
_LATENCIES: list[LineColumn[LatencyRow]] = [
    LineColumn("LATENCY", lambda row: row.name, 1, 7, 8),
    LineColumn("CAPTURED", lambda row: duration(row.captured), 1, 9, 12, True),
    LineColumn("REPLAYED", lambda row: duration(row.replayed), 1, 9, 12, True),
    LineColumn("LATE", lambda row: duration(row.late), 2, 9, 12, True),
]
_BROKERS: list[LineColumn[BrokerRow]] = [
    LineColumn("CAPTURED AT", lambda row: one_line(row.captured), 1, 12, 32),
    LineColumn("REPLAYED AT", lambda row: one_line(row.replayed), 1, 12, 32),
    LineColumn("MESSAGES", lambda row: count(row.figures.replayed_messages), 1, 8, 12, True),
    LineColumn("FAILED THEN", lambda row: count(row.figures.captured_failures), 2, 11, 12, True),
    LineColumn("FAILED NOW", lambda row: count(row.figures.replayed_failures), 2, 10, 12, True),
    LineColumn(
        "P99 THEN", lambda row: duration(_percentile(row.figures.captured, 99)), 3, 8, 10, True
    ),
    LineColumn(
        "P99 NOW", lambda row: duration(_percentile(row.figures.replayed, 99)), 3, 8, 10, True
    ),
]
_EXAMPLES: list[LineColumn[ExampleRow]] = [
    LineColumn("DIFFERENCE", lambda row: row.kind, 1, 12, 36),
    LineColumn("PACKET", lambda row: str(row.example.packet), 2, 6, 10, True),
    LineColumn("TOPIC", lambda row: one_line(row.example.topic), 3, 8, 32),
    LineColumn("CAPTURED", lambda row: one_line(row.example.captured), 3, 10, 28),
    LineColumn("REPLAYED", lambda row: one_line(row.example.replayed), 3, 12, 80),
    LineColumn("UNIQ_KEY", lambda row: one_line(row.example.unique_key), 5, 10, 32, keep_end=True),
    LineColumn("CAPTURE", lambda row: one_line(row.example.capture), 8, 8, 40, keep_end=True),
]


def result_json(
    comparison: Comparison, planned: PlannedRun, figures: Figures, journal: Path, pace: str
) -> bytes:
    """Return the comparison as one line of JSON; latencies in µs."""
    names = (
        *("steps", "messages", "failures", "captured_failures", "new_failures", "fixed"),
        *("captured_unknown", "maybe_twice", "attempts", "captured_attempts", "moved"),
    )
    value: dict[str, object] = {name: getattr(comparison, name) for name in names}
    value |= {
        "journal": str(journal),
        "target": figures.target,
        "pace": pace,
        "done_before": figures.done_before,
        "outcomes": [
            {"captured": then, "replayed": now, "sends": number}
            for (then, now), number in comparison.outcomes.most_common()
        ],
        "latency_us": {row.name: row._asdict() for row in _latencies(comparison)},
        "brokers": [
            {
                "captured": then,
                "replayed": now,
                "messages": item.replayed_messages,
                "captured_failures": item.captured_failures,
                "replayed_failures": item.replayed_failures,
                "captured_p99_us": _percentile(item.captured, 99),
                "replayed_p99_us": _percentile(item.replayed, 99),
            }
            for (then, now), item in sorted(comparison.brokers.items())
        ],
        "examples": {
            kind: [item._asdict() for item in examples]
            for kind, examples in comparison.examples.items()
        },
        "skipped": [
            {"why": why.name, "reason": why.value, "detail": detail, "commands": number}
            for (why, detail), number in planned.skipped.most_common()
        ],
    }
    return json_line(value)
