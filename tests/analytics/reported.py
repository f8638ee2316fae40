"""Tables of a report as rows, from captures or from rows made up for a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.report import ReportInput

Tables = Mapping[str, list[dict[str, object]]]


def tables_of(spark: SparkSession, report: str, files: Sequence[str], **options: object) -> Tables:
    """Return the tables of a report on captures."""
    from analytics.inputs.inputs import inputs_of
    from analytics.inputs.source import read_inputs
    from analytics.reports import report_of

    messages = report_of(report).messages
    given = read_inputs(spark, inputs_of(files), messages=messages).given
    return tables_from(report, given, **options)


def tables_from(report: str, given: ReportInput, **options: object) -> Tables:
    """Return the tables of a report on an input, each row with the columns as described."""
    from analytics.report import ReportOptions, conforming
    from analytics.reports import report_of

    described = report_of(report)
    frames = described.build(given, ReportOptions(**options))  # type: ignore[arg-type]
    return {
        table.name: [row.asDict() for row in conforming(frames[table.name], table).collect()]
        for table in described.tables
        if table.name in frames
    }
