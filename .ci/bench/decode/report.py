"""The benchmark's figures as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bench.captures.captures import Capture
from bench.measure import Measured

from .contestants import Contestant
from .floors import Verdict
from .startup import Startup


def print_table(
    everyone: Sequence[Contestant],
    figures: Mapping[str, Measured],
    capture_of_kind: Callable[[str], Capture],
) -> None:
    """Print one line per contestant: medians, rates, and CPU time in units of ours."""
    ours = figures.get("jsonl")
    parquet = figures.get("parquet")
    print(
        f"\n{'':52}{'wall s':>8}{'cpu s':>8}{'packets/s':>11}{'MB/s':>6}{'RSS MiB':>9}"
        f"{'others':>8}{'/jsonl':>8}{'/parquet':>9}"
    )
    for who in everyone:
        took = figures.get(who.key)
        if took is None:
            continue
        capture = capture_of_kind(who.capture)
        packets = capture.count("packets")
        rate = packets / took.wall
        size = capture.count("file_bytes") / took.wall / 1e6
        same = who.capture == "main"
        print(
            f"{who.title:52}{took.wall:8.2f}{took.cpu:8.2f}{rate:11,.0f}{size:6.0f}"
            f"{took.rss:9.0f}{took.others:8.2f}"
            f"{_ratio(took, ours if same else None):>8}{_ratio(took, parquet if same else None):>9}"
        )


def _ratio(took: Measured, ours: Measured | None) -> str:
    return f"{took.cpu / ours.cpu:.2f}" if ours else "-"


def print_growth(growth: Mapping[str, Mapping[int, Measured]]) -> None:
    """Print CPU time and memory of our own contestants by the size of the capture."""
    if not any(growth.values()):
        return
    print(f"\n{'growth':12}{'packets':>12}{'cpu s':>9}{'µs/packet':>11}{'RSS MiB':>9}")
    for key, by_size in growth.items():
        for size in sorted(by_size):
            took = by_size[size]
            each = took.cpu / size * 1e6
            print(f"{key:12}{size:12,}{took.cpu:9.2f}{each:11.2f}{took.rss:9.0f}")


def print_startup(startup: Startup | None) -> None:
    """Print the start-up of the command line."""
    if startup is not None:
        nothing, shown = startup.nothing, startup.help
        print(
            f"\nstart-up, ms of wall clock (CPU): python -c pass {nothing.wall * 1e3:.0f} "
            f"({nothing.cpu * 1e3:.0f}), rmqtool --help {shown.wall * 1e3:.0f} "
            f"({shown.cpu * 1e3:.0f}), {shown.cpu / nothing.cpu:.1f} times as much CPU\n"
        )


def print_verdicts(verdicts: Sequence[Verdict], wrong: Sequence[str]) -> None:
    """Print each floor, and every output that was not as it should be."""
    for verdict in verdicts:
        print(f"{verdict.outcome:7}{verdict.what}: {verdict.measured}")
    for line in wrong:
        print(f"WRONG  {line}")
