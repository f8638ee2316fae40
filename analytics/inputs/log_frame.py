"""A table of decoded logs as a Spark DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ..schema import SOURCE
from ..spark.session import safe_workers
from ..sql.relation import Relation
from .capture_frame import moment_at
from .filters import chosen
from .inputs import Input
from .source import read_inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..spark.engine import SparkEngine


def log_frame(
    spark: SparkSession,
    logs: Sequence[Input],
    table: str,
    where: str = "",
    since: int | None = None,
    until: int | None = None,
) -> DataFrame | None:
    """Return a table of `ReportInput` with its own columns, or None if the logs lack it.

    `where`, `since` and `until` (nanoseconds since the epoch) apply to exchanges.
    """
    with safe_workers(spark):
        report_input = read_inputs(spark, logs, messages=table == "messages").given
        if where or since is not None or until is not None:
            report_input = chosen(report_input, where, moment_at(since), moment_at(until))
        relation: Relation | None = getattr(report_input, table)
        if relation is None:
            return None
        return cast("SparkEngine", report_input.kept.engine).frame(relation.without(SOURCE))
