"""DuckDB and Spark execute the same text with the same rows, whatever the size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analytics.report import ReportOptions
from analytics.reports import REPORT_MODULES, report_of
from analytics.result import computed
from analytics.spark.engine import MOST_HERE
from tests.analytics.reported import decoded, on_spark
from tests.expected import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.report import ReportInput

pytestmark = [pytest.mark.spark, pytest.mark.slow]
CAPTURES = sorted(
    str(file) for form in ("*.pcap", "*.pcapng", "*.pcap.gz") for file in SAMPLES.glob(form)
)


def results_of(given: ReportInput) -> dict[str, object]:
    """Return the rows of all tables, and the remarks, by name."""
    found: dict[str, object] = {}
    for result in computed([report_of(name) for name in REPORT_MODULES], given, ReportOptions()):
        found[f"remarks of {result.report.name}"] = result.remarks
        found |= {name: table.data.to_pylist() for name, table in result.tables.items()}
    return found


def differing(one: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    """Return what two engines do not have in common, by table."""
    assert one.keys() == other.keys()
    return {name: (rows, other[name]) for name, rows in one.items() if rows != other[name]}


def kept_in(spark: SparkSession) -> int:
    """Return how many frames Spark keeps, filled or not."""
    manager = spark._jsparkSession.sharedState().cacheManager()  # type: ignore[attr-defined]
    return int(manager.numCachedEntries())


@pytest.fixture(scope="module")
def every_sample() -> ReportInput:
    """All samples as one input: Spark takes about as long for a query of few rows as of more."""
    from analytics.inputs.source import read_here

    with decoded(CAPTURES, messages=True) as inputs:
        return read_here(inputs, messages=True).given


@pytest.fixture(scope="module")
def expected(every_sample: ReportInput) -> dict[str, object]:
    """What DuckDB makes of all samples."""
    found = results_of(every_sample)
    assert sum(len(rows) for rows in found.values() if isinstance(rows, list)) > 6000
    return found


@pytest.mark.parametrize("most", [-1, MOST_HERE], ids=["all by Spark", "kept rows by DuckDB"])
def test_every_sample_gives_the_same_tables(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    every_sample: ReportInput,
    expected: dict[str, object],
    most: int,
) -> None:
    before = kept_in(spark)
    monkeypatch.setattr("analytics.spark.engine.MOST_HERE", most)
    assert differing(results_of(on_spark(every_sample, spark)), expected) == {}
    assert kept_in(spark) == before, "what was kept is let go"
