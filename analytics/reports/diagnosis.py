"""What is wrong, why, and what to do: the rules of `analytics.diagnosis`, as a report.

Rules: the local engine judges in this process, in the one pass of `rmqtool diagnose`; Spark's tasks
run the same folds (`diagnosis_folding`), so that both say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..diagnosis.engine import Engine
from ..diagnosis.registry import rules
from ..inputs.rows import connections_in, exchanges_in, findings_in
from ..report import Chart, Report, ReportInput, ReportOptions, Row, Rows
from ..schema import SOURCE
from ..sql.expressions import text
from ..sql.relation import Relation
from .diagnosis_folding import FOLDING
from .diagnosis_tables import LIMITS, PROBLEMS, rows_of
from .folding import SHARE
from .keyed_folds import folded, here, known_of

_TABLES: Final = (PROBLEMS, LIMITS)


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:  # noqa: ARG001
    """Return the tables."""
    if given.is_distributed:
        return folded(given, FOLDING, known_of(given), _TABLES)
    return here(given, rows_of(_in_one_pass(given).diagnosis()), _TABLES)


def _in_one_pass(given: ReportInput) -> Engine:
    """Return the engine that has all rows."""
    engine = Engine(rules())
    batches = given.kept.engine.batches
    for source in _sources(given):
        engine.begin_input(source)
        same = f"{SOURCE} = {text(source)}"
        for batch in batches(given.exchanges.where(same)):
            engine.add_exchanges(exchanges_in(batch))
        if given.conversations is not None:
            for batch in batches(given.conversations.where(same)):
                engine.add_connections(connections_in(batch))
    if given.findings is not None:
        for batch in batches(given.findings.select("kind")):
            engine.add_findings(findings_in(batch))
    return engine


def _sources(given: ReportInput) -> list[str]:
    found: set[str] = set()
    for relation in (given.exchanges, given.conversations):
        if relation is not None:
            rows = given.kept.rows(relation.select(SOURCE).distinct())
            found.update(map(str, rows.column(SOURCE).to_pylist()))
    return sorted(found)


# -- words ----------------------------------------------------------------------------------------


def remarks(rows: Rows) -> list[str]:
    """Return the verdict, and what the capture could not show."""
    found = rows.get(PROBLEMS.name)
    if found is None:
        return []
    if not found:
        return ["Nothing wrong was found."]
    causes = [row for row in found if row["consequence_of"] is None]
    said = [_sentence(row) for row in causes[:_MOST_SAID]]
    if len(causes) > _MOST_SAID:
        said.append(f"{len(causes) - _MOST_SAID} further problems are in the table.")
    return said


_MOST_SAID: Final = 5


def _sentence(row: Row) -> str:
    return f"{str(row['severity']).upper()}: {row['title']}"


REPORT = Report(
    name="diagnosis",
    title="Diagnosis",
    question="What went wrong, why, and how can it be fixed?",
    tables=_TABLES,
    build=build,
    charts=(Chart("incidents", "Incidents", PROBLEMS.name, {"time": "first_time"}),),
    remarks=remarks,
    shares=(SHARE,),
)
