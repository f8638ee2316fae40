"""Tables of the diagnosis, and their rows."""

from __future__ import annotations

from typing import Final

from dissectors.times import text_of_time

from ..diagnosis.engine import Diagnosis, not_judged
from ..diagnosis.problem import Problem
from ..report import ReportTable, column_names, table_columns

PROBLEMS: Final = ReportTable(
    "diagnosis_problems",
    "Problems",
    "One row per problem, grouped by incident (most severe first), cause first.",
    table_columns("""
        incident int: incident number; problems of one incident share a cause
        place int: position in the incident, cause first
        severity string: `error`, `warning` or `info`
        title string: the problem in one sentence
        confidence string: `certain`, `likely` or `possible`
        reason string: reason for less than full certainty
        rule string: rule ID
        consequence_of string: rule of the causing problem
        count int: number of occurrences
        impact list: effect on messages, such as `messages_lost=3`
        first_time time: first occurrence
        last_time time: last occurrence
        state string: `ended` or `ongoing` at the end; empty: unknown
        broker string: affected broker
        topic string: topic
        group string: group
        client string: client ID, or address if unknown
        server string: address of the affected server
        queue_id int: queue
        message string: message id
        evidence list: evidence: time, capture, packet, and description
        filter string: Wireshark display filter for the evidence
        details list: additional details
        explanation string: explanation of the mechanism
        advice string: recommended action
        references list: public issues
    """),
    order=("incident", "place"),
    brief=("severity", "title", "rule", "count", "first_time", "confidence", "incident"),
    shown=30,
    aside=True,
)
LIMITS: Final = ReportTable(
    "diagnosis_limits",
    "Limits of the diagnosis",
    "One row per kind of traffic that the capture lacks, with the rules skipped because of it.",
    table_columns("""
        place int: order
        limit string: what the capture cannot show, or a limit reached
    """),
    order=("place",),
    shown=10,
    aside=True,
)
_PLAIN: Final = column_names(
    "incident title reason rule consequence_of count filter details explanation advice references"
)
_SUBJECT: Final = ("broker", "topic", "group", "client", "server")


def rows_of(diagnosis: Diagnosis) -> dict[str, list[dict[str, object]]]:
    """Return the rows of both tables."""
    limits = not_judged(diagnosis) + diagnosis.limits
    return {
        PROBLEMS.name: [
            _row_of(problem, place) for place, problem in enumerate(diagnosis.problems, 1)
        ],
        LIMITS.name: [{"place": place, "limit": text} for place, text in enumerate(limits, 1)],
    }


def _row_of(problem: Problem, place: int) -> dict[str, object]:
    subject = problem.subject
    row: dict[str, object] = {name: getattr(problem, name) for name in _PLAIN}
    row |= {"place": place, "severity": str(problem.severity)}
    row |= {"confidence": str(problem.confidence), "queue_id": subject.queue}
    row |= {name: getattr(subject, name) for name in _SUBJECT}
    row["message"] = subject.message
    row["impact"] = [f"{name}={number}" for name, number in problem.impact.items()]
    row["state"] = None if problem.state is None else str(problem.state)
    row["first_time"], row["last_time"] = problem.first_time // 1000, problem.last_time // 1000
    row["evidence"] = [
        " ".join(
            (
                text_of_time(evidence.time),
                evidence.capture,
                f"packet {evidence.packet}"
                if evidence.packet is not None
                else f"conversation {evidence.conversation}",
                evidence.what,
            )
        )
        for evidence in problem.evidence
    ]
    return row
