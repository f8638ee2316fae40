"""Windows over time: how long they are, and where they begin.

Rules: a window has a length that people count in (1, 2, 5, 10, 15, 30 of a unit), begins at a whole
multiple of it, and there are about sixty unless a length is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WINDOWS = 60
"""About how many windows there are."""
_MS, _S, _MIN, _H = 1_000, 1_000_000, 60_000_000, 3_600_000_000
LENGTHS_US: tuple[int, ...] = (
    *(n * _MS for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * _S for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MIN for n in (1, 2, 5, 10, 15, 30)),
    *(n * _H for n in (1, 2, 3, 6, 12, 24)),
)
"""Lengths that are chosen from, in microseconds."""


def with_window(frame: DataFrame, time: str, length_us: int | None) -> DataFrame:
    """Return `frame` with `window_start` (time; null where `time` is) and `window_us`.

    The length is looked for with another look at the column where none is given.
    """
    if length_us is None:
        span = frame.agg(
            (F.unix_micros(F.max(time)) - F.unix_micros(F.min(time))).alias("_span")
        ).select(length_of("_span").alias("window_us"))
        frame = frame.crossJoin(F.broadcast(span))
    else:
        frame = frame.withColumn("window_us", F.lit(length_us).cast("long"))
    micros = F.unix_micros(F.col(time))
    start = F.timestamp_micros(micros - F.pmod(micros, F.col("window_us")))
    return frame.withColumn("window_start", start)


def length_of(span_us: str) -> Column:
    """Return the length that cuts a span into at most about `WINDOWS` windows; null: a second."""
    lengths = F.array(*(F.lit(length).cast("long") for length in LENGTHS_US))
    fitting = F.filter(lengths, lambda length: length * WINDOWS >= F.col(span_us))
    return F.when(F.col(span_us).isNull(), F.lit(_S)).otherwise(
        F.coalesce(F.try_element_at(fitting, F.lit(1)), F.lit(LENGTHS_US[-1]))
    )
