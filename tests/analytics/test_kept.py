"""What reports share: made once, equal to what each would make, and let go in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.kept import Kept
from analytics.sql.local import LocalEngine
from analytics.sql.relation import Relation
from tests.analytics.rows import report_input, row

if TYPE_CHECKING:
    from analytics.report import ReportInput
    from analytics.result import ReportResult


def test_what_is_made_once_is_made_again_for_something_else() -> None:
    kept, made = Kept(LocalEngine()), []

    def make() -> int:
        made.append(1)
        return len(made)

    assert [kept.once("a", of, make) for of in (1, 1, 2, 2)] == [1, 1, 2, 2]
    assert kept.once("b", 1, make) == 3
    kept.release(but=["b"])
    assert kept.once("b", 1, make) == 3
    assert kept.once("a", 2, make) == 4


NAMES = ["latency", "retries", "isolation", "overview", "quality"]
ROWS = [
    row(0, unique_key="A", response_code=2, response_name="SYSTEM_BUSY"),
    row(5000, unique_key="A", server_address="10.0.0.2:10911", broker_name="broker-b"),
    row(9000, unique_key="B"),
]


def results_of(given: ReportInput, names: list[str]) -> list[ReportResult]:
    from analytics.report import ReportOptions
    from analytics.reports import report_of
    from analytics.result import computed

    return computed([report_of(one) for one in names], given, ReportOptions())


def test_reports_together_are_the_reports_alone() -> None:
    for name, result in zip(NAMES, results_of(report_input(ROWS), NAMES), strict=True):
        (alone,) = results_of(report_input(ROWS), [name])
        # a table of several reports is in the first of them that was asked for
        assert {one: table.data.to_pylist() for one, table in result.tables.items()} == {
            one: table.data.to_pylist()
            for one, table in alone.tables.items()
            if one in result.tables
        }
        assert any(table.data.num_rows for table in result.tables.values())


def test_what_the_next_report_shares_stays() -> None:
    from analytics.report import ReportOptions
    from analytics.reports import report_of
    from analytics.reports.retries import limits_of
    from analytics.result import built
    from analytics.sends.stitched import STITCHED, stitched

    given = report_input([row(0, unique_key="A"), row(9000, unique_key="A")])
    options = ReportOptions()
    seen = []
    for report, _ in built([report_of("retries"), report_of("isolation")], given, options):
        assert STITCHED in report.shares
        seen.append(stitched(given, limits_of(options)))
    assert seen[0] is seen[1]
    assert stitched(given, limits_of(options)) is not seen[0]
    given.kept.release()


def test_what_is_let_go_is_dropped() -> None:
    given = report_input(ROWS)
    results_of(given, ["latency"])
    views = Relation(["n"], ["select count(*) as n from duckdb_views() where not internal"])
    assert given.kept.rows(views).column("n").to_pylist() == [1], (
        "the exchanges are there, what was made of them is not"
    )
