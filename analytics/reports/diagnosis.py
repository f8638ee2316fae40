"""Problems, causes, and advice: the rules of `analytics.diagnosis` as a report.

Rules: the local engine judges in this process, in the single pass of `rmqtool diagnose`; Spark's
tasks run the same folds (`diagnosis_folding`), with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dissectors.quantities import counted

from ..diagnosis.engine import Engine
from ..diagnosis.registry import rules
from ..inputs.rows import connections_in, exchanges_in, findings_in
from ..report import Chart, Report, ReportInput, ReportOptions, Row, Rows
from ..schema import SOURCE
from ..sends.broker_names import BROKER_NAMES
from ..sends.hops import RELAYS, proven_relays
from ..sends.suspects import SUSPECTS
from ..sends.unavailable import UNAVAILABLE
from ..sql.expressions import text
from ..sql.relation import Relation
from .diagnosis_folding import FOLDING, LIMITS, PROBLEMS, rows_of
from .folding import SHARE, here
from .keyed_folds import folded, known_of

_TABLES: Final = (PROBLEMS, LIMITS)


def build(report_input: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:  # noqa: ARG001
    """Return the tables."""
    if report_input.is_distributed:
        known = known_of(report_input)
        known.context.relays = proven_relays(report_input)
        known.asked = report_input.asked
        return folded(report_input, FOLDING, known, _TABLES)
    return here(report_input, rows_of(_in_one_pass(report_input).diagnosis()), _TABLES)


def _in_one_pass(report_input: ReportInput) -> Engine:
    """Return an engine that has all rows of the input."""
    engine = Engine(rules())
    if report_input.asked is not None:
        engine.want(report_input.asked)
    batches = report_input.kept.engine.batches
    # input by input, because conversations are numbered within one
    for source in _sources(report_input):
        engine.begin_input(source)
        same = f"{SOURCE} = {text(source)}"
        for batch in batches(report_input.exchanges.where(same)):
            engine.add_exchanges(exchanges_in(batch))
        if report_input.conversations is not None:
            for batch in batches(report_input.conversations.where(same)):
                engine.add_connections(connections_in(batch))
    if report_input.findings is not None:
        for batch in batches(report_input.findings.select("kind")):
            engine.add_findings(findings_in(batch))
    return engine


def _sources(report_input: ReportInput) -> list[str]:
    names: set[str] = set()
    for relation in (report_input.exchanges, report_input.conversations):
        if relation is not None:
            rows = report_input.kept.rows(relation.select(SOURCE).distinct())
            names.update(map(str, rows.column(SOURCE).to_pylist()))
    return sorted(names)


# -- notes ----------------------------------------------------------------------------------------


def report_notes(rows: Rows) -> list[str]:
    """Return the main problems and the limits of the capture."""
    problems = rows.get(PROBLEMS.name)
    if problems is None:
        return []
    if not problems:
        return ["No problems found."]
    causes = [row for row in problems if row["consequence_of"] is None]
    notes = [_sentence(row) for row in causes[:_MOST_NOTES]]
    if len(causes) > _MOST_NOTES:
        more = counted(len(causes) - _MOST_NOTES, "more problem", "more problems")
        notes.append(f"Not listed here: {more} (see the table).")
    return notes


_MOST_NOTES: Final = 5


def _sentence(row: Row) -> str:
    return f"{str(row['severity']).upper()}: {row['title']}"


REPORT = Report(
    name="diagnosis",
    title="Diagnosis",
    question="What went wrong, why, and how can it be fixed?",
    tables=_TABLES,
    build=build,
    charts=(Chart("incidents", "Incidents", PROBLEMS.name, {"time": "first_time"}),),
    notes=report_notes,
    shares=(SHARE, BROKER_NAMES, UNAVAILABLE, RELAYS, SUSPECTS),
)
