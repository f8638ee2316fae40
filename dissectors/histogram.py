"""Percentiles of many values in bounded memory: a histogram with log-linear buckets.

Rules: values below 128 have a bucket each; each higher power of two has 64 buckets, and a
percentile is the middle of its bucket. A percentile is off by at most 0.8 %, and values of 64 bits
need at most 3,776 buckets. Histograms can be added up.
"""

from __future__ import annotations

from typing import Final

SUB_BITS: Final = 6
"""each power of two has 2**SUB_BITS buckets"""
_EXACT: Final = 1 << (SUB_BITS + 1)
_SUB_MASK: Final = (1 << SUB_BITS) - 1


class Histogram:
    """Counts of non-negative integers; a negative value counts as 0."""

    __slots__ = ("buckets", "count", "largest", "smallest", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        """number of a bucket -> values in it"""
        self.count = 0
        """number of values"""
        self.total = 0
        """their sum"""
        self.smallest = 0
        """smallest value, or 0"""
        self.largest = 0
        """largest value, or 0"""

    @property
    def maximum(self) -> int | None:
        """Largest value, or None."""
        return self.largest if self.count else None

    def add(self, value: int) -> None:
        """Count a value."""
        if value < _EXACT:
            value = max(value, 0)
            bucket = value
        else:
            # The highest SUB_BITS + 1 bits of a value choose its bucket.
            shift = value.bit_length() - SUB_BITS - 1
            bucket = (shift << SUB_BITS) + (value >> shift)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        if not self.count or value < self.smallest:
            self.smallest = value
        if value > self.largest:
            self.largest = value
        self.count += 1
        self.total += value

    def merge(self, other: Histogram) -> None:
        """Count all values of `other`."""
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        if other.count:
            self.smallest = min(self.smallest, other.smallest) if self.count else other.smallest
            self.largest = max(self.largest, other.largest)
        self.count += other.count
        self.total += other.total

    def percentile(self, percent: float) -> int | None:
        """Return the value that `percent` of the values do not exceed, or None without values."""
        if not self.count:
            return None
        rank = max(1, -(-self.count * percent // 100))
        seen = 0
        for bucket, count in sorted(self.buckets.items()):
            seen += count
            if seen >= rank:
                return min(max(middle_of(bucket), self.smallest), self.largest)
        return self.largest


def middle_of(bucket: int) -> int:
    """Return the value in the middle of a bucket."""
    if bucket < _EXACT:
        return bucket
    shift = (bucket >> SUB_BITS) - 1
    low = ((bucket & _SUB_MASK) | (1 << SUB_BITS)) << shift
    return low + ((1 << shift) >> 1)
