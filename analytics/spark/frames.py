"""The reports for programs with a SparkSession: DataFrames in, DataFrames out."""

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
    """Return DataFrames, which have the columns of a decoded log and `source`, as an input."""
    engine = SparkEngine(exchanges.sparkSession)
    others = (
        None if frame is None else engine.given(frame)
        for frame in (conversations, findings, messages)
    )
    return ReportInput(engine.given(exchanges), Kept(engine), *others)


def report_frames(
    report: Report, given: ReportInput, options: ReportOptions | None = None
) -> Mapping[str, DataFrame]:
    """Return the tables of a report on an input of `spark_input`, by name; Spark computes them."""
    engine = cast("SparkEngine", given.kept.engine)
    tables = report.build(given, options or ReportOptions())
    described = {table.name: table for table in report.tables}
    return {
        name: engine.frame(typed(relation, described[name])) for name, relation in tables.items()
    }
