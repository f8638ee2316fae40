"""How good the capture is, and what can therefore not be claimed.

Rules: what the input does not say is unknown, not fine: without connections (`conversations`) the
tables about them are absent. Each remark says what the other reports must be read with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..report import Report, ReportInput, ReportOptions, ReportTable, Row, Rows, TableColumn, sum_of
from ..sql.expressions import CONNECTION, place_of
from ..sql.relation import Relation

EXCHANGES = ReportTable(
    "quality_exchanges",
    "Exchanges by input",
    "One row per input; what is missing of its exchanges.",
    (
        TableColumn("source", "string", "", "input"),
        TableColumn("exchanges", "int", "", "rows"),
        TableColumn("unanswered", "int", "", "requests without an answer in the capture"),
        TableColumn("still_open", "int", "", "of them on connections that had not ended"),
        TableColumn("orphans", "int", "", "answers of which the request was not captured"),
        TableColumn("incomplete", "int", "", "exchanges with a body that is not all there"),
        TableColumn("missing_bytes", "int", "bytes", "bytes of bodies that are not there"),
        TableColumn("with_findings", "int", "", "exchanges with a finding about their frames"),
        TableColumn("first_time", "time", "", "the first request or answer"),
        TableColumn("last_time", "time", "", "the last one"),
    ),
    order=("source",),
)
CONNECTIONS = ReportTable(
    "quality_connections",
    "Connections by capture",
    "One row per capture; what its RocketMQ connections lack.",
    (
        TableColumn("capture", "string", "", "capture in which they begin"),
        TableColumn("connections", "int", "", "RocketMQ connections"),
        TableColumn("no_handshake", "int", "", "of them without SYN and SYN/ACK: began before"),
        TableColumn("one_direction", "int", "", "of them with packets of one side only"),
        TableColumn("with_gaps", "int", "", "of them with bytes that the capture does not have"),
        TableColumn("gap_bytes", "int", "bytes", "bytes that the capture does not have"),
        TableColumn("gap_share", "float", "share", "of all bytes of these connections"),
        TableColumn("retransmitting", "int", "", "of them with repeated segments"),
        TableColumn("retransmissions", "int", "", "repeated segments"),
        TableColumn("still_open", "int", "", "of them not ended when the capture did"),
        TableColumn("others", "int", "", "connections that are not RocketMQ, or carried nothing"),
    ),
    order=("capture",),
)
FINDINGS = ReportTable(
    "findings",
    "Findings",
    "One row per kind of finding, the gravest and most frequent first.",
    (
        TableColumn("severity", "string", "", "error, warning, note or chat"),
        TableColumn("kind", "string", "", "what was found"),
        TableColumn("count", "int", "", "how often; the most frequent are not all listed in a log"),
        TableColumn("connections", "int", "", "on how many connections"),
        TableColumn("detail", "string", "", "the first one, in words"),
        TableColumn("capture", "string", "", "where to look it up"),
        TableColumn("packet", "int", "", "its packet"),
        TableColumn("time", "time", "", "its time"),
        TableColumn("rank", "int", "", "of the severity: 1 is the gravest"),
    ),
    order=("rank", "-count", "kind"),
    brief=("severity", "kind", "count", "connections", "detail", "capture", "packet"),
)

_ROCKETMQ = "protocol in ('ROCKETMQ', 'REPLICATION')"


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables; those that the input says nothing about are absent."""
    made: dict[str, Callable[[], Relation]] = {EXCHANGES.name: lambda: _exchanges(given.exchanges)}
    conversations, findings = given.conversations, given.findings
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
            "with_findings": "count_if(size(expert) > 0)",
            "first_time": "min(coalesce(request_time, response_time))",
            "last_time": "max(coalesce(response_time, request_time))",
        },
    )


def _connections(conversations: Relation) -> Relation:
    def counted(condition: str) -> str:
        return f"count_if({_ROCKETMQ} and {condition})"

    repeated = "(client_retransmissions + server_retransmissions)"
    found = conversations.grouped(
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
    return found.adding({"gap_share": "try_divide(gap_bytes, gap_bytes + _bytes)"})


def _findings(findings: Relation) -> Relation:
    shortened = findings.adding({"detail": "substring(detail, 1, 300)"})
    placed = shortened.adding({"place": place_of("time", "capture", "packet", "detail")})
    found = placed.grouped(
        ["severity", "kind"],
        {
            "count": "count(*)",
            "connections": f"count(distinct {CONNECTION})",
            "place": "min(place)",
        },
    )
    return found.adding(
        {
            "rank": "cast(array_position(array('error', 'warning', 'note', 'chat'), severity)"
            " as bigint)",
            "time": "place.time",
            "capture": "place.capture",
            "packet": "place.packet",
            "detail": "place.detail",
        },
    )


def remarks(rows: Rows) -> list[str]:
    """Return what the other reports must be read with."""
    said = []
    exchanges, connections = rows.get(EXCHANGES.name, ()), rows.get(CONNECTIONS.name)
    open_, orphans = sum_of(exchanges, "still_open"), sum_of(exchanges, "orphans")
    if open_:
        said.append(
            f"{open_:,} requests without an answer were on connections that had not ended: no"
            " answer in the capture is not no answer."
        )
    if orphans:
        said.append(
            f"{orphans:,} answers have no request in the capture: it began later, or has holes;"
            " their latency is unknown."
        )
    return said + _about(connections or ())


def _about(connections: Sequence[Row]) -> list[str]:
    whole = sum_of(connections, "connections")
    facts = (
        ("no_handshake", "began before the capture: their network part is unknown"),
        ("one_direction", "were captured in one direction only: their answers are not there"),
        ("with_gaps", "have holes: a request or answer may be missing"),
    )
    return [
        f"{count:,} of {whole:,} connections {what}."
        for name, what in facts
        if (count := sum_of(connections, name))
    ]


REPORT = Report(
    name="quality",
    title="Capture quality",
    question="How good is the capture, and what can therefore not be claimed?",
    tables=(EXCHANGES, CONNECTIONS, FINDINGS),
    build=build,
    remarks=remarks,
)
