"""Requests in flight, against overlaps that are added up one by one."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import pytest

from analytics.reports.in_flight import SLICES
from tests.analytics.reported import tables_from
from tests.analytics.rows import START, report_input, row

WINDOW_US = 10_000
SLICE_US = WINDOW_US // SLICES
Stretch = tuple[int, int]


def overlap(stretches: Sequence[Stretch], start: int, length: int) -> float:
    """Return the average number of stretches during a time."""
    end = start + length
    return sum(max(0, min(end, b) - max(start, a)) for a, b in stretches) / length


def made(seed: int) -> dict[str, list[Stretch]]:
    """Return requests of two brokers: bursts, a long pause, and some that take several windows."""
    chance = random.Random(seed)
    found: dict[str, list[Stretch]] = defaultdict(list)
    for _ in range(120):
        begin = chance.choice((0, 25_000)) + chance.randrange(15_000)
        took = chance.choice((0, 3, 40, 700, 12_000))
        found[chance.choice(("broker-a", "broker-b"))].append((begin, begin + took))
    return found


@pytest.mark.parametrize("seed", range(2))
def test_averages_and_peaks_are_those_of_the_overlaps(seed: int) -> None:
    requests = made(seed)
    rows = [
        row(
            begin,
            opaque=place,
            latency_us=end - begin,
            broker_name=broker,
            server_address=f"10.0.0.{ord(broker[-1])}:10911",
        )
        for broker, stretches in requests.items()
        for place, (begin, end) in enumerate(stretches)
    ]
    given = report_input([*rows, row(5, latency_us=None)])
    tables = tables_from(
        "latency", given, "latency_brokers", "latency_over_time", window_us=WINDOW_US
    )
    windows = {(one["broker"], one["window_start"]): one for one in tables["latency_over_time"]}
    assert windows
    for (broker, start), one in windows.items():
        stretches = [
            stretch for name, some in requests.items() for stretch in some if broker in (None, name)
        ]
        at = round((start - START).total_seconds() * 1_000_000)  # type: ignore[operator]
        assert one["in_flight"] == pytest.approx(overlap(stretches, at, WINDOW_US)), one
        slices = range(at, at + WINDOW_US, SLICE_US)
        peak = max(overlap(stretches, begin, SLICE_US) for begin in slices)
        assert one["peak_in_flight"] == pytest.approx(peak), one
    for one in tables["latency_brokers"]:
        stretches = requests[str(one["broker"])]
        first, last = min(a for a, _ in stretches), max(b for _, b in stretches)
        whole = sum(b - a for a, b in stretches) / (last - first)
        assert one["in_flight"] == pytest.approx(whole)
        peak = max(overlap(stretches, at, SLICE_US) for at in range(0, last, SLICE_US))
        assert one["peak_in_flight"] == pytest.approx(peak)


def test_a_hang_without_new_requests_is_a_peak() -> None:
    rows = [row(at, opaque=at, latency_us=90_000 - at) for at in range(5)]
    given = report_input([*rows, row(95_000, opaque=9, latency_us=10)])
    tables = tables_from("latency", given, "latency_brokers", window_us=WINDOW_US)
    assert [one["peak_in_flight"] for one in tables["latency_brokers"]] == [5]
