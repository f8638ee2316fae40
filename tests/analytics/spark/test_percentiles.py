"""Percentiles in Spark are those of `dissectors.histogram`, value by value."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from dissectors.histogram import Histogram, middle_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EDGES = sorted(
    {max(0, (1 << power) + near) for power in range(62) for near in (-1, 0, 1)} | {2**62 - 1}
)


def test_every_edge_falls_into_the_bucket_of_the_histogram(spark: SparkSession) -> None:

    from analytics.spark import percentiles as p

    frame = spark.createDataFrame([(edge,) for edge in EDGES], "value long")
    for one in p.with_bucket(frame, "value").collect():
        histogram = Histogram()
        histogram.add(one.value)
        assert [one.bucket] == list(histogram.buckets), one.value


def test_middles_are_those_of_the_histogram(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from analytics.spark import percentiles as p

    frame = spark.range(0, 3600).select(F.col("id").cast("long").alias("bucket"))
    for one in frame.select("bucket", F.expr(p.middle_of("bucket")).alias("middle")).collect():
        assert one.middle == middle_of(one.bucket), one.bucket


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000])
def test_percentiles_are_those_of_the_histogram(spark: SparkSession, count: int) -> None:
    from pyspark.sql import functions as F

    from analytics.spark import percentiles as p

    chosen = random.Random(count)
    values = {key: [int(chosen.lognormvariate(8, 2)) for _ in range(count)] for key in ("a", "b")}
    rows = [(key, value) for key, several in values.items() for value in several]
    frame = spark.createDataFrame([*rows, ("c", None)], "key string, value long")
    cells = (
        p.with_bucket(frame, "value")
        .groupBy("key", "bucket")
        .agg(
            F.count("value").alias("values"),
            F.sum("value").alias("total_us"),
            F.min("value").alias("smallest_us"),
            F.max("value").alias("largest_us"),
            F.count("*").alias("seen"),
        )
    )
    found = {one.key: one for one in p.percentiles(cells, ["key"], ["seen"]).collect()}
    for key, several in values.items():
        histogram = Histogram()
        for value in several:
            histogram.add(value)
        for name, percent in p.PERCENTILES:
            assert found[key][name] == histogram.percentile(percent), (key, name)
        assert found[key].max_us == max(several)
        assert found[key].mean_us == pytest.approx(sum(several) / count)
        assert found[key].seen == count
    assert found["c"].p50_us is None
    assert found["c"]["values"] == 0
    assert found["c"].mean_us is None
