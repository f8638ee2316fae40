"""A table of decoded logs as a DataFrame of Spark."""

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
    """Return a table of `ReportInput` with its own columns; None where the logs do not have it.

    `where`, `since` and `until` (nanoseconds since the epoch) are for exchanges.
    """
    with safe_workers(spark):
        given = read_inputs(spark, logs, messages=table == "messages").given
        if where or since is not None or until is not None:
            given = chosen(given, where, moment_at(since), moment_at(until))
        relation: Relation | None = getattr(given, table)
        if relation is None:
            return None
        return cast("SparkEngine", given.kept.engine).frame(relation.without(SOURCE))
