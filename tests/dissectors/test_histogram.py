"""Percentiles from buckets, against the sorted values."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from dissectors.histogram import Histogram, middle_of

_VALUES = st.lists(st.integers(0, 2**63) | st.integers(0, 5000), min_size=1, max_size=200)


def histogram(values: list[int]) -> Histogram:
    result = Histogram()
    for value in values:
        result.add(value)
    return result


@given(_VALUES, st.sampled_from([0, 1, 50, 90, 99, 99.9, 100]))
def test_a_percentile_is_at_most_the_documented_error_off(
    values: list[int], percent: float
) -> None:
    exact = sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]
    found = histogram(values).percentile(percent)
    assert found is not None
    assert abs(found - exact) <= exact * 0.008


@given(_VALUES, _VALUES)
def test_merging_is_counting_both(first: list[int], second: list[int]) -> None:
    merged = histogram(first)
    merged.merge(histogram(second))
    both = histogram(first + second)
    assert merged.buckets == both.buckets
    assert (merged.count, merged.total) == (both.count, both.total)
    assert (merged.smallest, merged.largest) == (both.smallest, both.largest)


@given(st.integers(0, 2**64))
def test_the_middle_of_a_bucket_is_in_the_bucket(value: int) -> None:
    ((bucket, _),) = histogram([value]).buckets.items()
    assert histogram([middle_of(bucket)]).buckets == {bucket: 1}


def test_memory_is_bounded() -> None:
    result = Histogram()
    for shift in range(64):
        for step in range(200):
            result.add((1 << shift) + step * max(1, (1 << shift) // 200))
    assert len(result.buckets) <= 3776


def test_nothing_and_less_than_nothing() -> None:
    assert Histogram().percentile(50) is None
    assert histogram([-5]).percentile(50) == 0
    empty = Histogram()
    empty.merge(histogram([7]))
    assert (empty.smallest, empty.largest) == (7, 7)
    empty.merge(Histogram())
    assert (empty.smallest, empty.count) == (7, 1)
