"""Percentiles of many groups in one pass: the buckets of `dissectors.histogram` in Spark.

Rules: values are counted in the same buckets as there (each power of two is cut into 64), so a
percentile is at most 0.8 % off, equals what `rmqtool decode --summary` shows, and does not depend
on how the rows were spread. Cells (a row a group and bucket) are small and are added up to any
coarser group without another look at the exchanges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from dissectors.histogram import SUB_BITS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EXACT = 1 << (SUB_BITS + 1)
_PER_POWER = 1 << SUB_BITS

PERCENTILES: tuple[tuple[str, float], ...] = (
    ("p50_us", 50),
    ("p90_us", 90),
    ("p95_us", 95),
    ("p99_us", 99),
    ("p999_us", 99.9),
)
"""Column -> percent."""


def bucket_of(value: str) -> Column:
    """Return the bucket that `Histogram.add` counts a whole number in; null for null."""
    shift = f"(({_power(value)}) - {SUB_BITS})"
    return F.expr(
        f"case when {value} < {_EXACT} then greatest({value}, 0L) "
        f"else cast({shift} as bigint) * {_PER_POWER} + shiftright({value}, {shift}) end"
    )


def power_below(value: str) -> Column:
    """Return the greatest power of two that is not above a column of whole numbers; 0 below 1."""
    return F.expr(f"case when {value} < 1 then 0L else shiftleft(1L, {_power(value)}) end")


def _power(value: str) -> str:
    """Return the exponent of `power_below`: a logarithm, which may be one off, put right."""
    guess = f"cast(floor(log2(cast({value} as double))) as int)"
    return (
        f"case when {value} < shiftleft(1L, {guess}) then {guess} - 1 "
        f"when shiftright({value}, {guess}) > 1 then {guess} + 1 else {guess} end"
    )


def middle_of(bucket: str) -> Column:
    """Return the value in the middle of a bucket, as `dissectors.histogram.middle_of`."""
    shift = f"cast(shiftright({bucket}, {SUB_BITS}) - 1 as int)"
    low = f"shiftleft(({bucket} & {_PER_POWER - 1}) | {_PER_POWER}, {shift})"
    return F.expr(
        f"case when {bucket} < {_EXACT} then {bucket} "
        f"else {low} + shiftright(shiftleft(1L, {shift}), 1) end"
    )


def percentiles(
    cells: DataFrame, keys: Sequence[str], sums: Sequence[str] = (), largest: Sequence[str] = ()
) -> DataFrame:
    """Return a row for each group of `keys`: the percentiles, and what is added up besides.

    `cells` has `bucket` (null: cells without a value), `values` (how many), `total_us`,
    `smallest_us`, `largest_us`, and the columns of `sums`, which are added up, and of `largest`, of
    which the largest is taken. The result has `values`, `mean_us`, `max_us`, those columns, and
    `PERCENTILES`; null where a group has no value.
    """
    group = Window.partitionBy(*keys)
    below = group.orderBy("bucket").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    counted = cells.withColumn("_below", F.sum("values").over(below)).withColumn(
        "_all", F.sum("values").over(group)
    )
    middle = F.when(F.col("bucket").isNotNull(), middle_of("bucket"))
    ranks = {
        name: F.min(F.when(F.col("_below") >= F.ceil(F.col("_all") * F.lit(q) / 100), middle))
        for name, q in PERCENTILES
    }
    found = counted.groupBy(*keys).agg(
        F.sum("values").alias("values"),
        (F.sum("total_us") / F.sum("values")).alias("mean_us"),
        F.min("smallest_us").alias("_smallest"),
        F.max("largest_us").alias("max_us"),
        *(F.sum(name).alias(name) for name in sums),
        *(F.max(name).alias(name) for name in largest),
        *(column.alias(name) for name, column in ranks.items()),
    )
    clamped = {
        name: F.when(
            F.col(name).isNotNull(), F.least(F.greatest(name, "_smallest"), F.col("max_us"))
        )
        for name, _ in PERCENTILES
    }
    return found.withColumns(clamped).drop("_smallest")
