"""Consumer groups: members, rebalances, who pulled which queue, locks, offsets, subscriptions.

Rules: the fold of one group is `analytics.consuming.group_fold`; what the capture does not show, as
a member whose connections are elsewhere, is not a row.
"""

from __future__ import annotations

from collections.abc import Mapping

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


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables."""
    known = known_of(given)
    # Without a route nothing says which brokers are slaves.
    tables = [table for table in TABLES if table is not SLAVES or known.context.ranks]
    wanted = options.tables
    return folded(
        given, FOLDING, known, [one for one in tables if wanted is None or one.name in wanted]
    )


def remarks(rows: Rows) -> list[str]:
    """Return what stands out."""
    said = [
        f"{row['group']}: {row['left_out']:,} events are in no table, a limit was reached."
        for row in rows.get(LIMITS.name, ())[:_MOST_NAMED]
    ]
    differing = sorted(
        {str(row["group"]) for row in rows.get(SUBSCRIPTIONS.name, ()) if row["differs"]}
    )
    if differing:
        said.append(f"Members subscribe differently: {', '.join(differing[:_MOST_NAMED])}.")
    lost = [
        row
        for row in rows.get(MEMBERS.name, ())
        if str(row["ended"]).startswith("connection ended")
    ]
    if lost:
        names = sorted({str(row["client"]) for row in lost})
        said.append(f"Clients that were gone without a word: {', '.join(names[:_MOST_NAMED])}.")
    never = [
        row
        for row in rows.get(ODD.name, ())
        if row["what"] == "nobody pulled" and row["since"] is None
    ]
    if never:
        said.append(
            f"{len(never):,} queues of routes were pulled by nobody in the capture; their consumers"
            " may be elsewhere."
        )
    if any("another client" in str(row["what"]) for row in rows.get(OFFSETS.name, ())):
        said.append(
            "Queues that changed hands were not always pulled on where the client before had ended:"
            " see the offsets that jumped."
        )
    if SLAVES.name not in rows and all(one.name in rows for one in TABLES if one is not SLAVES):
        said.append("No route is in the input: whether somebody read from a slave is unknown.")
    return said


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
    remarks=remarks,
    shares=(SHARE,),
)
