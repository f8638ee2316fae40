"""Delivery of messages: stored, delivered to each group, redelivered, and end-to-end latency.

Rules: the folds are those of `analytics.consuming`; a group has rows only if its fetches or
deliveries were captured.
"""

from __future__ import annotations

from collections.abc import Mapping

from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES

from .. import derived
from ..consuming.delivery import fold_items, tables_of
from ..consuming.delivery_tables import DUPLICATES, GROUPS, LAG, TABLES
from ..consuming.items import items_of_exchanges, items_of_messages
from ..consuming.sums import MAX_SUMS, OTHERS, Sums
from ..report import Chart, Report, ReportInput, ReportOptions, Rows, sum_of
from ..sql.relation import Relation
from ..sql.windows import usual_span, window_of
from .folding import SHARE, Folding
from .keyed_folds import folded, known_of

FOLDING = Folding(
    exchanges=items_of_exchanges,
    requests=FETCHES,
    fold=fold_items,
    sums=Sums,
    merge=Sums.merge,
    tables=tables_of,
    messages=items_of_messages,
)


def build(report_input: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables; empty if the input has no messages."""
    if report_input.messages is None:
        return {}
    known = known_of(report_input)
    first, last = known.context.first_time, known.context.last_time
    span_us = 0
    if first is not None and last is not None:
        times = (first // 1000, last // 1000)
        span_us = usual_span(
            report_input.kept.engine, *times, report_input.exchanges, derived.HAPPENED
        )
    known.window_us = options.window_us or window_of(span_us)
    return folded(report_input, FOLDING, known, TABLES)


def report_notes(rows: Rows) -> list[str]:
    """Return the notes of the report."""
    groups = rows.get(GROUPS.name)
    if groups is None:
        return []
    notes = []
    if any(row["topic"] == OTHERS for row in groups):
        notes.append(f"More than {MAX_SUMS:,} topics or groups: the rest share one row, {OTHERS}.")
    for row in groups:
        label = f"{row['group']} of {row['topic']}"
        skipped, unsure = sum_of([row], "skipped"), sum_of([row], "unsure")
        if skipped:
            notes.append(
                f"{label}: commits passed {counted(skipped, 'subscribed message')} without a"
                " captured delivery. A connection outside the capture may have received them."
            )
        elif unsure:  # one note per group: the more certain loss
            notes.append(
                f"{label}: commits passed {counted(unsure, 'message')} without a captured"
                " delivery; unknown whether its filter accepts them."
            )
    if any(row["group"] is not None and row["sent"] is None for row in groups):
        notes.append("Sent messages are unknown for topics without a captured producer.")
    return notes[:_MOST_NOTES]


_MOST_NOTES = 6
_LAG_LINES = {"x": "start", "axis": "messages", "by": "consumer", "each": "consumer"}

REPORT = Report(
    name="delivery",
    title="Delivery",
    question="Which messages reached which group, how late, and which were redelivered and why?",
    tables=TABLES,
    build=build,
    charts=(
        Chart(
            "lines",
            "Unfetched messages by group",
            LAG.name,
            {"y": "to_fetch", **_LAG_LINES},
        ),
        Chart(
            "lines",
            "Uncommitted messages by group",
            LAG.name,
            {"y": "to_commit", **_LAG_LINES},
        ),
        Chart(
            "flows",
            "Redelivery causes",
            DUPLICATES.name,
            {"start": "cause", "end": "group", "value": "deliveries", "label": "topic"},
        ),
    ),
    notes=report_notes,
    shares=(SHARE,),
)
