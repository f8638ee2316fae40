"""What reports share: made once, equal to what each would make, and let go in time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analytics.kept import MOST_HERE, Kept
from tests.analytics.reported import session_of_large
from tests.analytics.rows import report_input, row
from tests.expected import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.report import ReportInput
    from analytics.result import ReportResult


def kept_in(spark: SparkSession) -> int:
    """Return how many frames Spark keeps, filled or not."""
    manager = spark._jsparkSession.sharedState().cacheManager()  # type: ignore[attr-defined]
    return int(manager.numCachedEntries())


def test_what_is_made_once_is_made_again_for_something_else() -> None:
    kept, made = Kept(), []

    def make() -> int:
        made.append(1)
        return len(made)

    assert [kept.once("a", of, make) for of in (1, 1, 2, 2)] == [1, 1, 2, 2]
    assert kept.once("b", 1, make) == 3
    kept.let_go(but=["b"])
    assert kept.once("b", 1, make) == 3
    assert kept.once("a", 2, make) == 4


NAMES = ["latency", "retries", "isolation", "overview", "quality"]
ROWS = [
    row(0, unique_key="A", response_code=2, response_name="SYSTEM_BUSY"),
    row(5000, unique_key="A", responder="10.0.0.2:10911", broker_name="broker-b"),
    row(9000, unique_key="B"),
]


def results_of(given: ReportInput, names: list[str]) -> list[ReportResult]:
    from analytics.report import ReportOptions
    from analytics.reports import report_of
    from analytics.result import computed

    return computed([report_of(one) for one in names], given, ReportOptions())


def assert_same(found: ReportResult, expected: ReportResult) -> None:
    assert {one: table.data.to_pylist() for one, table in found.tables.items()} == {
        one: table.data.to_pylist() for one, table in expected.tables.items()
    }
    assert any(table.data.num_rows for table in found.tables.values())


def test_reports_together_are_the_reports_alone(spark: SparkSession) -> None:
    for name, result in zip(NAMES, results_of(report_input(spark, ROWS), NAMES), strict=True):
        (alone,) = results_of(report_input(spark, ROWS), [name])
        assert_same(result, alone)


@pytest.mark.parametrize(
    ("name", "reports", "most"),
    [
        ("fault-kill-5x", NAMES, -1),  # so that all that is kept is kept by Spark
        ("grpc-disk-full-53", ["retries"], MOST_HERE),
        ("fault-disk-full-plain-5x", ["latency", "isolation"], MOST_HERE),  # attempts as numbers
        ("proxy-remoting-5x", ["retries", "isolation"], MOST_HERE),
    ],
)
def test_a_small_input_gives_what_a_large_one_does(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    reports: list[str],
    most: int,
) -> None:
    from analytics.inputs.inputs import inputs_of
    from analytics.inputs.source import read_inputs

    # Read by tasks: rows of this process would stand in each plan.
    small = read_inputs(spark, inputs_of([str(SAMPLES / f"{name}.pcap")])).given
    assert small.small
    large = replace(small, kept=Kept())
    before = kept_in(spark)
    monkeypatch.setattr("analytics.kept.MOST_HERE", most)
    with session_of_large(spark):
        results = zip(results_of(small, reports), results_of(large, reports), strict=True)
    for one, other in results:
        assert_same(one, other)
    assert kept_in(spark) == before, "what was kept is let go"


def test_a_small_input_is_read_once_and_exchanges_nothing(spark: SparkSession) -> None:
    from analytics.inputs.filters import chosen
    from analytics.spark.expressions import grouped

    made = report_input(spark, ROWS)
    given = chosen(replace(made, kept=Kept(small=True)))
    assert given.kept.rows(given.exchanges) is given.kept.rows(given.exchanges)
    assert given.kept.rows(given.exchanges).num_rows == len(ROWS)
    counted = given.kept.frame(grouped(given.exchanges, ["unique_key"], {"seen": "count(*)"}))
    joined = given.exchanges.join(counted, "unique_key").groupBy("seen").count()
    assert sorted(joined.collect()) == [(1, 1), (2, 2)]
    plan = joined._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    assert "Exchange" not in plan
    assert plan.count("Join") == 1


def test_what_the_next_report_shares_stays(spark: SparkSession) -> None:
    from analytics.report import ReportOptions
    from analytics.reports import report_of
    from analytics.reports.retries import limits_of
    from analytics.result import built
    from analytics.sends.stitched import STITCHED, stitched

    given = report_input(spark, [row(0, unique_key="A"), row(9000, unique_key="A")])
    options = ReportOptions()
    seen = []
    for report, _ in built([report_of("retries"), report_of("isolation")], given, options):
        assert STITCHED in report.shares
        seen.append(stitched(given, limits_of(options)))
    assert seen[0] is seen[1]
    assert stitched(given, limits_of(options)) is not seen[0]
    given.kept.let_go()
