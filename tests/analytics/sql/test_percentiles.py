"""Percentiles in SQL are those of `dissectors.histogram`, value by value."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.sql import percentiles as p
from analytics.sql.engine import SqlEngine
from analytics.sql.expressions import number_of
from analytics.sql.local import LocalEngine
from analytics.sql.relation import Relation
from dissectors.histogram import Histogram, middle_of

EDGES = sorted(
    {(1 << power) + near for power in range(63) for near in (-1, 0, 1)}
    | {-(2**63), -128, -1, 2**63 - 1}
    # where a logarithm is rounded to a whole number
    | {(1 << power) - (1 << power - 54) for power in range(54, 63)}
)
"""numbers at which buckets begin and end"""
Row = Mapping[str, object]


def assert_buckets(engine: SqlEngine, values: Relation) -> None:
    """Each `value` is in the bucket of `Histogram`, and of the power of two below; one is null."""
    counted = p.with_bucket(values, "value").adding({"power": p.power_below("bucket")})
    rows = {one["value"]: one for one in engine.rows(counted).to_pylist()}
    assert rows.pop(None) == {"value": None, "bucket": None, "power": None}
    for value, one in rows.items():
        histogram = Histogram()
        histogram.add(value)
        assert [one["bucket"]] == list(histogram.buckets), value
        assert one["power"] == (1 << value.bit_length() >> 1 if value > 0 else 0), value


def test_every_edge_falls_into_the_bucket_of_the_histogram() -> None:
    assert_buckets_here(EDGES)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2**20), min_size=1))
def test_any_number_falls_into_the_bucket_of_the_histogram(values: list[int]) -> None:
    assert_buckets_here(values)


def assert_buckets_here(values: Sequence[int]) -> None:
    engine = LocalEngine()
    held = engine.hold(pyarrow.table({"value": pyarrow.array([None, *values], "int64")}))
    assert_buckets(engine, held)
    engine.close()


def test_middles_are_those_of_the_histogram() -> None:
    engine = LocalEngine()
    buckets = engine.hold(pyarrow.table({"bucket": range(3600)}))
    found = buckets.select("bucket", f"{p.middle_of('bucket')} as middle")
    for one in engine.rows(found).to_pylist():
        assert one["middle"] == middle_of(one["bucket"]), one["bucket"]


def test_the_lowest_value_of_a_bucket_is_in_it_and_none_below() -> None:
    engine = LocalEngine()
    buckets = engine.hold(pyarrow.table({"number": range(1, 3600)}))
    lowest = buckets.select("number", f"{p.lowest_of('number')} as low").adding(
        {"below": "low - 1"}
    )
    twice = p.with_bucket(p.with_bucket(lowest, "low").renamed({"bucket": "own"}), "below")
    for one in engine.rows(twice).to_pylist():
        assert (one["own"], one["bucket"]) == (one["number"], one["number"] - 1)


def test_groups_of_one_number_have_no_percentiles(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", 5), ("a", 7), ("b", 9), ("c", None)]
    apart = _percentiles(rows)
    monkeypatch.setattr(p, "number_of", lambda columns: "1L")
    together = _percentiles(rows)
    for key, row in together.items():
        assert row["p50_us"] is None
        assert row["values"] == apart[key]["values"]
        assert row["max_us"] == apart[key]["max_us"]


def test_null_and_texts_have_different_numbers() -> None:
    engine = LocalEngine()
    texts = [None, "", "x"]
    rows = engine.hold(
        pyarrow.table(
            {"one": [text for text in texts for _ in texts], "other": [*texts, *texts, *texts]}
        )
    )
    numbers = engine.rows(rows.select(f"{number_of(('one', 'other'))} as number")).to_pylist()
    assert len({row["number"] for row in numbers}) == len(texts) ** 2


def _percentiles(rows: Sequence[tuple[str, int | None]]) -> dict[str, Row]:
    engine = LocalEngine()
    keys, values = zip(*rows, strict=True)
    held = engine.hold(
        pyarrow.table({"key": keys, "value": pyarrow.array(values, pyarrow.int64())})
    )
    cells = p.with_bucket(held, "value").grouped(
        ("key", "bucket"),
        {
            "values": "count(value)",
            "total_us": "sum(value)",
            "smallest_us": "min(value)",
            "largest_us": "max(value)",
            "seen": "count(*)",
        },
    )
    found = engine.rows(p.percentiles(cells, ["key"], ["seen"])).to_pylist()
    return {one["key"]: one for one in found}


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000])
def test_percentiles_are_those_of_the_histogram(count: int) -> None:
    chosen = random.Random(count)
    values = {key: [int(chosen.lognormvariate(8, 2)) for _ in range(count)] for key in ("a", "b")}
    rows = [(key, value) for key, several in values.items() for value in several]
    found = _percentiles([*rows, ("c", None)])
    for key, several in values.items():
        histogram = Histogram()
        for value in several:
            histogram.add(value)
        for name, percent in p.PERCENTILES:
            assert found[key][name] == histogram.percentile(percent), (key, name)
        assert found[key]["max_us"] == max(several)
        assert found[key]["mean_us"] == pytest.approx(sum(several) / count)
        assert found[key]["seen"] == count
    assert found["c"]["p50_us"] is None
    assert found["c"]["values"] == 0
    assert found["c"]["mean_us"] is None
