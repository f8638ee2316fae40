"""Capture quality, and the claims that it does not support.

Rules: facts missing in the input are unknown, not good: without connections (`conversations`) their
tables are absent. Each note is a caveat for the other reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dissectors.quantities import counted

from ..cells import CellTable
from ..report import (
    Report,
    ReportInput,
    ReportOptions,
    ReportTable,
    Row,
    Rows,
    sum_of,
    table_columns,
)
from ..schema import SOURCE
from ..sql.expressions import CONNECTION, place_of
from ..sql.relation import Relation

EXCHANGES = ReportTable(
    "quality_exchanges",
    "Exchanges by input",
    "One row per input, with missing parts of its exchanges.",
    table_columns("""
        source string: input
        exchanges int: rows
        unanswered int: requests without a captured response
        still_open int: unanswered requests on connections still open
        orphans int: responses without a captured request
        incomplete int: exchanges with an incomplete body
        missing_bytes int bytes: missing body bytes
        with_findings int: exchanges with findings
        first_time time: first request or response
        last_time time: last event
    """),
    order=("source",),
)
CONNECTIONS = ReportTable(
    "quality_connections",
    "Connections by capture",
    "One row per capture, with missing parts of its RocketMQ connections.",
    table_columns("""
        capture string: capture file of the start
        connections int: RocketMQ connections
        no_handshake int: connections without a handshake (started earlier)
        one_direction int: connections with only one direction captured
        with_gaps int: connections with missing bytes
        gap_bytes int bytes: bytes missing from the capture
        gap_share float share: share of all bytes
        retransmitting int: connections with retransmissions
        retransmissions int: retransmitted segments
        still_open int: connections open at the end of the capture
        others int: non-RocketMQ or empty connections
    """),
    order=("capture",),
)
FINDINGS = ReportTable(
    "findings",
    "Findings",
    "One row per kind of finding, most severe and most frequent first.",
    table_columns("""
        severity string: error, warning, note or chat
        kind string: kind of finding
        count int: number of findings; a log may not list all frequent ones
        connections int: number of affected connections
        detail string: description of the first one
        capture string: capture file
        packet int: packet number
        time time: time of the first one
        rank int: severity rank; 1 is the most severe
    """),
    order=("rank", "-count", "kind"),
    brief=("severity", "kind", "count", "connections", "detail", "capture", "packet"),
)

CELLS = CellTable(
    "quality",
    (SOURCE,),
    {
        **{column.name: "sum" for column in EXCHANGES.columns if column.type == "int"},
        "first_time": "min",
        "last_time": "max",
    },
)
# Calls of gRPC count as commands; connections of other gRPC services have none.
_ROCKETMQ = "(protocol in ('ROCKETMQ', 'REPLICATION') or coalesce(commands, 0) > 0)"


def build(report_input: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables; those without data in the input are absent."""
    made: dict[str, Callable[[], Relation]] = {
        EXCHANGES.name: lambda: report_input.kept.cells(
            CELLS, lambda: _exchanges(report_input.exchanges)
        )
    }
    conversations, findings = report_input.conversations, report_input.findings
    if conversations is not None:
        made[CONNECTIONS.name] = lambda: _connections(conversations)
    if findings is not None:
        made[FINDINGS.name] = lambda: _findings(findings)
    wanted = options.tables
    return {name: make() for name, make in made.items() if wanted is None or name in wanted}


def _exchanges(exchanges: Relation) -> Relation:
    return exchanges.grouped(
        ["source"],
        {
            "exchanges": "count(*)",
            "unanswered": "count_if(status = 'unanswered')",
            "still_open": "count_if(status = 'unanswered' and coalesce(`end`, 'open') = 'open')",
            "orphans": "count_if(status = 'orphan')",
            "incomplete": "count_if(missing_bytes > 0)",
            "missing_bytes": "coalesce(sum(missing_bytes), 0L)",
            "with_findings": "count_if(size(findings) > 0)",
            "first_time": "min(coalesce(request_time, response_time))",
            "last_time": "max(coalesce(response_time, request_time))",
        },
    )


def _connections(conversations: Relation) -> Relation:
    def counted(condition: str) -> str:
        return f"count_if({_ROCKETMQ} and {condition})"

    # other protocols are counted, but what is missing in them says nothing about RocketMQ
    repeated = "(client_retransmissions + server_retransmissions)"
    grouped = conversations.grouped(
        ["capture"],
        {
            "connections": f"count_if({_ROCKETMQ})",
            "no_handshake": counted("start != 'handshake'"),
            "one_direction": counted("directions != 'both'"),
            "with_gaps": counted("gaps > 0"),
            "gap_bytes": f"sum(if({_ROCKETMQ}, gap_bytes, 0L))",
            "_bytes": f"sum(if({_ROCKETMQ}, client_bytes + server_bytes, 0L))",
            "retransmitting": counted(f"{repeated} > 0"),
            "retransmissions": f"sum(if({_ROCKETMQ}, {repeated}, 0L))",
            "still_open": counted("`end` = 'open'"),
            "others": f"count_if(not {_ROCKETMQ})",
        },
    )
    return grouped.adding({"gap_share": "try_divide(gap_bytes, gap_bytes + _bytes)"})


def _findings(findings: Relation) -> Relation:
    # `min` of a struct finds the first finding, and holds its text for each group
    shortened = findings.adding({"detail": "substring(detail, 1, 300)"})
    placed = shortened.adding({"place": place_of("time", "capture", "packet", "detail")})
    grouped = placed.grouped(
        ["severity", "kind"],
        {
            "count": "count(*)",
            "connections": f"count(distinct {CONNECTION})",
            "place": "min(place)",
        },
    )
    return grouped.adding(
        {
            "rank": "cast(array_position(array('error', 'warning', 'note', 'chat'), severity)"
            " as bigint)",
            "time": "place.time",
            "capture": "place.capture",
            "packet": "place.packet",
            "detail": "place.detail",
        },
    )


def report_notes(rows: Rows) -> list[str]:
    """Return the caveats for the other reports."""
    notes = []
    exchanges, connections = rows.get(EXCHANGES.name, ()), rows.get(CONNECTIONS.name)
    open_, orphans = sum_of(exchanges, "still_open"), sum_of(exchanges, "orphans")
    if open_:
        notes.append(
            f"{counted(open_, 'request')} without a response on connections that were still open:"
            " the responses may not have been captured."
        )
    if orphans:
        notes.append(
            f"{counted(orphans, 'response has', 'responses have')} no captured request (the capture"
            " started later, or has gaps), and so no latency."
        )
    return notes + _about(connections or ())


def _about(connections: Sequence[Row]) -> list[str]:
    whole = sum_of(connections, "connections")
    facts = (
        ("no_handshake", "started before the capture, so network latency is unknown there"),
        ("one_direction", "were captured in one direction only: responses or requests are missing"),
        ("with_gaps", "have gaps: a request or response may be missing"),
    )
    return [
        f"{count:,} of {whole:,} connections {what}."
        for name, what in facts
        if (count := sum_of(connections, name))
    ]


REPORT = Report(
    name="quality",
    title="Capture quality",
    question="How complete is the capture, and what can it not show?",
    tables=(EXCHANGES, CONNECTIONS, FINDINGS),
    build=build,
    notes=report_notes,
    cells=(CELLS,),
    additive=frozenset({EXCHANGES.name}),
)
