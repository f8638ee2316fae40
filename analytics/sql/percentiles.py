"""Percentiles of many groups in one pass: the buckets of `dissectors.histogram` in SQL.

Rules: values are counted in the same buckets (64 per power of two), so a percentile is at most 0.8
% off, equals that of `rmqtool decode pcap --summary`, and does not depend on the distribution of
rows. Cells (one row per group and bucket) are small and can be summed to any coarser group without
another pass over the exchanges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dissectors.histogram import SUB_BITS

from .expressions import number_of, ratio_of
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
    """Return a relation with `bucket`, that of `Histogram.add` for a number; null for null."""
    # A logarithm rounded across a power of two changes nothing: the bucket after the last one of a
    # power is the first one of the next.
    power = f"cast(floor(log10(greatest({value}, {_EXACT - 1}L)) * {1 / math.log10(2)}D) as int)"
    shifted = relation.adding({"_shift": f"{power} - {SUB_BITS}"})
    bucket = f"_shift * {_PER_POWER}L + shiftright(if({value} < 0, 0L, {value}), _shift)"
    return shifted.adding({"bucket": bucket}).without("_shift")


def power_below(bucket: str) -> str:
    """Return, as SQL, the largest power of two not above a bucket's values; 0 for 0."""
    small = " ".join(f"when {bucket} < {2 << bits} then {1 << bits}L" for bits in range(SUB_BITS))
    power = f"shiftleft({_PER_POWER}L, {_shift_of(bucket)})"
    return f"case when {bucket} < 1 then 0L {small} else {power} end"


def lowest_of(bucket: str) -> str:
    """Return, as SQL, the smallest value of a bucket; null for that of 0 and negative numbers."""
    return f"case when {bucket} < {_EXACT} then nullif({bucket}, 0L) else {_low_of(bucket)} end"


def middle_of(bucket: str) -> str:
    """Return, as SQL, the middle value of a bucket: `dissectors.histogram.middle_of`."""
    half = f"shiftright(shiftleft(1L, {_shift_of(bucket)}), 1)"
    return f"case when {bucket} < {_EXACT} then {bucket} else {_low_of(bucket)} + {half} end"


def _shift_of(bucket: str) -> str:
    return f"cast(shiftright({bucket}, {SUB_BITS}) - 1 as int)"


def _low_of(bucket: str) -> str:
    return f"shiftleft(({bucket} & {_PER_POWER - 1}) | {_PER_POWER}, {_shift_of(bucket)})"


def _rank_of(percent: float) -> str:
    """Return, as SQL, the rank of a percentile among `_all` values, rounded up."""
    # In whole tenths of a percent, since 99.9 is not exact as a floating-point number.
    return f"(_all * {round(percent * 10)}L + 999) div 1000"


def percentiles(
    cells: Relation, keys: Sequence[str], sums: Sequence[str] = (), buckets: Relation | None = None
) -> Relation:
    """Return a row for each group of `keys`: the percentiles and additional sums.

    `cells` has `values` (count), `total_us`, `smallest_us`, `largest_us`, and the columns in
    `sums`, which are added up; and `bucket` (null: cells without a value), or `id`: then `buckets`
    has `id`, `bucket`, and `values`. The result has `values`, `mean_us`, `max_us`, those columns,
    `PERCENTILES`, and mean and standard deviation of the buckets, `bucket_mean` and `bucket_sd`;
    null for a group without values.
    """
    number = {"_group": number_of(keys)}
    if buckets is None:
        placed = cells.where("bucket is not null").adding(number)
    else:
        placed = buckets.join(cells.adding(number).select_distinct("id", "_group"), ["id"])
    counts = placed.grouped(("_group", "bucket"), {"values": "sum(values)"})
    ranked = counts.select(
        *("_group", "bucket", "values"),
        "sum(values) over (partition by _group order by bucket range unbounded preceding)"
        " as _below",
        "sum(values) over (partition by _group) as _all",
        f"{middle_of('bucket')} as _middle",
    )
    found = ranked.grouped(
        ("_group",),
        {
            "_found": "sum(values)",
            "_buckets": "cast(sum(bucket * values) as double)",
            "_squares": "cast(sum(bucket * bucket * values) as double)",
            **{
                f"_{name}": f"min(if(_below >= {_rank_of(percent)}, _middle, null))"
                for name, percent in PERCENTILES
            },
        },
    )
    groups = cells.grouped(
        keys,
        {
            "_values": "sum(values)",
            "_mean_us": ratio_of("sum(total_us)", "sum(values)"),
            "_smallest": "min(smallest_us)",
            "max_us": "max(largest_us)",
            **{name: f"sum({name})" for name in sums},
        },
    )
    # two groups of one number have the values of both there, and no percentiles
    result = groups.adding(number).join(
        found,
        "one._group = other._group and _values = _found",
        "left",
        select=(
            *(f"one.`{name}`" for name in groups.columns),
            *(f"other.`{name}`" for name in found.columns if name != "_group"),
        ),
    )
    return result.select(
        *(f"`{key}`" for key in keys),
        "_values as values",
        f"{ratio_of('_buckets', '_values')} as bucket_mean",
        "if(_values < 2, null, sqrt(greatest((_squares - _buckets * _buckets / _values)"
        " / (_values - 1), 0D))) as bucket_sd",
        # engines add invalid numbers beyond 2^53 in different orders
        f"if(_mean_us < {2**53}D, _mean_us, round(_mean_us, -6)) as mean_us",
        "max_us",
        *sums,
        *(
            # least and greatest skip nulls, but a group without values must keep them
            f"if(_{name} is null, null, least(greatest(_{name}, _smallest), max_us)) as {name}"
            for name, _ in PERCENTILES
        ),
    )
