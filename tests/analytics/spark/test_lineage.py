"""Frames planned from Spark's memory: the rows, their plan, and what happens if they are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analytics.spark.lineage import planned_from_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

ROWS = [(number, number % 3, None if number % 5 else "x") for number in range(20)]


@pytest.fixture
def kept(spark: SparkSession) -> Iterator[DataFrame]:
    rows = spark.createDataFrame(ROWS, "number long, kind long, word string")
    frame = (
        rows.where("number >= 0").selectExpr("*", "struct(number + 1 as next) as more").persist()
    )
    frame.count()
    yield frame
    frame.unpersist()


def _analyzed(frame: DataFrame) -> str:
    """Return the classes of the steps that Spark analyses for a frame."""
    plan = frame._jdf.queryExecution().analyzed()  # type: ignore[operator]
    classes, left = [], [plan]
    while left:
        step = left.pop()
        classes.append(step.getClass().getSimpleName())
        children = step.children()
        left += [children.apply(place) for place in range(children.size())]
    return " ".join(classes)


def test_the_plan_begins_with_the_rows(kept: DataFrame) -> None:
    found = planned_from_memory(kept)
    assert found.schema == kept.schema
    assert _analyzed(kept) == "Project Filter LogicalRDD"
    assert _analyzed(found) == "InMemoryRelation"
    assert sorted(found.collect()) == sorted(kept.collect())


def test_a_frame_is_joined_with_itself(kept: DataFrame) -> None:
    found = planned_from_memory(kept)
    counted = found.groupBy("kind").count()
    joined = found.join(counted, "kind").join(found.select("number"), "number")
    assert sorted(joined.select("number", "count").collect()) == [
        (number, 7 if kind < 2 else 6) for number, kind, _ in ROWS
    ]


def test_rows_that_are_lost_or_let_go_are_made_again(spark: SparkSession, kept: DataFrame) -> None:
    found = planned_from_memory(kept)
    context = spark._jsparkSession.sparkContext()  # type: ignore[attr-defined]
    persistent = context.getPersistentRDDs()
    master = context.env().blockManager().master()
    numbers = persistent.keys().toSeq()
    assert numbers.size()
    for place in range(numbers.size()):
        master.removeRdd(numbers.apply(place), True)
    assert sorted(row.number for row in found.collect()) == [row[0] for row in ROWS]
    kept.unpersist(blocking=True)
    assert sorted(row.number for row in found.collect()) == [row[0] for row in ROWS]


def test_another_version_of_spark_plans_as_it_does(
    monkeypatch: pytest.MonkeyPatch, kept: DataFrame
) -> None:
    monkeypatch.setattr("analytics.spark.lineage._DATASET", "org.apache.spark.sql.Elsewhere")
    assert planned_from_memory(kept) is kept
