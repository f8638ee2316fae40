"""Tables of the diagnosis, and their rows."""

from __future__ import annotations

from typing import Final

from dissectors.rows.tables import encodable_value
from dissectors.times import text_of_time

from ..diagnosis.engine import Diagnosis, not_judged
from ..diagnosis.problem import Problem
from ..report import ReportTable, TableColumn

PROBLEM_COLUMNS: Final = (
    TableColumn("incident", "int", "", "number of the incident: problems of one have one cause"),
    TableColumn("place", "int", "", "place in it: the cause first"),
    TableColumn("severity", "string", "", "`error`, `warning` or `info`"),
    TableColumn("title", "string", "", "what is wrong, in a sentence"),
    TableColumn("confidence", "string", "", "`certain`, `likely` or `possible`"),
    TableColumn("reason", "string", "", "why it is less than certain"),
    TableColumn("rule", "string", "", "id of the rule"),
    TableColumn("consequence_of", "string", "", "rule of the problem that led to it"),
    TableColumn("count", "int", "", "how often it was seen"),
    TableColumn("first_time", "time", "", "the first time"),
    TableColumn("last_time", "time", "", "the last time"),
    TableColumn("state", "string", "", "`ended` or `ongoing` at the end; empty: unknown"),
    TableColumn("broker", "string", "", "broker that it is about"),
    TableColumn("topic", "string", "", "topic"),
    TableColumn("group", "string", "", "group"),
    TableColumn("client", "string", "", "client id, else address"),
    TableColumn("server", "string", "", "address of a NameServer or of another server"),
    TableColumn("queue_id", "int", "", "queue"),
    TableColumn("message", "string", "", "message id"),
    TableColumn("evidence", "list", "", "packets that prove it: time, capture, packet, what"),
    TableColumn("filter", "string", "", "display filter of Wireshark that shows them"),
    TableColumn("details", "list", "", "further sentences"),
    TableColumn("explanation", "string", "", "what happens inside RocketMQ"),
    TableColumn("advice", "string", "", "what to check or set"),
    TableColumn("references", "list", "", "public issues"),
)
LIMIT_COLUMNS: Final = (
    TableColumn("place", "int", "", "order"),
    TableColumn("limit", "string", "", "what the capture could not show, or a bound reached"),
)
PROBLEMS: Final = ReportTable(
    "diagnosis_problems",
    "What is wrong",
    "One row per problem; by incident, the gravest first, in it the cause first.",
    PROBLEM_COLUMNS,
    order=("incident", "place"),
    brief=("severity", "title", "rule", "count", "first_time", "confidence", "incident"),
    shown=30,
)
LIMITS: Final = ReportTable(
    "diagnosis_limits",
    "What could not be judged",
    "One row per thing that the capture does not have, and the rules that could therefore not "
    "speak.",
    LIMIT_COLUMNS,
    order=("place",),
    shown=10,
)
ALL_COLUMNS: Final = (
    TableColumn("kind", "string", "", ""),
    *PROBLEM_COLUMNS,
    TableColumn("limit", "string", "", ""),
)


_SUBJECT: Final = ("broker", "topic", "group", "client", "server")


def rows_of(diagnosis: Diagnosis) -> list[dict[str, object]]:
    """Return the rows of both tables."""
    rows: list[dict[str, object]] = [
        {"kind": "problem", **_row_of(problem, place)}
        for place, problem in enumerate(diagnosis.problems, 1)
    ]
    said = not_judged(diagnosis) + diagnosis.limits
    return rows + [
        {"kind": "limit", "place": place, "limit": text} for place, text in enumerate(said, 1)
    ]


def _row_of(problem: Problem, place: int) -> dict[str, object]:
    subject = problem.subject
    row: dict[str, object] = {
        name: getattr(problem, name)
        for name in (
            *("incident", "title", "reason", "rule", "consequence_of", "count", "filter"),
            *("details", "explanation", "advice", "references"),
        )
    }
    row |= {"place": place, "severity": str(problem.severity)}
    row |= {"confidence": str(problem.confidence), "queue_id": subject.queue}
    row |= {name: getattr(subject, name) for name in _SUBJECT}
    row["message"] = subject.message
    row["state"] = None if problem.state is None else str(problem.state)
    row["first_time"], row["last_time"] = problem.first_time // 1000, problem.last_time // 1000
    row["evidence"] = [
        " ".join(
            (
                text_of_time(one.time),
                one.capture,
                f"packet {one.packet}"
                if one.packet is not None
                else f"conversation {one.conversation}",
                one.what,
            )
        )
        for one in problem.evidence
    ]
    return {name: encodable_value(value) for name, value in row.items()}
