"""Two inputs side by side: what changed by more than chance, against simulation and by hand."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

import pytest

from analytics.compare import SIGNIFICANT, compared, growth, two_shares, welch
from analytics.report import ReportOptions
from analytics.reports import report_of
from analytics.result import ReportResult, computed
from dissectors.histogram import Histogram
from tests.analytics.reported import tables_from
from tests.analytics.rows import report_input, row

Latencies = Sequence[int]


def result_of(latencies: Latencies, refused: int = 0) -> list[ReportResult]:
    """Return the latency report of sends that took so long, of which the first were refused."""
    busy = {"response_code": 2, "response_name": "SYSTEM_BUSY"}
    rows = [
        row(at * 1000, opaque=at, latency_us=latency, **(busy if at < refused else {}))
        for at, latency in enumerate(latencies)
    ]
    options = ReportOptions(tables=frozenset(("operations",)))
    report = report_of("latency")
    return computed([report], report_input(rows), options)


def change_of(now: list[ReportResult], before: list[ReportResult]) -> dict[str, object]:
    """Return the row of the sends when both are compared."""
    (found,) = compared(now, before)
    (only,) = found.tables["operations"].rows()
    return dict(only)


def latencies_of(seed: int, count: int, median: int) -> list[int]:
    """Return latencies as networks have them: a long tail."""
    chance = random.Random(seed)
    return [round(median * chance.lognormvariate(0, 0.6)) for _ in range(count)]


@pytest.mark.slow
def test_a_slower_broker_is_significant_and_chance_is_not() -> None:
    before = result_of(latencies_of(1, 600, 2000))
    slower = change_of(result_of(latencies_of(2, 600, 2600)), before)
    assert slower[SIGNIFICANT] == ["latency up"]
    faster = change_of(before, result_of(latencies_of(2, 600, 2600)))
    assert faster[SIGNIFICANT] == ["latency down"]
    for seed in range(3, 8):
        assert change_of(result_of(latencies_of(seed, 600, 2000)), before)[SIGNIFICANT] == []


def test_more_failures_are_significant() -> None:
    latencies = latencies_of(1, 400, 2000)
    found = change_of(result_of(latencies, refused=40), result_of(latencies, refused=8))
    assert found[SIGNIFICANT] == ["failures up"]
    assert (found["failed"], found["failed_before"], found["failed_change"]) == (40, 8, 4.0)
    few = change_of(result_of(latencies[:20], refused=10), result_of(latencies[:20]))
    assert SIGNIFICANT not in few  # nothing was tested


def test_mean_and_deviation_are_of_the_histograms_buckets() -> None:
    latencies = latencies_of(5, 200, 900)
    histogram = Histogram()
    for latency in latencies:
        histogram.add(latency)
    buckets = [bucket for bucket, count in histogram.buckets.items() for _ in range(count)]
    rows = [row(at, opaque=at, latency_us=latency) for at, latency in enumerate(latencies)]
    (found,) = tables_from("latency", report_input(rows), "operations")["operations"]
    assert found["bucket_mean"] == pytest.approx(statistics.fmean(buckets))
    assert found["bucket_sd"] == pytest.approx(statistics.stdev(buckets))


def test_two_shares() -> None:
    """150 of 1000, then 200 of 1000: z = 50 / 1000 / sqrt(0.175 * 0.825 * 2 / 1000) = 2.942."""
    normal = statistics.NormalDist()
    assert two_shares(150, 1000, 200, 1000) == pytest.approx(
        2 * (1 - normal.cdf(2.94245)), rel=1e-3
    )
    assert two_shares(0, 1000, 2, 1000) is None
    assert two_shares(10, 20, 0, 20) is None


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_welch_is_as_probable_as_permutations(shift: float) -> None:
    chance = random.Random(11)
    one = [chance.gauss(5, 1) for _ in range(80)]
    other = [chance.gauss(5 + shift, 1.5) for _ in range(80)]
    found = welch(
        (statistics.fmean(one), statistics.stdev(one), 80),
        (statistics.fmean(other), statistics.stdev(other), 80),
    )
    difference = abs(statistics.fmean(one) - statistics.fmean(other))
    every, extreme = [*one, *other], 0
    for _ in range(4000):
        chance.shuffle(every)
        extreme += abs(statistics.fmean(every[:80]) - statistics.fmean(every[80:])) >= difference
    assert found == pytest.approx(extreme / 4000, abs=0.03)


def test_growth_of_nothing_is_unknown() -> None:
    assert growth(2, 3) == 0.5
    assert growth(0, 3) is None
    assert growth(None, 3) is None
