"""Percentiles of many groups in one pass: the buckets of `dissectors.histogram` in SQL.

Rules: values are counted in the same buckets as there (each power of two is cut into 64), so a
percentile is at most 0.8 % off, equals what `rmqtool decode pcap --summary` shows, and does not
depend on how the rows were spread. Cells (one row per group and bucket) are small and are added up
to any coarser group without another look at the exchanges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dissectors.histogram import SUB_BITS

from .expressions import ratio_of
from .relation import Relation

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


def with_bucket(relation: Relation, value: str) -> Relation:
    """Return a relation with `bucket`, in which `Histogram.add` counts a number; null for null.

    A column `_guess` holds the logarithm, so that it is computed once for each row.
    """
    shift = f"(({_power(value, '_guess')}) - {SUB_BITS})"
    bucket = (
        f"case when {value} < {_EXACT} then greatest({value}, 0L) "
        f"else cast({shift} as bigint) * {_PER_POWER} + shiftright({value}, {shift}) end"
    )
    return relation.adding({"_guess": _guess(value)}).adding({"bucket": bucket})


def power_below(value: str) -> str:
    """Return, as SQL, the greatest power of two that is not above a whole number; 0 below 1."""
    power = _power(value, _guess(value))
    return f"case when {value} < 1 then 0L else shiftleft(1L, {power}) end"


def _guess(value: str) -> str:
    """Return the exponent of `power_below`, which may be one off: Spark's `log2` takes two."""
    return f"cast(floor(ln(cast({value} as double)) * {1 / math.log(2)}D) as int)"


def _power(value: str, guess: str) -> str:
    """Return the exponent of `power_below`: a guess, put right."""
    return (
        f"case when {value} < shiftleft(1L, {guess}) then {guess} - 1 "
        f"when shiftright({value}, {guess}) > 1 then {guess} + 1 else {guess} end"
    )


def middle_of(bucket: str) -> str:
    """Return, as SQL, the value in the middle of a bucket: `dissectors.histogram.middle_of`."""
    shift = f"cast(shiftright({bucket}, {SUB_BITS}) - 1 as int)"
    low = f"shiftleft(({bucket} & {_PER_POWER - 1}) | {_PER_POWER}, {shift})"
    return (
        f"case when {bucket} < {_EXACT} then {bucket} "
        f"else {low} + shiftright(shiftleft(1L, {shift}), 1) end"
    )


def _rank_of(percent: float) -> str:
    """Return, as SQL, how many of `_all` values are below a percentile or are it, rounded up."""
    return f"(_all * {round(percent * 10)}L + 999) div 1000"


def percentiles(cells: Relation, keys: Sequence[str], sums: Sequence[str] = ()) -> Relation:
    """Return a row for each group of `keys`: the percentiles, and what is added up besides.

    `cells` has `bucket` (null: cells without a value), `values` (how many), `total_us`,
    `smallest_us`, `largest_us`, and the columns of `sums`, which are added up. The result has
    `values`, `mean_us`, `max_us`, those columns, and `PERCENTILES`; null where a group has no
    value.
    """
    added = ("values", "total_us", *(name for name in sums if name != "total_us"))
    cells = cells.grouped(  # far fewer rows to sort
        [*keys, "bucket"],
        {
            **{name: f"sum(`{name}`)" for name in added},
            "smallest_us": "min(smallest_us)",
            "largest_us": "max(largest_us)",
        },
    )
    quoted = ", ".join(f"`{key}`" for key in keys)
    group = f"partition by {quoted}" if keys else "partition by 1"
    counted = cells.select(
        "*",
        f"sum(values) over ({group} order by bucket range unbounded preceding) as _below",
        f"sum(values) over ({group}) as _all",
        f"case when bucket is not null then {middle_of('bucket')} end as _middle",
    )
    found = counted.grouped(
        keys,
        {
            "_values": "sum(values)",
            "mean_us": ratio_of("sum(total_us)", "sum(values)"),
            "_smallest": "min(smallest_us)",
            "max_us": "max(largest_us)",
            **{name: f"sum({name})" for name in sums},
            **{
                f"_{name}": f"min(if(_below >= {_rank_of(percent)}, _middle, null))"
                for name, percent in PERCENTILES
            },
        },
    )
    return found.select(
        *(f"`{key}`" for key in keys),
        "_values as values",
        "mean_us",
        "max_us",
        *sums,
        *(
            # least and greatest skip nulls: a group without values must stay without
            f"if(_{name} is null, null, least(greatest(_{name}, _smallest), max_us)) as {name}"
            for name, _ in PERCENTILES
        ),
    )
