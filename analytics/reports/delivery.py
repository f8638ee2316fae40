"""What became of messages: stored, delivered to which group, again and why, how late.

Rules: the folds are those of `analytics.consuming`; what a group did is told only where it was seen
to fetch or to get something.
"""

from __future__ import annotations

from collections.abc import Mapping

from dissectors.remoting.code_sets import FETCHES

from ..consuming.delivery import fold_items, tables_of
from ..consuming.delivery_tables import DUPLICATES, GROUPS, LAG, TABLES
from ..consuming.items import items_of_exchanges, items_of_messages
from ..consuming.sums import MAX_SUMS, OTHERS, Sums
from ..report import Chart, Report, ReportInput, ReportOptions, Rows
from ..sql.relation import Relation
from ..sql.windows import window_of
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


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables; none where the input has no messages."""
    if given.messages is None:
        return {}
    known = known_of(given)
    first, last = known.context.first_time, known.context.last_time
    span_us = (last - first) // 1000 if first is not None and last is not None else 0
    known.window_us = options.window_us or window_of(span_us)
    return folded(given, FOLDING, known, TABLES)


def remarks(rows: Rows) -> list[str]:
    """Return what stands out."""
    groups = rows.get(GROUPS.name)
    if groups is None:
        return []
    said = []
    if any(row["topic"] == OTHERS for row in groups):
        said.append(
            f"There are more than {MAX_SUMS:,} topics or groups: the further ones have one row"
            f" together, {OTHERS}."
        )
    for row in groups:
        who = f"{row['group']} of {row['topic']}"
        skipped, unsure = row["skipped"], row["unsure"]
        if skipped:
            said.append(
                f"{who}: its commits passed {skipped:,} messages that it subscribes and was not"
                " seen to get. Another connection may have got them that is not in the capture."
            )
        elif unsure:
            said.append(
                f"{who}: its commits passed {unsure:,} messages that it was not seen to get;"
                " whether its filter takes them is unknown."
            )
    if any(row["group"] is not None and row["sent"] is None for row in groups):
        said.append("Where nobody was seen sending to a topic, what was sent is unknown.")
    return said[:_MOST_SAID]


_MOST_SAID = 6
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
    remarks=remarks,
    shares=(SHARE,),
)
