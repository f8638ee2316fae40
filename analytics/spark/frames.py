"""Reports for programs with a SparkSession: DataFrames in, DataFrames out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from ..kept import Kept
from ..report import Report, ReportInput, ReportOptions, typed
from .engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def spark_input(
    exchanges: DataFrame,
    conversations: DataFrame | None = None,
    findings: DataFrame | None = None,
    messages: DataFrame | None = None,
) -> ReportInput:
    """Return an input from DataFrames with the columns of a decoded log and `source`."""
    engine = SparkEngine(exchanges.sparkSession)
    connection_rows, finding_rows, message_rows = (
        None if frame is None else engine.given(frame)
        for frame in (conversations, findings, messages)
    )
    return ReportInput(
        engine.given(exchanges), Kept(engine), connection_rows, finding_rows, message_rows
    )


def report_frames(
    report: Report, report_input: ReportInput, options: ReportOptions | None = None
) -> Mapping[str, DataFrame]:
    """Return the tables of a report on an input of `spark_input`, by name; Spark computes them."""
    engine = cast("SparkEngine", report_input.kept.engine)
    tables = report.build(report_input, options or ReportOptions())
    described = {table.name: table for table in report.tables}
    return {
        name: engine.frame(typed(relation, described[name])) for name, relation in tables.items()
    }
