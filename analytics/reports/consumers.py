"""Consumer groups: members, rebalances, queue ownership, locks, offsets, subscriptions.

Rules: the fold of one group is `analytics.consuming.group_fold`; facts not in the capture, such as
members connected elsewhere, have no row.
"""

from __future__ import annotations

from collections.abc import Mapping

from dissectors.quantities import counted

from ..consuming.group_fold import GroupRows, fold_groups, group_tables
from ..consuming.group_items import REQUESTS, items_of_connections, items_of_group_exchanges
from ..consuming.group_tables import (
    LIMITS,
    MEMBERS,
    ODD,
    OFFSETS,
    QUEUES,
    SLAVES,
    SUBSCRIPTIONS,
    TABLES,
)
from ..report import Chart, Report, ReportInput, ReportOptions, Rows
from ..sql.relation import Relation
from .folding import SHARE, Folding
from .keyed_folds import folded, known_of

FOLDING = Folding(
    exchanges=items_of_group_exchanges,
    requests=REQUESTS,
    fold=fold_groups,
    sums=GroupRows,
    merge=GroupRows.merge,
    tables=group_tables,
    connections=items_of_connections,
)


def build(report_input: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables."""
    known = known_of(report_input)
    # Without a route, slaves cannot be identified.
    tables = [table for table in TABLES if table is not SLAVES or known.context.ranks]
    wanted = options.tables
    return folded(
        report_input,
        FOLDING,
        known,
        [table for table in tables if wanted is None or table.name in wanted],
    )


def report_notes(rows: Rows) -> list[str]:
    """Return the notes of the report."""
    notes = [
        f"{row['group']}: {row['left_out']:,} events omitted: a limit was reached."
        for row in rows.get(LIMITS.name, ())[:_MOST_NAMED]
    ]
    differing = sorted(
        {str(row["group"]) for row in rows.get(SUBSCRIPTIONS.name, ()) if row["differs"]}
    )
    if differing:
        notes.append(f"Members with different subscriptions: {', '.join(differing[:_MOST_NAMED])}.")
    lost = [
        row
        for row in rows.get(MEMBERS.name, ())
        if str(row["ended"]).startswith("connection ended")
    ]
    if lost:
        names = sorted({str(row["client"]) for row in lost})
        notes.append(
            f"Clients that disconnected without unregistering: {', '.join(names[:_MOST_NAMED])}."
        )
    never = [
        row
        for row in rows.get(ODD.name, ())
        if row["what"] == "nobody pulled" and row["since"] is None
    ]
    if never:
        notes.append(
            f"{counted(len(never), 'queue has', 'queues have')} no consumer in the capture;"
            " consumers may be elsewhere."
        )
    if any("another client" in str(row["what"]) for row in rows.get(OFFSETS.name, ())):
        notes.append(
            "Some queues did not continue at the previous client's offset after a handover: see the"
            " offset jumps."
        )
    # the table may also be missing because it was not asked for
    if SLAVES.name not in rows and all(
        table.name in rows for table in TABLES if table is not SLAVES
    ):
        notes.append("No route captured: unknown whether clients read from a slave.")
    return notes


_MOST_NAMED = 5

REPORT = Report(
    name="consumers",
    title="Consumers",
    question="Which clients were group members, who pulled which queue, and what went wrong?",
    tables=TABLES,
    build=build,
    charts=(
        Chart(
            "timeline",
            "Group members over time",
            MEMBERS.name,
            {"row": "group client", "start": "since", "end": "until", "colour": "ended"},
        ),
        Chart(
            "timeline",
            "Queue ownership over time",
            QUEUES.name,
            {
                "row": "topic group broker queue_id",
                "start": "since",
                "end": "until",
                "colour": "client",
            },
        ),
    ),
    notes=report_notes,
    shares=(SHARE,),
)
