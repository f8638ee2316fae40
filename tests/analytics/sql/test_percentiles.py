"""Percentiles in SQL are those of `dissectors.histogram`, value by value."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pyarrow
import pytest

from analytics.sql import percentiles as p
from analytics.sql.local import LocalEngine
from dissectors.histogram import Histogram, middle_of

EDGES = sorted(
    {max(0, (1 << power) + near) for power in range(62) for near in (-1, 0, 1)} | {2**62 - 1}
)
Row = Mapping[str, object]


def test_every_edge_falls_into_the_bucket_of_the_histogram() -> None:
    engine = LocalEngine()
    values = engine.hold(pyarrow.table({"value": EDGES}))
    rows = engine.rows(p.with_bucket(values, "value")).to_pylist()
    assert len(rows) == len(EDGES)
    for one in rows:
        histogram = Histogram()
        histogram.add(one["value"])
        assert [one["bucket"]] == list(histogram.buckets), one["value"]


def test_middles_are_those_of_the_histogram() -> None:
    engine = LocalEngine()
    buckets = engine.hold(pyarrow.table({"bucket": range(3600)}))
    found = buckets.select("bucket", f"{p.middle_of('bucket')} as middle")
    for one in engine.rows(found).to_pylist():
        assert one["middle"] == middle_of(one["bucket"]), one["bucket"]


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
