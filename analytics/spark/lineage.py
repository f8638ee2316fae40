"""Kept frames without what they were made of: Spark plans anew from the rows in its memory.

Spark analyses and optimises all that a frame was made of with each query over it, although the
rows are there. Rules: the answer is the same, and so is what happens if rows are lost (they are
computed again) or the frame is let go. Where this cannot be done the frame is as it was.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DATASET: Final = "org.apache.spark.sql.classic.Dataset"
"""Spark 4; a version that has no such class gives the frame back."""


def planned_from_memory(kept: DataFrame) -> DataFrame:
    """Return a frame that Spark keeps as one whose plan begins with the rows in its memory."""
    session = kept.sparkSession
    if is_connect(session):  # the plan is at the server
        return kept
    with suppress(Exception):  # another version of Spark
        java, session_there = session._jvm, session._jsparkSession
        datasets = getattr(java, _DATASET)
        # anew: what the frame has planned already was planned before its rows were kept
        plan = datasets.ofRows(session_there, kept._jdf.queryExecution().logical())
        from_memory = plan.queryExecution().withCachedData()
        from pyspark.sql.classic.dataframe import DataFrame as Frame

        return Frame(datasets.ofRows(session_there, from_memory), session)
    return kept
