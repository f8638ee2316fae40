"""DuckDB and Spark execute the same text with the same rows, whatever the size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analytics.kept import Kept
from analytics.report import ReportOptions
from analytics.reports import REPORT_MODULES, report_of
from analytics.result import computed
from tests.analytics.reported import decoded, input_of, on_spark, session_of_large
from tests.expected import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.report import ReportInput

pytestmark = [pytest.mark.spark, pytest.mark.slow]
CAPTURES = sorted(
    str(file) for form in ("*.pcap", "*.pcapng", "*.pcap.gz") for file in SAMPLES.glob(form)
)
PARTS = 6
"""all samples are in so many inputs"""
FEW = ("fault-kill-5x", "grpc-disk-full-53", "fault-disk-full-plain-5x", "proxy-remoting-5x")


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


@pytest.mark.parametrize("part", range(PARTS))
def test_every_sample_gives_the_same_tables(spark: SparkSession, part: int) -> None:
    """Where tasks do the work: as of inputs that are large."""
    from analytics.inputs.source import read_here

    with decoded(CAPTURES[part::PARTS], messages=True) as inputs:
        given = read_here(inputs, messages=True).given
    expected = results_of(given)
    with session_of_large(spark):
        assert differing(results_of(on_spark(given, spark)), expected) == {}
    assert sum(len(rows) for rows in expected.values() if isinstance(rows, list)) > 1000


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("most", [None, -1], ids=["small", "all kept by Spark"])
def test_a_capture_gives_the_same_tables(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, most: int | None
) -> None:
    given = input_of((str(SAMPLES / f"{name}.pcap"),), messages=True)
    before = kept_in(spark)
    if most is not None:
        monkeypatch.setattr("analytics.spark.engine.MOST_HERE", most)
    with session_of_large(spark):
        found = results_of(on_spark(given, spark, small=most is None))
    expected = results_of(replace(given, kept=Kept(given.kept.engine)))
    assert differing(found, expected) == {}
    assert kept_in(spark) == before, "what was kept is let go"
